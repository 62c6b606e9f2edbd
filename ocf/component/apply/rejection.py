"""The error about a rejected update: which fields are the reason, and what the author can do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ocf.component.apply.leftovers import leftover_problem
from ocf.component.apply.recreation import immutable_fields
from ocf.errors import AlreadyExistsError, ConfigError, InvalidError, OcfError
from ocf.objects.field_errors import ErrorType

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.errors import ApiError, StatusCause
    from ocf.objects import Manifest

__all__ = ["explained", "immutable_problem"]

_MOST_PATHS: Final = 5
_KEEP: Final = "keep the value, give the resource another name, or delete the object, which is then created again"
_REMEDY: Final = (
    "keep the value, give the resource another name, or register it with recreate_on_immutable_change, which "
    "deletes the object with its dependents and its data, and creates it again"
)


async def explained(
    cluster: Cluster,
    error: ApiError,
    cause: OcfError,
    states: tuple[Manifest, Manifest],
    *,
    manager: str,
    changed: Sequence[str],
) -> OcfError:
    """Return the error of a rejected update with what to do about it; the same one if nothing is known.

    Args:
        cause: The error without values that no message may quote; the same as `error` if there are none.
        states: The live object and the desired one.
        manager: Our field manager.
        changed: Paths of all that the apply changes.
    """
    live, desired = states
    if immutable_fields(error):
        return ConfigError(immutable_problem(error, changed, quotes=cause is error))
    left = leftover_problem(error, desired, live, manager)
    left = left or await _transition_problem(cluster, error, desired, manager, changed)
    return ConfigError(f"{cause}; {left}") if left else cause


def immutable_problem(error: ApiError, changed: Iterable[str], *, quotes: bool = True) -> str:
    """Return the text for an author who changes fields that cannot be changed.

    Args:
        error: The rejection.
        changed: Paths of all that the apply changes; the text has those that are part of a rejected field.
        quotes: Whether the text may have sentences of the API server.
    """
    fields, paths = immutable_fields(error), list(changed)
    below = tuple(f"{field}{mark}" for field in fields for mark in ".[")
    parts = [path for path in paths if path.startswith(below)]
    if not parts and not any(path in fields for path in paths):
        # The server names another field: `clusterIPs` for `clusterIP`, `attachedRequired` for `attachRequired`.
        parts = paths
    sentences = [_allowed(cause) for cause in error.causes if cause.reason == ErrorType.FORBIDDEN] if quotes else []
    details = [*dict.fromkeys(sentences), *([f"this apply changes {_shown(parts)}"] if parts else [])]
    detail = f" ({'; '.join(details)})" if details else ""
    return f"{', '.join(fields)} cannot be changed in the existing object{detail}: {_REMEDY}"


async def _transition_problem(
    cluster: Cluster, error: ApiError, desired: Manifest, manager: str, changed: Iterable[str]
) -> str:
    """Return what to do if an update is rejected only because of what the object was before; empty otherwise.

    The message of a transition rule of a custom kind is its author's, and need not say so. But the API server accepts
    the object to create it, up to its name.

    Args:
        changed: Paths of all that the apply changes.
    """
    if not isinstance(error, InvalidError) or not error.causes:
        return ""
    try:
        await cluster.create(desired, field_manager=manager, dry_run=True)
    except AlreadyExistsError:
        parts = list(changed)
        shown = f" (this apply changes {_shown(parts)})" if parts else ""
        return f"a new object would be accepted, only this change of the existing one is not{shown}: {_KEEP}"
    except OcfError:
        pass
    return ""


def _allowed(cause: StatusCause) -> str:
    """Return the server's sentence about what may change, without the difference of the values that may follow it."""
    return cause.message.removeprefix(f"{ErrorType.FORBIDDEN.words}: ").partition("\n")[0].strip()


def _shown(paths: list[str]) -> str:
    more = len(paths) - _MOST_PATHS
    return ", ".join(paths[:_MOST_PATHS]) + (f" and {more} more" if more > 0 else "")
