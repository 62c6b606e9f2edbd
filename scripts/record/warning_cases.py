"""Requests about which an API server warns, for `scripts/record/sequences.py`; the tests compare the warnings only."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]

_NAMESPACE: Final = "warnings"
_CONTAINER: Final[Json] = {"name": "main", "image": "main"}
_SELECTED: Final[Json] = {"matchLabels": {"app": "a"}}
_PATHS: Final = {
    "": "/api/v1",
    "admissionregistration.k8s.io": "/apis/admissionregistration.k8s.io/v1",
    "apps": "/apis/apps/v1",
    "batch": "/apis/batch/v1",
    "discovery.k8s.io": "/apis/discovery.k8s.io/v1",
    "networking.k8s.io": "/apis/networking.k8s.io/v1",
    "node.k8s.io": "/apis/node.k8s.io/v1",
    "storage.k8s.io": "/apis/storage.k8s.io/v1",
    "apiextensions.k8s.io": "/apis/apiextensions.k8s.io/v1",
}
_CLUSTER: Final = frozenset(
    {
        "CSIDriver",
        "MutatingWebhookConfiguration",
        "Node",
        "PersistentVolume",
        "RuntimeClass",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingWebhookConfiguration",
    }
)
_DEFINED: Final = "CustomResourceDefinition"


def _request(method: str, path: str, body: Json | None, query: str = "") -> Json:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return {"method": method, "path": path + query, "body": body, "kind": kind}


def _plural(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("endpoints"):
        return lower
    return lower[:-1] + "ies" if lower.endswith("y") else lower + ("es" if lower.endswith("s") else "s")


def _path(group: str, kind: str) -> str:
    place = "" if kind in _CLUSTER or kind == _DEFINED else f"/namespaces/{_NAMESPACE}"
    return f"{_PATHS[group]}{place}/{_plural(kind)}"


def _object(group: str, kind: str, parts: Json, *, name: str = "a", **metadata: Any) -> Json:
    version = _PATHS[group].rpartition("/")[2]
    return {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        **parts,
    }


def _create(title: str, group: str, kind: str, parts: Json, **metadata: Any) -> Json:
    body = _object(group, kind, parts, **metadata)
    return {"title": title, "requests": [_request("POST", _path(group, kind), body, "?dryRun=All")]}


def _pod(title: str, spec: Json, container: Json | None = None, **metadata: Any) -> Json:
    whole = {"containers": [{**_CONTAINER, **(container or {})}], **spec}
    return _create(title, "", "Pod", {"spec": whole}, **metadata)


def _volumes(*volumes: Json) -> Json:
    return {"volumes": [{"name": f"v{index}", **each} for index, each in enumerate(volumes)]}


def _node_affinity(kind: str, terms: Any) -> Json:
    return {"affinity": {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": terms}}}


def _pod_affinity(kind: str) -> Json:
    term = {"topologyKey": "kubernetes.io/hostname"}
    weighted = [{"weight": 1, "podAffinityTerm": term}]
    return {
        "affinity": {
            kind: {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
                "preferredDuringSchedulingIgnoredDuringExecution": weighted,
            }
        }
    }


def _pods() -> Iterator[Json]:
    old = {"key": "beta.kubernetes.io/os", "operator": "In", "values": ["linux"]}
    bad = {"key": "a", "operator": "In", "values": ["not valid"]}
    yield _pod("deprecated label in a node selector", {"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}})
    yield _pod("required", _node_affinity("required", {"nodeSelectorTerms": [{"matchExpressions": [old]}]}))
    terms = [{"weight": 1, "preference": {"matchExpressions": [old, bad]}}]
    yield _pod("preferred", _node_affinity("preferred", terms))
    spread = {
        "maxSkew": 1,
        "topologyKey": "failure-domain.beta.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
    }
    yield _pod("spread", {"topologySpreadConstraints": [spread]})
    for key in ("scheduler.alpha.kubernetes.io/critical-pod", "security.alpha.kubernetes.io/sysctls"):
        yield _pod(f"annotation {key}", {}, annotations={key: "x"})
    yield _pod("seccomp of a pod", {}, annotations={"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"})
    yield _pod("volumes", _volumes(*_old_volumes()))
    yield _pod("hosts", {"hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]})
    yield _pod("secrets", {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]})
    yield _pod("period", {"terminationGracePeriodSeconds": -1})
    yield _pod("affinity", _pod_affinity("podAffinity"))
    yield _pod("anti-affinity", _pod_affinity("podAntiAffinity"))
    yield _pod("servers", {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["2001:DB8::1"]}})
    yield _pod("long name", {}, name="a.b")
    yield from _containers()
    yield from _overlaps()


def _old_volumes() -> list[Json]:
    return [
        {"gitRepo": {"repository": "r"}},
        {"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"}},
        {"flocker": {"datasetName": "d"}},
        {"storageos": {"volumeName": "v"}},
        {"quobyte": {"registry": "r:1", "volume": "v"}},
        {"glusterfs": {"endpoints": "e", "path": "p"}},
        {"cephfs": {"monitors": ["m"]}},
        {"rbd": {"monitors": ["m"], "image": "i"}},
        {"photonPersistentDisk": {"pdID": "p"}},
    ]


def _containers() -> Iterator[Json]:
    amounts = {"memory": "128m", "ephemeral-storage": "1500m"}
    yield _pod("fractions", {}, {"resources": {"limits": amounts, "requests": amounts}})
    yield _pod("variables", {}, {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]})
    yield _pod("variable that refers", {}, {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]})
    yield _pod("ports", {}, {"ports": [{"containerPort": 80}, {"containerPort": 80}]})
    yield _pod("host ports", {}, {"ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 81}]})
    ambiguous = [{"containerPort": 80, "hostPort": 81}, {"containerPort": 80, "hostPort": 81, "hostIP": "1.2.3.4"}]
    yield _pod("ambiguous ports", {}, {"ports": ambiguous})
    yield _pod("address without port", {}, {"ports": [{"containerPort": 80, "hostIP": "1.2.3.4"}]})
    side = [{**_CONTAINER, "name": "side", "ports": [{"containerPort": 81, "name": "http"}]}]
    first = {**_CONTAINER, "ports": [{"containerPort": 80, "name": "http"}]}
    yield _pod("names of ports", {"containers": [first, *side]})
    key = "container.seccomp.security.alpha.kubernetes.io/main"
    yield _pod("seccomp of a container", {}, annotations={key: "runtime/default"})
    armor = "container.apparmor.security.beta.kubernetes.io/main"
    for value in ("runtime/default", "unconfined", "localhost/x", "wrong"):
        template = {"metadata": {"annotations": {armor: value}}, "spec": {"containers": [_CONTAINER]}}
        yield _create(f"AppArmor {value}", "", "PodTemplate", {"template": template})
    security = {"appArmorProfile": {"type": "RuntimeDefault"}}
    spec = {"containers": [_CONTAINER], "securityContext": security}
    template = {"metadata": {"annotations": {armor: "runtime/default"}}, "spec": spec}
    yield _create("AppArmor of the pod", "", "PodTemplate", {"template": template})


def _overlaps() -> Iterator[Json]:
    items = [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}, {"key": "c", "path": "x/"}]
    yield _pod("paths of a ConfigMap", _volumes({"configMap": {"name": "c", "items": items}}))
    yield _pod("paths of a Secret", _volumes({"secret": {"secretName": "s", "items": items[:2]}}))
    fields = [{"path": path, "fieldRef": {"fieldPath": "metadata.name"}} for path in ("a", "a/b")]
    yield _pod("paths of the pod", _volumes({"downwardAPI": {"items": fields}}))
    sources = [
        {"configMap": {"name": "c", "items": items[:1]}},
        {"secret": {"name": "s", "items": items[1:2]}},
        {"serviceAccountToken": {"path": "x"}},
        {"downwardAPI": {"items": fields[:1]}},
        {},
    ]
    yield _pod("projected paths", _volumes({"projected": {"sources": sources}}))
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}}
    yield _pod("claim of a pod", _volumes({"ephemeral": {"volumeClaimTemplate": claim}}))


def _workloads() -> Iterator[Json]:
    template: Json = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [_CONTAINER], "nodeSelector": {"beta.kubernetes.io/arch": "amd64"}},
    }
    spec = {"selector": _SELECTED, "template": template}
    for kind in ("Deployment", "ReplicaSet", "DaemonSet"):
        yield _create(kind, "apps", kind, {"spec": spec}, name="a.b")
        yield _updated(kind, "apps", kind, spec)
    claims = [
        {
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}},
        }
    ]
    stateful = {**spec, "serviceName": "s", "volumeClaimTemplates": claims, "revisionHistoryLimit": -1}
    yield _create("StatefulSet", "apps", "StatefulSet", {"spec": stateful})
    yield _updated("StatefulSet", "apps", "StatefulSet", {**stateful, "revisionHistoryLimit": 3})
    controller = {"selector": {"app": "a"}, "template": template}
    yield _create("ReplicationController", "", "ReplicationController", {"spec": controller}, name="a.b")
    once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    yield _create("Job", "batch", "Job", {"spec": {"template": once}}, name="a.b")
    many = {"template": once, "completionMode": "Indexed", "completions": 100_001, "parallelism": 10_001}
    yield _create("many completions", "batch", "Job", {"spec": many})
    nightly = {"schedule": "0 1 * * *", "jobTemplate": {"spec": {"template": once}}}
    yield _create("CronJob", "batch", "CronJob", {"spec": nightly}, name="a.b")
    path = _path("batch", "Job")
    job = _object("batch", "Job", {"spec": {"template": once}}, name="gone")
    options = "?propagationPolicy=Background"
    yield {
        "title": "deletion of a Job",
        "requests": [
            _request("POST", path, job),
            _request("DELETE", f"{path}/gone", None, f"{options}&dryRun=All"),
            _request("DELETE", f"{path}/gone", None),
        ],
    }


def _updated(title: str, group: str, kind: str, spec: Json) -> Json:
    """Return the case that changes the labels of an object, and then its template."""
    path = _path(group, kind)
    container = {**_CONTAINER, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
    changes: tuple[Json, ...] = (
        {"metadata": {"labels": {"b": "c"}}},
        {"spec": {"template": {"spec": {"containers": [container]}}}},
    )
    patches = [_request("PATCH", f"{path}/updated", change) for change in changes]
    created = _request("POST", path, _object(group, kind, {"spec": spec}, name="updated"))
    return {"title": f"update of a {title}", "requests": [created, *patches]}


def _services() -> Iterator[Json]:
    ports = [{"port": 80}]
    for title, spec in {
        "external addresses": {"ports": ports, "externalIPs": ["1.2.3.4"]},
        "headless": {"ports": ports, "clusterIP": "None", "externalIPs": ["1.2.3.4"], "sessionAffinity": "ClientIP"},
        "address of a load balancer": {"ports": ports, "type": "LoadBalancer", "loadBalancerIP": "2001:DB8::1"},
        "ranges": {
            "ports": ports,
            "type": "LoadBalancer",
            "loadBalancerSourceRanges": ["2001:DB8::/64"],
        },
        "external name": {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["1.2.3.4"]},
        "name without type": {"ports": ports, "externalName": "a.b"},
        "distribution": {"ports": ports, "trafficDistribution": "PreferClose"},
    }.items():
        yield _create(title, "", "Service", {"spec": spec})
    hints = {"service.kubernetes.io/topology-aware-hints": "auto"}
    yield _create("hints", "", "Service", {"spec": {"ports": ports}}, annotations=hints)
    subsets = [{"addresses": [{"ip": "2001:DB8::1"}], "ports": ports}]
    yield _create("Endpoints", "", "Endpoints", {"subsets": subsets})
    for kind, address in (("IPv6", "2001:DB8::1"), ("FQDN", "a.b.c")):
        parts = {"addressType": kind, "endpoints": [{"addresses": [address]}], "ports": []}
        yield _create(f"slice {kind}", "discovery.k8s.io", "EndpointSlice", parts)
    rule = {"from": [{"ipBlock": {"cidr": "2001:DB8::/32", "except": ["2001:DB8::/64"]}}]}
    yield _create("policy", "networking.k8s.io", "NetworkPolicy", {"spec": {"podSelector": {}, "ingress": [rule]}})
    backend = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    old = {"kubernetes.io/ingress.class": "nginx"}
    yield _create("class of an Ingress", "networking.k8s.io", "Ingress", {"spec": backend}, annotations=old)


def _others() -> Iterator[Json]:
    source = {"nfs": {"server": "s", "path": "/x"}, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    policy = {**source, "persistentVolumeReclaimPolicy": "Recycle"}
    beta = {"volume.beta.kubernetes.io/storage-class": "x", "volume.beta.kubernetes.io/mount-options": "y"}
    yield _create("volume", "", "PersistentVolume", {"spec": policy}, annotations=beta)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}
    yield _create("claim", "", "PersistentVolumeClaim", {"spec": claim}, annotations=beta)
    yield _create(
        "node", "", "Node", {"spec": {"externalID": "x", "podCIDRs": ["2001:DB8::/64"], "podCIDR": "2001:DB8::/64"}}
    )
    hard = {"requests.cpu": "2", "limits.cpu": "1", "memory": "2Gi", "limits.memory": "1Gi"}
    yield _create("quota", "", "ResourceQuota", {"spec": {"hard": hard}})
    yield _create("account", "", "ServiceAccount", {}, annotations={"kubernetes.io/enforce-mountable-secrets": "true"})
    key, certificate = (
        f"-----BEGIN {name}-----\nYQ==\n-----END {name}-----\n" for name in ("PRIVATE KEY", "CERTIFICATE")
    )
    for title, cert, secret in (
        ("no PEM", "a", "b"),
        ("switched", key, certificate),
        ("no key", certificate, "b"),
        ("two certificates", certificate, certificate),
    ):
        data = {"tls.crt": b64encode(cert.encode()).decode(), "tls.key": b64encode(secret.encode()).decode()}
        yield _create(f"Secret, {title}", "", "Secret", {"type": "kubernetes.io/tls", "data": data})
    selector = {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}
    yield _create("runtime", "node.k8s.io", "RuntimeClass", {"handler": "h", "scheduling": selector})
    topology = [{"matchLabelExpressions": [{"key": "beta.kubernetes.io/os", "values": ["linux"]}]}]
    parts = {"provisioner": "p", "allowedTopologies": topology, "volumeBindingMode": "WaitForFirstConsumer"}
    yield _create("storage class", "storage.k8s.io", "StorageClass", parts)
    yield _create("driver", "storage.k8s.io", "CSIDriver", {"spec": {"tokenRequests": [{"audience": "a"}]}})
    nodes = {"nodeTopology": {"matchLabels": {"beta.kubernetes.io/os": "linux"}}, "storageClassName": "c"}
    yield _create("capacity", "storage.k8s.io", "CSIStorageCapacity", nodes)


def _admission() -> Iterator[Json]:
    group = "admissionregistration.k8s.io"
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        yield _create(f"{kind}, a reserved name", group, kind, {}, name="a.static.k8s.io")
    yield _create("policy, a reserved name", group, "ValidatingAdmissionPolicy", _POLICY, name="a.static.k8s.io")


_POLICY: Final[Json] = {
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
            ]
        },
        "validations": [{"expression": "true"}],
    }
}


def _defined() -> Iterator[Json]:
    formats = {"at": {"type": "string", "format": "moment"}, "n": {"type": "integer", "format": "double"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": formats}}}
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "deprecated": name == "v1beta1"}
        | {"schema": {"openAPIV3Schema": schema}}
        for name in ("v1beta1", "v1", "v2")
    ]
    group = "warnings.example.com"
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    definition = _object("apiextensions.k8s.io", _DEFINED, {"spec": spec}, name=f"things.{group}")
    things = f"/apis/{group}/v1beta1/namespaces/{_NAMESPACE}/things"
    thing = {
        "apiVersion": f"{group}/v1beta1",
        "kind": "Thing",
        "metadata": {"name": "a", "finalizers": ["mine", "example.com", "example.com/x", "orphan"]},
    }
    yield {
        "title": "formats, deprecated versions and finalizers of custom kinds",
        "setup": [_request("POST", _path("apiextensions.k8s.io", _DEFINED), definition)],
        "requests": [
            _request("POST", things, thing),
            _request("GET", f"{things}/a", None),
            _request("PATCH", f"{things}/a", {"metadata": {"finalizers": ["mine", "other"]}}),
        ],
    }


def cases() -> Iterator[Json]:
    """Yield the cases."""
    for found in (_pods, _workloads, _services, _others, _admission, _defined):
        for case in found():
            yield {"namespace": _NAMESPACE, "setup": [], **case}
