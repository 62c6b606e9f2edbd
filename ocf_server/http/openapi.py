"""OpenAPI documents, which `kubectl explain` prints and clients use to detect features of the server.

The schemas of the built-in kinds come from a real API server; they are in a file beside this module that is read on
first use. The paths are generated: the operations of a resource follow from its verbs. The operations contain only
what clients read (kinds, parameters, patch types).
"""

import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from ocf.cluster.protocol import PatchType
from ocf.schema.releases import Release
from ocf_server.http.openapi_custom import custom_paths, custom_schemas
from ocf_server.http.request import resource_path
from ocf_server.http.request_body import APPLY
from ocf_server.http.resource_catalog import OF_RUNNING_PODS, ResourceCatalog, ServedResource, server_version

__all__ = ["document", "document_of_group", "document_v2", "index"]

Json = dict[str, Any]

_REF: Final = "#/components/schemas/"
_KINDS: Final = "x-kubernetes-group-version-kind"
_METHODS: Final = {
    "get": ("get", "get"),
    "update": ("put", "put"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
    "list": ("get", "list"),
    "create": ("post", "post"),
    "deletecollection": ("delete", "deletecollection"),
}
_OF_COLLECTION: Final = ("list", "create", "deletecollection")
_WRITES: Final = ("create", "update", "patch")
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_OF_ALL: Final = (f"{_META}Patch", f"{_META}DeleteOptions", f"{_META}Status")
"""Schemas in the document of each version."""
_PATCH_TYPES: Final = (APPLY, PatchType.JSON, PatchType.MERGE)


@cache
def _recorded() -> Json:
    packed = resources.files("ocf_server.http").joinpath("openapi.json.xz").read_bytes()
    found: Json = json.loads(lzma.decompress(packed))
    return found


@cache
def _schemas(release: Release) -> Mapping[str, Json]:
    found: dict[str, Json] = _recorded()["schemas"]
    if release.is_current:
        return found
    return {name: _in_release(name, schema, release) for name, schema in found.items()}


def _in_release(name: str, schema: Json, release: Release) -> Json:
    """Return a schema with the fields that a release has."""
    struct, known = ".".join(name.split(".")[-3:]), schema.get("properties", {})
    fields = {field: value for field, value in known.items() if release.has_field(struct, field)}
    return schema if len(fields) == len(known) else {**schema, "properties": fields}


@cache
def _names() -> Mapping[tuple[str, str, str], str]:
    """Return the name of the schema of each kind; if several schemas have the same kind, the first one."""
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in _recorded()["schemas"].items():
        for kind in schema.get(_KINDS, ()):
            found.setdefault((kind["group"], kind["version"], kind["kind"]), name)
    return found


def index(catalog: ResourceCatalog) -> Json:
    """Return the index of the documents of all versions."""
    # Hashes are of the input of the documents instead of the documents, because most clients never request those.
    inputs: dict[str, Any] = {path: _recorded()["groups"][path] for path in _of_groups(catalog)}
    for group, versions in catalog.groups().items():
        for version in versions:
            # Documents of aggregated servers are not merged.
            if not catalog.remote_version(group, version):
                inputs[resource_path(group, version).lstrip("/")] = catalog.of(group, version)
    # A real API server writes a map of Go, by name.
    return {
        "paths": {path: {"serverRelativeURL": _url(path, inputs[path], catalog.release)} for path in sorted(inputs)}
    }


def _url(path: str, document: Any, release: Release) -> str:
    digest = hashlib.sha256(repr((server_version(release), document)).encode()).hexdigest().upper()
    return f"/openapi/v3/{path}?hash={digest}"


def _of_groups(catalog: ResourceCatalog) -> list[str]:
    """Return the paths of documents about built-in groups, and about paths without a group, that are served."""
    served = {f"apis/{group}" for group in catalog.groups() if group}
    return [path for path in _recorded()["groups"] if path in ("api", "apis", "version") or path in served]


def document_of_group(catalog: ResourceCatalog, path: str) -> Json | None:
    """Return the document of a path that is not about one version; None if there is none.

    Args:
        path: The path without slash at its ends, such as `apis/apps` or `version`.
    """
    if path not in _of_groups(catalog):
        return None
    found: Json = _recorded()["groups"][path]
    return {**found, "components": {"schemas": _reachable(_references(found), {}, catalog.release, also=())}}


def document(catalog: ResourceCatalog, group: str, version: str) -> Json | None:
    """Return the document of a version.

    Args:
        group: The group; empty for the core group.

    Returns:
        OpenAPI 3.0, or None if the version is not served.
    """
    kinds = catalog.of(group, version)
    if not kinds:
        return None
    paths: Json = {}
    for kind in kinds:
        recorded = custom_paths(kind, _recorded()["custom"], _schema_name(kind)) if kind.custom else _paths(kind)
        paths.update(recorded)
    names = [*map(_schema_name, kinds), *(f"{_schema_name(kind)}List" for kind in kinds), *_references(paths)]
    schemas = _reachable(names, _own(kinds), catalog.release)
    custom = all(kind.custom for kind in kinds)
    return {
        "openapi": "3.0.0",
        "info": _CUSTOM_INFO if custom else _info(catalog.release),
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _info(release: Release) -> Json:
    version = server_version(release)
    return {"title": "Kubernetes", "version": f"{version['major']}.{version['minor']}"}


_CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}


def _schema_name(kind: ServedResource) -> str:
    known = _names().get((kind.group, kind.version, kind.kind))
    return known or ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _own(kinds: Iterable[ServedResource], *, version_two: bool = False) -> dict[str, Json]:
    """Return the schemas of the custom kinds."""
    custom = [kind for kind in kinds if kind.custom]
    return dict(entry for kind in custom for entry in custom_schemas(kind, _schema_name(kind), version_two=version_two))


def _reachable(names: Iterable[str], own: Mapping[str, Json], release: Release, also: Iterable[str] = _OF_ALL) -> Json:
    """Return the named schemas and all schemas that they refer to."""
    found: Json = {}
    schemas, waiting = _schemas(release), [*names, *also]
    while waiting:
        name = waiting.pop()
        schema = own.get(name) or schemas.get(name)
        if name not in found and schema is not None:
            found[name] = schema
            waiting.extend(_references(schema))
    return dict(sorted(found.items()))


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(_REF)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _paths(kind: ServedResource) -> Iterator[tuple[str, Json]]:
    root = resource_path(kind.group, kind.version)
    home = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    on_collection = [verb for verb in kind.verbs if verb in _OF_COLLECTION]
    on_object = [verb for verb in kind.verbs if verb in _METHODS and verb not in _OF_COLLECTION]
    yield home, _operations(kind, on_collection)
    if kind.namespaced and "list" in on_collection:
        yield f"{root}/{kind.plural}", _operations(kind, ["list"])
    if on_object:
        yield f"{home}/{{name}}", _operations(kind, on_object)
    for part in kind.subresources:
        if part.name in OF_RUNNING_PODS:
            continue
        yield f"{home}/{{name}}/{part.name}", _operations(kind, part.verbs)


def _operations(kind: ServedResource, verbs: Iterable[str]) -> Json:
    return {_METHODS[verb][0]: _operation(kind, verb) for verb in verbs}


def _operation(kind: ServedResource, verb: str) -> Json:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    names = ["dryRun", "fieldManager", "fieldValidation"] if verb in _WRITES else []
    parameters = [_parameter(name) for name in (*names, *(["force"] if verb == "patch" else []))]
    schema = {"$ref": _REF + _schema_name(kind) + ("List" if verb == "list" else "")}
    found: Json = {
        # A Go client reads an empty list as present and writes it as absent.
        **({"parameters": parameters} if parameters else {}),
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": _METHODS[verb][1],
        _KINDS: gvk,
    }
    if verb == "patch":
        types = (*_PATCH_TYPES, *(() if kind.custom else (PatchType.STRATEGIC_MERGE,)))
        patch = {"schema": {"$ref": f"{_REF}{_META}Patch"}}
        found["requestBody"] = {"content": {str(name): patch for name in types}, "required": True}
    elif verb in _WRITES:
        found["requestBody"] = {"content": {"*/*": {"schema": {"$ref": _REF + _schema_name(kind)}}}, "required": True}
    return found


def _parameter(name: str) -> Json:
    return {"name": name, "in": "query", "schema": {"type": "boolean" if name == "force" else "string"}}


def document_v2(catalog: ResourceCatalog) -> Json:
    """Return all schemas as one OpenAPI 2.0 document, for clients that do not support version 3."""
    names = [name for kind in catalog.kinds for name in (_schema_name(kind), f"{_schema_name(kind)}List")]
    schemas = _reachable(names, _own(catalog.kinds, version_two=True), catalog.release)
    definitions: Json = json.loads(json.dumps(schemas).replace(_REF, "#/definitions/"))
    return {
        "swagger": "2.0",
        "info": _info(catalog.release),
        "paths": {},
        "definitions": {name: _older(schema) for name, schema in definitions.items()},
    }


def _older(schema: Any) -> Any:
    """Return a schema for OpenAPI 2.0, where a reference is not wrapped in `allOf`."""
    if isinstance(schema, list):
        return [_older(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # A property can also be named `allOf`; its value is not a list.
    parts = schema["allOf"] if isinstance(schema.get("allOf"), list) else []
    found = {key: _older(value) for key, value in schema.items() if value is not parts}
    for part in parts:
        found.update(_older(part))
    return found
