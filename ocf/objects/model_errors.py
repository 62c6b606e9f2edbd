"""Error messages for pydantic validation errors: the field, the value seen and the value allowed, without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf.lazy_types.pydantic import BaseModel, ErrorDetails
from ocf.objects.field_errors import FieldError, invalid, required
from ocf.objects.manifest import Manifest
from ocf.objects.model_fields import field_types, is_secret, place_of
from ocf.objects.paths import FieldPath, format_path, get_field
from ocf.objects.suggestions import nearest

__all__ = [
    "describe_invalid",
    "error_text",
    "field_errors_of",
    "navigable",
    "nearest",
    "problems_of",
    "seen_at",
    "unknown_field",
]

# Values below these fields may be secret, so messages never contain them; models also use their own spelling.
_SECRET_KEYS: Final = frozenset({"data", "stringData", "string_data", "env", "args", "command", "V1EnvVar"})
_LONGEST_SHOWN: Final = 60
_JSON_TYPES: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def describe_invalid(error: BaseException, model: type[BaseModel] | None = None) -> str:
    """Return a validation error of a model in one line, such as one from an assignment in a handler or an edit.

    Args:
        error: Any error.
        model: The model whose fields may be secret; None if it is not known.

    Returns:
        Model, field and value; empty for all other errors. Values of fields that may be secret are left out.

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
    found = [_described(error.title, details, model) for details in error.errors()]
    return "; ".join(dict.fromkeys(found))


def problems_of(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> list[FieldProblem]:
    """Return the errors of pydantic as problems, one per field, with field paths of the manifest."""
    found: dict[FieldPath, FieldProblem] = {}
    for error in errors:
        path = navigable(error["loc"], manifest)
        if path not in found:
            found[path] = _problem(error, path, manifest, model)
    return list(found.values())


def field_errors_of(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> list[FieldError]:
    """Return the errors of pydantic in the form of the API server; maps, lists and possible secrets show their type."""
    found = {navigable(error["loc"], manifest): error for error in reversed(errors)}
    return [_field_error(error, path, manifest, model) for path, error in reversed(found.items())]


def _field_error(error: ErrorDetails, path: FieldPath, manifest: Manifest, model: type[BaseModel]) -> FieldError:
    if error["type"] == "missing":
        return required(format_path(path))
    value = get_field(manifest, path) if path else manifest
    hidden = isinstance(value, dict | list) or any(part in _SECRET_KEYS for part in path)
    hidden = hidden or is_secret(model, error["loc"])
    return invalid(format_path(path), _JSON_TYPES[type(value)] if hidden else value, error_text(error))


def unknown_field(model: type[BaseModel], path: FieldPath) -> FieldProblem:
    """Return the problem of an unknown field, with the nearest known one."""
    known = field_types(place_of(model, path[:-1]).annotation)
    found = nearest(str(path[-1]), known)
    hint = f', did you mean "{found}"?' if found else ""
    return FieldProblem(format_path(path), f"unknown field{hint}")


def navigable(location: Sequence[str | int], manifest: Manifest) -> FieldPath:
    """Return the part of a location that is a path in the manifest, without the parts that pydantic appends (`int`)."""
    value: Any = manifest
    path: list[str | int] = []
    for part in location:
        if not isinstance(value, dict | list):
            break
        path.append(part)
        value = get_field(value, (part,))
    return tuple(path)


def seen_at(path: FieldPath, value: Any) -> str:
    """Return the seen value for a message, starting with a comma; empty if the value may be secret."""
    if any(part in _SECRET_KEYS for part in path):
        return ""
    if isinstance(value, dict | list):
        return f", got {'a mapping' if isinstance(value, dict) else 'a list'}"
    text = repr(value)
    return f", got {text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + '…'}"


def _described(title: str, details: ErrorDetails, model: type[BaseModel] | None) -> str:
    place = (title, *details["loc"])
    # Of a text, only that of a SecretStr has items.
    hidden = details["type"] in {"too_short", "too_long"} and isinstance(details["input"], str)
    hidden = hidden or (model is not None and is_secret(model, details["loc"]))
    # Of a missing field, the input is the object that lacks it.
    seen = "" if hidden or details["type"] == "missing" else seen_at(place, details["input"])
    return f"{format_path(place)}: {error_text(details)}{seen}"


def _problem(error: ErrorDetails, path: FieldPath, manifest: Manifest, model: type[BaseModel]) -> FieldProblem:
    if error["type"] == "extra_forbidden":
        return unknown_field(model, path)
    hidden = error["type"] == "missing" or is_secret(model, error["loc"])
    seen = "" if hidden else seen_at(path, get_field(manifest, path))
    return FieldProblem(format_path(path), f"{error_text(error)}{seen}")


def error_text(details: ErrorDetails) -> str:
    """Return the text of an error of pydantic, in our words, without the value seen."""
    known = {"extra_forbidden": "unknown field", "no_such_attribute": "unknown field", "missing": "required value"}
    text = details["msg"].replace("Input should", "must", 1)
    return known.get(details["type"]) or text.removeprefix("Value error, ")
