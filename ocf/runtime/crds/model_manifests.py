"""Models of custom resources written as manifests, with the null values that are values of a field."""

from __future__ import annotations

import json
from types import NoneType
from typing import TYPE_CHECKING, Any

from ocf.errors import FieldProblem, ManifestError
from ocf.lazy_types.pydantic import BaseModel
from ocf.objects import Manifest
from ocf.objects.models import add_unknown_fields

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["write_nullable"]


def write_nullable(model: BaseModel) -> Manifest:
    """Return a model as a manifest, without null where null means that the field is absent.

    Null is a value of a field `X | None` whose default is not None: without it the API server would set the default.
    The elements of a set are sorted, so that equal models give equal manifests.

    Example:
        >>> from pydantic import BaseModel
        >>> class Paint(BaseModel):
        ...     color: str | None = "red"
        ...     gloss: int | None = None
        >>> write_nullable(Paint(color=None))
        {'color': None}
    """
    try:
        written = model.model_dump(mode="json", by_alias=True, warnings="error")
    except ValueError as error:
        problem = f"cannot be written as JSON ({type(error).__name__})"
        raise ManifestError(type(model).__name__, [FieldProblem("", problem)]) from None
    found: Manifest = _without_absent(model, written)
    add_unknown_fields(model, found)
    return found


def _without_absent(value: Any, written: Any) -> Any:
    from pydantic import BaseModel

    if isinstance(value, BaseModel) and isinstance(written, dict):
        return _fields(value, written)
    if isinstance(value, dict) and isinstance(written, dict) and len(value) == len(written):
        pairs = zip(value.values(), written.items(), strict=True)
        return {key: _without_absent(item, text) for item, (key, text) in pairs}
    if isinstance(value, list | tuple) and isinstance(written, list):
        return [_without_absent(item, text) for item, text in zip(value, written, strict=True)]
    if isinstance(value, set | frozenset) and isinstance(written, list):
        return sorted(written, key=lambda item: (str(type(item)), json.dumps(item)))
    return written


def _fields(model: BaseModel, written: dict[str, Any]) -> dict[str, Any]:
    out = dict(written)
    for name, field in type(model).model_fields.items():
        key = field.serialization_alias or field.alias or name
        if key not in written:
            continue
        if written[key] is None and _means_absent(field):
            del out[key]
        else:
            out[key] = _without_absent(getattr(model, name), written[key])
    return out


def _means_absent(field: FieldInfo) -> bool:
    if field.annotation is NoneType:
        return True
    return not field.is_required() and field.default_factory is None and field.default is None
