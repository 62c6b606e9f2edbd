"""OpenAPI of custom kinds: the schemas of their definitions with what a real API server adds, and their paths.

The paths are those of two placeholder kinds, one namespaced and one of the cluster, recorded from a real API server by
`scripts/generate/openapi.py`; the names in them are replaced.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf_server.http.resource_catalog import ServedResource

__all__ = ["PLACEHOLDER", "custom_paths", "custom_schemas", "described", "for_version_two"]

Json = dict[str, Any]

PLACEHOLDER: Final = {
    "group": "my-shops.x2-y.example.com",
    "version": "v9alpha9",
    "Namespaced": ("my-placeholders", "MyPlaceholder"),
    "Cluster": ("clusterplaceholders", "ClusterPlaceholder"),
}
"""Group and version of the recorded kinds, and plural and kind of each."""

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_REF: Final = "#/components/schemas/"
_KINDS: Final = "x-kubernetes-group-version-kind"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CONVENTIONS: Final = (
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"  # as in the recorded texts
)
_TYPE_OF_OBJECT: Final = {
    "apiVersion": {
        "description": "APIVersion defines the versioned schema of this representation of an object. Servers should "
        "convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: "
        f"{_CONVENTIONS}#resources",
        "type": "string",
    },
    "kind": {
        "description": "Kind is a string value representing the REST resource this object represents. Servers may "
        "infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
        f"{_CONVENTIONS}#types-kinds",
        "type": "string",
    },
}
_METADATA: Final = {
    "description": f"Standard object's metadata. More info: {_CONVENTIONS}#metadata",
    "allOf": [{"$ref": f"{_REF}{_META}ObjectMeta"}],
}
_EMBEDDED: Final = {
    "apiVersion": {
        "description": "apiVersion defines the versioned schema of this representation of an object. More info: "
        f"{_CONVENTIONS}#resources",
        "type": "string",
    },
    "kind": {
        "description": "kind is a string value representing the type of this object. In CamelCase. More info: "
        f"{_CONVENTIONS}#types-kinds",
        "type": "string",
    },
    "metadata": _METADATA,
}


def custom_schemas(kind: ServedResource, name: str, *, version_two: bool = False) -> Iterator[tuple[str, Json]]:
    """Yield the schemas of a custom kind and of its list.

    Args:
        version_two: Yield the schemas of OpenAPI 2.0. A kind with unknown fields has no properties there, since kubectl
            would reject all other fields.
    """
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    declared = kind.schema or {"type": "object", _PRESERVE: True}
    if version_two and declared.get(_PRESERVE):
        yield name, {"type": "object", _KINDS: [gvk]}
    else:
        schema = for_version_two(declared) if version_two else described(declared)
        properties = {**schema.get("properties", {}), **_TYPE_OF_OBJECT, "metadata": _METADATA}
        yield name, {**schema, "properties": properties, _KINDS: [gvk]}
    yield (
        f"{name}List",
        {
            "description": f"{kind.list_kind} is a list of {kind.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_TYPE_OF_OBJECT,
                "items": {
                    "description": f"List of {kind.plural}. More info: {_CONVENTIONS}",
                    "type": "array",
                    "items": {"$ref": _REF + name},
                },
                "metadata": {
                    "description": f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds",
                    "allOf": [{"$ref": f"{_REF}{_META}ListMeta"}],
                },
            },
            _KINDS: [{**gvk, "kind": kind.list_kind}],
        },
    )


def described(schema: Mapping[str, Any]) -> Json:
    """Return a schema with what follows from the extensions of Kubernetes in it.

    Example:
        >>> described({"x-kubernetes-int-or-string": True})
        {'x-kubernetes-int-or-string': True, 'anyOf': [{'type': 'integer'}, {'type': 'string'}]}
    """
    found = dict(schema)
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {key: described(value) for key, value in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found[name] = described(schema[name])
    if schema.get("x-kubernetes-int-or-string"):
        found.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    return {**found, **_of_embedded_resource(found)} if schema.get("x-kubernetes-embedded-resource") else found


def _of_embedded_resource(schema: Json) -> Json:
    required = schema.get("required", [])
    return {
        "required": [*required, *(one for one in ("kind", "apiVersion") if one not in required)],
        "properties": {**schema.get("properties", {}), **_EMBEDDED},
    }


def for_version_two(schema: Mapping[str, Any]) -> Json:
    """Return a schema for OpenAPI 2.0, without what that or the validation of kubectl does not support.

    Source: `ToStructuralOpenAPIV2` in `k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2`.

    Example:
        >>> for_version_two({"type": "object", "nullable": True, "properties": {"size": {"type": "integer"}}})
        {}
    """
    found = {key: value for key, value in schema.items() if key not in _hidden(schema)}
    if isinstance(found.get("properties"), dict):
        found["properties"] = {key: for_version_two(value) for key, value in found["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = for_version_two(found[name])
    if "required" in found:
        found["required"] = _never_null(schema)
    if schema.get("x-kubernetes-embedded-resource") and not schema.get(_PRESERVE):
        found |= _of_embedded_resource(found)
    return found


def _hidden(schema: Mapping[str, Any]) -> set[str]:
    """Return the keywords of a schema that OpenAPI 2.0 does not show."""
    hidden = {"allOf", "anyOf", "default", "not", "nullable", "oneOf"}
    free, nullable, kind = schema.get(_PRESERVE), schema.get("nullable"), schema.get("type")
    if free or nullable:
        hidden |= {"items", "properties"}
    if nullable or (free and kind == "object") or (kind == "array" and (free or not schema.get("items"))):
        hidden.add("type")
    return hidden


def _never_null(schema: Mapping[str, Any]) -> list[str]:
    """Return the required properties that cannot be null."""
    extra, known = schema.get("additionalProperties"), schema.get("properties") or {}
    if isinstance(extra, dict) and extra.get("nullable"):
        return []
    return [name for name in schema["required"] if not known.get(name, {}).get("nullable")]


def custom_paths(kind: ServedResource, recorded: Mapping[str, Json], name: str) -> Iterator[tuple[str, Json]]:
    """Yield the paths of a custom kind."""
    scope = "Namespaced" if kind.namespaced else "Cluster"
    plural, placeholder = PLACEHOLDER[scope]
    group, version = str(PLACEHOLDER["group"]), str(PLACEHOLDER["version"])
    parts = {part.name for part in kind.subresources}
    names = {
        f"{_REF}{_schema_name(group, version)}.{placeholder}": f"{_REF}{name}",
        f"/apis/{group}/{version}": f"/apis/{kind.group}/{kind.version}",
        _camel(group) + _first_upper(version): _camel(kind.group) + _first_upper(kind.version),
        f"{_first_lower(_camel(group))}_{version}": f"{_first_lower(_camel(kind.group))}_{kind.version}",
        json.dumps(group): json.dumps(kind.group),
        json.dumps(version): json.dumps(kind.version),
        placeholder: kind.kind,
        f"/{plural}": f"/{kind.plural}",
    }
    # One pass over the text: a replaced name may contain a placeholder.
    pattern = re.compile("|".join(map(re.escape, names)))
    for path, operations in recorded[scope].items():
        ending = path.rpartition("/")[2]
        if ending in ("scale", "status") and ending not in parts:
            continue
        text = pattern.sub(lambda found: names[found[0]], json.dumps([path, operations]))
        yield tuple(json.loads(text))


def _schema_name(group: str, version: str) -> str:
    return ".".join([*reversed(group.split(".")), version])


def _camel(group: str) -> str:
    return "".join(map(_first_upper, re.split(r"[.-]", group)))


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:]
