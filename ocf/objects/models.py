"""Between manifests and the models of the Kubernetes client: the only place that converts.

Users hold the official client's models, for completion and for their type checker; everything else holds manifests.
The models do not check everything by themselves: they take a foreign `kind` and snake-case keys in silence, refuse a
number where the API takes a quantity, and do not see what is put into a list they hold. So the three ways across the
border differ on purpose:

* reading a **base** is strict, because it is the author's text and a mistake in it should be found before the cluster
does;
* reading a **live** object is tolerant, so that a newer server never breaks a handler;
* **writing** treats every doubt of the serializer as an error.

Copies go through the same door: dumping and validating a model takes a fraction of what `copy.deepcopy` takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_origin

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.documents import load_document
from ocf.objects.manifest import Manifest
from ocf.objects.model_errors import navigable, problems_of, seen_at, unknown_field
from ocf.objects.model_fields import holds_quantity, place_of
from ocf.objects.paths import FieldPath, get_field

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

__all__ = ["copy_model", "quantities_as_text", "read_base", "read_live", "write_model"]

ModelT = TypeVar("ModelT", bound="BaseModel")


def read_base(source: object, model: type[ModelT], *, api_version: str, kind: str) -> Manifest:
    """Read what an author wrote, strictly.

    Args:
        source: A model of the client (of `kubernetes.aio` too), a manifest, or a YAML text with one document.
        model: The model of the kind that is expected.
        api_version: The `apiVersion` that is expected.
        kind: The `kind` that is expected.

    Returns:
        A manifest of our own: API spelling, quantities as text, `apiVersion` and `kind` filled in.

    Raises:
        ManifestError: With every problem at once: another kind, a key that is unknown or not in API spelling (and the
        nearest
            known one), a value of the wrong type.
    """
    if type(source).__name__ == model.__name__:
        # The models have checked themselves, and may leave out what they are. Compared by name: those of kubernetes.aio
        # are classes of their own.
        manifest = {"apiVersion": api_version, "kind": kind, **write_model(cast("BaseModel", source))}
        _demand_kind(manifest, api_version, kind)
        return manifest
    if isinstance(source, str):
        manifest = load_document(source)
    elif isinstance(source, Mapping):
        manifest = dict(source)
    else:
        expected = f"must be a {model.__name__}, a manifest or a YAML text"
        raise ManifestError(kind, [FieldProblem("", f"{expected}, got an object of type {type(source).__name__}")])
    _demand_kind(manifest, api_version, kind)
    return _validated(manifest, model, kind)


def _demand_kind(manifest: Manifest, api_version: str, kind: str) -> None:
    problems = [
        FieldProblem(field, f'must be "{expected}"{seen_at((field,), manifest.get(field))}')
        for field, expected in (("apiVersion", api_version), ("kind", kind))
        if manifest.get(field) != expected
    ]
    if problems:
        raise ManifestError(_subject(kind, manifest), problems)


def read_live(manifest: Manifest, model: type[ModelT]) -> ModelT:
    """Read an object as the server sent it, tolerantly.

    Unknown fields are passed over, and a required field that is missing or null reads as the zero value of its type,
    as it does for a client written in Go. A number in a quantity field reads as text: custom resources may hold one.

    Args:
        manifest: The live object; left as it is.
        model: The model of its kind.

    Returns:
        A model that shares nothing with the manifest.

    Raises:
        ManifestError: If a known field has a type the model cannot hold.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(manifest, extra="ignore")
    except ValidationError as error:
        errors = error.errors()
    empty = {navigable(details["loc"], manifest) for details in errors if _is_empty(details)}
    mended = quantities_as_text(errors, manifest, model)
    if mended is not manifest:
        return read_live(mended, model)
    if not empty:
        subject = _subject(str(manifest.get("kind")), manifest)
        raise ManifestError(subject, problems_of(errors, manifest, model)) from None
    for path in empty:
        manifest = _with_value(manifest, path, _zero(place_of(model, path).annotation))
    return read_live(manifest, model)


def _is_empty(details: ErrorDetails) -> bool:
    return details["type"] == "missing" or details["input"] is None


def _zero(annotation: Any) -> Any:
    """Return the zero value of a field's type, in JSON."""
    kind = get_origin(annotation) or annotation
    known = {int: 0, float: 0.0, bool: False, str: "", list: []}
    return known.get(kind, {})


def write_model(model: BaseModel) -> Manifest:
    """Write a model as a manifest; what is not set is not there.

    Args:
        model: A model of the client.

    Returns:
        A manifest that shares nothing with the model.

    Raises:
        ManifestError: If the model holds something it should not, for example `42` in a list of metrics.
    """
    try:
        written: Manifest = model.model_dump(mode="json", by_alias=True, exclude_none=True, warnings="error")
    except ValueError as error:
        raise _unwritable(model, error) from None
    return written


def copy_model(model: ModelT) -> ModelT:
    """Copy a model.

    Args:
        model: A model of the client.

    Returns:
        An equal model that shares nothing with it.

    Raises:
        ManifestError: If the model holds something it should not.
    """
    return type(model).model_validate(write_model(model))


def _validated(manifest: Manifest, model: type[BaseModel], kind: str) -> Manifest:
    """Return what the model makes of a manifest; a number in a quantity field is mended first."""
    from pydantic import ValidationError

    try:
        written = write_model(model.model_validate(manifest))
    except ValidationError as error:
        errors = error.errors()
        mended = quantities_as_text(errors, manifest, model)
        if mended is manifest:
            raise ManifestError(_subject(kind, manifest), problems_of(errors, manifest, model)) from None
        return _validated(mended, model, kind)
    strays = list(_stray_keys(manifest, written, ()))
    if strays:
        raise ManifestError(_subject(kind, manifest), [unknown_field(model, path) for path in strays])
    return written


def _stray_keys(given: Any, written: Any, path: FieldPath) -> Iterator[FieldPath]:
    """Find keys that the models took in silence under another spelling (`max_replicas`)."""
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
    """Write every number in a quantity field as text: the API takes both, the client's models only read text.

    Args:
        errors: What a model has against the manifest, as pydantic tells it.
        manifest: The manifest; left as it is.
        model: The model.

    Returns:
        The manifest without these errors; the same object if there are none of that kind.
    """
    mended: Any = manifest
    for error in errors:
        path = navigable(error["loc"], manifest)
        value = get_field(manifest, path)
        if isinstance(value, int | float) and not isinstance(value, bool) and holds_quantity(model, path):
            mended = _with_value(mended, path, str(value))
    return cast("Manifest", mended)


def _with_value(value: Any, path: FieldPath, new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return [_with_value(item, tuple(rest), new) if at == first else item for at, item in enumerate(value)]
    return {**value, first: _with_value(value.get(first), tuple(rest), new)}


def _unwritable(model: BaseModel, error: Exception) -> ManifestError:
    """Say which field of a model cannot be written: validating what it holds finds the place."""
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
