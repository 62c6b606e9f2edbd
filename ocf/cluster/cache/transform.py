"""Reduction of objects before they are cached: what the operator does not read is removed.

`metadata.managedFields` is often a third of an object. To find drift, the operator reads its own entry, and in the
entries of other managers only the owners of its ignored fields.
"""

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

from ocf.objects import Manifest
from ocf.objects.managed_fields import ManagedFields, ManagedFieldsEntry, fields_path, restricted
from ocf.objects.paths import parse_path

__all__ = ["NeedsContent", "Reduction", "metadata_of", "read_only", "reduction", "without_managers"]

_RESET_MANAGERS: Final[list[Manifest]] = [{}]

Reduction: TypeAlias = Callable[[Manifest], Manifest]
"""Returns a reduced copy of an object; the object itself is not changed."""

NeedsContent: TypeAlias = Callable[[Manifest], bool]
"""Returns whether an object is cached as a whole before it was read; of others there is only the metadata."""


def read_only(_: Manifest) -> bool:
    """Return False: the content of an object is held once it was read, `NeedsContent`."""
    return False


def metadata_of(manifest: Manifest) -> Manifest:
    """Return only what identifies an object, and its metadata."""
    return {name: manifest[name] for name in ("apiVersion", "kind", "metadata") if name in manifest}


def reduction(keeps_manager: Callable[[str], bool], ignored_fields: Collection[str] = ()) -> Reduction:
    """Build the function that removes the managedFields entries that are not read.

    Args:
        keeps_manager: Returns, for the name of a field manager, whether its entries are kept.
        ignored_fields: Fields whose owner may be another manager, `spec.replicas`; in the entries of every other
            manager, only these are kept.

    Example:
        >>> reduce = reduction(lambda manager: manager == "us", ["spec.replicas"])
        >>> fields = {"f:spec": {"f:replicas": {}, "f:paused": {}}}
        >>> entries = [{"manager": name, "fieldsV1": fields} for name in ("us", "autoscaler")]
        >>> for entry in reduce({"metadata": {"managedFields": entries}})["metadata"]["managedFields"]:
        ...     print(entry)
        {'manager': 'us', 'fieldsV1': {'f:spec': {'f:replicas': {}, 'f:paused': {}}}}
        {'manager': 'autoscaler', 'fieldsV1': {'f:spec': {'f:replicas': {}}}}
    """
    ignored = [fields_path(parse_path(path)) for path in ignored_fields]

    def kept(entry: ManagedFieldsEntry) -> Manifest | None:
        if keeps_manager(entry.manager.name):
            return entry.manifest
        fields = restricted(entry.fields, ignored)
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


def without_managers(manifest: Manifest) -> Manifest:
    """Return an object without its field managers, unless their list resets them."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("managedFields") in (None, _RESET_MANAGERS):
        return manifest
    return {**manifest, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
