"""Which resources are served, and how they are found by their paths.

What a real server says of its built-in resources (short names, categories, columns) lies in a file beside this module,
written by `scripts/generate_openapi.py`. The user's kinds come from the cluster, which may learn new ones at any time,
so a catalog is a snapshot.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from ocf.schema.builtin import ApiResource

__all__ = ["Catalog", "Served", "SubresourceInfo", "TableColumn", "builtin_kinds", "custom_kind", "server_version"]

_PART_VERBS: Final = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table.

    Args:
        name: Its heading.
        type: `string`, `integer`, `number`, `boolean` or `date`.
        format: What the text is, `name` for the name of an object.
        description: What it shows.
        priority: 0 for a column that is always shown; others are shown on demand.
        path: Of a user's kind, where the value is; empty for what is written by a printer.
    """

    name: str
    type: str
    format: str = ""
    description: str = ""
    priority: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class SubresourceInfo:
    """A subresource.

    Args:
        name: Its name in paths.
        verbs: What it can do.
        group: Group of the kind that it answers with; empty for that of the resource, likewise the next ones.
        version: Version of that kind.
        kind: That kind.
    """

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """A resource as clients find it.

    Args:
        group: API group; empty for the core group.
        version: API version.
        kind: Kind.
        plural: Resource name.
        singular: Resource name of one.
        namespaced: Whether its objects live in namespaces.
        verbs: What it can do.
        short_names: Short resource names.
        categories: Groups of resources that it is listed with, `all`.
        parts: Its subresources.
        columns: The columns of its table.
        custom: Whether it is a user's kind.
        schema: Of a user's kind, the schema of its objects; None if it has none.
        lists: The kind of its lists; empty for its own with `List`.
        warning: What whoever uses it is told; empty for nothing.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[SubresourceInfo, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    custom: bool = False
    schema: Mapping[str, Any] | None = None
    lists: str = ""
    warning: str = ""

    @property
    def api_version(self) -> str:
        """Group and version as manifests say it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.lists or f"{self.kind}List"

    @property
    def is_stored(self) -> bool:
        """Whether its objects are kept; what is only answered cannot be read."""
        return "get" in self.verbs

    def part(self, name: str) -> SubresourceInfo | None:
        """Return a subresource by name."""
        return next((part for part in self.parts if part.name == name), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All that is served, in the order of discovery.

    Args:
        kinds: The resources; those of one group together, the preferred version first.
    """

    kinds: tuple[Served, ...]

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """Look a resource up by its place in paths."""
        for kind in self.kinds:
            if (kind.group, kind.version, kind.plural) == (group, version, plural):
                return kind
        return None

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Return the groups with their versions, the preferred one first."""
        found: dict[str, dict[str, None]] = {}
        for kind in self.kinds:
            found.setdefault(kind.group, {})[kind.version] = None
        return {group: tuple(versions) for group, versions in found.items()}

    def of(self, group: str, version: str) -> tuple[Served, ...]:
        """Return the resources of a version, by name."""
        found = [kind for kind in self.kinds if (kind.group, kind.version) == (group, version)]
        return tuple(sorted(found, key=lambda kind: kind.plural))


@cache
def _document() -> dict[str, Any]:
    packed = resources.files("ocf.embedded.http").joinpath("served.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document


def server_version() -> Mapping[str, str]:
    """Return which version of a real server this one follows: `major`, `minor` and `gitVersion`."""
    found: dict[str, str] = _document()["version"]
    return found


@cache
def builtin_kinds() -> tuple[Served, ...]:
    """Return the built-in resources.

    Example:
        >>> [kind.short_names for kind in builtin_kinds() if kind.kind == "Deployment"]
        [('deploy',)]
    """
    return tuple(map(_read, _document()["resources"]))


def _read(entry: Mapping[str, Any]) -> Served:
    return Served(
        group=entry["group"],
        version=entry["version"],
        kind=entry["kind"],
        plural=entry["plural"],
        singular=entry["singular"],
        namespaced=entry["namespaced"],
        verbs=tuple(entry["verbs"]),
        short_names=tuple(entry["short_names"]),
        categories=tuple(entry["categories"]),
        parts=tuple(_read_parts(entry["subresources"])),
        columns=tuple(TableColumn(**column) for column in entry.get("columns", ())),
    )


def _read_parts(entries: Iterable[Mapping[str, Any]]) -> Iterator[SubresourceInfo]:
    for entry in entries:
        yield SubresourceInfo(entry["name"], tuple(entry["verbs"]), **entry["kind"])


_SCALE: Final = {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def custom_kind(resource: ApiResource) -> Served:
    """Describe a user's kind as clients find it.

    Args:
        resource: The kind as the cluster has it.

    Returns:
        The kind; its table has the name and the columns of its definition, or the age.
    """
    parts = []
    if "scale" in resource.subresources:
        parts.append(SubresourceInfo("scale", _PART_VERBS, **_SCALE))
    if "status" in resource.subresources:
        parts.append(SubresourceInfo("status", _PART_VERBS, kind=resource.kind))
    return Served(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        singular=resource.singular,
        namespaced=resource.namespaced,
        verbs=tuple(sorted(resource.verbs)),
        short_names=resource.short_names,
        categories=resource.categories,
        parts=tuple(parts),
        columns=(_NAME, *(map(_printed, resource.columns) if resource.columns else (_AGE,))),
        custom=True,
        schema=resource.schema,
        lists=resource.list_kind,
        warning=resource.warning,
    )


_NAME: Final = TableColumn("Name", "string", "name", "Name must be unique within a namespace.")
_AGE: Final = TableColumn("Age", "date", "", "When the object was created.", path=".metadata.creationTimestamp")


def _printed(entry: Mapping[str, Any]) -> TableColumn:
    """Read a column of a definition."""
    return TableColumn(
        entry["name"],
        entry["type"],
        entry.get("format", ""),
        entry.get("description", f"Custom resource definition column (in JSONPath format): {entry['jsonPath']}"),
        entry.get("priority", 0),
        entry["jsonPath"],
    )
