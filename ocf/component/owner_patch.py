"""Changes of the owner's own spec, labels and annotations by its operator: defaults, and changes that it takes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.cluster import PatchOptions, PatchType
from ocf.cluster.retry import MOST_TRIES
from ocf.component.model.write_backoff import is_older, record_revert, revert_message, wait, written
from ocf.component.status_write import read_owner
from ocf.errors import ConfigError, ConflictError, NotFoundError
from ocf.objects.json_values import to_json
from ocf.objects.paths import format_path, get_field

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from ocf.cluster import ApplyCache, Cluster
    from ocf.component.model.ownership import Owner
    from ocf.objects import Manifest

__all__ = ["OwnerPatch", "patch_owner"]

_REST: Final = {
    "apiVersion": "the API version of an object cannot be changed",
    "kind": "the kind of an object cannot be changed",
    "status": "set its fields in `context.status`",
}
_METADATA: Final = frozenset({"annotations", "labels"})
# The values do not matter: an author who patches the time would patch in every reconcile, which each patch triggers.
_DIGEST: Final = b"patched"


class OwnerPatch(NamedTuple):
    """What has become of a patch of the owner.

    Attributes:
        live: The owner as it is known then; None if it is gone.
        is_sent: Whether the patch was sent.
        problem: What of it the API server does not store; empty if it does.
        reverted: A message about fields that other writers revert again and again; empty if it is not new.
        retry_after: Time until a patch that waits is sent.
    """

    live: Manifest | None
    is_sent: bool = False
    problem: str = ""
    reverted: str = ""
    retry_after: timedelta | None = None


async def patch_owner(
    cluster: Cluster, read: Manifest, owner: Owner, patch: Manifest, elapsed: timedelta
) -> OwnerPatch:
    """Change fields of the owner by a merge patch of the version that was read, if that changes anything.

    Raises:
        ConfigError: If the patch names something else than the spec, labels and annotations.
        ConflictError: If another writer has changed the spec or the patched fields since the owner was read.
    """
    patch, live, cache, manager = _checked(patch), read, cluster.apply_cache, owner.field_manager("owner")
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager)
    for tries_left in reversed(range(MOST_TRIES)):
        changed = [format_path(path) for path in _changed(live, patch, ())]
        if not changed:
            return OwnerPatch(live)
        if (held := _held_back(cache, live, owner, changed, elapsed)) is not None:
            return held
        version = {"resourceVersion": live["metadata"].get("resourceVersion")}
        sent = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
        try:
            stored = await cluster.patch(owner.key, sent, options)
        except NotFoundError:
            return OwnerPatch(None)
        except ConflictError:
            found = await read_owner(cluster, owner)
            if found is None:
                return OwnerPatch(None)
            if not tries_left or _is_another(read, found, patch):
                raise
            live = found
        else:
            last = cache.last_write(owner.key, manager)
            number = str(stored["metadata"].get("resourceVersion") or "")
            cache.note_write(owner.key, manager, written(last, _DIGEST, elapsed, number))
            return OwnerPatch(stored, is_sent=True, problem=_problem(stored, patch, owner))
    raise AssertionError  # pragma: no cover (the last conflict is raised)


def _checked(patch: Manifest) -> Manifest:
    """Return a patch as plain JSON."""
    if not isinstance(patch, dict):
        raise ConfigError(f"a patch of the owner must be a map of fields, got a value of type {type(patch).__name__}")
    problems = [f"{name}: {_REST[name]}" for name in patch if name in _REST]
    metadata = patch.get("metadata", {})
    if not isinstance(metadata, dict):
        problems.append(f"metadata must be a map, got a value of type {type(metadata).__name__}")
    else:
        unknown = (name for name in metadata if name not in _METADATA)
        problems += [f"metadata.{name}: only labels and annotations can be changed" for name in unknown]
    if problems:
        raise ConfigError(f"a patch of the owner changes its spec, labels and annotations: {'; '.join(problems)}")
    plain: Manifest = to_json(patch, "the patch of the owner", ())
    return plain


def _changed(live: Any, patch: Manifest, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the fields that a merge patch would change."""
    values = live if isinstance(live, dict) else {}
    for name, value in patch.items():
        found = values.get(name)
        if isinstance(value, dict):
            if value:
                yield from _changed(found, value, (*path, name))
            elif not isinstance(found, dict):
                yield (*path, name)
        elif name in values if value is None else found != value:
            yield (*path, name)


def _leaves(patch: Manifest, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in patch.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)


def _is_another(read: Manifest, live: Manifest, patch: Manifest) -> bool:
    """Return whether what the patch was computed from has changed: the spec, or one of its fields.

    Not every kind has a spec, and a generation of its own for each change of it.
    """
    contents = [{name: one[name] for name in one if name not in {"metadata", "status"}} for one in (read, live)]
    changed = contents[0] != contents[1]
    return changed or any(get_field(read, path) != get_field(live, path) for path in _leaves(patch))


def _held_back(
    cache: ApplyCache, live: Manifest, owner: Owner, fields: Sequence[str], elapsed: timedelta
) -> OwnerPatch | None:
    """Return a patch that waits, because the same fields had to be patched again and again; None if it may be sent."""
    manager = owner.field_manager("owner")
    last = cache.last_write(owner.key, manager)
    if last is None or is_older(str(live["metadata"].get("resourceVersion") or ""), last):
        return None
    reverted = record_revert(last, _DIGEST, elapsed, fields)
    if reverted is None:
        return None
    cache.note_write(owner.key, manager, reverted)
    rest = wait(reverted, _DIGEST, elapsed, fields)
    if rest is None:
        return None
    note = f"{' and '.join(fields)}: {revert_message(live, manager, owner.key, cache)}"
    return OwnerPatch(live, reverted="" if reverted is last else note, retry_after=rest)


def _problem(stored: Manifest, patch: Manifest, owner: Owner) -> str:
    lost = " and ".join(format_path(path) for path in _changed(stored, patch, ()))
    remedy = "add it to the schema of the kind, or write the value as the API server and its webhooks do"
    return f"the API server does not store {lost} of {owner.key} as it was patched: {remedy}" if lost else ""
