"""Table of the built-in kinds, with the type of every field.

`scripts/generate/schema.py` generates the table from a real API server. It is stored beside this module and loaded on
first use; the types of a kind are built when the kind is first used.

A type defines how values are merged (lists by key, as sets or as a whole; maps by key or as a whole) and how the
structs of the API server hold empty values: kept, dropped or always set.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

from ocf.schema.defaults import DEFAULTS
from ocf.schema.releases import CURRENT, Release, gate_of

__all__ = [
    "ANYTHING",
    "CUSTOM_VERBS",
    "DEDUCED",
    "MISSING",
    "Anything",
    "ApiResource",
    "CustomKind",
    "EmptyValue",
    "Field",
    "ListType",
    "MapType",
    "Missing",
    "Scalar",
    "ScalePaths",
    "StructType",
    "Table",
    "Type",
    "builtin_kinds",
    "builtin_model",
    "builtin_plural",
    "builtin_resource",
    "builtin_versions",
    "custom_object",
    "is_builtin_group",
    "struct",
]


_Class: TypeAlias = type


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""A missing value; `None` is the JSON null."""


class Scalar(StrEnum):
    """A type without parts; the value is its code in the table."""

    TEXT = "s"
    INT32 = "i32"
    INT64 = "i64"
    NUMBER = "n"
    BOOLEAN = "b"
    BYTES = "y"
    TIME = "t"
    MICRO_TIME = "u"
    QUANTITY = "q"
    INT_OR_TEXT = "x"


class EmptyValue(Enum):
    """The treatment of an empty value; the value is its code in the table."""

    AS_SENT = ""
    DROP_EMPTY = "z"
    ALWAYS = "a"
    NULL = "n"


@dataclass(slots=True, eq=False)
class Anything:
    """Any JSON value. Lists in it are atomic; maps in it are atomic only if `atomic` is set."""

    atomic: bool


@dataclass(slots=True, eq=False)
class ListType:
    """A list.

    Args:
        keys: Of a list of structs that merge by key: the key fields, sorted, each with its default. Empty for a set of
            scalars, None for an atomic list.
        patch_key: How a strategic merge patch merges it: by this field of its items; as a set of scalars if empty; not
            at all if None.
    """

    item: "Type"
    keys: tuple[tuple[str, Any], ...] | None
    patch_key: str | None = None


@dataclass(slots=True, eq=False)
class MapType:
    """A map from names to values of one type."""

    value: "Type"
    atomic: bool


@dataclass(slots=True, eq=False)
class Field:
    """A field of a struct.

    Args:
        presence: The treatment of an empty value.
        default: Its default, if it is in `ocf.schema.defaults`; `MISSING` otherwise.
        gate: The feature gate without which an API server drops it; empty for none.
    """

    type: "Type"
    presence: EmptyValue
    default: Any = MISSING
    gate: str = ""
    exact: "_Class | None" = field(init=False)
    """The Python class whose values need no further check."""

    def __post_init__(self) -> None:
        self.exact = _EXACT.get(self.type) if isinstance(self.type, Scalar) else None


_EXACT: Final[Mapping[Scalar, _Class]] = {Scalar.TEXT: str, Scalar.BOOLEAN: bool}


@dataclass(slots=True, eq=False)
class StructType:
    """An object with declared fields.

    Args:
        extra: Type of undeclared fields; None rejects them.
    """

    name: str
    atomic: bool = False
    extra: "Type | None" = None
    fields: dict[str, Field] = field(default_factory=dict)


Type: TypeAlias = Scalar | Anything | ListType | MapType | StructType

ANYTHING: Final = Anything(atomic=True)
DEDUCED: Final = Anything(atomic=False)


@dataclass(frozen=True, slots=True)
class CustomKind:
    """A custom kind without a schema.

    Every field is kept. Lists in it are atomic and maps granular, as in a custom resource whose schema declares `spec`
    and `status` as objects that preserve unknown fields.

    Args:
        group: API group, `example.com`.
        version: API version, `v1`.
        kind: Kind, `Memcached`.
        plural: Resource name; empty takes the kind in lower case with an `s`.
        namespaced: Whether its objects live in namespaces.
        status: Whether it has the status subresource.

    Example:
        >>> CustomKind("example.com", "v1", "Memcached").resource_name
        'memcacheds'
    """

    group: str
    version: str
    kind: str
    plural: str = ""
    namespaced: bool = True
    status: bool = True

    @property
    def resource_name(self) -> str:
        """The resource name, given or derived."""
        return self.plural or f"{self.kind.lower()}s"


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of the fields of a Scale in an object of a kind, such as `.spec.replicas`.

    Args:
        selector: The selector as a text; empty without a selector.
    """

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ApiResource:
    """A kind as the API server serves it.

    Args:
        group: API group; empty for the core group.
        subresources: Its subresources, of `status` and `scale`.
        short_names: Short names, such as `deploy`.
        categories: Categories, such as `all`.
        home: Group, version and kind under which its objects are stored; None for its own.
        list_kind: Kind of a list; empty for the kind with `List`.
        warning: Deprecation warning for clients of this version; empty for none.
        rules: Of a custom resource: its compiled CEL rules, opaque here; None if its schema has none.
        release: The release that serves it.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    subresources: frozenset[str]
    verbs: frozenset[str]
    type: StructType
    custom: bool = False
    selectable: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    home: tuple[str, str, str] | None = None
    schema: Mapping[str, Any] | None = None
    scale: ScalePaths | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    list_kind: str = ""
    warning: str = ""
    rules: object | None = None
    release: Release = CURRENT

    @property
    def api_version(self) -> str:
        """Group and version as in manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """The resource as in messages, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """The kind as in messages, `Deployment.apps`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


CUSTOM_VERBS: Final = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


@dataclass(slots=True)
class Table:
    """Builds types from the entries of the table, each at most once, with the fields that a release has."""

    entries: Mapping[str, Mapping[str, Any]]
    release: Release = CURRENT
    _built: dict[str, StructType] = field(default_factory=dict, init=False)

    def struct(self, name: str) -> StructType:
        """Return a struct by name.

        Args:
            name: Its short name, `apps.v1.DeploymentSpec`.
        """
        known = self._built.get(name)
        if known is not None:
            return known
        entry = self.entries[name]
        # Stored before its fields are built: some structs contain themselves.
        built = self._built[name] = StructType(name.rpartition(".")[2], atomic="m" in entry)
        defaults = DEFAULTS.get(name, {})
        for key, value in entry["f"].items():
            if not self.release.is_current and not self.release.has_field(name, key):
                continue
            expression, presence = value if isinstance(value, list) else (value, "")
            default, gate = defaults.get(key, MISSING), gate_of(name, key)
            built.fields[key] = Field(self.type(expression), EmptyValue(presence), default, gate)
        return built

    def type(self, expression: Any) -> Type:
        """Parse a type expression of the table."""
        if isinstance(expression, str):
            return self._named(expression)
        if "l" in expression:
            return ListType(self.type(expression["l"]), _keys(expression.get("k")), expression.get("p"))
        if "o" in expression:
            return MapType(self.type(expression["o"]), atomic="m" in expression)
        named = self.struct(expression["r"][1:])
        return StructType(named.name, atomic=expression["m"] == "a", extra=named.extra, fields=named.fields)

    def _named(self, expression: str) -> Type:
        if expression[0] == "#":
            return self.struct(expression[1:])
        return ANYTHING if expression == "*" else Scalar(expression)


def _keys(pairs: Iterable[list[Any]] | None) -> tuple[tuple[str, Any], ...] | None:
    if pairs is None:
        return None
    return tuple(sorted((pair[0], pair[1] if len(pair) > 1 else MISSING) for pair in pairs))


@cache
def _document() -> tuple[dict[str, Any], Table]:
    packed = resources.files("ocf.schema").joinpath("builtin.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document, Table(document["types"])


@cache
def _rows() -> Mapping[tuple[str, str, str], list[Any]]:
    return {(row[0], row[1], row[2]): row for row in _document()[0]["kinds"]}


_HOMES: Final[Mapping[tuple[str, str, str], tuple[str, str, str]]] = {
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("events.k8s.io", "v1", "Event"): ("", "v1", "Event"),
}
"""The storage version of kinds that are served in a second version."""


@cache
def _table(minor: Release) -> Table:
    document, table = _document()
    return table if minor.is_current else Table(document["types"], minor)


@cache
def _builtin(group: str, version: str, kind: str, release: Release = CURRENT) -> ApiResource | None:
    row = _rows().get((group, version, kind))
    if row is None or not (release.is_current or release.serves(group, version, kind)):
        return None
    _, _, _, plural, singular, namespaced, subresources, verbs, name, short_names, categories = row
    return ApiResource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=singular,
        namespaced=bool(namespaced),
        subresources=frozenset(part for part in subresources if release.serves_part(group, kind, part)),
        verbs=frozenset(verbs),
        type=_table(Release(f"1.{release.minor}")).struct(name),
        short_names=tuple(short_names),
        categories=tuple(categories),
        home=_HOMES.get((group, version, kind)),
        release=release,
    )


def builtin_resource(group: str, version: str, kind: str, release: Release = CURRENT) -> ApiResource | None:
    """Return a built-in kind.

    Args:
        group: API group; empty for the core group.
        release: The release that serves it.

    Returns:
        The kind as the API server serves it; None if it is not built in.
    """
    return _builtin(group, version, kind, release)


# The client names them by their groups, because two groups have the kind.
_MODELS: Final = {"CoreV1Event": ("", "v1", "Event"), "EventsV1Event": ("events.k8s.io", "v1", "Event")}


def builtin_model(name: str) -> ApiResource | None:
    """Return the built-in kind whose objects a model of the Kubernetes client reads.

    Args:
        name: Name of the model, such as `V2HorizontalPodAutoscaler`.

    Returns:
        The kind; None if the model is another one, of a part of an object or of a list.
    """
    found = (key for key in _rows() if f"{key[1].capitalize()}{key[2]}" == name)
    key = _MODELS.get(name) or next(found, None)
    return _builtin(*key) if key is not None else None


def builtin_plural(group: str, version: str, plural: str, release: Release = CURRENT) -> ApiResource | None:
    """Return the built-in kind with a plural; None if it is not built in."""
    found = (key for key, row in _rows().items() if key[:2] == (group, version) and row[3] == plural)
    return next((_builtin(*key, release) for key in found), None)


def is_builtin_group(group: str) -> bool:
    """Return whether the API server serves built-in kinds of a group; empty is the core group."""
    return bool(builtin_kinds(group))


def builtin_kinds(group: str) -> set[tuple[str, str, str]]:
    """Return group, version and kind of the built-in kinds of a group."""
    return {key for key in _rows() if key[0] == group}


def builtin_versions(resource: ApiResource) -> list[ApiResource]:
    """Return the built-in kinds with the name of a kind, in all groups and versions of its release."""
    found = (_builtin(*key, resource.release) for key in _rows() if key[2] == resource.kind)
    return [other for other in found if other is not None]


def struct(name: str) -> StructType:
    """Return a built-in struct by its short name, for example `autoscaling.v1.Scale`."""
    return _document()[1].struct(name)


@cache
def custom_object() -> StructType:
    """Return the type of the objects of custom kinds, as far as it is the same for all: that of their metadata."""
    return StructType("CustomObject", fields={"metadata": Field(struct("meta.v1.ObjectMeta"), EmptyValue.ALWAYS)})
