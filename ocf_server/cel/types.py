"""Types of CEL, and the type of the values of a schema.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules
and, for the names in messages, https://github.com/google/cel-spec/blob/master/doc/langdef.md#values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "ANY",
    "AUTHORIZER",
    "AUTHORIZER_TYPES",
    "BOOL",
    "BYTES",
    "CIDR",
    "DOUBLE",
    "DURATION",
    "ERROR",
    "FORMAT",
    "INT",
    "IP",
    "NULL",
    "OPTIONAL",
    "QUANTITY",
    "RESERVED",
    "SEMVER",
    "STRING",
    "TIMESTAMP",
    "TYPE",
    "UINT",
    "URL",
    "CelType",
    "escaped",
    "list_of",
    "map_of",
    "optional_of",
    "run_time_name",
    "schema_kind",
    "type_of",
    "unwrapped",
    "variable",
    "with_head",
]

_Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CelType:
    """A type.

    Args:
        of: Type parameters: the items of a list; the keys and values of a map.
        fields: Fields of an object by their names in CEL, each with its name in manifests and its type.
        free: Whether it is a type variable.
    """

    name: str
    of: tuple["CelType", ...] = ()
    fields: Mapping[str, tuple[str, "CelType"]] | None = field(default=None, compare=False, hash=False)
    free: bool = False

    @property
    def is_open(self) -> bool:
        """Whether any use of a value of the type is valid: it is `dyn`, a type variable, or that of an error."""
        return self.free or self.name in {ANY.name, ERROR.name}

    @property
    def is_object(self) -> bool:
        """Whether it is the type of an object, or one that Kubernetes declares as such."""
        return self.fields is not None or self.name.startswith("kubernetes.")

    def __str__(self) -> str:
        if self.name == "type" and not self.of:
            return "type"
        return f"{self.name}({', '.join(map(str, self.of))})" if self.of else self.name


ANY: Final = CelType("dyn")
ERROR: Final = CelType("!error!")
"""Type of an expression with a type error, which is assignable to any other, so that only the first one is reported."""
BOOL: Final = CelType("bool")
BYTES: Final = CelType("bytes")
CIDR: Final = CelType("net.CIDR")
DOUBLE: Final = CelType("double")
DURATION: Final = CelType("duration")
FORMAT: Final = CelType("kubernetes.NamedFormat")
INT: Final = CelType("int")
IP: Final = CelType("net.IP")
NULL: Final = CelType("null")
QUANTITY: Final = CelType("kubernetes.Quantity")
SEMVER: Final = CelType("kubernetes.Semver")
STRING: Final = CelType("string")
TIMESTAMP: Final = CelType("timestamp")
TYPE: Final = CelType("type")
UINT: Final = CelType("uint")
URL: Final = CelType("kubernetes.URL")

OPTIONAL: Final = "optional_type"
"""Name of the type of optional values."""

_AUTHORIZATION: Final = "kubernetes.authorization"
AUTHORIZER: Final = CelType(f"{_AUTHORIZATION}.Authorizer")
AUTHORIZER_TYPES: Final = {
    "authorizer": AUTHORIZER,
    "path": CelType(f"{_AUTHORIZATION}.PathCheck"),
    "group": CelType(f"{_AUTHORIZATION}.GroupCheck"),
    "resource": CelType(f"{_AUTHORIZATION}.ResourceCheck"),
    "decision": CelType(f"{_AUTHORIZATION}.Decision"),
}
"""Types of the authorizer library, by their names in signatures."""


def list_of(item: CelType) -> CelType:
    """Return the type of a list."""
    return CelType("list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of a map."""
    return CelType("map", (key, value))


def optional_of(kind: CelType) -> CelType:
    """Return the type of an optional value."""
    return CelType(OPTIONAL, (kind,))


def unwrapped(kind: CelType) -> tuple[CelType, bool]:
    """Return the type of the value of an optional value, and whether the given type is that of an optional value.

    Example:
        >>> print(*unwrapped(optional_of(INT)))
        int True
    """
    return (kind.of[0], True) if kind.name == OPTIONAL else (kind, False)


def type_of(kind: CelType) -> CelType:
    """Return the type of a type as a value; all of them are comparable."""
    return CelType("type", (kind,))


_RUN_TIME_NAMES: Final = {
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
}


def run_time_name(name: str) -> str:
    """Return the name of a type as a value.

    Args:
        name: Name of the type in error messages of the type checker.
    """
    return _RUN_TIME_NAMES.get(name, name)


def variable(name: str) -> CelType:
    """Return a type variable for the signature of a function; all variables with one name have the same type."""
    return CelType(name, free=True)


RESERVED: Final = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
"""Reserved words of CEL, allowed only as the names of fields."""

_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")


def escaped(name: str) -> str | None:
    """Return the name of a field in CEL.

    Returns:
        Its name in CEL; None if CEL cannot express it.

    Example:
        >>> escaped("node-name"), escaped("namespace"), escaped("größe")
        ('node__dash__name', '__namespace__', None)
    """
    if name in RESERVED:
        return f"__{name}__"
    if not _IDENTIFIER.fullmatch(name):
        return None
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found.group()], name)


_TEXT: Final[_Schema] = {"type": "string"}
_HEAD: Final[_Schema] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}


def with_head(schema: _Schema) -> _Schema:
    """Return a schema with apiVersion, kind and the metadata that rules can use, for a whole object."""
    return {**schema, "properties": {**(schema.get("properties") or {}), **_HEAD}}


_TEXTS: Final = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_SCALARS: Final = {"boolean": BOOL, "number": DOUBLE, "integer": INT}


def schema_kind(schema: _Schema, name: str = "selfType") -> CelType | None:
    """Return the type of the values of a schema in rules.

    Args:
        name: Name of an object type in error messages.

    Returns:
        The type; None if rules cannot use such values, because the schema does not declare their type.

    Example:
        >>> print(schema_kind({"type": "array", "items": {"type": "number"}}))
        list(double)
    """
    if schema.get("x-kubernetes-int-or-string"):
        return ANY
    match schema.get("type"):
        case "array":
            item = schema_kind(schema.get("items") or {}, f"{name}.@idx")
            return list_of(item) if item else None
        case "object":
            return _object(with_head(schema) if schema.get("x-kubernetes-embedded-resource") else schema, name)
        case "string":
            return _TEXTS.get(schema.get("format") or "", STRING)
        case scalar:
            return _SCALARS.get(str(scalar))


def _object(schema: _Schema, name: str) -> CelType | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        value = schema_kind(extra, f"{name}.@elem")
        return map_of(STRING, value) if value else None
    fields = {}
    for field_name, below in (schema.get("properties") or {}).items():
        cel_name = escaped(field_name)
        kind = schema_kind(below, f"{name}.{cel_name}") if cel_name else None
        if cel_name and kind:
            fields[cel_name] = (field_name, kind)
        if kind and field_name in RESERVED:
            fields[field_name] = (field_name, kind)
    return CelType(name, fields=fields)
