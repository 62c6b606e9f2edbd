"""What is left out of an object before it is kept: the bookkeeping of field managers that nobody here reads.

`metadata.managedFields` is often a third of an object. Whoever compares what they want with what is stored reads
their own entry, and of others at most who owns a field that was left to them.
"""

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

from ocf.objects import FieldPath, Manifest, get_field, parse_path, with_field

__all__ = ["Reduction", "reduction"]

Reduction: TypeAlias = Callable[[Manifest], Manifest]
"""Returns an object without what is not kept; the object itself is left as it is."""


def reduction(keeps_manager: Callable[[str], bool], left_fields: Collection[str] = ()) -> Reduction:
    """Build the function that leaves out what nobody reads.

    Args:
        keeps_manager: Says of the name of a field manager whether its entries are kept.
        left_fields: Fields left to others, `spec.replicas`; of every other manager's entry these are kept.

    Returns:
        The function.

    Raises:
        ConfigError: If a field path cannot be read.

    Example:
        >>> reduce = reduction(lambda manager: manager == "us", ["spec.replicas"])
        >>> fields = {"f:spec": {"f:replicas": {}, "f:paused": {}}}
        >>> entries = [{"manager": name, "fieldsV1": fields} for name in ("us", "autoscaler")]
        >>> for entry in reduce({"metadata": {"managedFields": entries}})["metadata"]["managedFields"]:
        ...     print(entry)
        {'manager': 'us', 'fieldsV1': {'f:spec': {'f:replicas': {}, 'f:paused': {}}}}
        {'manager': 'autoscaler', 'fieldsV1': {'f:spec': {'f:replicas': {}}}}
    """
    left = [tuple(f"f:{key}" for key in parse_path(path)) for path in left_fields]

    def kept(entry: Manifest) -> Manifest | None:
        return entry if keeps_manager(str(entry.get("manager") or "")) else _owner_of_left(entry, left)

    def reduced(manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        entries: list[Any] | None = metadata.get("managedFields")
        if not entries:
            return manifest
        fewer = [entry for entry in map(kept, entries) if entry is not None]
        others = {key: value for key, value in metadata.items() if key != "managedFields"}
        return {**manifest, "metadata": {**others, "managedFields": fewer} if fewer else others}

    return reduced


def _owner_of_left(entry: Manifest, left: Collection[FieldPath]) -> Manifest | None:
    """Return what an entry says of the fields left to others; None if nothing."""
    fields = entry.get("fieldsV1") or {}
    said: Manifest = {}
    for path in left:
        owned = get_field(fields, path)
        if owned is not None:
            said = with_field(said, [str(key) for key in path], owned)
    return {**entry, "fieldsV1": said} if said else None
