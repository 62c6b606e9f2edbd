"""Conversion between manifests and the models of the Kubernetes client.

Users work with the models of the official client, for completion and type checking; all other code uses manifests. The
models do not check everything: they silently accept another `kind` and keys in snake case, reject a number in a
quantity field, and do not check values that are added to a list. So the three conversions differ:

* reading a **base** is strict, because the user wrote it and mistakes should be found before it is sent;
* reading a **live** object is tolerant, so that a newer API server never breaks a handler;
* **writing** treats every warning of the serializer as an error.

Models are also copied this way, because dumping and validating a model is much faster than `copy.deepcopy`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast, get_origin

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel, ErrorDetails
from ocf.objects.documents import load_document
from ocf.objects.manifest import Manifest, copy_json
from ocf.objects.model_errors import navigable, problems_of, seen_at, unknown_field
from ocf.objects.model_fields import holds_quantity, place_of
from ocf.objects.paths import FieldPath, get_field

__all__ = ["copy_model", "quantities_as_text", "read_base", "read_live", "validate_live", "write_model"]

# The fields that every object has, whether its model names them or not.
_HEAD: Final = frozenset({"apiVersion", "kind", "metadata", "status"})

ModelT = TypeVar("ModelT", bound="BaseModel")


def read_base(source: object, model: type[ModelT], *, api_version: str, kind: str) -> Manifest:
    """Return a baseline that the user wrote as a manifest, after strict checks.

    Args:
        source: A model of the client (also of `kubernetes.aio`), a manifest, or a YAML text with one document.
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

    Unknown fields are kept, or read as the model is configured: models of the client ignore them. A required field that
    is missing or null gets the zero value of its type, as in a Go client. A number in a quantity field is read as text,
    because custom resources may contain one.

    Args:
        manifest: The live object; it is not changed.
        model: The model of its kind.
        keep_unknown: Whether unknown fields are kept, in the `model_extra` of the models.

    Returns:
        A model that shares no values with the manifest.

    Raises:
        ManifestError: If a known field has a type that the model does not accept.
    """
    from pydantic import ValidationError

    try:
        if keep_unknown or _is_of_client(model):
            return model.model_validate(manifest, extra="allow" if keep_unknown else "ignore")
        return validate_live(manifest, model)
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


def validate_live(manifest: Manifest, model: type[ModelT]) -> ModelT:
    """Return an object that the API server sent as a model of the author, read as the model is configured.

    So unknown fields are ignored, kept or rejected by each of its models by itself. Only these are tolerated although a
    model forbids them: the fields that every object has, and in models of the client those of a newer API server. A
    strict model reads a text where JSON has no other type, such as for a time.

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
            return validate_live(_without(manifest, tolerated), model)
        with contextlib.suppress(ValidationError, TypeError, ValueError):
            return model.model_validate_json(json.dumps(manifest))
        raise


def _tolerated(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> set[FieldPath]:
    """Return the forbidden fields that are read all the same."""
    forbidden = {navigable(one["loc"], manifest) for one in errors if one["type"] == "extra_forbidden"}
    return {path for path in forbidden if path[:-1] == () and path[0] in _HEAD} | {
        path for path in forbidden if _is_of_client(place_of(model, path[:-1]).annotation)
    }


def _is_of_client(model: object) -> bool:
    return isinstance(model, type) and model.__module__.split(".")[0] == "kubernetes"


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
    known = {int: 0, float: 0.0, bool: False, str: "", list: []}
    return known.get(kind, {})


def write_model(model: BaseModel) -> Manifest:
    """Return a model as a manifest, without unset fields.

    Args:
        model: A model of the client.

    Returns:
        A manifest that shares no values with the model.

    Raises:
        ManifestError: If the model contains an invalid value, for example `42` in a list of metrics.
    """
    try:
        written: Manifest = model.model_dump(mode="json", by_alias=True, exclude_none=True, warnings="error")
    except ValueError as error:
        raise _unwritable(model, error) from None
    return written


def copy_model(model: ModelT) -> ModelT:
    """Return a deep copy of a model.

    Args:
        model: A model of the client.

    Raises:
        ManifestError: If the model contains an invalid value.
    """
    return type(model).model_validate(write_model(model))


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
