"""Changes that the API server rejects because a field of an existing object cannot be changed.

The response has no reason of its own for them: the pod template of a Job, the spec of a Pod, a selector and a `roleRef`
are rejected like any invalid value, and only the text of a cause differs.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ocf.component.apply.deleter import OwnedObjectDeleter
from ocf.errors import AlreadyExistsError, ConfigError, InvalidError, OcfError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from ocf.component.model.context import ReconcileContext
    from ocf.objects import Manifest

__all__ = ["delete_for_recreation", "immutable_fields", "immutable_problem"]

# Texts of the validation of Kubernetes 1.36, and usual ones of the rules of custom kinds (`self == oldSelf`).
_TEXTS: Final = re.compile(
    r"immutable|may not change|may not be changed|cannot be changed|cannot change|for fields other than", re.IGNORECASE
)


def immutable_fields(error: OcfError) -> tuple[str, ...]:
    """Return the fields of a rejected update that cannot be changed; none if anything else is invalid as well.

    Args:
        error: The error of the API server.

    Example:
        >>> from ocf.errors import StatusCause
        >>> causes = (StatusCause("FieldValueInvalid", "Invalid value: {}: field is immutable", "spec.selector"),)
        >>> immutable_fields(InvalidError("invalid", causes=causes))
        ('spec.selector',)
    """
    if not isinstance(error, InvalidError) or not all(_TEXTS.search(cause.message) for cause in error.causes):
        return ()
    return tuple(dict.fromkeys(cause.field for cause in error.causes))


def immutable_problem(fields: tuple[str, ...]) -> str:
    """Return the text for an author who changes such fields.

    Args:
        fields: The fields; at least one. Their values may be large, and are not in the text.
    """
    return (
        f"{', '.join(fields)} cannot be changed in the existing object: keep the value, give the resource another "
        "name, or register it with recreate_on_immutable_change, which deletes the object with its dependents and its "
        "data, and creates it again"
    )


async def delete_for_recreation(component: str, context: ReconcileContext, live: Manifest, desired: Manifest) -> None:
    """Delete an object, so that a later reconcile creates it again.

    Args:
        component: Name of the component.
        context: The reconcile of the owner.
        live: The live object.
        desired: The object that will be created.

    Raises:
        ConfigError: If the object does not belong to the component.
        OcfError: If the API server would not accept the new object, or the delete fails; then nothing is deleted.
    """
    deleter = OwnedObjectDeleter(component, context)
    kept = deleter.reason_to_keep(live)
    if kept:
        raise ConfigError(f"{ObjectKey.of(live)} is not deleted to be created again: {kept}")
    # The API server validates an object before it looks for one of the same name, so it accepts the new one.
    with suppress(AlreadyExistsError):
        await context.cluster.create(desired, field_manager=context.owned_by.field_manager(component), dry_run=True)
    await deleter.delete(live)
