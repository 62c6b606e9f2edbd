"""Warnings about pods and their templates.

Source: `pkg/api/pod/warnings.go` and `pkg/api/node/util.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ocf.objects.go_strings import go_quoted
from ocf.objects.name_validation import label_value
from ocf.objects.quantity import Quantity
from ocf_server.validation.addresses import address_warnings

__all__ = ["LABELS", "fraction_warnings", "pod_warnings", "selector_warnings"]

_Json = dict[str, Any]

LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
"""Deprecated labels of nodes, with what the API server says of them."""

_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "ephemeral": "",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_GO_NAMES: Final = {"storageos": "storageOS"}
_FRACTIONS: Final = ("memory", "ephemeral-storage")
_UNIT: Final = 10**9
_NO_PODS: Final = "a null labelSelector results in matching no pod"


def pod_warnings(pod: _Json, path: str = "") -> Iterator[str]:
    """Yield the warnings about a pod or a template.

    Args:
        pod: The pod or template, decoded, defaulted and valid.
        path: Path of the template, `spec.template`; empty for a pod.
    """
    start = f"{path}." if path else ""
    spec, annotations = pod.get("spec") or {}, (pod.get("metadata") or {}).get("annotations") or {}
    at = f"{start}spec"
    yield from _placement(spec, at)
    where = f"{start}metadata.annotations"
    yield from (f"{where}[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations)
    yield from _volumes(spec.get("volumes") or (), at)
    yield from _overlaps(spec.get("volumes") or ())
    yield from _duplicates(spec.get("hostAliases") or (), f"{at}.hostAliases", "ip")
    yield from _duplicates(spec.get("imagePullSecrets") or (), f"{at}.imagePullSecrets", "name")
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            yield f'{at}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from fraction_warnings(spec.get("overhead") or {}, f"{at}.overhead", _FRACTIONS)
    containers = [*_containers(spec, at)]
    yield from _profiles(spec, containers, annotations, where)
    yield from _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    yield from _affinities(spec.get("affinity") or {}, f"{at}.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from address_warnings(server, f"{at}.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from address_warnings(alias.get("ip", ""), f"{at}.hostAliases[{index}].ip")


def _placement(spec: _Json, at: str) -> Iterator[str]:
    """Yield the warnings about deprecated labels of nodes, and about constraints that select no pod."""
    for key in spec.get("nodeSelector") or ():
        if key in LABELS:
            yield f"{at}.nodeSelector[{key}]: {LABELS[key]}"
    affinity, where = (spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{at}.affinity.nodeAffinity"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate((affinity.get(required) or {}).get("nodeSelectorTerms") or ()):
        yield from selector_warnings(term, f"{where}.{required}.nodeSelectorTerms[{index}]")
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, item in enumerate(affinity.get(preferred) or ()):
        yield from selector_warnings(
            item.get("preference") or {}, f"{where}.{preferred}[{index}].preference", values=True
        )
    for index, item in enumerate(spec.get("topologySpreadConstraints") or ()):
        key, path = item.get("topologyKey", ""), f"{at}.topologySpreadConstraints[{index}]"
        if key in LABELS:
            yield f"{path}.topologyKey: {key} is {LABELS[key]}"
        if item.get("labelSelector") is None:
            yield f"{path}.labelSelector: {_NO_PODS}"


def selector_warnings(term: _Json, path: str, *, values: bool = False) -> Iterator[str]:
    """Yield the warnings about the expressions of a node selector.

    Args:
        values: Whether to warn of values that labels cannot have.
    """
    for index, item in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        if item.get("key") in LABELS:
            yield f"{where}.key: {item['key']} is {LABELS[item['key']]}"
        for position, value in enumerate(item.get("values") or () if values else ()):
            yield from (f"{where}.values[{position}]: {value} is invalid, {fault}" for fault in label_value(value))


def _volumes(volumes: Sequence[_Json], at: str) -> Iterator[str]:
    for index, volume in enumerate(volumes):
        path = f"{at}.volumes[{index}]"
        for name, text in _VOLUMES.items():
            if volume.get(name) is None:
                continue
            if text:
                yield f"{path}.{_GO_NAMES.get(name, name)}: {text}"
            elif claim := volume[name].get("volumeClaimTemplate"):
                where = f"{path}.ephemeral.volumeClaimTemplate.spec.resources"
                for kind in ("requests", "limits"):
                    found = ((claim.get("spec") or {}).get("resources") or {}).get(kind) or {}
                    yield from fraction_warnings(found, f"{where}.{kind}", ("storage",))


class _Path(NamedTuple):
    """A path of a volume.

    Args:
        source: What projects it; empty in a volume of one source.
    """

    path: str
    source: str

    def __str__(self) -> str:
        return f"{go_quoted(self.path)} ({self.source})" if self.source else go_quoted(self.path)


def _overlaps(volumes: Sequence[_Json]) -> Iterator[str]:
    """Yield the warnings about files of a volume of which one hides another one."""
    for volume in volumes:
        name = go_quoted(volume.get("name", ""))
        for field, kind, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if (source := volume.get(field)) and source.get("items"):
                about = f"{kind} {go_quoted(source.get(key, ''))}"
                yield from _collisions([[_Path(each["path"], "") for each in source["items"]]], f"{name} ({about})")
        if (source := volume.get("downwardAPI")) and source.get("items"):
            yield from _collisions([[_Path(each["path"], "") for each in source["items"]]], f"{name} (DownwardAPI)")
        if source := volume.get("projected"):
            yield from _projections(source.get("sources") or (), name)


def _projections(sources: Sequence[_Json], name: str) -> Iterator[str]:
    paths: list[list[_Path]] = []
    for source in sources:
        if not any(value is not None for value in source.values()):
            yield f"volume {name} (Projected) has no sources provided"
        paths.append([*_projected(source)])
    yield from _collisions(paths, f"{name} (Projected)")


def _projected(source: _Json) -> Iterator[_Path]:
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if (part := source.get(field)) and part.get("items"):
            yield from (_Path(each["path"], f"{kind} {go_quoted(part.get('name', ''))}") for each in part["items"])
            return
    if (part := source.get("downwardAPI")) and part.get("items"):
        yield from (_Path(each["path"], "DownwardAPI") for each in part["items"])
    elif part := source.get("serviceAccountToken"):
        yield _Path(part.get("path", ""), "ServiceAccountToken")
    elif part := source.get("clusterTrustBundle"):
        name = part.get("name") or part.get("signerName") or ""
        yield _Path(part.get("path", ""), f"ClusterTrustBundle {go_quoted(name)}")
    elif part := source.get("podCertificate"):
        for field, what in _CERTIFICATE:
            if part.get(field):
                yield _Path(part[field], f"PodCertificate {what}")


_CERTIFICATE: Final = (
    ("certificateChainPath", "chain"),
    ("keyPath", "key"),
    ("credentialBundlePath", "credential bundle"),
)


def _collisions(groups: Sequence[Sequence[_Path]], about: str) -> Iterator[str]:
    seen: list[_Path] = []
    for given in (each for group in groups for each in group):
        path = _Path(given.path.rstrip("/"), given.source)
        if not path.path:
            continue
        for other in seen:
            ours, theirs = f"{path.path}/", f"{other.path}/"
            if ours.startswith(theirs) or theirs.startswith(ours):
                yield f"volume {about}: overlapping paths: {path} with {other}"
        seen.append(path)


def _duplicates(items: Sequence[_Json], path: str, field: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {field} {go_quoted(value)}"
        seen.add(value)


def fraction_warnings(amounts: Mapping[str, Any], path: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the warnings about amounts of bytes that are not whole.

    Example:
        >>> print(*fraction_warnings({"memory": "128m"}, "limits", ["memory"]))
        limits[memory]: fractional byte value "128m" is invalid, must be an integer
    """
    for name in names:
        if name not in amounts:
            continue
        amount = Quantity.parse(amounts[name])
        if amount.milli % 1000:
            yield f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _containers(spec: _Json, at: str) -> Iterator[tuple[str, _Json]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from ((f"{at}.{field}[{index}]", item) for index, item in enumerate(spec.get(field) or ()))


def _profiles(
    spec: _Json, containers: Sequence[tuple[str, _Json]], annotations: Mapping[str, str], where: str
) -> Iterator[str]:
    """Yield the warnings about security annotations, and about resources and variables of containers."""
    security = spec.get("securityContext") or {}
    if not security.get("seccompProfile") and _POD_SECCOMP in annotations:
        yield f"{where}[{_POD_SECCOMP}]: {_SECCOMP}"
    for path, container in containers:
        context, name = container.get("securityContext") or {}, container.get("name", "")
        key = f"{_CONTAINER_SECCOMP}{name}"
        if not context.get("seccompProfile") and key in annotations:
            yield f"{where}[{key}]: {_SECCOMP}"
        key = f"{_APP_ARMOR}{name}"
        if not context.get("appArmorProfile") and key in annotations:
            profile = security.get("appArmorProfile")
            if profile is None or profile != _app_armor(annotations[key]):
                yield f'{where}[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
        resources = container.get("resources") or {}
        for resource in _FRACTIONS:
            for kind in ("limits", "requests"):
                yield from fraction_warnings(resources.get(kind) or {}, f"{path}.resources.{kind}", (resource,))
        yield from _variables(container.get("env") or (), f"{path}.env")


_POD_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def _app_armor(annotation: str) -> _Json | None:
    """Return the field for a value of an annotation; None if the value is invalid."""
    if annotation in {"runtime/default", "unconfined"}:
        return {"type": "RuntimeDefault" if annotation == "runtime/default" else "Unconfined"}
    start, _, name = annotation.partition("/")
    return {"type": "Localhost", "localhostProfile": name} if start == "localhost" and name else None


def _variables(variables: Sequence[_Json], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(variables):
        name, value = item.get("name", ""), item.get("value", "")
        reference = f"$({name})"
        if name in seen and (item.get("valueFrom") or value == reference or reference not in value):
            hidden = f"hides previous definition of {go_quoted(name)}, which may be dropped when using apply"
            yield f"{path}[{index}]: {hidden}"
        seen.add(name)


def _ports(containers: Sequence[tuple[str, _Json]]) -> Iterator[str]:
    ports = [
        (f"{path}.ports[{index}]", port)
        for path, container in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    known: dict[tuple[int, str], list[tuple[str, _Json]]] = {}
    for path, port in ports:
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{path}: hostIP set without hostPort: {_go_port(port)}"
        others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "TCP")), [])
        for where, other in others:
            if fault := _conflict(port, other):
                yield f"{path}: {fault} port definition with {where}"
        others.append((path, port))
    names: dict[str, str] = {}
    for path, port in ports:
        name = port.get("name")
        if name and name in names:
            other_path = names[name]
            yield (
                f"{path}: duplicate port name {go_quoted(name)} with {other_path}, services and probes that select "
                f"ports by name will use {other_path}"
            )
        elif name:
            names[name] = path


def _conflict(port: _Json, other: _Json) -> str:
    ours, theirs = port.get("hostPort") or 0, other.get("hostPort") or 0
    address, its_address = port.get("hostIP") or "", other.get("hostIP") or ""
    if (ours, address) == (theirs, its_address):
        return "duplicate"
    if not ours or not theirs:
        return "overlapping"
    return "dangerously ambiguous" if ours == theirs and bool(address) is not bool(its_address) else ""


def _go_port(port: _Json) -> str:
    fields = {"name": "", "hostPort": 0, "containerPort": 0, "protocol": "", "hostIP": ""}
    shown = (f"{name[0].upper()}{name[1:]}:{port.get(name, empty)}" for name, empty in fields.items())
    return f"{{{' '.join(shown)}}}"


def _affinities(affinity: _Json, at: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for field, below in (
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", ".podAffinityTerm"),
        ):
            for index, item in enumerate(terms.get(field) or ()):
                term = item.get("podAffinityTerm") or {} if below else item
                if term.get("labelSelector") is None:
                    yield f"{at}.{kind}.{field}[{index}]{below}.labelSelector: {_NO_PODS}"
