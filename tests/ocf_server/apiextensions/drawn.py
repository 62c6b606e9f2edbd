"""Structural schemas and objects of custom kinds, drawn from a seeded generator.

An object follows its schema in most fields. The others have a null, a value of another type, or are not declared.
"""

from random import Random
from typing import Any, Final

Json = dict[str, Any]

_NAMES: Final = ("size", "mode", "items", "nested", "template", "colour", "labels", "ports", "name", "kind", "metadata")
_SCALARS: Final = ("string", "integer", "number", "boolean")
_KEEP: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_EITHER: Final = "x-kubernetes-int-or-string"
_DEEPEST: Final = 4
_METADATA: Final[tuple[Json, ...]] = (
    {"unknown": 1},
    {"creationTimestamp": None},
    {"creationTimestamp": "2026-01-02T03:04:05Z", "generation": 3, "resourceVersion": "7"},
    {"labels": {}, "annotations": None, "finalizers": []},
    {"name": "", "generateName": "x-", "namespace": None},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "extra": 1}]},
)


_FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "byte": ("", "YQ==", "YQ", "Y Q="),
    "cidr": ("10.0.0.0/8", "010.0.0.1/8", "::/129", "::1/64", "1.2.3.4/255.0.0.0"),
    "date": ("2026-02-28", "2026-02-30", "2026-2-1"),
    "date-time": (
        "2026-01-02T03:04:05Z",
        "2026-01-02t03:04:05.5+99:99",
        "2026-01-02 03:04:05Z",
        "2026-01-02T24:00:00Z",
    ),
    "duration": ("1h", "3 days", "1.5h", "0", "5", "h", "1x"),
    "email": ("a@b.c", "a@b", "A B <a@b.c>", "a b@c", "@b"),
    "hostname": ("a.example.com", "a", "-a", "a_b", "a..b", "1.2"),
    "ipv4": ("1.2.3.4", "01.2.3.4", "1.2.3", "::ffff:1.2.3.4"),
    "ipv6": ("::1", "fe80::1%eth0", "1.2.3.4", "::ffff:1.2.3.4", ":::"),
    "mac": ("00:11:22:33:44:55", "0011.2233.4455", "00-11:22-33:44-55", "001122334455"),
    "uri": ("https://a.b/c?d", "a/b", "/a", "mailto:x", "http://[::1", "%zz"),
    "uuid": ("9b5ec7f4-0d8f-4a3e-8f0a-2f4c7f6e9c11", "9b5ec7f40d8f4a3e8f0a2f4c7f6e9c11", "9b5ec7f4"),
    "k8s-short-name": ("a-b", "A", "a.b"),
}
_VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "": ("free", 3, {"free": {"kind": "x"}}, [1, {"free": None}]),
    "boolean": (False, True),
    "either": (80, "http", "50%"),
    "integer": (0, 1, -5, 2**40),
    "number": (0, 1.5, -2.25, 1e20),
    "string": ("", "red", "a longer text", "<é>"),
}
_RED: Final = {"pattern": "^r"}
_TEXTS: Final = (
    "byte",
    "date-time",
    "date",
    "duration",
    "ipv4",
    "ipv6",
    "cidr",
    "uuid",
    "uri",
    "hostname",
    "email",
    "mac",
)
_LIMITS: Final[dict[str, tuple[Json, ...]]] = {
    "string": (
        *({"format": name} for name in (*_FORMATS, "int32", "unknown")),
        {"minLength": 1},
        {"maxLength": 3},
        {"minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
        {"enum": ["", "red"]},
        {"anyOf": [_RED, {"maxLength": 0}]},
        {"oneOf": [_RED, {"minLength": 3}]},
        {"allOf": [_RED, {"minLength": 5}]},
        {"not": _RED},
    ),
    "integer": (
        {"format": "int32"},
        {"minimum": 0, "maximum": 1},
        {"minimum": 0, "exclusiveMinimum": True},
        {"maximum": 1, "exclusiveMaximum": True},
        {"minimum": -1.5, "maximum": 0.5},
        {"multipleOf": 2},
        {"enum": [1, 2]},
        {"anyOf": [{"minimum": 2}, {"maximum": -1}]},
    ),
    "number": (
        {"format": "double"},
        {"format": "float"},
        {"minimum": 0, "maximum": 1},
        {"minimum": -1.5, "exclusiveMinimum": True, "maximum": 2.5},
        {"multipleOf": 0.5},
        {"enum": [1, 1.5]},
    ),
    "boolean": ({"enum": [True]},),
    "either": (
        {"pattern": "^[0-9]+%$"},
        {"minimum": 1, "maximum": 50},
        {"enum": ["http", 80]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}], "maxLength": 3},
        {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maximum": 50}], "anyOf": []},
    ),
    "array": ({"minItems": 1}, {"maxItems": 1}, {"minItems": 2, "maxItems": 2}),
    "object": ({"minProperties": 1}, {"maxProperties": 1}),
    "": ({"enum": ["free", 3]},),
}
_HEADS: Final[tuple[Json, ...]] = (
    {"apiVersion": 5},
    {"apiVersion": ""},
    {"apiVersion": "a/b/c"},
    {"kind": None},
    {"kind": "P_d"},
    {"metadata": "text"},
    {"metadata": None},
    {"metadata": {"labels": {"a": 1}}},
    {"metadata": {"labels": {"$": "b"}, "name": "a/b", "namespace": "_", "generation": -1}},
    {"metadata": {"generateName": "a/", "finalizers": ["x y"]}},
)


def _is_limited(schema: Json) -> bool:
    """Return whether a schema, or one below it, limits its values."""
    kept = {"type", "properties", "items", "additionalProperties", "nullable", "default", "anyOf", _KEEP, _EITHER}
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return bool(set(schema) - kept) or any(_is_limited(each) for each in below if isinstance(each, dict))


class Drawn:
    """Draws schemas and values.

    Args:
        seed: The seed; equal seeds draw equal values.
        limits: Share of the schemas that limit their values, besides the type.
    """

    def __init__(self, seed: int, *, limits: float = 0.0) -> None:
        self._random = Random(seed)  # noqa: S311 (test data)
        self._limits = limits

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def schema(self) -> Json:
        """Return the schema of a kind."""
        parts = {name: self._node(1) for name in ("spec", "status")}
        if self._chance(0.3):
            parts["extra"] = self._node(1)
        schema: Json = {"type": "object", "properties": parts}
        if self._chance(0.1):
            schema[_KEEP] = True
        return schema

    def _node(self, depth: int) -> Json:
        node = self._shape(depth)
        if self._chance(0.15):
            node["nullable"] = True
        if self._limits and self._chance(self._limits):
            return node | self._limit(node)
        if self._chance(0.25) and _EMBEDDED not in node and not _is_limited(node):
            node["default"] = self.value(node, depth, wrong=0.0)
        return node

    def _limit(self, node: Json) -> Json:
        """Draw what limits the values of a schema."""
        draw = self._random
        options = [*_LIMITS.get("either" if _EITHER in node else node.get("type", ""), ())]
        names = [*node.get("properties", ())]
        if names:
            one, two = draw.choice(names), draw.choice(names)
            options += [
                {"required": sorted({one, two})},
                {"required": ["absent"]},
                {"anyOf": [{"required": [one]}, {"required": [two]}]},
                {"oneOf": [{"required": [one]}, {"required": [two]}, {"properties": {two: {"enum": ["red", 1]}}}]},
                {"allOf": [{"required": [one]}, {"minProperties": 2}]},
                {"not": {"required": [one]}},
            ]
        items = node.get("items", {})
        if items.get("type") in _SCALARS:
            options.append({"x-kubernetes-list-type": "set"})
        keys = [name for name, below in items.get("properties", {}).items() if below.get("type") in _SCALARS]
        if keys and items.get("type") == "object" and not items.get("nullable"):
            node["items"] = {**items, "required": keys[:2]}
            options = [{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys[:2]}]
        return draw.choice(options) if options else {}

    def _shape(self, depth: int) -> Json:
        draw = self._random.random()
        if depth >= _DEEPEST or draw < 0.3:
            return self._leaf()
        if draw < 0.55:
            return self._fields(depth)
        if draw < 0.65:
            extra = True if self._chance(0.1) else self._node_without_default(depth + 1)
            return {"type": "object", "additionalProperties": extra}
        if draw < 0.9:
            return self._list(depth)
        node: Json = {**self._fields(depth), _EMBEDDED: True}
        node["properties"].pop("metadata", None)
        node["properties"].pop("kind", None)
        return node if node["properties"] else node | {_KEEP: True}

    def _leaf(self) -> Json:
        if self._chance(0.15):
            return {_KEEP: True}
        if self._chance(0.15):
            return {_EITHER: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        if self._chance(0.1):
            return {"type": "object", _KEEP: True}
        return {"type": self._random.choice(_SCALARS)}

    def _fields(self, depth: int) -> Json:
        names = self._random.sample(_NAMES, self._random.randint(0, 4))
        node: Json = {"type": "object", "properties": {name: self._node(depth + 1) for name in names}}
        if self._chance(0.2):
            node[_KEEP] = True
        return node

    def _list(self, depth: int) -> Json:
        node: Json = {"type": "array", "items": self._node(depth + 1)}
        if self._chance(0.3):
            node[_KEEP] = True
        return node

    def _node_without_default(self, depth: int) -> Json:
        node = self._node(depth)
        node.pop("default", None)
        return node

    def object(self, schema: Json, *, wrong: float = 0.12) -> Json:
        """Return an object of a kind.

        Args:
            wrong: Share of the values that do not follow the schema.
        """
        head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}}
        body = self.value(schema, 0, wrong=wrong)
        return {**body, **head}

    def value(self, schema: Json, depth: int, *, wrong: float) -> Any:
        """Return a value of a schema."""
        if depth and self._chance(wrong):
            return self._random.choice((None, None, "text", 7, 1.5, True, {"other": {"deep": 1}}, [{"other": 1}, None]))
        kind = "either" if schema.get(_EITHER) else schema.get("type", "")
        if kind == "array":
            return [self.value(schema["items"], depth + 1, wrong=wrong) for _ in range(self._random.randint(0, 3))]
        if kind == "object":
            return self._map(schema, depth, wrong=wrong)
        return self._random.choice(_FORMATS.get(schema.get("format", ""), _VALUES[kind]))

    def _map(self, schema: Json, depth: int, *, wrong: float) -> Json:
        known, extra = schema.get("properties", {}), schema.get("additionalProperties")
        found = {name: self.value(below, depth + 1, wrong=wrong) for name, below in known.items() if self._chance(0.7)}
        if extra:
            names = self._random.sample(_NAMES, self._random.randint(0, 2))
            # A default may have no field that is not declared.
            below = extra if isinstance(extra, dict) else {} if wrong else {"type": "string"}
            found |= {name: self.value(below, depth + 1, wrong=wrong) for name in names}
        if wrong and self._chance(0.25):
            found[self._random.choice(("unknown", "kind", "apiVersion", "other"))] = self._random.choice(
                ("text", None, {"deep": [{"size": 1}]})
            )
        if schema.get(_EMBEDDED):
            found |= {"apiVersion": "v1", "kind": "Pod"}
            if self._chance(0.5):
                found["metadata"] = self._metadata(wrong=wrong)
            if self._limits and wrong and self._chance(0.3):
                found |= self._random.choice(_HEADS)
                if self._chance(0.1):
                    found.pop("kind")
        return found

    def _metadata(self, *, wrong: float) -> Json:
        found: Json = {"name": "inner", "labels": {"a": "b"}}
        if wrong and self._chance(0.5):
            odd = self._random.choice(_METADATA)
            found |= odd
        return found
