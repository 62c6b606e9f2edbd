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
import difflib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Union, cast, get_args, get_origin

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.documents import load_document
from ocf.objects.manifest import Manifest, split_api_version
from ocf.objects.paths import FieldPath, format_path, get_field

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = [
    "client_model",
    "copy_model",
    "describe_invalid",
    "is_quantity_field",
    "model_of",
    "read_base",
    "read_live",
    "write_model",
]

ModelT = TypeVar("ModelT", bound="BaseModel")

# Fields that hold a quantity, by the model that has them; the models themselves only say "text".
_QUANTITY_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "V1CSIStorageCapacity": frozenset({"capacity", "maximumVolumeSize"}),
    "V1ContainerStatus": frozenset({"allocatedResources"}),
    "V1EmptyDirVolumeSource": frozenset({"sizeLimit"}),
    "V1LimitRangeItem": frozenset({"default", "defaultRequest", "max", "maxLimitRequestRatio", "min"}),
    "V1NodeStatus": frozenset({"allocatable", "capacity"}),
    "V1Overhead": frozenset({"podFixed"}),
    "V1PersistentVolumeClaimStatus": frozenset({"allocatedResources", "capacity"}),
    "V1PersistentVolumeSpec": frozenset({"capacity"}),
    "V1PodSpec": frozenset({"overhead"}),
    "V1PodStatus": frozenset({"allocatedResources"}),
    "V1ResourceFieldSelector": frozenset({"divisor"}),
    "V1ResourceQuotaSpec": frozenset({"hard"}),
    "V1ResourceQuotaStatus": frozenset({"hard", "used"}),
    "V1ResourceRequirements": frozenset({"limits", "requests"}),
    "V1VolumeResourceRequirements": frozenset({"limits", "requests"}),
    "V2HPAScalingRules": frozenset({"tolerance"}),
    "V2MetricTarget": frozenset({"averageValue", "value"}),
    "V2MetricValueStatus": frozenset({"averageValue", "value"}),
}

# Below these a value may be a secret, so a message never repeats it.
_SECRET_KEYS: Final = frozenset({"data", "stringData", "env", "args", "command", "V1EnvVar"})
_LONGEST_SHOWN: Final = 60


@cache
def client_model(name: str) -> type[BaseModel]:
    """Return a model of the Kubernetes client, loading it on first use.

    Args:
        name: Class name, `V2HorizontalPodAutoscaler`.

    Returns:
        The class.
    """
    found: type[BaseModel] = getattr(importlib.import_module("kubernetes.client"), name)
    return found


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
    return _validated(manifest, model, _subject(kind, manifest))


def _demand_kind(manifest: Manifest, api_version: str, kind: str) -> None:
    problems = [
        FieldProblem(field, f'must be "{expected}"{_seen((field,), manifest.get(field))}')
        for field, expected in (("apiVersion", api_version), ("kind", kind))
        if manifest.get(field) != expected
    ]
    if problems:
        raise ManifestError(_subject(kind, manifest), problems)


def read_live(manifest: Manifest, model: type[ModelT]) -> ModelT:
    """Read an object as the server sent it, tolerantly.

    Unknown fields are passed over, and a required field that is missing or null reads as the zero value of its type,
    as it does for a client written in Go.

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
    empty = {_navigable(details["loc"], manifest) for details in errors if _is_empty(details)}
    if not empty:
        subject = _subject(str(manifest.get("kind")), manifest)
        raise ManifestError(subject, _problems(errors, manifest, model)) from None
    for path in empty:
        manifest = _with_value(manifest, path, _zero(_place(model, path).annotation))
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


def describe_invalid(error: BaseException) -> str:
    """Word a refusal of the models in one line; what a handler or an edit assigns is refused by them.

    Args:
        error: Any error.

    Returns:
        Model, field and value; empty for anything but an error of the models.

    Example:
        >>> from kubernetes.client import V1Scale, V1ScaleSpec
        >>> try:
        ...     V1ScaleSpec().replicas = "two"
        ... except ValueError as error:
        ...     describe_invalid(error)
        "V1ScaleSpec.replicas: must be a valid integer, got 'two'"
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return ""
    found = [_refusal(error.title, details) for details in error.errors()]
    return "; ".join(dict.fromkeys(found))


def _refusal(model: str, details: ErrorDetails) -> str:
    place = (model, *details["loc"])
    return f"{format_path(place)}: {_worded(details)}{_seen(place, details['input'])}"


def _worded(details: ErrorDetails) -> str:
    known = {"extra_forbidden": "unknown field", "no_such_attribute": "unknown field", "missing": "required value"}
    return known.get(details["type"]) or details["msg"].replace("Input should be", "must be", 1)


def model_of(api_version: str, kind: str) -> type[BaseModel] | None:
    """Return the client's model of a built-in kind.

    Args:
        api_version: `apps/v1`.
        kind: `Deployment`.

    Returns:
        The class; None for a kind the client has no model of, custom resources among them.

    Example:
        >>> model_of("example.com/v1", "Shop") is None
        True
    """
    group, version = split_api_version(api_version)
    if "." in group and not group.endswith(".k8s.io"):
        return None
    return _model_named(f"{version.capitalize()}{kind}")


@lru_cache(maxsize=4096)
def is_quantity_field(api_version: str, kind: str, path: FieldPath) -> bool:
    """Tell whether a field of a built-in kind holds a quantity.

    Args:
        api_version: `apps/v1`.
        kind: `Deployment`.
        path: Where the value is, in API spelling.

    Returns:
        True only if the API reference gives the field the type Quantity.

    Example:
        >>> is_quantity_field("autoscaling/v2", "HorizontalPodAutoscaler",
        ...                   ("spec", "metrics", 0, "resource", "target", "averageValue"))
        True
    """
    model = model_of(api_version, kind)
    return model is not None and _holds_quantity(model, path)


@cache
def _model_named(name: str) -> type[BaseModel] | None:
    found: type[BaseModel] | None = getattr(importlib.import_module("kubernetes.client"), name, None)
    return found


def _validated(manifest: Manifest, model: type[BaseModel], subject: str) -> Manifest:
    """Return what the model makes of a manifest; a number in a quantity field is mended first."""
    from pydantic import ValidationError

    try:
        written = write_model(model.model_validate(manifest))
    except ValidationError as error:
        errors = error.errors()
        mended = _with_quantities_as_text(errors, manifest, model)
        if mended is manifest:
            raise ManifestError(subject, _problems(errors, manifest, model)) from None
        return _validated(mended, model, subject)
    strays = list(_stray_keys(manifest, written, ()))
    if strays:
        raise ManifestError(subject, [_unknown_field(model, path) for path in strays])
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


def _with_quantities_as_text(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> Manifest:
    """Return the manifest with every number in a quantity field written as text; the same object if there is none."""
    mended: Any = manifest
    for error in errors:
        path = _navigable(error["loc"], manifest)
        value = get_field(manifest, path)
        if isinstance(value, int | float) and not isinstance(value, bool) and _holds_quantity(model, path):
            mended = _with_value(mended, path, str(value))
    return cast("Manifest", mended)


def _with_value(value: Any, path: FieldPath, new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return [_with_value(item, tuple(rest), new) if at == first else item for at, item in enumerate(value)]
    return {**value, first: _with_value(value.get(first), tuple(rest), new)}


def _problems(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> list[FieldProblem]:
    """Word what pydantic found, one problem per field, in our paths."""
    found: dict[FieldPath, FieldProblem] = {}
    for error in errors:
        path = _navigable(error["loc"], manifest)
        if path not in found:
            found[path] = _problem(error, path, manifest, model)
    return list(found.values())


def _problem(error: ErrorDetails, path: FieldPath, manifest: Manifest, model: type[BaseModel]) -> FieldProblem:
    if error["type"] == "extra_forbidden":
        return _unknown_field(model, path)
    seen = "" if error["type"] == "missing" else _seen(path, get_field(manifest, path))
    return FieldProblem(format_path(path), f"{_worded(error)}{seen}")


def _unknown_field(model: type[BaseModel], path: FieldPath) -> FieldProblem:
    known = _annotations(_place(model, path[:-1]).annotation)
    name = str(path[-1])
    nearest = difflib.get_close_matches(_camel(name), known, n=1)
    hint = f', did you mean "{nearest[0]}"?' if nearest else ""
    return FieldProblem(format_path(path), f"unknown field{hint}")


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
            problems = _problems(invalid.errors(), held, type(model))
    return ManifestError(subject, problems)


def _navigable(location: Sequence[str | int], manifest: Manifest) -> FieldPath:
    """Cut what pydantic appends to a location for its own use (`maxSurge`, `int`) and keep the field."""
    value: Any = manifest
    path: list[str | int] = []
    for part in location:
        if not isinstance(value, dict | list):
            break
        path.append(part)
        value = get_field(value, (part,))
    return tuple(path)


def _holds_quantity(model: type[BaseModel], path: Sequence[str | int]) -> bool:
    place = _place(model, path)
    return place.owner is not None and place.field in _QUANTITY_FIELDS.get(place.owner.__name__, ())


class _Place(NamedTuple):
    """Where a path leads: the innermost model on the way, its field that leads on, and the type found there."""

    owner: type[BaseModel] | None
    field: str
    annotation: Any


def _place(model: type[BaseModel], path: Sequence[str | int]) -> _Place:
    place = _Place(None, "", model)
    for part in path:
        if isinstance(place.annotation, type):
            place = _Place(place.annotation, str(part), _annotations(place.annotation).get(str(part)))
        else:
            inner = get_args(place.annotation)
            place = place._replace(annotation=_plain(inner[-1]) if inner else None)
    return place


@cache
def _annotations(model: type[BaseModel]) -> Mapping[str, Any]:
    """Map the API spelling of a model's fields to their types, `Optional` taken off."""
    fields: Mapping[str, FieldInfo] = getattr(model, "model_fields", {})
    return {info.serialization_alias or name: _plain(info.annotation) for name, info in fields.items()}


def _plain(annotation: Any) -> Any:
    while get_origin(annotation) in {Union, UnionType}:
        annotation = next(arm for arm in get_args(annotation) if arm is not type(None))
    return annotation


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _seen(path: FieldPath, value: Any) -> str:
    if any(part in _SECRET_KEYS for part in path):
        return ""
    if isinstance(value, dict | list):
        return f", got {'a mapping' if isinstance(value, dict) else 'a list'}"
    text = repr(value)
    return f", got {text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + '…'}"


def _subject(kind: str, manifest: Manifest) -> str:
    place = [get_field(manifest, ("metadata", part)) for part in ("namespace", "name")]
    return " ".join([kind, "/".join(str(part) for part in place if part)]).strip()
