"""What is left out of an object before it is kept: the bookkeeping of field managers that nobody here reads.

`metadata.managedFields` is often a third of an object. Whoever compares what they want with what is stored reads
their own entry, and of others at most who owns a field that was left to them.
"""

from collections.abc import Callable, Collection
from typing import TypeAlias

from ocf.objects import Manifest, parse_path
from ocf.objects.managed_fields import ManagedFields, ManagedFieldsEntry, fields_path, restricted

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
    left = [fields_path(parse_path(path)) for path in left_fields]

    def kept(entry: ManagedFieldsEntry) -> Manifest | None:
        if keeps_manager(entry.manager.name):
            return entry.manifest
        fields = restricted(entry.fields, left)
        return {**entry.manifest, "fieldsV1": fields} if fields else None

    def reduced(manifest: Manifest) -> Manifest:
        entries = ManagedFields.of(manifest).entries
        if not entries:
            return manifest
        metadata = manifest["metadata"]
        fewer = [entry for entry in map(kept, entries) if entry is not None]
        others = {key: value for key, value in metadata.items() if key != "managedFields"}
        return {**manifest, "metadata": {**others, "managedFields": fewer} if fewer else others}

    return reduced
