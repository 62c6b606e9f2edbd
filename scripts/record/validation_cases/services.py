"""Mistakes in Services and EndpointSlices."""

from typing import Any, Final

from scripts.record.validation_cases.table import LONG, REMOVED, Table, at, together

__all__ = ["TABLES"]

_UNSPECIFIED: Final = "0.0.0.0"  # noqa: S104 (a value that is refused)


def _service(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443, "targetPort": "tls"}]
    full = {"selector": {"app": "web"}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": full}


_SERVICES: Final = Table(
    kind="Service",
    bases={
        "plain": _service("web"),
        "headless": _service("web", clusterIP="None"),
        "node-ports": _service("web", type="NodePort", ports=[{"port": 80, "nodePort": 30100, "protocol": "TCP"}]),
        "balancer": _service("web", type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30101),
        "external": _service("web", type="ExternalName", externalName="shop.example.com", ports=[]),
        "no-selector": _service("web", selector=None, ports=[{"port": 80}]),
        "addressed": _service("web", clusterIP="10.96.0.20", clusterIPs=["10.96.0.20"], ipFamilies=["IPv4"]),
    },
    stored={
        "plain": _service("stored-plain", clusterIP="10.96.1.1"),
        "headless": _service("stored-headless", clusterIP="None"),
        "node-ports": _service(
            "stored-node-ports",
            type="NodePort",
            clusterIP="10.96.1.2",
            ports=[{"name": "http", "port": 80, "nodePort": 30200}],
        ),
        "balancer": _service(
            "stored-balancer",
            type="LoadBalancer",
            clusterIP="10.96.1.3",
            externalTrafficPolicy="Local",
            healthCheckNodePort=30201,
            loadBalancerClass="example.com/balancer",
            ports=[{"name": "http", "port": 80, "nodePort": 30202}],
        ),
        "external": _service("stored-external", type="ExternalName", externalName="shop.example.com", ports=[]),
    },
    mistakes=(
        *at("metadata.name", "UPPER", "1web", "a.b", "a_b", "a" * 64, "-a", "a-"),
        *at("spec.ports", [], REMOVED, None, [{}], [{"port": 80}, {"port": 81}], "x"),
        *at("spec.ports[0].port", 0, -1, 65536, 80, 443, REMOVED, "http", 1.5, 2**31),
        *at("spec.ports[0].name", "", REMOVED, "https", "UPPER", "a_b", "a" * 64, "a.b", "1", "a-"),
        *at("spec.ports[0].protocol", "udp", "UDP", "SCTP", "ICMP", "", "HTTP"),
        *at(
            "spec.ports[0].targetPort", 0, -1, 65536, 8080, "", "a_b", "0", "80", "UPPER", "http-main", "a" * 16, "a--b"
        ),
        *at("spec.ports[0].targetPort", REMOVED, None, "-a", "123"),
        *at("spec.ports[0].nodePort", 30150, 20000, 40000, -1, 65536, 30201),
        *at("spec.ports[0].appProtocol", "http", "example.com/x", "a b", "kubernetes.io/h2c", "", LONG),
        *at("spec.ports[+]", {"name": "http", "port": 81}, {"port": 82}),
        *together(("spec.type", "ClusterIP"), ("spec.ports[+]", {"name": "other", "port": 80})),
        *at("spec.ports[+]", {"name": "other", "port": 80, "protocol": "UDP"}),
        *at("spec.type", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "Other", "", "nodeport"),
        *at("spec.clusterIP", "10.96.1.1", "10.96.0.0"),
        *at(
            "spec.clusterIP",
            "None",
            "none",
            "1.2.3",
            "10.96.0.300",
            "10.96.0.21",
            "10.0.0.5",
            "::1",
            "",
            "a",
            "010.96.0.22",
        ),
        *at(
            "spec.clusterIPs",
            ["10.96.0.21"],
            ["None"],
            ["10.96.0.21", "10.96.0.22"],
            ["x"],
            [""],
            [],
            ["10.96.0.20", "x"],
        ),
        *at("spec.clusterIPs", ["10.96.0.20", "10.96.0.21", "10.96.0.22"], ["None", "10.96.0.21"], ["fd00::1"]),
        *at("spec.ipFamilies", ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv4", "IPv4"], ["ipv4"], ["x", "y", "z"], []),
        *at("spec.ipFamilyPolicy", "SingleStack", "PreferDualStack", "RequireDualStack", "Other", ""),
        *at(
            "spec.externalName",
            "shop.example.com",
            "UPPER.example.com",
            "a_b",
            "a b",
            "",
            REMOVED,
            LONG,
            "a.b.",
            "1.2.3.4",
        ),
        *at(
            "spec.externalIPs",
            ["1.2.3.4"],
            ["x"],
            ["127.0.0.1"],
            [_UNSPECIFIED],
            ["169.254.1.1"],
            ["224.0.0.1"],
            ["::1"],
            [""],
        ),
        *at("spec.externalIPs", ["1.2.3.4", "1.2.3.4"], ["1.2.3.4", "y"], ["01.2.3.4"]),
        *at("spec.sessionAffinity", "ClientIP", "None", "clientip", "", "Cookie"),
        *at("spec.sessionAffinityConfig", {}, {"clientIP": {}}, {"clientIP": {"timeoutSeconds": 10}}),
        *together(("spec.sessionAffinity", "ClientIP"), ("spec.sessionAffinityConfig", {})),
        *together(
            ("spec.sessionAffinity", "ClientIP"), ("spec.sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 0}})
        ),
        *together(
            ("spec.sessionAffinity", "ClientIP"),
            ("spec.sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 86401}}),
        ),
        *together(
            ("spec.sessionAffinity", "ClientIP"),
            ("spec.sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 86400}}),
        ),
        *together(("spec.sessionAffinity", "ClientIP"), ("spec.sessionAffinityConfig", {"clientIP": {}})),
        *at("spec.externalTrafficPolicy", "Local", "Cluster", "local", "", REMOVED),
        *at("spec.internalTrafficPolicy", "Local", "Cluster", "Other", "", REMOVED),
        *at("spec.healthCheckNodePort", 30300, 20000, 0, -1, 65536, REMOVED),
        *at("spec.loadBalancerIP", "1.2.3.4", "x", ""),
        *at("spec.loadBalancerClass", "example.com/x", "a b", "", "x", "a/b/c"),
        *at(
            "spec.loadBalancerSourceRanges",
            ["10.0.0.0/8"],
            ["10.0.0.0"],
            ["x"],
            ["10.0.0.0/33"],
            ["10.0.0.1/8"],
            [""],
            [],
        ),
        *at("spec.loadBalancerSourceRanges", [" 10.0.0.0/8 "], ["10.0.0.0/8", "y"], ["::/0"]),
        *together(("spec.type", "LoadBalancer"), ("spec.loadBalancerSourceRanges", ["10.0.0.0/40"])),
        *together(
            ("spec.type", "LoadBalancer"),
            ("metadata.annotations", {"service.beta.kubernetes.io/load-balancer-source-ranges": "x"}),
        ),
        *at("metadata.annotations", {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8"}),
        *at("spec.allocateLoadBalancerNodePorts", True, False),
        *at("spec.publishNotReadyAddresses", True),
        *at("spec.trafficDistribution", "PreferClose", "PreferSameZone", "PreferSameNode", "Other", ""),
        *at("spec.selector", {}, None, {"a b": "c"}, {"a": "b c"}, {"a": ""}, {"a/b/c": ""}, {"a": "x" * 64}),
        *together(("spec.type", "ExternalName"), ("spec.externalName", "shop.example.com")),
        *together(("spec.type", "ExternalName"), ("spec.externalName", "shop.example.com"), ("spec.clusterIP", "None")),
        *together(("spec.type", "NodePort"), ("spec.clusterIP", "None")),
        *together(("spec.type", "LoadBalancer"), ("spec.clusterIP", "None")),
        *together(
            ("spec.type", "NodePort"),
            (
                "spec.ports",
                [{"name": "a", "port": 1, "nodePort": 30400}, {"name": "b", "port": 2, "nodePort": 30400}],
            ),
        ),
        *together(
            ("spec.type", "NodePort"),
            (
                "spec.ports",
                [
                    {"name": "a", "port": 1, "nodePort": 30400},
                    {"name": "b", "port": 2, "nodePort": 30400, "protocol": "UDP"},
                ],
            ),
        ),
    ),
    changes=(
        *at("spec.clusterIP", "10.96.2.1", "", "None", REMOVED),
        *together(("spec.clusterIP", "10.96.2.1"), ("spec.clusterIPs", ["10.96.2.1"])),
        *together(("spec.clusterIP", REMOVED), ("spec.clusterIPs", REMOVED)),
        *together(("spec.clusterIP", ""), ("spec.clusterIPs", [""])),
        *at("spec.clusterIPs", [], ["10.96.2.1"], REMOVED, ["10.96.1.1", "fd00::1"]),
        *at("spec.ipFamilies", ["IPv6"], ["IPv6", "IPv4"], REMOVED),
        *at("spec.ipFamilyPolicy", "PreferDualStack", "RequireDualStack", REMOVED),
        *at("spec.type", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", REMOVED),
        *together(("spec.type", "ExternalName"), ("spec.externalName", "a.b"), ("spec.clusterIP", REMOVED)),
        *together(
            ("spec.type", "ExternalName"),
            ("spec.externalName", "a.b"),
            ("spec.clusterIP", REMOVED),
            ("spec.clusterIPs", REMOVED),
        ),
        *at("spec.loadBalancerClass", "example.com/other", REMOVED),
        *at("spec.healthCheckNodePort", 30301, REMOVED),
        *at("spec.ports[0].nodePort", 30500, 30201),
        *at("spec.ports[0].port", 8080),
        *at("spec.selector", {"app": "other"}, {}),
    ),
    pairs=90,
)


def _slice(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}, "nodeName": "node-a"}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        **fields,
    }


_SLICES: Final = Table(
    kind="EndpointSlice",
    bases={
        "plain": _slice("web"),
        "names": _slice("web", addressType="FQDN", endpoints=[{"addresses": ["a.example.com"]}]),
        "v6": _slice("web", addressType="IPv6", endpoints=[{"addresses": ["fd00::1"]}]),
    },
    stored={"plain": _slice("stored-plain")},
    mistakes=(
        *at("addressType", "IPv6", "FQDN", "ipv4", "", REMOVED, "IP"),
        *at("endpoints", [], None, REMOVED, [{}], [{"addresses": []}]),
        *at(
            "endpoints[0].addresses", [], ["x"], ["10.1.2.3", "10.1.2.3"], ["10.1.2.300"], ["127.0.0.1"], [_UNSPECIFIED]
        ),
        *at(
            "endpoints[0].addresses", ["169.254.0.1"], ["224.0.0.1"], ["fd00::1"], ["fe80::1"], ["::"], ["::1"], ["A_B"]
        ),
        *at(
            "endpoints[0].addresses",
            ["010.1.2.3"],
            ["a.b"],
            [""],
            [f"10.0.0.{i + 1}" for i in range(101)],
        ),
        *at("endpoints[0].hostname", "web-0", "UPPER", "a.b", "", "a" * 64),
        *at("endpoints[0].nodeName", "a_b", "", "UPPER", "node.example"),
        *at("endpoints[0].zone", "a", "", "a b"),
        *at("endpoints[0].targetRef", {"kind": "Pod", "name": "p"}, {}),
        *at("endpoints[0].deprecatedTopology", {"a b": "c"}, {"kubernetes.io/hostname": "x"}, {"a": "b"}),
        *at("endpoints[0].hints", {}, {"forZones": [{"name": "a"}]}, {"forZones": [{"name": ""}]}),
        *at("endpoints[0].hints", {"forZones": [{"name": "a"}, {"name": "a"}]}, {"forNodes": [{"name": "a"}]}),
        *at("endpoints[0].hints", {"forZones": [{"name": f"z{i}"} for i in range(9)]}, {"forZones": [{"name": "a b"}]}),
        *at("ports", [], None, REMOVED, [{}], [{"name": "a"}, {"name": "a"}], [{"name": ""}, {"name": ""}]),
        *at("ports[0].name", "UPPER", "a_b", "", "a" * 64, REMOVED, "https"),
        *at("ports[0].port", 0, 65536, -1, REMOVED, None),
        *at("ports[0].protocol", "udp", "UDP", "", "x"),
        *at("ports[0].appProtocol", "http", "a b", "", "example.com/x"),
        *at("ports[+]", {"name": "http", "port": 81}, {"name": "b", "port": 80}),
        *at("metadata.name", "a_b", "a.b"),
    ),
    changes=(*at("addressType", "IPv6", "FQDN", REMOVED), *at("endpoints[0].addresses", ["10.1.2.4"])),
    pairs=30,
)

TABLES: Final = (_SERVICES, _SLICES)
