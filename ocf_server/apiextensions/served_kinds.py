"""Served kinds of CustomResourceDefinitions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ocf.objects import Manifest
from ocf.schema.builtin import CUSTOM_VERBS, ApiResource, CustomKind, ScalePaths
from ocf_server.api.cel_usage import has_rules
from ocf_server.apiextensions.crd_status import is_established, is_terminating
from ocf_server.apiextensions.merge_types import schema_type

if TYPE_CHECKING:
    from ocf_server.cel import Rules

__all__ = ["Established", "custom_resource", "defined_kind", "definition_of", "established", "served"]

_FREE: Final[Mapping[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition_of(kind: CustomKind) -> Manifest:
    """Return the CustomResourceDefinition of a kind without a schema.

    Returns:
        A CustomResourceDefinition that keeps every field, with `spec` and `status` as objects.
    """
    schema = {**_FREE, "properties": {"spec": dict(_FREE), "status": dict(_FREE)}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    subresources: dict[str, Any] = {"subresources": {"status": {}}} if kind.status else {}
    names = {"plural": kind.resource_name, "singular": kind.kind.lower(), "kind": kind.kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.resource_name}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {**names, "listKind": f"{kind.kind}List"},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [{**version, **subresources}],
        },
    }


def custom_resource(kind: CustomKind) -> ApiResource:
    """Return the served resource of a kind without a schema."""
    return next(served(definition_of(kind)))


def defined_kind(definition: Manifest) -> tuple[str, str]:
    """Return group and kind of the objects that a CustomResourceDefinition defines."""
    accepted = ((definition.get("status") or {}).get("acceptedNames") or {}).get("kind")
    return definition["spec"]["group"], accepted or definition["spec"]["names"]["kind"]


def established(definition: Manifest) -> list[ApiResource]:
    """Return the resources of a stored CustomResourceDefinition, under its accepted names; empty before."""
    if not is_established(definition):
        return []
    return list(served({**definition, "spec": {**definition["spec"], "names": definition["status"]["acceptedNames"]}}))


@dataclass(frozen=True, slots=True)
class Established:
    """What a CustomResourceDefinition serves.

    Args:
        version: The resourceVersion of the definition.
        kind: Group and kind.
        resources: The served kind, in each version; empty before its names are accepted.
        stored_by: What the storage of the kind depends on; a real API server sets it up anew after a change of that.
        since: The version of the store since which that is the same.
        terminating: Whether no objects can be created any more.
    """

    version: str
    kind: tuple[str, str]
    resources: list[ApiResource]
    stored_by: tuple[Any, ...]
    since: int
    terminating: bool

    @classmethod
    def of(cls, definition: Manifest, before: "Established | None") -> "Established":
        """Return what a definition serves; what it served before if it has not changed."""
        version = str(definition["metadata"]["resourceVersion"])
        if before is not None and before.version == version:
            return before
        accepted = (definition.get("status") or {}).get("acceptedNames")
        stored_by = (definition["metadata"]["uid"], definition["spec"], accepted)
        since = before.since if before is not None and before.stored_by == stored_by else int(version)
        kind = defined_kind(definition)
        return cls(version, kind, established(definition), stored_by, since, is_terminating(definition))


def served(definition: Manifest) -> Iterator[ApiResource]:
    """Yield the resources of the versions of a CustomResourceDefinition.

    Args:
        definition: The CustomResourceDefinition, defaulted.

    Yields:
        One resource for each served version and for the storage version; a storage version that is not served has no
        verbs.
    """
    spec = definition["spec"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    for version in spec["versions"]:
        if version.get("served") or version.get("storage"):
            yield _resource(spec, version, storage)


def _resource(spec: Mapping[str, Any], version: Mapping[str, Any], storage: str) -> ApiResource:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or _FREE
    return ApiResource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        verbs=CUSTOM_VERBS if version.get("served") else frozenset(),
        type=schema_type(schema, names["kind"]),
        custom=True,
        selectable=tuple(item["jsonPath"].removeprefix(".") for item in version.get("selectableFields") or ()),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        # The version that is stored, where all others are converted from.
        home=None if version["name"] == storage else (spec["group"], storage, names["kind"]),
        schema=schema,
        scale=None
        if scale is None
        else ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""),
        columns=tuple(version.get("additionalPrinterColumns") or ()),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        warning=_deprecation(spec, version),
        rules=_rules(schema),
    )


def _rules(schema: Mapping[str, Any]) -> "Rules | None":
    if not has_rules(schema):
        return None
    from ocf_server.cel import compiled_rules

    return compiled_rules(schema)


def _deprecation(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    if not version.get("deprecated"):
        return ""
    if text := version.get("deprecationWarning"):
        return str(text)
    group, kind = spec["group"], spec["names"]["kind"]
    known = (other["name"] for other in spec["versions"] if other.get("served") and not other.get("deprecated"))
    newer = [name for name in known if _priority(name) > _priority(version["name"])]
    instead = f"; use {group}/{max(newer, key=_priority)} {kind}" if newer else ""
    return f"{group}/{version['name']} {kind} is deprecated{instead}"


_VERSION: Final = re.compile(r"v([1-9][0-9]*)((alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {"alpha": 1, "beta": 2, None: 3}


def _priority(version: str) -> tuple[int, int, int, tuple[int, ...]]:
    """Return what orders versions, as Kubernetes does: v10, v2, v1, v11beta2, v10beta3, v3alpha1, others by name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (0, 0, 0, tuple(-ord(char) for char in version))
    return (_STAGES[found[3]], int(found[1]), int(found[4] or 0), ())
