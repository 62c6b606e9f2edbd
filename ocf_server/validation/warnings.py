"""Warnings of the API server about valid objects of built-in kinds and of custom resources.

Source: `WarningsOnCreate` and `WarningsOnUpdate` of the registry strategies of Kubernetes, and of custom resources in
`pkg/registry/customresource` of k8s.io/apiextensions-apiserver.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects.go_strings import go_quoted
from ocf.objects.json_equality import equal_json
from ocf.objects.name_validation import dns_label, qualified_name
from ocf.objects.quantity import Quantity
from ocf_server.validation.addresses import address_warnings, network_warnings
from ocf_server.validation.pod_warnings import LABELS, fraction_warnings, pod_warnings, selector_warnings

__all__ = ["finalizer_warnings", "status_warnings", "warnings_of"]

_Json = dict[str, Any]
_Warner = Callable[[_Json, _Json | None], Iterator[str]]
"""Yields the warnings about a new object and the live one, which is None on creation."""

_SURPRISING: Final = "which can result in surprising behavior; a DNS label is recommended"
_NAMES: Final = f"metadata.name: this is used in Pod names and hostnames, {_SURPRISING}"


def _name(new: _Json, text: str = _NAMES) -> Iterator[str]:
    if faults := dns_label(new["metadata"].get("name", "")):
        yield f"{text}: [{' '.join(faults)}]"


def _changed(new: _Json, old: _Json | None) -> bool:
    """Return whether an object is new, or has a new generation: only then its template is read."""
    return old is None or new["metadata"].get("generation") != old["metadata"].get("generation")


def _pod(new: _Json, old: _Json | None) -> Iterator[str]:
    # Pods change often, and people hardly ever change them.
    if old is None:
        yield from _name(new, f"metadata.name: this is used in the Pod's hostname, {_SURPRISING}")
        yield from pod_warnings(new)


def _workload(new: _Json, old: _Json | None) -> Iterator[str]:
    if old is None:
        yield from _name(new)
    if _changed(new, old):
        yield from pod_warnings(new["spec"]["template"], "spec.template")


def _daemon_set(new: _Json, old: _Json | None) -> Iterator[str]:
    template = new["spec"]["template"]
    if old is None or not equal_json(template, old["spec"]["template"]):
        yield from pod_warnings(template, "spec.template")


def _controller(new: _Json, old: _Json | None) -> Iterator[str]:
    if old is None:
        yield from _name(new)
    if _changed(new, old):
        # On an update, the API server reads the template that was.
        yield from pod_warnings((old or new)["spec"].get("template") or {}, "spec.template")


def _stateful_set(new: _Json, old: _Json | None) -> Iterator[str]:
    if _changed(new, old):
        yield from pod_warnings(new["spec"]["template"], "spec.template")
    for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        yield from _claim_spec(claim.get("spec") or {}, path if old is None else f"{path}.Spec")
    if (new["spec"].get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {text}"


def _pod_template(new: _Json, old: _Json | None) -> Iterator[str]:
    if _changed(new, old):
        yield from pod_warnings(new.get("template") or {}, "template")


_MANY_COMPLETIONS: Final = 100_000
_MANY_PODS: Final = 10_000


def _job_spec(spec: _Json, path: str) -> Iterator[str]:
    many = (spec.get("completions") or 0) > _MANY_COMPLETIONS and (spec.get("parallelism") or 0) > _MANY_PODS
    if spec.get("completionMode") == "Indexed" and many:
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from pod_warnings(spec.get("template") or {}, f"{path}.template")


def _job(new: _Json, old: _Json | None) -> Iterator[str]:
    if old is None:
        yield from _name(new)
    if _changed(new, old):
        yield from _job_spec(new["spec"], "spec")


def _cron_job(new: _Json, old: _Json | None) -> Iterator[str]:
    if old is None:
        yield from _name(new)
    if _changed(new, old):
        yield from _job_spec(new["spec"]["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    if old is not None and "TZ" in new["spec"].get("schedule", ""):
        page = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        yield f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {page} for more details"


def _claim_spec(spec: _Json, path: str) -> Iterator[str]:
    resources = spec.get("resources") or {}
    for kind in ("requests", "limits"):
        yield from fraction_warnings(resources.get(kind) or {}, f"{path}.resources.{kind}", ("storage",))


_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_OLD_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'


def _annotations(manifest: _Json) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def _claim(new: _Json, _: _Json | None) -> Iterator[str]:
    if _CLASS in _annotations(new):
        yield f"metadata.annotations[{_CLASS}]: {_OLD_CLASS}"
    yield from _claim_spec(new["spec"], "spec")


_VOLUME_ANNOTATIONS: Final = {
    _CLASS: _OLD_CLASS,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_VOLUME_SOURCES: Final = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}


def _volume(new: _Json, _: _Json | None) -> Iterator[str]:
    spec = new["spec"]
    for key, text in _VOLUME_ANNOTATIONS.items():
        if key in _annotations(new):
            yield f"metadata.annotations[{key}]: {text}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from selector_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    yield from (f"spec.{text}" for name, text in _VOLUME_SOURCES.items() if spec.get(name) is not None)


_HINTS: Final = "service.kubernetes.io/topology-aware-hints"


def _service(new: _Json, _: _Json | None) -> Iterator[str]:
    spec = new["spec"]
    external, kind = spec.get("externalIPs") or (), spec.get("type")
    is_headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if _HINTS in _annotations(new):
        yield f"annotation {_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
    if spec.get("clusterIP") not in (None, "", "None"):
        yield from _addresses(spec.get("clusterIPs") or (), "spec.clusterIPs")
    if is_headless:
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": external,
            "SessionAffinity": spec.get("sessionAffinity", "None") != "None",
        }
        yield from (f"spec.{name} is ignored for headless services" for name, value in ignored.items() if value)
    yield from _addresses(external, "spec.externalIPs")
    if external and not is_headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings(spec.get("loadBalancerIP") or "", "spec.loadBalancerIP")
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from network_warnings(network, f"spec.loadBalancerSourceRanges[{index}]")
    yield from _service_type(spec)


def _addresses(addresses: Sequence[str], path: str) -> Iterator[str]:
    for index, address in enumerate(addresses):
        yield from address_warnings(address, f"{path}[{index}]")


def _service_type(spec: _Json) -> Iterator[str]:
    is_name = spec.get("type") == "ExternalName"
    if is_name and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if not is_name and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _node(new: _Json, _: _Json | None) -> Iterator[str]:
    spec = new.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, network in enumerate(spec.get("podCIDRs") or ()):
        yield from network_warnings(network, f"spec.podCIDRs[{index}]")


def _quota(new: _Json, old: _Json | None) -> Iterator[str]:
    hard = (new.get("spec") or {}).get("hard") or {}
    for name in ("cpu", "memory", "storage", "ephemeral-storage") if old is None else ():
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if request in hard and limit in hard:
            low, high = Quantity.parse(hard[request]), Quantity.parse(hard[limit])
            if high < low:
                yield f"ResourceQuota {request} ({low}) should be less than {limit} ({high})"


_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def _service_account(new: _Json, old: _Json | None) -> Iterator[str]:
    if _MOUNTABLE in _annotations(new) and (old is None or _MOUNTABLE not in _annotations(old)):
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_MOUNTABLE}]: {text}"


_PEM: Final = re.compile(rb"-----BEGIN ([^\n]*?)-----\r?\n.*?-----END \1-----", re.DOTALL)
_CERTIFICATE: Final = "CERTIFICATE"
_KEY: Final = "PRIVATE KEY"


def _secret(new: _Json, _: _Json | None) -> Iterator[str]:
    if new.get("type") == "kubernetes.io/tls":
        certificate, key = (_blocks((new.get("data") or {}).get(name)) for name in ("tls.crt", "tls.key"))
        if fault := _certificate_fault(certificate) or _key_fault(key):
            yield fault


def _blocks(value: str | None) -> list[str]:
    """Return the types of the PEM blocks in an encoded text."""
    try:
        text = base64.b64decode(value or "", validate=True)
    except binascii.Error:
        return []
    return [found[1].decode(errors="replace") for found in _PEM.finditer(text)]


def _certificate_fault(blocks: list[str]) -> str:
    if _CERTIFICATE in blocks:
        return ""
    if not blocks:
        return "tls: failed to find any PEM data in certificate input"
    if len(blocks) == 1 and blocks[0].endswith(_KEY):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
            "have been switched"
        )
    skipped = " ".join(blocks)
    return (
        f'tls: failed to find "{_CERTIFICATE}" PEM block in certificate input after skipping PEM blocks of the '
        f"following types: [{skipped}]"
    )


def _key_fault(blocks: list[str]) -> str:
    if any(block.endswith(_KEY) for block in blocks):
        return ""
    if not blocks:
        return "tls: failed to find any PEM data in key input"
    if blocks == [_CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    skipped = " ".join(blocks)
    return (
        f'tls: failed to find PEM block with type ending in "{_KEY}" in key input after skipping PEM blocks of the '
        f"following types: [{skipped}]"
    )


def _endpoints(new: _Json, _: _Json | None) -> Iterator[str]:
    if (new["metadata"].get("labels") or {}).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return
    for index, subset in enumerate(new.get("subsets") or ()):
        for name in ("addresses", "notReadyAddresses"):
            for position, item in enumerate(subset.get(name) or ()):
                yield from address_warnings(item.get("ip", ""), f"subsets[{index}].{name}[{position}].ip")


_SLICE_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def _endpoint_slice(new: _Json, old: _Json | None) -> Iterator[str]:
    if old is None and new.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    if (new["metadata"].get("labels") or {}).get("endpointslice.kubernetes.io/managed-by") in _SLICE_CONTROLLERS:
        return
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        for position, address in enumerate(endpoint.get("addresses") or ()):
            yield from address_warnings(address, f"endpoints[{index}].addresses[{position}]")


def _network_policy(new: _Json, _: _Json | None) -> Iterator[str]:
    for way, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate((new.get("spec") or {}).get(way) or ()):
            for position, peer in enumerate(rule.get(side) or ()):
                block, path = peer.get("ipBlock"), f"spec.{way}[{index}].{side}[{position}].ipBlock"
                if block is not None:
                    yield from network_warnings(block.get("cidr", ""), f"{path}.cidr")
                    for place, network in enumerate(block.get("except") or ()):
                        yield from network_warnings(network, f"{path}.except[{place}]")


_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"


def _ingress(new: _Json, old: _Json | None) -> Iterator[str]:
    if old is None and _INGRESS_CLASS in _annotations(new) and (new.get("spec") or {}).get("ingressClassName") is None:
        yield f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _runtime_class(new: _Json, _: _Json | None) -> Iterator[str]:
    for key in (new.get("scheduling") or {}).get("nodeSelector") or ():
        if key in LABELS:
            yield f"scheduling.nodeSelector: {LABELS[key]}"


def _storage_class(new: _Json, _: _Json | None) -> Iterator[str]:
    for index, topology in enumerate(new.get("allowedTopologies") or ()):
        for position, item in enumerate(topology.get("matchLabelExpressions") or ()):
            if item.get("key") in LABELS:
                path = f"allowedTopologies[{index}].matchLabelExpressions[{position}].key"
                yield f"{path}: {LABELS[item['key']]}"


def _storage_capacity(new: _Json, _: _Json | None) -> Iterator[str]:
    selector = new.get("nodeTopology") or {}
    yield from selector_warnings(selector, "nodeTopology")
    for key in selector.get("matchLabels") or ():
        if key in LABELS:
            yield f"nodeTopology.matchLabels.{key}: {LABELS[key]}"


def _driver(new: _Json, old: _Json | None) -> Iterator[str]:
    spec = new.get("spec") or {}
    tokens = spec.get("tokenRequests")
    is_new = old is None or not equal_json(tokens, (old.get("spec") or {}).get("tokenRequests"))
    if tokens and is_new and spec.get("serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
            "possible logging of tokens in volume attributes"
        )


def _resource_slice(new: _Json, _: _Json | None) -> Iterator[str]:
    driver = (new.get("spec") or {}).get("driver", "")
    if driver != driver.lower():
        text = f"{go_quoted(driver)} contains uppercase characters"
        yield f"spec.driver: driver names should be lowercase; {text}"


_STATIC: Final = ".static.k8s.io"


def _admission(new: _Json, _: _Json | None) -> Iterator[str]:
    if new["metadata"].get("name", "").endswith(_STATIC):
        text = "are reserved for static manifest-based configurations and cannot be managed via the API"
        yield f"metadata.name: names ending with {go_quoted(_STATIC)} {text}"


_WARNERS: Final[Mapping[str, _Warner]] = {
    "CSIDriver.storage.k8s.io": _driver,
    "CSIStorageCapacity.storage.k8s.io": _storage_capacity,
    "CronJob.batch": _cron_job,
    "DaemonSet.apps": _daemon_set,
    "Deployment.apps": _workload,
    "EndpointSlice.discovery.k8s.io": _endpoint_slice,
    "Endpoints": _endpoints,
    "Ingress.networking.k8s.io": _ingress,
    "Job.batch": _job,
    "MutatingAdmissionPolicy.admissionregistration.k8s.io": _admission,
    "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io": _admission,
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": _admission,
    "NetworkPolicy.networking.k8s.io": _network_policy,
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "PodTemplate": _pod_template,
    "ReplicaSet.apps": _workload,
    "ReplicationController": _controller,
    "ResourceQuota": _quota,
    "ResourceSlice.resource.k8s.io": _resource_slice,
    "RuntimeClass.node.k8s.io": _runtime_class,
    "Secret": _secret,
    "Service": _service,
    "ServiceAccount": _service_account,
    "StatefulSet.apps": _stateful_set,
    "StorageClass.storage.k8s.io": _storage_class,
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": _admission,
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": _admission,
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": _admission,
}


def warnings_of(new: _Json, old: _Json | None, group_kind: str) -> Iterator[str]:
    """Yield the warnings about a valid create or update of an object of a built-in kind.

    Args:
        new: The object, decoded and defaulted, with the fields that the API server sets.
        old: The live object; None for a new one.
    """
    if warner := _WARNERS.get(group_kind):
        yield from warner(new, old)


def status_warnings(new: _Json, group_kind: str) -> Iterator[str]:
    """Yield the warnings about a valid update of the status of an object of a built-in kind."""
    status = new.get("status") or {}
    if group_kind == "Pod":
        for name in ("podIPs", "hostIPs"):
            for index, item in enumerate(status.get(name) or ()):
                yield from address_warnings(item["ip"], f"status.{name}[{index}].ip")
    elif group_kind in {"Service", "Ingress.networking.k8s.io"}:
        for index, item in enumerate((status.get("loadBalancer") or {}).get("ingress") or ()):
            if item.get("ip"):
                yield from address_warnings(item["ip"], f"status.loadBalancer.ingress[{index}]")


_STANDARD: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_TO_AVOID: Final = "to avoid accidental conflicts with other finalizer writers"


def finalizer_warnings(new: _Json, old: _Json | None) -> Iterator[str]:
    """Yield the warnings about new finalizers of a custom resource.

    Example:
        >>> print(*finalizer_warnings({"metadata": {"finalizers": ["mine"]}}, None))
        metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other \
finalizer writers
    """
    known = [] if old is None else old["metadata"].get("finalizers") or []
    for name in sorted({*(new["metadata"].get("finalizers") or ())} - {*known}):
        start = f"metadata.finalizers: {go_quoted(name)}"
        yield from (f"{start}: {fault}" for fault in qualified_name(name))
        if "/" not in name and name not in _STANDARD:
            path = " including a path (/)" if "." in name else ""
            yield f"{start}: prefer a domain-qualified finalizer name{path} {_TO_AVOID}"
