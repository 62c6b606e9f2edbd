"""Validation of `metadata`, which is the same for every kind.

The API server validates an update three times, twice with the same rules, and adds all errors to one list. They are
repeated here too, so that the causes are exactly those of the API server.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf.objects.field_errors import FieldError, forbidden, invalid, required, too_long
from ocf.objects.name_validation import NameRule, dns_label, label_value, qualified_name

__all__ = ["annotation_errors", "creation_errors", "label_errors", "standard_finalizer_errors", "update_errors"]

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_LONGEST_START: Final = 58
_RANDOM_END: Final = "xxxxx"
_IMMUTABLE: Final = "field is immutable"
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")
_STANDARD_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})
_EXCLUSIVE: Final = ("foregroundDeletion", "orphan")


def creation_errors(metadata: Manifest, rule: NameRule, prefix_rule: NameRule) -> Iterator[FieldError]:
    """Yield the errors in the metadata of a new object.

    Args:
        metadata: What was decoded. Without a namespace it is that of the request, and not judged.

    Yields:
        What the server finds, in its order; where it has none, sorted.
    """
    generated = metadata.get("generateName", "")
    if generated:
        yield from _each("metadata.generateName", generated, prefix_rule)
    name = metadata.get("name") or (generated and _generated(generated))
    if name:
        yield from _each("metadata.name", name, rule)
    else:
        yield required("metadata.name", "name or generateName is required")
    if metadata.get("namespace"):
        yield from _each("metadata.namespace", metadata["namespace"], dns_label)
    generation = metadata.get("generation", 0)
    if generation < 0:
        yield invalid("metadata.generation", generation, "must be greater than or equal to 0")
    yield from _label_errors(metadata)
    yield from _finalizer_errors(metadata.get("finalizers", []))


def standard_finalizer_errors(metadata: Manifest) -> Iterator[FieldError]:
    """Yield the errors in finalizers without a domain, of which only a few are known."""
    for position, finalizer in enumerate(metadata.get("finalizers", [])):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{position}]", finalizer, detail)


def update_errors(metadata: Manifest, old: Manifest) -> Iterator[FieldError]:
    """Yield the errors in the metadata of an update.

    Yields:
        What the server finds, in its order; where it has none, sorted.
    """
    if old.get("deletionTimestamp"):
        added = sorted({*metadata.get("finalizers", [])} - {*old.get("finalizers", [])})
        if added:
            quoted = ", ".join(f'"{each}"' for each in added)
            rule = "no new finalizers can be added if the object is being deleted"
            yield forbidden("metadata.finalizers", f"{rule}, found new finalizers []string{{{quoted}}}")
    for field in ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = metadata.get(field, "" if field in _TEXTS else None)
        if value != old.get(field, "" if field in _TEXTS else None):
            yield invalid(f"metadata.{field}", value, _IMMUTABLE, as_json=field not in {"name", "namespace"})
    yield from _label_errors(metadata)


_TEXTS: Final = frozenset({"name", "namespace", "uid"})


def _generated(start: str) -> str:
    """Return a generated name of the length that the API server uses; its random suffix is a placeholder."""
    return start.encode(errors="surrogatepass")[:_LONGEST_START].decode(errors="replace") + _RANDOM_END


def _each(path: str, value: str, rule: NameRule) -> Iterator[FieldError]:
    return (invalid(path, value, problem) for problem in rule(value))


def label_errors(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in labels, sorted by key; the API server has no order."""
    for key, value in sorted(labels.items()):
        yield from _each(path, key, qualified_name)
        yield from _each(path, value, label_value)


def annotation_errors(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in annotations, sorted by key; the API server has no order."""
    for key in sorted(annotations):
        # The case of an annotation's key does not matter, but the key is shown as it was written.
        yield from (invalid(path, key, problem) for problem in qualified_name(key.lower()))
    if sum(map(_size, annotations)) + sum(map(_size, annotations.values())) > _ANNOTATIONS_LIMIT:
        yield too_long(path, _ANNOTATIONS_LIMIT)


def _label_errors(metadata: Manifest) -> Iterator[FieldError]:
    yield from label_errors(metadata.get("labels", {}), "metadata.labels")
    yield from annotation_errors(metadata.get("annotations", {}), "metadata.annotations")
    yield from _owner_errors([_completed(owner) for owner in metadata.get("ownerReferences", [])])


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _completed(owner: Manifest) -> Manifest:
    """Return an owner reference as the API server prints it: always with strings, and with booleans if set."""
    written: Manifest = {field: owner.get(field, "") for field in _OWNER_FIELDS}
    return written | {field: owner[field] for field in ("controller", "blockOwnerDeletion") if field in owner}


def _owner_errors(owners: list[Manifest]) -> Iterator[FieldError]:
    path = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        yield from _incomplete_owner(owner, path)
        if owner.get("controller"):
            named = f"{owner['kind']}/{owner['name']}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {named}'
                )
                yield invalid(path, owners, detail)
            controller = controller or named


def _incomplete_owner(owner: dict[str, Any], path: str) -> Iterator[FieldError]:
    group, _, version = owner["apiVersion"].rpartition("/")
    if not version or "/" in group:
        yield invalid(f"{path}.apiVersion", owner["apiVersion"], "version must not be empty")
    for field in ("kind", "name", "uid"):
        if not owner[field]:
            yield invalid(f"{path}.{field}", owner[field], "must not be empty")
    if (group, version, owner["kind"]) == ("", "v1", "Event"):
        yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")


def _finalizer_errors(finalizers: list[str]) -> Iterator[FieldError]:
    path = "metadata.finalizers"
    for finalizer in finalizers:
        yield from _each(path, finalizer, qualified_name)
    if all(each in finalizers for each in _EXCLUSIVE):
        yield invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
