"""Defaults of the API server that contradict a new value.

A Deployment without a strategy gets `rollingUpdate` from the API server. No field manager owns that, so no apply
removes it, and beside `type: Recreate` it is invalid: such an apply is rejected again and again. An explicit null does
not help, because an apply takes it for a field that is not declared. Likewise for a StatefulSet that becomes
`OnDelete`, and for a volume without a source, which gets `emptyDir`.

So the field is claimed first, by a change of `managedFields` that changes no value and starts no rollout, and the same
apply is sent again: it drops the field. After a crash in between, the next apply drops it. The rejection says which
field it is, so no table of unions is needed. Only what no field manager owns and the desired object does not declare is
claimed, which a server sets again if it is still its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ocf.component.apply.managed_fields_patch import OwnershipChange, change_ownership
from ocf.component.apply.recreation import immutable_fields
from ocf.component.apply.rejected_fields import field_steps, places
from ocf.errors import ApiError, InvalidError
from ocf.objects import Manifest
from ocf.objects.field_errors import ErrorType
from ocf.objects.managed_fields import ManagedFields, union
from ocf.objects.owned_paths import ABSENT, OwnedPath, value_at
from ocf.objects.paths import get_field, with_field

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = ["claim_defaults", "contradicted_fields", "contradicting_defaults"]

_UNION: Final = "more than 1 "
_CONTRADICTED: Final = frozenset({ErrorType.FORBIDDEN, ErrorType.INVALID})


async def claim_defaults(
    cluster: Cluster, live: Manifest, desired: Manifest, manager: str, error: InvalidError
) -> bool:
    """Become the owner of the defaults that a rejected apply contradicts; return whether there are any."""

    async def decide(whole: Manifest) -> OwnershipChange | None:
        defaults = contradicting_defaults(error, desired, whole)
        return OwnershipChange(_with_fields(whole, manager, defaults), {}) if defaults else None

    if immutable_fields(error) or not contradicting_defaults(error, desired, live):
        return False
    return (await change_ownership(cluster, live, manager, decide))[1]


def contradicting_defaults(error: InvalidError, desired: Manifest, live: Manifest) -> list[OwnedPath]:
    """Return the fields that no manager owns, that an object does not declare, and that its rejection is about.

    A cause names such a field itself, or another member of its union: two volume sources are reported at the one that
    the server looks at last.

    Example:
        >>> from ocf.errors import StatusCause
        >>> cause = StatusCause("FieldValueForbidden", "may not be specified", "spec.strategy.rollingUpdate")
        >>> live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}, "metadata": {}}
        >>> desired = {"spec": {"strategy": {"type": "Recreate"}}}
        >>> contradicting_defaults(InvalidError("", causes=(cause,)), desired, live)
        [('f:spec', 'f:strategy', 'f:rollingUpdate')]
    """
    owned = union(*(entry.fields for entry in ManagedFields.of(live).entries))
    return [at for at in _contradicted(error, desired, live, owned) if get_field(owned, at) is None]


def contradicted_fields(error: ApiError, desired: Manifest, live: Manifest) -> list[OwnedPath]:
    """Return the fields that an object does not declare, and that its rejection names as contradicting a declared one.

    Of a rejection that names a declared field, these are the members of the same union, if its text is about a union.

    Example:
        >>> from ocf.errors import StatusCause
        >>> causes = (StatusCause("FieldValueForbidden", "may not specify more than 1 handler type", "probe.httpGet"),)
        >>> live = {"probe": {"exec": {"command": ["true"]}}, "metadata": {}}
        >>> desired = {"probe": {"httpGet": {"port": 80}}}
        >>> contradicted_fields(InvalidError("", causes=causes), desired, live)
        [('f:probe', 'f:exec')]
    """
    owned = union(*(entry.fields for entry in ManagedFields.of(live).entries))
    return _contradicted(error, desired, live, owned, union_text=_UNION)


def _contradicted(
    error: ApiError, desired: Manifest, live: Manifest, owned: Manifest, *, union_text: str = ""
) -> list[OwnedPath]:
    """Return the fields that an object does not declare, and that a rejection is about.

    Args:
        owned: The `fieldsV1` of all field managers.
        union_text: What the text of a rejection has if it is about the other members of a union; empty for any text.
    """
    found: dict[OwnedPath, None] = {}
    for cause in error.causes:
        steps = field_steps(cause.field)
        *parents, name = steps or [""]
        if cause.reason in _CONTRADICTED:
            found |= dict.fromkeys(places(live, owned, steps))
        if cause.reason == ErrorType.FORBIDDEN and parents and union_text in cause.message:
            for parent in places(live, owned, parents):
                if value_at(desired, (*parent, f"f:{name}")) is not ABSENT:
                    found |= dict.fromkeys(_members(live, parent))
    return [at for at in found if value_at(desired, at) is ABSENT]


def _members(live: Manifest, parent: OwnedPath) -> Iterator[OwnedPath]:
    """Yield the places below a struct that may be members of a union, which are structs themselves."""
    value = value_at(live, parent)
    for name, member in value.items() if isinstance(value, Mapping) else ():
        if isinstance(member, Mapping):
            yield (*parent, f"f:{name}")


def _with_fields(live: Manifest, manager: str, more: Sequence[OwnedPath]) -> list[Manifest]:
    """Return the entries of `managedFields` with a manager that has applied more fields."""
    managed = ManagedFields.of(live)
    fields = managed.owned_by(manager)
    claimed = fields or {}
    for place in more:
        claimed = with_field(claimed, list(place), {})
    if fields is None:
        # An entry without a time gets the time of the request.
        entry = {"manager": manager, "operation": "Apply", "apiVersion": live["apiVersion"], "fieldsType": "FieldsV1"}
        return [*managed.manifests, {**entry, "fieldsV1": claimed}]
    own = (manager, "Apply", "")
    return [
        {**entry.manifest, "fieldsV1": claimed} if entry.manager == own else entry.manifest for entry in managed.entries
    ]
