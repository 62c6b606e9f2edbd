"""What creates and updates of some kinds add to the objects, and keep of them.

The functions follow the registry strategies of a real API server. Sources, in Kubernetes: `podStatusStrategy` in
`pkg/registry/core/pod/strategy.go`, `generateSelector` in `pkg/registry/batch/job/strategy.go`,
`EnforceDataSourceBackwardsCompatibility` and `NormalizeDataSources` in `pkg/api/persistentvolumeclaim/util.go`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ocf.objects import Manifest
from ocf_server.apiextensions.crd_status import remember_stored, start_status
from ocf_server.registry.pod_resizes import qos_class

__all__ = [
    "CERTIFICATE_REQUEST",
    "FIXED_PARTS",
    "PREPARE_CREATE",
    "PREPARE_STATUS",
    "PREPARE_UPDATE",
    "set_sources",
]

_FIELDS: Final = ("apiGroup", "kind", "name")
_KNOWN: Final = frozenset({("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")})


def set_sources(claim: Manifest, live: Mapping[str, Any]) -> None:
    """Drop sources that the API server ignores, and copy the one of the two fields that is set to the other.

    Args:
        claim: The claim; its spec is replaced.
        live: The stored spec; empty for a new claim.
    """
    spec = claim["spec"] = dict(claim["spec"])
    used = "dataSource" in live or "dataSourceRef" in live
    if not used and "dataSourceRef" not in spec and not _is_known(spec.get("dataSource")):
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _copy(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _copy(reference)


def _is_known(source: Mapping[str, Any] | None) -> bool:
    return source is not None and (source.get("apiGroup") or "", source.get("kind")) in _KNOWN


def _copy(source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source[name] for name in _FIELDS if name in source}


_UID: Final = "batch.kubernetes.io/controller-uid"
_NAME: Final = "batch.kubernetes.io/job-name"
_OLD_UID: Final = "controller-uid"
_OLD_NAME: Final = "job-name"


def _generate_selector(job: Manifest) -> None:
    """Set the selector of a new Job, and the labels of its pods; with `manualSelector` both are left as they are.

    Labels and selectors of the user stay; validation rejects those that differ from the generated ones. A Job without
    labels gets those of its pods.

    Args:
        job: The Job, with its name and uid; it is changed.
    """
    metadata, spec = job["metadata"], job["spec"]
    template = spec["template"].setdefault("metadata", {})
    sent = template.get("labels") or {}
    # Defaulting has given the Job the map of its template, if it has no labels of its own.
    inherited = not metadata.get("labels") or metadata["labels"] is sent
    if not spec.get("manualSelector"):
        uid, name = metadata["uid"], metadata["name"]
        generated = {_OLD_NAME: name, _NAME: name, _OLD_UID: uid, _UID: uid}
        template["labels"] = {**generated, **sent}
        selector = spec.get("selector") or {}
        spec["selector"] = {**selector, "matchLabels": {_UID: uid, **(selector.get("matchLabels") or {})}}
    if inherited and template.get("labels"):
        metadata["labels"] = dict(template["labels"])


_IPV6: Final = 6


def _prepare_status(new: Manifest, live: Manifest) -> None:
    """Keep the quality of service and the observed generations that an update leaves out.

    Args:
        new: The Pod with the new status; it is changed.
    """
    status, before = new.setdefault("status", {}), live.get("status", {})
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and before.get(name):
            status[name] = before[name]
    generations: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        generations.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        known = generations.get(condition.get("type", ""))
        # Several conditions of one type are matched in order.
        generation = known.pop(0) if known else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


_CLAIM: Final = ("", "PersistentVolumeClaim")
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
CERTIFICATE_REQUEST: Final = ("certificates.k8s.io", "CertificateSigningRequest")


def _finalizers(live: Manifest) -> dict[str, Any]:
    return {"finalizers": live["spec"].get("finalizers", [])}


def _whole_spec(live: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = live["spec"]
    return spec


def _set_quality_of_service(pod: Manifest) -> None:
    if "status" in pod:
        pod["status"]["qosClass"] = qos_class(pod["spec"])


def _add_finalizer(namespace: Manifest) -> None:
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


PREPARE_CREATE: Final[Mapping[tuple[str, str], Callable[[Manifest], None]]] = {
    ("", "Namespace"): _add_finalizer,
    ("", "Pod"): _set_quality_of_service,
    ("batch", "Job"): _generate_selector,
    _CLAIM: lambda claim: set_sources(claim, {}),
    _DEFINITION: start_status,
}
"""What a create adds to an object of a kind."""


PREPARE_UPDATE: Final[Mapping[tuple[str, str], Callable[[Manifest, Manifest], None]]] = {
    _CLAIM: lambda claim, live: set_sources(claim, live["spec"]),
    _DEFINITION: lambda definition, _: remember_stored(definition),
}
"""What an update adds to an object of a kind, from the new and the live object."""


PREPARE_STATUS: Final[Mapping[tuple[str, str], Callable[[Manifest, Manifest], None]]] = {("", "Pod"): _prepare_status}
"""What an update of the status adds to an object of a kind, from the new and the live object."""


FIXED_PARTS: Final[Mapping[tuple[str, str], Callable[[Manifest], dict[str, Any]]]] = {
    ("", "Namespace"): _finalizers,
    CERTIFICATE_REQUEST: _whole_spec,
}
"""Fields of the spec that an update of the object itself does not change."""
