"""Conversion between manifests and the models of the Kubernetes client.

Users work with the models of the official client, for completion and type checking; all other code uses manifests. The
models do not check everything: they silently accept another `kind` and keys in snake case, reject a number in a
quantity field, and do not check values that are added to a list. So the three conversions differ:

* reading a **base** is strict, because the user wrote it and mistakes should be found before it is sent;
* reading a **live** object is tolerant, so that a newer API server never breaks a handler;
* **writing** treats every warning of the serializer as an error.

A field of a later release, which the models do not name, is an error where the author of a baseline wrote it. What a
model of the client was read with it keeps, wherever the model goes, because there it is a user, or another controller,
who wrote the field.

Models are also copied this way, because dumping and validating a model is much faster than `copy.deepcopy`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, Final, TypeVar, cast, get_origin

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel, ErrorDetails
from ocf.objects.documents import load_document
from ocf.objects.manifest import Manifest, copy_json
from ocf.objects.model_errors import navigable, problems_of, seen_at, unknown_field
from ocf.objects.model_fields import (
    api_names,
    client_model,
    holds_quantity,
    is_client_model,
    place_of,
    unknown_fields,
)
from ocf.objects.paths import FieldPath, get_field

__all__ = [
    "add_unknown_fields",
    "copy_model",
    "quantities_as_text",
    "read_base",
    "read_live",
    "read_reference",
    "validate_kept",
    "validate_live",
    "write_model",
    "write_parts",
]

# The fields that every object has, whether its model names them or not.
_HEAD: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
# The zero of Go's time.Time, which has no empty value in JSON that a required field would accept.
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
# Most values are such; a call for each of them would take most of the time of a search for models.
_LEAVES: Final = frozenset({str, int, bool, float, NoneType, datetime})

ModelT = TypeVar("ModelT", bound="BaseModel")


def read_base(source: object, model: type[ModelT], *, api_version: str, kind: str) -> Manifest:
    """Return a baseline that the user wrote as a manifest, after strict checks.

    Args:
        source: A model of the client (also of `kubernetes.aio`), a manifest, of which any part may be a model of the
            client, or a YAML text with one document. Fields that a model was read with and does not name are kept.
        model: The model of the expected kind.
        api_version: The expected `apiVersion`.
        kind: The expected `kind`.

    Returns:
        A new manifest in API spelling, with quantities as text, `apiVersion` and `kind`.

    Raises:
        ManifestError: If the kind differs, a key is unknown or not in API spelling, or a value has the wrong type. It
            contains all problems, and the nearest known key for an unknown one.
    """
    if type(source).__name__ == model.__name__:
        # A model is validated already, and may omit `apiVersion` and `kind`. Classes are compared by name, because
        # kubernetes.aio has separate classes.
        manifest = {"apiVersion": api_version, "kind": kind, **write_model(cast("BaseModel", source))}
        _require_kind(manifest, api_version, kind)
        return manifest
    if isinstance(source, str):
        manifest = load_document(source)
    elif isinstance(source, Mapping):
        manifest = dict(source)
    else:
        expected = f"must be a {model.__name__}, a manifest or a YAML text"
        raise ManifestError(kind, [FieldProblem("", f"{expected}, got an object of type {type(source).__name__}")])
    _require_kind(manifest, api_version, kind)
    return _validated(manifest, model, kind)


def read_reference(manifest: Manifest, *, api_version: str, kind: str) -> Manifest:
    """Return an object of which only kind and metadata are given, after strict checks of these.

    Raises:
        ManifestError: If the kind differs, or a key of the metadata is unknown or has a value of a wrong type.
    """
    _require_kind(manifest, api_version, kind)
    # Any model will do that has the metadata of all objects and requires nothing else.
    return _validated(manifest, client_model("V1ConfigMap"), kind)


def _require_kind(manifest: Manifest, api_version: str, kind: str) -> None:
    problems = [
        FieldProblem(field, f'must be "{expected}"{seen_at((field,), manifest.get(field))}')
        for field, expected in (("apiVersion", api_version), ("kind", kind))
        if manifest.get(field) != expected
    ]
    if problems:
        raise ManifestError(_subject(kind, manifest), problems)


def read_live(manifest: Manifest, model: type[ModelT], *, keep_unknown: bool = False) -> ModelT:
    """Return an object that the API server sent as a model, tolerating deviations.

    A model of the client keeps fields that it does not name, those of a later release: builders, editors and
    `write_model` pass them on. Any other model reads them as it is configured, or keeps them, too. A required field
    that is missing or null gets the zero value of its type, as in a Go client. A number in a quantity field is read as
    text, because custom resources may contain one.

    Args:
        manifest: The live object, or a part of one; it is not changed.
        model: The model of its kind, or of the part.
        keep_unknown: Whether other models than those of the client keep unknown fields, too, in their `model_extra`.

    Returns:
        A model that shares no values with the manifest.

    Raises:
        ManifestError: If a known field has a type that the model does not accept.

    Example:
        >>> from kubernetes.client import V1Container
        >>> container = read_live({"name": "web", "imge": "nginx"}, V1Container)
        >>> container.name, write_model(container)
        ('web', {'name': 'web', 'imge': 'nginx'})
    """
    from pydantic import ValidationError

    try:
        if keep_unknown:
            return model.model_validate(manifest, extra="allow")
        return validate_kept(manifest, model) if is_client_model(model) else validate_live(manifest, model)
    except ValidationError as error:
        errors = error.errors()
    empty = {navigable(details["loc"], manifest) for details in errors if _is_empty(details)}
    fixed = quantities_as_text(errors, manifest, model)
    if fixed is not manifest:
        return read_live(fixed, model, keep_unknown=keep_unknown)
    if not empty:
        subject = _subject(str(manifest.get("kind")), manifest)
        raise ManifestError(subject, problems_of(errors, manifest, model)) from None
    for path in empty:
        manifest = _with_value(manifest, path, _zero(place_of(model, path).annotation))
    return read_live(manifest, model, keep_unknown=keep_unknown)


def validate_kept(manifest: Manifest, model: type[ModelT]) -> ModelT:
    """Return a manifest as a model of the client, with the fields that the model does not name.

    Raises:
        pydantic.ValidationError: If a known field has a type that the model does not accept.
    """
    from pydantic import ValidationError

    # Hardly any object has such a field, and allowing them takes half as long again.
    try:
        return model.model_validate(manifest)
    except ValidationError:
        return model.model_validate(manifest, extra="allow")


def validate_live(manifest: Manifest, model: type[ModelT]) -> ModelT:
    """Return an object that the API server sent as a model of the author, read as the model is configured.

    So unknown fields are ignored, kept or rejected by each of its models by itself. Only these are tolerated although a
    model forbids them: the fields that every object has, and in models of the client those of a later release, which
    they keep. A strict model reads a text where JSON has no other type, such as for a time.

    Args:
        manifest: The live object; it is not changed.
        model: The model of its kind.

    Raises:
        pydantic.ValidationError: If the model does not accept the object.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(manifest)
    except ValidationError as error:
        tolerated = _tolerated(error.errors(), manifest, model)
        if tolerated:
            read = validate_live(_without(manifest, tolerated), model)
            for *above, name in tolerated:
                _keep(_part_of(read, above), str(name), get_field(manifest, (*above, name)))
            return read
        with contextlib.suppress(ValidationError, TypeError, ValueError):
            return model.model_validate_json(json.dumps(manifest))
        raise


def _tolerated(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> set[FieldPath]:
    """Return the forbidden fields that are read all the same."""
    forbidden = {navigable(one["loc"], manifest) for one in errors if one["type"] == "extra_forbidden"}
    return {path for path in forbidden if path[:-1] == () and path[0] in _HEAD} | {
        path for path in forbidden if is_client_model(place_of(model, path[:-1]).annotation)
    }


def _part_of(model: BaseModel, path: Iterable[str | int]) -> Any:
    """Return the part of a model at a path in API spelling; None if the model holds it in another way."""
    value: Any = model
    for part in path:
        if hasattr(value, "model_fields_set"):
            attributes = {name: attribute for attribute, name in api_names(value.__class__).items()}
            value = getattr(value, attributes.get(str(part), str(part)), None)
        else:
            value = get_field(value, (part,))
    return value


def _keep(part: Any, name: str, value: Any) -> None:
    if is_client_model(type(part)):
        # Where pydantic itself holds what `extra="allow"` admits; the models forbid to set it as an attribute.
        object.__setattr__(part, "__pydantic_extra__", {**(part.model_extra or {}), name: copy_json(value)})
        part.model_fields_set.add(name)


def _without(manifest: Manifest, paths: Collection[FieldPath]) -> Manifest:
    """Return a copy without some fields."""
    copy: Manifest = copy_json(manifest)
    for *above, name in paths:
        del get_field(copy, tuple(above))[name]
    return copy


def _is_empty(details: ErrorDetails) -> bool:
    return details["type"] == "missing" or details["input"] is None


def _zero(annotation: Any) -> Any:
    """Return the zero value of a field's type, in JSON."""
    kind = get_origin(annotation) or annotation
    known = {int: 0, float: 0.0, bool: False, str: "", list: [], datetime: _ZERO_TIME}
    return known.get(kind, {})


def write_model(model: BaseModel) -> Manifest:
    """Return a model as a manifest, without unset fields.

    Args:
        model: A model, such as one of the client or the status of an owner.

    Returns:
        A manifest that shares no values with the model. It has the fields that models of the client were read with and
        do not name.

    Raises:
        ManifestError: If the model contains an invalid value, for example `42` in a list of metrics.
    """
    try:
        written: Manifest = model.model_dump(mode="json", by_alias=True, exclude_none=True, warnings="error")
    except ValueError as error:
        raise _unwritable(model, error) from None
    add_unknown_fields(model, written)
    return written


def add_unknown_fields(model: BaseModel, written: Manifest) -> None:
    """Add the fields that models of the client keep, and do not name, to what a model was written as."""
    # Hardly any object has one, and the search takes a fraction of the time.
    if _has_unknown(model):
        _add_unknown(model, written)


def _has_unknown(value: Any) -> bool:
    # A loop instead of a generator, and no property: this runs for each rendered object.
    kind = value.__class__
    if kind is list:
        items = value
    elif kind is dict:
        items = value.values()
    else:
        names = api_names(kind)
        if not names:
            return False
        if not value.__pydantic_fields_set__ <= names.keys():
            return True
        items = value.__dict__.values()
    for item in items:  # noqa: SIM110 (see above)
        if item.__class__ not in _LEAVES and _has_unknown(item):
            return True
    return False


def _add_unknown(value: Any, written: Any) -> None:
    model = value
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        for item, counterpart in zip(value, written, strict=True):
            _add_unknown(item, counterpart)
    elif isinstance(value, dict) and isinstance(written, dict):
        for key, item in value.items():
            _add_unknown(item, written.get(key))
    elif api_names(value.__class__) and isinstance(written, dict):
        _add_unknown_of(model, written)


def _add_unknown_of(model: BaseModel, written: Manifest) -> None:
    for attribute, name in api_names(type(model)).items():
        _add_unknown(model.__dict__.get(attribute), written.get(name))
    for name, item in unknown_fields(model).items():
        # Null is the same as no value in a field of a built-in kind.
        if item is not None:
            written.setdefault(name, _without_nulls(item))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def write_parts(value: Any) -> Any:
    """Return a part of a manifest with the models in it as manifests."""
    if isinstance(value, dict):
        return {key: write_parts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [write_parts(item) for item in value]
    return write_model(value) if hasattr(value, "model_fields_set") else value


def copy_model(model: ModelT) -> ModelT:
    """Return a deep copy of a model.

    Args:
        model: A model of the client.

    Raises:
        ManifestError: If the model contains an invalid value.
    """
    return validate_kept(write_model(model), type(model))


def _validated(manifest: Manifest, model: type[BaseModel], kind: str) -> Manifest:
    """Return a manifest as the model writes it; numbers in quantity fields become text."""
    from pydantic import ValidationError

    try:
        written = write_model(model.model_validate(manifest))
    except ValidationError as error:
        errors = error.errors()
        fixed = quantities_as_text(errors, manifest, model)
        if fixed is manifest:
            raise ManifestError(_subject(kind, manifest), problems_of(errors, manifest, model)) from None
        return _validated(fixed, model, kind)
    strays = list(_stray_keys(manifest, written, ()))
    if strays:
        raise ManifestError(_subject(kind, manifest), [unknown_field(model, path) for path in strays])
    return written


def _stray_keys(given: Any, written: Any, path: FieldPath) -> Iterator[FieldPath]:
    """Yield keys that the models silently accepted in another spelling (`max_replicas`)."""
    if given == written:
        return
    if isinstance(given, dict) and isinstance(written, dict):
        for key, item in given.items():
            if key in written:
                yield from _stray_keys(item, written[key], (*path, key))
            elif item is not None:
                yield (*path, key)
    elif isinstance(given, list) and isinstance(written, list):
        for position, (item, counterpart) in enumerate(zip(given, written, strict=False)):
            yield from _stray_keys(item, counterpart, (*path, position))


def quantities_as_text(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> Manifest:
    """Return a manifest with numbers in quantity fields as text: the API accepts both, the models only text.

    Args:
        manifest: The manifest; it is not changed.

    Returns:
        The manifest without these errors; the same object if there are no such numbers.
    """
    fixed: Any = manifest
    for error in errors:
        path = navigable(error["loc"], manifest)
        value = get_field(manifest, path)
        if isinstance(value, int | float) and not isinstance(value, bool) and holds_quantity(model, path):
            fixed = _with_value(fixed, path, str(value))
    return cast("Manifest", fixed)


def _with_value(value: Any, path: FieldPath, new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return [_with_value(item, tuple(rest), new) if at == first else item for at, item in enumerate(value)]
    return {**value, first: _with_value(value.get(first), tuple(rest), new)}


def _unwritable(model: BaseModel, error: Exception) -> ManifestError:
    """Return an error with the field that cannot be written, found by validating the model again."""
    from pydantic import ValidationError
    from pydantic_core import PydanticSerializationError

    subject = type(model).__name__
    held: Manifest = {}
    problems = [FieldProblem("", f"cannot be written as JSON ({type(error).__name__})")]
    with contextlib.suppress(PydanticSerializationError):
        try:
            held = model.model_dump(by_alias=True, exclude_none=True, warnings=False)
            type(model).model_validate(held)
        except ValidationError as invalid:
            problems = problems_of(invalid.errors(), held, type(model))
    return ManifestError(subject, problems)


def _subject(kind: str, manifest: Manifest) -> str:
    place = [get_field(manifest, ("metadata", part)) for part in ("namespace", "name")]
    return " ".join([kind, "/".join(str(part) for part in place if part)]).strip()
