"""Round trips of objects between the versions of a custom resource."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from ocf.objects import Manifest, dump_document, read_live
from ocf.objects.json_changes import same_json
from ocf.objects.manifest import split_api_version
from ocf.runtime.crds import VersionedResource
from ocf.runtime.crds.conversion import ANNOTATION_PREFIX
from ocf.runtime.crds.model_manifests import write_nullable
from ocf.testing.diffs import unified

__all__ = ["assert_round_trips"]

_HEAD: Final = ("apiVersion", "kind", "metadata")


def assert_round_trips(resource: VersionedResource, manifest: Manifest, *, kept: Collection[str] | None = None) -> None:
    """Check the conversions of an object to every other version and back.

    The object must return unchanged. What a version cannot express is kept in an annotation, and restored if the
    functions agree on the rest: what an object has become after a conversion and back must not change in another one.

    Args:
        resource: The resource with its versions.
        manifest: An object in any of the versions; `objects_of` draws random ones.
        kept: Paths of the fields that only the annotation keeps, because another version cannot express them:
            `spec.color`, `spec.ports[].tls`. Each other field must return without the annotation, so a function that
            forgets a field does not pass; `()` for none. None does not check that.

    Raises:
        AssertionError: If an object differs from what it was; the message has both versions and the difference.
        ManifestError: If an object cannot be converted.

    Example:
        >>> from ocf.runtime.crds import Conversion, CRDVersion, VersionedResource
        >>> from pydantic import BaseModel
        >>> class Limit(BaseModel):
        ...     limit: int
        >>> class Quota(BaseModel):
        ...     maximum: int
        >>> wrong = Conversion(
        ...     Limit,
        ...     Quota,
        ...     up=lambda old: Quota(maximum=old.limit + 1),
        ...     down=lambda new: Limit(limit=new.maximum),
        ... )
        >>> versions = [CRDVersion("v1", Limit), CRDVersion("v2", Quota, stored=True)]
        >>> quotas = VersionedResource("example.com", versions, [wrong], kind="Quota")
        >>> quota = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "small"}, "limit": 1}
        >>> assert_round_trips(quotas, quota, kept=())
        Traceback (most recent call last):
        AssertionError: Quota: v1 to v2 and back, without annotations, changes limit, which `kept` does not name
    """
    source = split_api_version(manifest["apiVersion"])[1]
    model = resource.version(source).model
    head: Manifest = {name: manifest[name] for name in _HEAD if name in manifest}
    given = head | {
        name: value for name, value in write_nullable(read_live(manifest, model)).items() if name not in _HEAD
    }
    for target in (version.name for version in resource.versions if version.name != source):
        trip = f"{resource.kind}: {source} to {target}"
        there = resource.convert(given, target)
        back = _without_kept(resource.convert(_without_kept(there), source))
        changed = sorted(set(_changed(given, back, "")))
        if kept is not None and (lost := [path for path in changed if not _is_in(path, kept)]):
            names = ", ".join(lost)
            raise AssertionError(f"{trip} and back, without annotations, changes {names}, which `kept` does not name")
        returned = resource.convert(there, source)
        if not same_json(given, returned):
            texts = [dump_document(each) for each in (given, returned)]
            difference = unified(*texts, before_name=source, after_name="returned")
            raise AssertionError(f"{trip} and back must not change the object:\n{difference}")


def _changed(before: Any, after: Any, path: str) -> Iterator[str]:
    """Yield the paths of the values that differ; entries of lists have the path of all entries."""
    if same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            below = f"{path}.{name}".lstrip(".")
            if name in before and name in after:
                yield from _changed(before[name], after[name], below)
            else:
                yield below
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _changed(one, other, f"{path}[]")
    else:
        yield path


def _is_in(path: str, kept: Collection[str]) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in kept)


def _without_kept(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata") or {}
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if not name.startswith(ANNOTATION_PREFIX)
    }
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**manifest, "metadata": rest | ({"annotations": annotations} if annotations else {})}
