"""Problems of a scenario that its models find, with paths of the file and the nearest names."""

from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.objects.model_errors import error_text, seen_at
from ocf.objects.model_fields import field_types
from ocf.objects.paths import FieldPath, format_path, get_field
from ocf.objects.suggestions import nearest

__all__ = ["model_problems", "written_path"]


def model_problems(errors: Sequence[ErrorDetails], manifest: Manifest, model: type[BaseModel]) -> list[FieldProblem]:
    """Return the errors of pydantic as problems, one per field."""
    found: dict[FieldPath, FieldProblem] = {}
    for error in errors:
        path = written_path(error["loc"], manifest)
        if error["type"].startswith("union_tag"):
            path = (*path, "type")
        if path not in found:
            found[path] = FieldProblem(format_path(path), _detail(error, path, manifest, model))
    return list(found.values())


def written_path(location: Sequence[str | int], manifest: Manifest) -> FieldPath:
    """Return the path in the file of a location in the models.

    A location has parts that a file does not have: the type of a load, and the position 0 of a load that is not a list.
    """
    value: Any = manifest
    path: list[str | int] = []
    for part in location:
        if isinstance(value, list) or (isinstance(value, dict) and part in value):
            path.append(part)
            value = get_field(value, (part,))
        elif isinstance(value, dict) and isinstance(part, str) and part != value.get("type"):
            path.append(part)
            break
        elif not isinstance(value, dict):
            break
    return tuple(path)


def _detail(error: ErrorDetails, path: FieldPath, manifest: Manifest, model: type[BaseModel]) -> str:
    value = get_field(manifest, path)
    if error["type"] == "extra_forbidden":
        return f"unknown field{_hint(str(path[-1]), _names(model, error['loc'][:-1]))}"
    if error["type"].startswith("union_tag"):
        # Quoted by pydantic: `'Csv', 'Daily'`.
        known = [name.strip(" '") for name in str(error.get("ctx", {}).get("expected_tags", "")).split(",") if name]
        known = known or sorted(_tags(model, error["loc"]))
        allowed = f"must be one of {', '.join(known)}"
        return (
            f"{allowed}{seen_at(path, value)}{_hint(str(value), known)}"
            if value is not None
            else f"required value: {allowed}"
        )
    text, seen = error_text(error), seen_at(path, value)
    is_shown = error["type"] == "missing" or ", got " in text or seen.removeprefix(", got ") in text
    return text if is_shown else f"{text}{seen}"


def _hint(name: str, known: Sequence[str]) -> str:
    found = nearest(name, known)
    return f', did you mean "{found}"?' if found else ""


def _names(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    return [name for each in _models_at(model, location) for name in field_types(each)]


def _tags(model: type[BaseModel], location: Sequence[str | int]) -> Iterator[str]:
    for each in _models_at(model, location):
        yield from get_args(field_types(each).get("type"))


def _models_at(model: type[BaseModel], location: Sequence[str | int]) -> list[type[BaseModel]]:
    """Return the models that a location may have, by the types of the fields."""
    found = [model]
    for part in location:
        inner = [models for each in found if (models := list(_inner(field_types(each).get(str(part)))))]
        if inner:
            found = [each for models in inner for each in models]
        elif isinstance(part, str):
            found = [each for each in found if part in get_args(field_types(each).get("type"))] or found
    return found


def _inner(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, also in those of its lists and maps."""
    origin = get_origin(annotation)
    if isinstance(annotation, type) and origin is None and issubclass(annotation, BaseModel):
        yield annotation
    elif origin is Annotated:
        yield from _inner(get_args(annotation)[0])
    elif origin in {Union, UnionType, tuple, list, dict}:
        for each in get_args(annotation):
            yield from _inner(each)
