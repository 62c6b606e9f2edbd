"""Printers of nodes, events, storage, access control, and cluster configuration."""

from collections.abc import Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.http.printers.text import NONE, UNKNOWN, UNSET, AgeClock, Cells, duration

__all__ = [
    "claim",
    "component_status",
    "config_map",
    "counted",
    "csi_driver",
    "event",
    "lease",
    "namespace",
    "node",
    "priority_class",
    "quota",
    "role_binding",
    "secret",
    "signing_request",
    "storage_class",
    "volume",
    "with_field",
]

_ROLE: Final = "node-role.kubernetes.io/"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def component_status(item: Manifest, _clock: AgeClock) -> Cells:
    """Write the row of a ComponentStatus."""
    (condition,) = item["conditions"]
    status = "Healthy" if condition["status"] == "True" else "Unhealthy"
    return [item["metadata"]["name"], status, condition["message"], condition.get("error", "")]


def config_map(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ConfigMap."""
    count = len(item.get("data") or ()) + len(item.get("binaryData") or ())
    return [item["metadata"]["name"], count, clock.age(item)]


def secret(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Secret."""
    return [item["metadata"]["name"], item.get("type", ""), len(item.get("data") or ()), clock.age(item)]


def namespace(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Namespace."""
    return [item["metadata"]["name"], (item.get("status") or {}).get("phase", ""), clock.age(item)]


def lease(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Lease."""
    return [item["metadata"]["name"], (item.get("spec") or {}).get("holderIdentity") or "", clock.age(item)]


def node(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a Node."""
    status = item.get("status") or {}
    info = status.get("nodeInfo") or {}
    addresses: dict[str, str] = {one["type"]: one["address"] for one in reversed(status.get("addresses") or ())}
    return [
        item["metadata"]["name"],
        _node_word(item),
        ",".join(sorted(_roles(item))) or NONE,
        clock.age(item),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_word(item: Manifest) -> str:
    conditions = (item.get("status") or {}).get("conditions") or ()
    ready = [one.get("status") for one in conditions if one["type"] == "Ready"]
    words = ["Ready" if ready[0] == "True" else "NotReady"] if ready else ["Unknown"]
    return ",".join([*words, *(["SchedulingDisabled"] if (item.get("spec") or {}).get("unschedulable") else [])])


def _roles(item: Manifest) -> set[str]:
    labels = item["metadata"].get("labels") or {}
    found = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    return (found | {labels.get("kubernetes.io/role", "")}) - {""}


def event(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of an Event of `v1` or `events.k8s.io/v1`."""
    core = item["apiVersion"] == "v1"
    target = item.get("involvedObject" if core else "regarding") or {}
    source = item.get("source" if core else "deprecatedSource") or {}
    message = item.get("message" if core else "note") or ""
    first = item.get("firstTimestamp" if core else "deprecatedFirstTimestamp") or item.get("eventTime")
    last = item.get("lastTimestamp" if core else "deprecatedLastTimestamp") or first
    count = item.get("count" if core else "deprecatedCount") or 1
    if item.get("series"):
        last, count = item["series"].get("lastObservedTime"), item["series"].get("count", 0)
    return [
        clock.since(last),
        item.get("type", ""),
        item.get("reason", ""),
        f"{target.get('kind', '').lower()}/{target.get('name', '')}",
        target.get("fieldPath", ""),
        _source(item, source, core=core),
        message.strip(),
        clock.since(first),
        count,
        item["metadata"]["name"],
    ]


def _source(item: Manifest, source: Mapping[str, Any], *, core: bool) -> str:
    component = source.get("component") or item.get("reportingComponent" if core else "reportingController") or ""
    host = source.get("host") or item.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def quota(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a ResourceQuota."""
    status = item.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    texts: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [item["metadata"]["name"], ", ".join(texts[False]), ", ".join(texts[True]), clock.age(item)]


def _access(modes: Any) -> str:
    return ",".join(short for long, short in _MODES.items() if long in (modes or ()))


def claim(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a PersistentVolumeClaim."""
    spec, status = item["spec"], item.get("status") or {}
    bound = bool(spec.get("volumeName"))
    word = "Terminating" if "deletionTimestamp" in item["metadata"] else status.get("phase", "")
    return [
        item["metadata"]["name"],
        word,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _access(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        clock.age(item),
        spec.get("volumeMode") or UNSET,
    ]


def volume(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a PersistentVolume."""
    spec, status = item["spec"], item.get("status") or {}
    owner = spec.get("claimRef")
    word = "Terminating" if "deletionTimestamp" in item["metadata"] else status.get("phase", "")
    return [
        item["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", "0"),
        _access(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        word,
        f"{owner.get('namespace', '')}/{owner.get('name', '')}" if owner else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or UNSET,
        status.get("reason", ""),
        clock.age(item),
        spec.get("volumeMode") or UNSET,
    ]


def storage_class(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a StorageClass."""
    marks = item["metadata"].get("annotations") or {}
    name = item["metadata"]["name"]
    return [
        f"{name} (default)" if any(marks.get(mark) == "true" for mark in _DEFAULT_CLASS) else name,
        item["provisioner"],
        item.get("reclaimPolicy", "Delete"),
        item.get("volumeBindingMode", "Immediate"),
        bool(item.get("allowVolumeExpansion")),
        clock.age(item),
    ]


def csi_driver(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a CSIDriver."""
    spec = item.get("spec") or {}
    audiences = ",".join(one.get("audience", "") for one in spec.get("tokenRequests") or ()) or UNSET
    modes = ",".join(spec.get("volumeLifecycleModes") or ()) or NONE
    flags = [spec.get("attachRequired", True), spec.get("podInfoOnMount", False), spec.get("storageCapacity", False)]
    row = [item["metadata"]["name"], *flags, audiences, bool(spec.get("requiresRepublish")), modes]
    return [*row, clock.age(item)]


def priority_class(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a PriorityClass."""
    default = bool(item.get("globalDefault"))
    policy = item.get("preemptionPolicy", "")
    return [item["metadata"]["name"], item.get("value", 0), default, clock.age(item), policy]


def api_service(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of an APIService."""
    service = item["spec"].get("service")
    conditions = item["status"].get("conditions") or ()
    found = next((one for one in conditions if one["type"] == "Available"), {"status": "Unknown"})
    reason = "" if found["status"] == "True" else found.get("reason", "")
    return [
        item["metadata"]["name"],
        f"{service['namespace']}/{service['name']}" if service else "Local",
        f"{found['status']} ({reason})" if reason else found["status"],
        clock.age(item),
    ]


def role_binding(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a RoleBinding or a ClusterRoleBinding."""
    role = item["roleRef"]
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in item.get("subjects") or ():
        prefix = f"{one.get('namespace', '')}/" if one["kind"] == "ServiceAccount" else ""
        named.setdefault(one["kind"], []).append(prefix + one["name"])
    subjects = [", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [item["metadata"]["name"], f"{role['kind']}/{role['name']}", clock.age(item), *subjects]


def signing_request(item: Manifest, clock: AgeClock) -> Cells:
    """Write the row of a CertificateSigningRequest."""
    spec, status = item["spec"], item.get("status") or {}
    lasts = spec.get("expirationSeconds")
    return [
        item["metadata"]["name"],
        clock.age(item),
        spec.get("signerName", ""),
        spec.get("username", ""),
        NONE if lasts is None else duration(lasts),
        _signing_word(status),
    ]


def _signing_word(status: Mapping[str, Any]) -> str:
    types = [one["type"] for one in status.get("conditions") or ()]
    words = [word for word in ("Approved", "Denied") if word in types][:1] or ["Pending"]
    if "Failed" in types:
        words.append("Failed")
    return ",".join([*words, *(["Issued"] if status.get("certificate") else [])])


def counted(*path: str) -> Any:
    """Return a printer of name, length of the list at a path, and age."""

    def row(item: Manifest, clock: AgeClock) -> Cells:
        return [item["metadata"]["name"], len(_at(item, path) or ()), clock.age(item)]

    return row


def with_field(*path: str) -> Any:
    """Return a printer of name, the field at a path, and age."""

    def row(item: Manifest, clock: AgeClock) -> Cells:
        return [item["metadata"]["name"], _at(item, path) or "", clock.age(item)]

    return row


def _at(item: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        item = (item or {}).get(name)
    return item
