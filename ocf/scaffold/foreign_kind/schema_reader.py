"""From a structural schema to the description of models: names first, then declarations, inner ones first."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pydantic.alias_generators import to_camel

from ocf.scaffold.foreign_kind.description import AliasModel, ClassModel, FieldModel, Model, TypeModel
from ocf.scaffold.foreign_kind.documentation import paragraphs, summary
from ocf.scaffold.foreign_kind.names import ITEM, VALUE, class_names, field_name, needs_alias
from ocf.scaffold.foreign_kind.scalar_types import enumeration, limits_of, notes_of, scalar
from ocf.scaffold.python_literal import literal

__all__ = ["read_schema"]

Schema: TypeAlias = Mapping[str, Any]
_Path: TypeAlias = tuple[str, ...]

_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})
_PLACE_ONLY: Final = frozenset({"default", "description", "nullable", "title"})
"""Keywords that belong to a place, not to the type: places that differ in nothing else share a class."""
_LONGEST_LITERAL: Final = 60


def read_schema(kind: str, schema: Schema) -> tuple[Model, ...]:
    """Return the declarations that describe a custom resource.

    The status is read and never written, so its types are checked, but neither its limits nor its required fields: a
    newer version of its controller may write more than the schema says.

    Args:
        schema: Its structural schema (`openAPIV3Schema`).

    Returns:
        Classes and aliases, each after those that it uses; the last one is the class of the whole object.

    Example:
        >>> schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        ...     "size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "enum": ["a", "b"]}}}}}
        >>> spec, root = read_schema("Cache", schema)
        >>> spec.name, [(field.name, field.type.text) for field in spec.fields]
        ('CacheSpec', [('size', 'StrictInt'), ('mode', 'Literal["a", "b"]')])
        >>> root.name, root.base
        ('Cache', 'ApiObject')
    """
    return _Reader(kind, _without_head(schema)).read()


def _without_head(schema: Schema) -> Schema:
    properties = schema.get("properties") or {}
    return {**schema, "properties": {name: below for name, below in properties.items() if name not in _HEAD}}


class _Reader:
    def __init__(self, kind: str, schema: Schema) -> None:
        self._kind = kind
        self._schema = schema
        self._keys = _Keys()
        self._names = _named(kind, schema, self._keys)
        self._models: dict[str, Model] = {}

    def read(self) -> tuple[Model, ...]:
        root = self._class(self._schema, ())
        return (*self._models.values(), root)

    def _class(self, schema: Schema, path: _Path) -> ClassModel:
        required = frozenset() if _is_tolerant(path) else frozenset(schema.get("required") or ())
        required -= {"status"} if not path else set()
        fields = _distinct(
            [self._field(name, below, (*path, name), required) for name, below in _properties(schema).items()]
        )
        nullable = any(each.nullable for each in fields)
        bases = [name for name, wanted in (("NullableFields", nullable), ("ApiObject", not path)) if wanted]
        rules = () if _is_tolerant(path) else tuple(notes_of(schema))
        return ClassModel(
            name=self._name(schema, path),
            base=", ".join(bases) or "ApiModel",
            paragraphs=(summary(schema, _shown(self._kind, path)), *rules),
            fields=fields,
        )

    def _field(self, name: str, schema: Schema, path: _Path, required: frozenset[str]) -> FieldModel:
        type_ = self._type(schema, path)
        python = field_name(name)
        notes = [f"Default: `{json.dumps(schema['default'])}`."] if "default" in schema else []
        of_schema = () if type_.text == self._names.get(self._keys.of(schema, path)) else type_.notes
        return FieldModel(
            name=python,
            alias=name if needs_alias(name, python) else "",
            type=type_,
            required=name in required and "default" not in schema,
            nullable=bool(schema.get("nullable")),
            paragraphs=(*paragraphs(schema.get("description")), *of_schema, *notes),
        )

    def _type(self, schema: Schema, path: _Path) -> TypeModel:
        """Return the type at a path; it declares what needs a name."""
        if _is_object(schema):
            return self._declared(schema, path) or self._map(schema, path)
        if schema.get("type") == "array":
            return self._list(schema, path)
        return self._declared(schema, path) or _inline(schema, path)

    def _declared(self, schema: Schema, path: _Path) -> TypeModel | None:
        name = self._names.get(self._keys.of(schema, path))
        if name is None:
            return None
        if name not in self._models:
            values = enumeration(schema)
            said = summary(schema, _shown(self._kind, path))
            if _is_object(schema):
                found: Model = self._class(schema, path)
            elif values:
                found = AliasModel(name=name, values=values, summary=said)
            else:
                found = AliasModel(name=name, type=scalar(schema), summary=said)
            self._models[name] = found
        return TypeModel(name)

    def _list(self, schema: Schema, path: _Path) -> TypeModel:
        below = (*path, ITEM)
        item = self._inner(schema.get("items") or {}, below)
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        notes = [f"Items are identified by {', '.join(f'`{key}`' for key in keys)}."] if keys else []
        if schema.get("x-kubernetes-list-type") == "set":
            notes = ["Items are unique."]
        return _limited(TypeModel(f"list[{item}]"), schema, path, notes)

    def _map(self, schema: Schema, path: _Path) -> TypeModel:
        values = schema.get("additionalProperties")
        inner = self._inner(values, (*path, VALUE)) if isinstance(values, Mapping) else "Any"
        return _limited(TypeModel(f"dict[str, {inner}]"), schema, path, [])

    def _inner(self, schema: Schema, path: _Path) -> str:
        text = self._type(schema, path).text
        return f"{text} | None" if schema.get("nullable") and text != "Any" else text

    def _name(self, schema: Schema, path: _Path) -> str:
        return self._names[self._keys.of(schema, path)]


class _Keys:
    """What schemas that share a class have in common, computed once for each."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, bool, bool], tuple[Schema, str]] = {}

    def of(self, schema: Schema, path: _Path) -> str:
        """Return the key of the schema at a path."""
        inner = not _is_object(schema) and path[-1:] in {(ITEM,), (VALUE,)}
        tolerant = _is_tolerant(path)
        known = (id(schema), tolerant, inner)
        if known not in self._found:
            plain = {name: value for name, value in schema.items() if name not in _PLACE_ONLY}
            # Holding the schema keeps its identity from being used again.
            self._found[known] = schema, json.dumps([tolerant, inner, plain], sort_keys=True)
        return self._found[known][1]


def _named(kind: str, root: Schema, keys: _Keys) -> dict[str, str]:
    """Return the name of each schema that needs one: that of its shortest path, the first one in the alphabet."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    queue: deque[tuple[_Path, Schema]] = deque([((), root)])
    while queue:
        path, schema = queue.popleft()
        key = keys.of(schema, path)
        if key not in names and _needs_name(schema, path):
            name = next(name for name in class_names(kind, path) if name not in taken)
            names[key] = name
            taken.add(name)
        queue.extend(sorted(_below(schema, path), key=lambda each: each[0]))
    return names


def _below(schema: Schema, path: _Path) -> Iterator[tuple[_Path, Schema]]:
    yield from (((*path, name), below) for name, below in _properties(schema).items())
    for keyword, segment in (("items", ITEM), ("additionalProperties", VALUE)):
        below = schema.get(keyword)
        if isinstance(below, Mapping):
            yield (*path, segment), below


def _needs_name(schema: Schema, path: _Path) -> bool:
    if _is_object(schema):
        return not path or bool(_properties(schema))
    if _is_tolerant(path) or schema.get("type") == "array":
        return False
    if values := enumeration(schema):
        return len(_literal(values)) > _LONGEST_LITERAL
    return path[-1:] in {(ITEM,), (VALUE,)} and bool(limits_of(schema)) and not schema.get("x-kubernetes-int-or-string")


def _properties(schema: Schema) -> Mapping[str, Schema]:
    found: Mapping[str, Schema] = schema.get("properties") or {}
    if schema.get("x-kubernetes-embedded-resource") and found:
        head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        return {**head, **found}
    return found


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or (not schema.get("type") and bool(schema.get("properties")))


def _is_tolerant(path: Sequence[str]) -> bool:
    return path[:1] == ("status",)


def _inline(schema: Schema, path: _Path) -> TypeModel:
    if _is_tolerant(path):
        text = scalar({key: schema[key] for key in ("type", "x-kubernetes-int-or-string") if key in schema}).text
        return TypeModel(text)
    values = enumeration(schema)
    return TypeModel(_literal(values)) if values else scalar(schema)


def _literal(values: Sequence[Any]) -> str:
    return f"Literal[{', '.join(literal(value) for value in values)}]"


def _limited(plain: TypeModel, schema: Schema, path: _Path, notes: Sequence[str]) -> TypeModel:
    if _is_tolerant(path):
        return plain
    return TypeModel(plain.text, limits_of(schema), (*notes, *notes_of(schema)))


def _distinct(fields: Sequence[FieldModel]) -> tuple[FieldModel, ...]:
    """Return fields with distinct names: of two that differ in the API only, one gets a number.

    A model reads a field by both of its names, so none has the name that another one has in the API.
    """
    found: dict[str, FieldModel] = {}
    in_api = {_api_name(each) for each in fields}
    for each in fields:
        name, number = each.name, 2
        while name in found or (name in in_api and name != _api_name(each)):
            name, number = f"{each.name}_{number}", number + 1
        alias = each.alias or (_api_name(each) if name != each.name else "")
        found[name] = FieldModel(
            name=name,
            alias=alias,
            type=each.type,
            required=each.required,
            nullable=each.nullable,
            paragraphs=each.paragraphs,
        )
    return tuple(found.values())


def _api_name(field: FieldModel) -> str:
    return field.alias or to_camel(field.name)


def _shown(kind: str, path: _Path) -> str:
    shown = "".join(segment if segment in {ITEM, VALUE} else f".{segment}" for segment in path).lstrip(".")
    return f"`{shown}`" if shown else kind
