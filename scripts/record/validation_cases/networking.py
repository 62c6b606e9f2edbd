"""Mistakes in Ingresses, IngressClasses and NetworkPolicies."""

from typing import Any, Final

from scripts.record.validation_cases.table import LONG, REMOVED, Table, at, together

__all__ = ["TABLES"]

_BACKEND: Final = {"service": {"name": "web", "port": {"number": 80}}}
_PATH: Final = {"path": "/", "pathType": "Prefix", "backend": _BACKEND}


def _ingress(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


_RULED: Final = {
    "rules": [{"host": "shop.example.com", "http": {"paths": [_PATH]}}],
    "tls": [{"hosts": ["shop.example.com"], "secretName": "shop-tls"}],
}

_INGRESSES: Final = Table(
    kind="Ingress",
    bases={
        "rules": _ingress("web", ingressClassName="nginx", **_RULED),
        "default": _ingress("web", defaultBackend=_BACKEND),
        "resource": _ingress("web", defaultBackend={"resource": {"apiGroup": "a.b", "kind": "Bucket", "name": "x"}}),
        "wildcard": _ingress("web", rules=[{"host": "*.example.com", "http": {"paths": [_PATH]}}]),
    },
    stored={
        "rules": _ingress("stored-rules", ingressClassName="nginx", **_RULED),
        "default": _ingress("stored-default", defaultBackend=_BACKEND),
    },
    mistakes=(
        *at("spec", {}, REMOVED),
        *at("spec.rules", [], REMOVED, [{}], [{"host": "a.b"}], [{"http": {}}], [{"http": {"paths": []}}]),
        *at(
            "spec.rules[0].host",
            "",
            "a",
            "UPPER.example.com",
            "*.a.b",
            "*",
            "a.*.b",
            "*.",
            "1.2.3.4",
            "::1",
            "a b",
            LONG,
        ),
        *at("spec.rules[0].host", "shop.example.com:80", "*.*.b", "**.b", "*a.b", REMOVED),
        *at("spec.rules[0].http.paths", [], REMOVED, [{}], [_PATH, _PATH]),
        *at(
            "spec.rules[0].http.paths[0].path",
            "",
            "a",
            "/a b",
            "//",
            "/a/../b",
            "/a/./b",
            "/%2f",
            "/a/..",
            "/.",
            "/a//b",
        ),
        *at("spec.rules[0].http.paths[0].path", REMOVED, "/a/%2F/b", "/[", "/a?b=c", "/a#b", "/."),
        *at("spec.rules[0].http.paths[0].pathType", "Exact", "ImplementationSpecific", "Prefixed", "", REMOVED),
        *together(
            ("spec.rules[0].http.paths[0].path", "a"),
            ("spec.rules[0].http.paths[0].pathType", "ImplementationSpecific"),
        ),
        *together(
            ("spec.rules[0].http.paths[0].path", ""), ("spec.rules[0].http.paths[0].pathType", "ImplementationSpecific")
        ),
        *together(("spec.rules[0].http.paths[0].path", "/("), ("spec.rules[0].http.paths[0].pathType", "Exact")),
        *at("spec.rules[0].http.paths[0].backend", {}, REMOVED, {"service": {}}, {"resource": {}}),
        *at("spec.rules[0].http.paths[0].backend.service.name", "", "UPPER", "1a", "a.b", REMOVED),
        *at(
            "spec.rules[0].http.paths[0].backend.service.port",
            {},
            REMOVED,
            {"number": 80, "name": "http"},
            {"number": 0},
        ),
        *at("spec.rules[0].http.paths[0].backend.service.port", {"number": 65536}, {"number": -1}, {"name": "UPPER"}),
        *at("spec.rules[0].http.paths[0].backend.service.port", {"name": "http"}, {"name": "a_b"}, {"name": ""}),
        *at("spec.rules[0].http.paths[0].backend.resource", {"kind": "x", "name": "y"}, {"kind": "", "name": ""}),
        *at("spec.rules[0].http.paths[0].backend.resource", {"apiGroup": "a_b", "kind": "x", "name": "y"}),
        *at("spec.rules[+]", {"host": "other.example.com", "http": {"paths": [_PATH]}}, {"host": "bad_host"}),
        *at("spec.tls", [{}], [{"hosts": []}], [{"hosts": ["A"]}], [{"hosts": ["*"]}], [{"hosts": ["*.a.b"]}]),
        *at("spec.tls", [{"hosts": ["a.b"], "secretName": "a_b"}], [{"hosts": [""]}], [{"secretName": "s"}], []),
        *at("spec.tls", [{"hosts": ["*.a_b"]}, {"hosts": ["x", "a b"]}], [{"hosts": ["1.2.3.4"]}]),
        *at("spec.defaultBackend", _BACKEND, {}, {"service": {"name": "web"}}, {"service": {"name": ""}}, REMOVED),
        *at("spec.defaultBackend", {**_BACKEND, "resource": {"kind": "x", "name": "y"}}, {"resource": {"kind": "x"}}),
        *at("spec.defaultBackend", {"resource": {"apiGroup": "", "kind": "x", "name": "y"}}),
        *at("spec.defaultBackend.resource.kind", "", "a/b", "a%b", "."),
        *at("spec.defaultBackend.resource.name", "", "a/b", ".."),
        *at("spec.defaultBackend.resource.apiGroup", REMOVED, "a b"),
        *at("spec.ingressClassName", "", "a_b", "UPPER", "nginx", REMOVED, LONG),
        *at("metadata.annotations", {"kubernetes.io/ingress.class": "nginx"}, {"kubernetes.io/ingress.class": ""}),
        *at("metadata.name", "a_b", "a.b"),
    ),
    changes=(
        *at("metadata.annotations", {"kubernetes.io/ingress.class": "other"}),
        *at("spec.ingressClassName", "other"),
        *at("spec.rules[0].host", "new.example.com"),
    ),
    pairs=50,
)


def _class(name: str, **spec: Any) -> dict[str, Any]:
    version = "networking.k8s.io/v1"
    return {"apiVersion": version, "kind": "IngressClass", "metadata": {"name": name}, "spec": spec}


_REFERENCE: Final = {"apiGroup": "example.com", "kind": "Settings", "name": "main"}
_CLASSES: Final = Table(
    kind="IngressClass",
    bases={
        "plain": _class("web", controller="example.com/web"),
        "parameters": _class("web", controller="example.com/web", parameters=_REFERENCE),
    },
    stored={"plain": _class("stored", controller="example.com/web", parameters=_REFERENCE)},
    mistakes=(
        *at(
            "spec.controller",
            "",
            "example.com",
            "UP.example/x",
            "a/b/c",
            "a b/c",
            f"{LONG}/a",
            REMOVED,
            "a/" + "b" * 250,
        ),
        *at("spec.parameters.kind", "", "a/b", REMOVED),
        *at("spec.parameters.name", "", "a%b", REMOVED),
        *at("spec.parameters.apiGroup", "", "a_b", REMOVED),
        *at("spec.parameters.scope", "Cluster", "Namespace", "Other", ""),
        *at("spec.parameters.namespace", "a", "", "a_b"),
        *together(("spec.parameters.scope", "Namespace"), ("spec.parameters.namespace", "shop")),
        *together(("spec.parameters.scope", "Namespace"), ("spec.parameters.namespace", "a_b")),
        *together(("spec.parameters.scope", "Namespace"), ("spec.parameters.namespace", "")),
        *at("metadata.name", "a_b"),
    ),
    changes=at("spec.controller", "example.com/other", ""),
    pairs=10,
)


def _policy(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, **spec},
    }


_INGRESS: Final = {
    "from": [
        {"podSelector": {"matchLabels": {"a": "b"}}},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}},
    ],
    "ports": [{"protocol": "TCP", "port": 80}],
}
_EGRESS: Final = {
    "to": [{"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}],
    "ports": [{"protocol": "UDP", "port": 32000, "endPort": 32768}],
}

_POLICIES: Final = Table(
    kind="NetworkPolicy",
    bases={
        "plain": _policy("web"),
        "full": _policy("web", policyTypes=["Ingress", "Egress"], ingress=[_INGRESS], egress=[_EGRESS]),
        "open": _policy("web", ingress=[{}], egress=[{}]),
    },
    stored={"full": _policy("stored", policyTypes=["Ingress"], ingress=[_INGRESS])},
    mistakes=(
        *at("spec", {}, REMOVED),
        *at("spec.podSelector", {}, {"matchLabels": {"a b": "c"}}, {"matchLabels": {"a": "b c"}}, REMOVED),
        *at(
            "spec.podSelector.matchExpressions",
            [{"key": "a", "operator": "In"}],
            [{"key": "a", "operator": "Exists", "values": ["x"]}],
            [{"key": "a", "operator": "Other"}],
            [{"key": "", "operator": "Exists"}],
            [{"key": "a b", "operator": "DoesNotExist"}],
            [{"key": "a", "operator": "NotIn", "values": ["b c"]}],
            [{"key": "a", "operator": ""}],
            [{}],
            [{"key": "a", "operator": "Gt", "values": ["1"]}],
        ),
        *at("spec.policyTypes", ["Ingress"], ["Other"], ["Ingress", "Ingress"], [], ["Ingress", "Egress", "Egress"]),
        *at("spec.ingress[0].from[0]", {}, {"namespaceSelector": {}}, {"podSelector": {}, "namespaceSelector": {}}),
        *at("spec.ingress[0].from[0].ipBlock", {"cidr": "10.0.0.0/8"}, {}),
        *at("spec.ingress[0].from[0].podSelector.matchLabels", {"a/b/c": "d"}, {"a": "-"}),
        *at("spec.ingress[0].from[0].namespaceSelector", {"matchLabels": {"a b": ""}}),
        *at("spec.ingress[0].from[1].ipBlock.cidr", "", "x", "10.0.0.0", "10.0.0.0/33", "10.0.0.1/8", "::/0", REMOVED),
        *at("spec.ingress[0].from[1].ipBlock.cidr", "010.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16"),
        *at("spec.ingress[0].from[1].ipBlock.except", ["x"], ["11.0.0.0/8"], ["10.0.0.0/8"], ["10.0.0.0/7"], [], [""]),
        *at("spec.ingress[0].from[1].ipBlock.except", ["10.1.0.0/16", "10.1.0.0/16"], ["10.1.0.1"], ["::/64"]),
        *at("spec.ingress[0].from[1].podSelector", {}),
        *at("spec.ingress[0].ports[0].port", 0, 65536, -1, "http", "", "UPPER", "a_b", "a" * 16, "80", REMOVED),
        *at("spec.ingress[0].ports[0].protocol", "SCTP", "udp", "", "ICMP", REMOVED),
        *at("spec.ingress[0].ports[0].endPort", 80, 79, 90, 65536, 0, -1),
        *together(("spec.ingress[0].ports[0].port", "http"), ("spec.ingress[0].ports[0].endPort", 90)),
        *together(("spec.ingress[0].ports[0].port", REMOVED), ("spec.ingress[0].ports[0].endPort", 90)),
        *at("spec.egress[0].ports[0].endPort", 100, 65536),
        *at("spec.egress[0].ports[0].port", "dns", 65536, REMOVED, 0),
        *at("spec.egress[0].ports[0].protocol", "x", "tcp"),
        *at("spec.egress[0].to[0]", {}, {"ipBlock": {"cidr": "a"}}),
        *at("spec.egress[0].to[+]", {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["0.0.0.0/0"]}, "podSelector": {}}),
        *at("metadata.name", "a_b", "a.b", LONG),
    ),
    changes=(*at("spec.podSelector", {}), *at("spec.policyTypes", ["Egress"])),
    pairs=40,
)

TABLES: Final = (_INGRESSES, _CLASSES, _POLICIES)
