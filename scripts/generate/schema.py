"""Write the table of built-in kinds that `ocf_server` runs on.

The table is read off a running API server: its OpenAPI v3 documents say which fields exist, of what type, and how lists
and maps merge; its discovery documents say which resources exist. Neither says which fields are pointers in the
server's own structs, and that decides whether a zero survives a round trip (`replicas: 0` does, `paused: false` does
not). This is taken from the Go sources of the API types of the same version, which `go mod download` puts on disk.

    python scripts/generate/schema.py https://127.0.0.1:6443 TOKEN \
        --go io.k8s.api=$GOMOD/k8s.io/api@v0.36.3 \
        --go io.k8s.apimachinery=$GOMOD/k8s.io/apimachinery@v0.36.3 \
        --go io.k8s.apiextensions-apiserver=$GOMOD/k8s.io/apiextensions-apiserver@v0.36.3 \
        --go io.k8s.kube-aggregator=$GOMOD/k8s.io/kube-aggregator@v0.36.3

The same input gives the same bytes.
"""

import argparse
import gzip
import json
import re
import ssl
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

PACKAGE: Final = Path(__file__).parents[2] / "ocf" / "schema"
SCALARS: Final = {"string": "s", "integer": "i64", "number": "n", "boolean": "b"}
REVIEWED: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups with reviews, which the API server answers and does not store."""
FORMATS: Final = {"int32": "i32", "int64": "i64", "byte": "y", "double": "n"}
SPECIAL: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "q",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "x",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "u",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Duration": "s",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "*",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "*",
}
_OWN: Final = "io.k8s."
"""What the names of built-in types start with; the server may serve custom resources as well."""
STRUCT_LINE: Final = re.compile(r"^type (\w+) struct \{")
FIELD_LINE: Final = re.compile(r'^\s+(?:(\w+)\s+)?(\S+)\s+`[^`]*json:"([^",]*)((?:,\w+)*)"')


@dataclass(frozen=True, slots=True)
class GoField:
    """One line of a Go struct: its type, and the options of its JSON tag."""

    type: str
    options: frozenset[str]


@dataclass(slots=True)
class GoTypes:
    """The structs of the API packages, by OpenAPI name."""

    roots: dict[str, Path]
    _packages: dict[str, dict[str, dict[str, GoField]]] = field(default_factory=dict)

    def field(self, type_name: str, field_name: str) -> GoField | None:
        """Find a field of a struct, looking into the structs it embeds."""
        package, _, name = type_name.rpartition(".")
        return self._find(package, name, field_name)

    def _find(self, package: str, struct: str, field_name: str) -> GoField | None:
        fields = self._package(package).get(struct, {})
        if field_name in fields:
            return fields[field_name]
        for embedded, go in fields.items():
            if embedded.startswith("<"):
                found = self._find(package, go.type.lstrip("*"), field_name)
                if found:
                    return found
        return None

    def _package(self, package: str) -> dict[str, dict[str, GoField]]:
        if package not in self._packages:
            self._packages[package] = dict(self._read(package))
        return self._packages[package]

    def _read(self, package: str) -> Iterator[tuple[str, dict[str, GoField]]]:
        for prefix, root in self.roots.items():
            if package.startswith(prefix + "."):
                folder = root / package.removeprefix(prefix + ".").replace(".", "/")
                for path in sorted(folder.glob("*.go")):
                    if not path.name.endswith("_test.go"):
                        yield from _structs(path.read_text())


def _structs(source: str) -> Iterator[tuple[str, dict[str, GoField]]]:
    name = ""
    fields: dict[str, GoField] = {}
    for line in source.splitlines():
        if start := STRUCT_LINE.match(line):
            name, fields = start[1], {}
        elif line == "}" and name:
            yield name, fields
            name = ""
        elif name and (match := FIELD_LINE.match(line)):
            options = frozenset(match[4].split(",")) - {""}
            key = match[3] or f"<{match[2]}>"
            fields[key] = GoField(match[2], options)


@dataclass(slots=True)
class Table:
    """Collects the types that are reachable from the kinds."""

    schemas: Json
    go: GoTypes
    types: Json = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def add(self, name: str) -> str:
        """Add a type and everything it refers to; return its short name."""
        short = _short(name)
        if short not in self.types:
            schema = self.schemas[name]
            entry: Json = {"f": {}}
            self.types[short] = entry
            if schema.get("x-kubernetes-map-type") == "atomic":
                entry["m"] = "a"
            for key, prop in sorted(schema["properties"].items()):
                expr = self._expr(prop)
                flag = self._flag(name, key, prop, expr)
                entry["f"][key] = [expr, flag] if flag else expr
        return short

    def _expr(self, prop: Json) -> Any:
        ref = _ref(prop)
        if ref:
            return self._named(ref, prop.get("x-kubernetes-map-type"))
        kind = prop.get("type")
        if kind == "array":
            return self._list(prop)
        if kind == "object":
            return self._map(prop)
        if kind is None:
            return "*"
        if prop.get("format") == "date-time":
            return "t"
        return FORMATS.get(prop.get("format", ""), SCALARS[kind])

    def _named(self, ref: str, relation: str | None) -> Any:
        schema = self.schemas[ref]
        if ref in SPECIAL:
            return SPECIAL[ref]
        if "properties" not in schema:
            return self._expr(schema)
        name = "#" + self.add(ref)
        return {"r": name, "m": relation[0]} if relation else name

    def _list(self, prop: Json) -> Json:
        expr: Json = {"l": self._expr(prop["items"])}
        strategy = prop.get("x-kubernetes-patch-strategy", "")
        kind = prop.get("x-kubernetes-list-type") or ("merge" if "merge" in strategy else "atomic")
        keys = prop.get("x-kubernetes-list-map-keys")
        if kind == "merge":
            merge_key = prop.get("x-kubernetes-patch-merge-key")
            kind, keys = ("map", [merge_key]) if merge_key else ("set", None)
        if kind == "map":
            item = self.schemas[_ref(prop["items"])]["properties"]
            expr["k"] = [[key, item[key]["default"]] if "default" in item[key] else [key] for key in keys or ()]
        elif kind == "set":
            expr["k"] = []
        if "merge" in strategy.split(","):
            # What a strategic merge patch goes by is older than the list types, and not always the same.
            expr["p"] = prop.get("x-kubernetes-patch-merge-key", "")
        return expr

    def _map(self, prop: Json) -> Any:
        if "properties" in prop:
            raise SystemExit(f"an inlined object is new here: {prop}")
        extra = prop.get("additionalProperties")
        if not isinstance(extra, dict):
            return "*"
        expr: Json = {"o": self._expr(extra)}
        if prop.get("x-kubernetes-map-type") == "atomic":
            expr["m"] = "a"
        return expr

    def _flag(self, owner: str, key: str, prop: Json, expr: Any) -> str:
        """Say what becomes of an empty value.

        `z`: dropped; `a`: always there, as the empty value; `n`: always there, as null; none: kept as sent, a pointer.
        """
        go = self.go.field(owner, key)
        if key in {"apiVersion", "kind"} and "x-kubernetes-group-version-kind" in self.schemas[owner]:
            return "z"
        if go is None:
            self.unknown.add(f"{_short(owner)}.{key}")
            return "a" if "default" in prop else ""
        omitted = "omitempty" in go.options
        if "omitzero" in go.options:
            return "z"
        if go.type.startswith("*"):
            return "" if omitted else "n"
        fixed_size = (isinstance(expr, str) and (expr[0] == "#" or expr in "tuqx*")) or (
            isinstance(expr, dict) and "r" in expr
        )
        return "z" if omitted and not fixed_size else "a"


def _ref(prop: Json) -> str:
    ref = prop.get("$ref") or next((part["$ref"] for part in prop.get("allOf", []) if "$ref" in part), "")
    return str(ref).rpartition("/")[2]


def _short(name: str) -> str:
    return ".".join(name.split(".")[-3:]).replace("io.k8s.", "")


class Server:
    """Reads JSON documents of an API server; certificates are not checked, the server is a local one."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._context = ssl._create_unverified_context()  # noqa: S323, SLF001 (a throw-away server on loopback)

    def get(self, path: str, accept: str = "application/json") -> Json:
        """Read one document."""
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        request = urllib.request.Request(self._url + path, headers=headers)  # noqa: S310 (the URL is the operator's)
        with urllib.request.urlopen(request, context=self._context) as answer:  # noqa: S310 (likewise)
            return dict(json.load(answer))

    def schemas(self) -> Json:
        """Read the schemas of all groups."""
        found: Json = {}
        for path, link in sorted(self.get("/openapi/v3")["paths"].items()):
            if path == "api/v1" or path.startswith("apis/"):
                found.update(self.get(link["serverRelativeURL"]).get("components", {}).get("schemas", {}))
        return found

    def resources(self) -> Iterator[tuple[str, str, Json]]:
        """Read group, version and entry of every resource."""
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        for root in ("/api", "/apis"):
            for group in self.get(root, accept)["items"]:
                for version in group["versions"]:
                    for resource in version["resources"]:
                        yield group["metadata"].get("name", ""), version["version"], resource


def _kind_row(
    table: Table, kinds: dict[tuple[str, str, str], str], group: str, version: str, resource: Json
) -> list[Any]:
    kind = resource["responseKind"]["kind"]
    subresources = [sub["subresource"] for sub in resource.get("subresources", [])]
    return [
        group,
        version,
        kind,
        resource["resource"],
        resource["singularResource"],
        int(resource["scope"] == "Namespaced"),
        [name for name in ("status", "scale") if name in subresources],
        sorted(resource["verbs"]),
        table.add(kinds[group, version, kind]),
        resource.get("shortNames", []),
        resource.get("categories", []),
    ]


def build(server: Server, go: GoTypes) -> Json:
    """Read everything and return the table."""
    schemas = server.schemas()
    kinds = {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in schemas.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", [])
    }
    table = Table(schemas, go)
    rows = [
        _kind_row(table, kinds, group, version, resource)
        for group, version, resource in server.resources()
        if {"get", "list", "create"} <= set(resource["verbs"])
        and kinds.get((group, version, resource["responseKind"]["kind"]), "").startswith(_OWN)
    ]
    table.add(kinds["autoscaling", "v1", "Scale"])
    for kind, name in sorted(kinds.items()):
        if kind[0] in REVIEWED and kind[2].endswith("Review"):
            table.add(name)
    if table.unknown:
        sys.stderr.write(f"not found in the Go sources, guessed: {sorted(table.unknown)}\n")
    version = server.get("/version")["gitVersion"]
    return {"kubernetes": version, "kinds": sorted(rows), "types": dict(sorted(table.types.items()))}


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--go", action="append", default=[], metavar="PREFIX=DIRECTORY")
    parser.add_argument("--output", type=Path, default=PACKAGE / "builtin.json.gz")
    arguments = parser.parse_args()
    roots = {prefix: Path(folder) for prefix, _, folder in (item.partition("=") for item in arguments.go)}
    table = build(Server(arguments.url, arguments.token), GoTypes(roots))
    text = json.dumps(table, separators=(",", ":"), sort_keys=True)
    arguments.output.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    sys.stderr.write(
        f"{len(table['kinds'])} kinds, {len(table['types'])} types, {arguments.output.stat().st_size} bytes\n"
    )


if __name__ == "__main__":
    main()
