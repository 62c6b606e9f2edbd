"""Small definitions of custom resources of other projects: their names, their defaults, and how their lists merge.

The facts are those of Gateway API 1.0, KEDA 2.17, cert-manager 1.18 and Prometheus Operator 0.84; all other fields are
kept as they are.
"""

from __future__ import annotations

from typing import Any, Final

from ocf.objects import Manifest

__all__ = ["third_party_definitions"]

Schema = dict[str, Any]


def default(value: Any, kind: str = "string") -> Schema:
    return {"type": kind, "default": value}


def struct(**properties: Schema) -> Schema:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": properties}


def array(items: Schema, *keys: str) -> Schema:
    """Return a list, atomic unless its entries have keys."""
    merged = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": items, **merged}


PATH: Final = {"type": "PathPrefix", "value": "/"}
TEXT: Final[Schema] = {"type": "string"}
NAMED: Final[Schema] = {**struct(name=TEXT, type=default("Exact")), "required": ["name"]}
BACKEND: Final[Schema] = {"group": default(""), "kind": default("Service")}
FILTERS: Final[Schema] = array(
    struct(
        requestMirror=struct(backendRef=struct(**BACKEND)),
        requestRedirect=struct(statusCode=default(302, "integer")),
    )
)
MATCHES: Final[Schema] = {
    **array(
        struct(
            path={**struct(type=default("PathPrefix"), value=default("/")), "default": PATH},
            headers=array(NAMED, "name"),
            queryParams=array(NAMED, "name"),
        )
    ),
    "default": [{"path": PATH}],
}
RULE: Final[Schema] = struct(
    matches=MATCHES,
    filters=FILTERS,
    backendRefs=array(struct(**BACKEND, weight=default(1, "integer"), filters=FILTERS)),
)
ROUTE: Final[Schema] = struct(
    parentRefs=array(struct(group=default("gateway.networking.k8s.io"), kind=default("Gateway"))),
    rules={**array(RULE), "default": [{"matches": [{"path": PATH}]}]},
)
RELABELINGS: Final[Schema] = array(struct(action=default("replace")))
MONITOR: Final[Schema] = struct(endpoints=array(struct(relabelings=RELABELINGS, metricRelabelings=RELABELINGS)))
GROUP: Final[Schema] = {**struct(name=TEXT), "required": ["name"]}


def definition(group: str, version: str, kind: str, spec: Schema) -> Manifest:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": spec, "status": struct()}}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api/pull/2466"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            **({"annotations": approved} if group.endswith(".k8s.io") else {}),
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [{**served, "subresources": {"status": {}}}],
        },
    }


def third_party_definitions() -> list[Manifest]:
    """Return the definitions."""
    return [
        definition("gateway.networking.k8s.io", "v1", "HTTPRoute", ROUTE),
        definition("keda.sh", "v1alpha1", "ScaledObject", struct()),
        definition("cert-manager.io", "v1", "Certificate", struct()),
        definition("monitoring.coreos.com", "v1", "ServiceMonitor", MONITOR),
        definition("monitoring.coreos.com", "v1", "PrometheusRule", struct(groups=array(GROUP, "name"))),
    ]
