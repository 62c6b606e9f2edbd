"""State of a namespace at rest, without what differs from run to run: names' random parts, uids, times, addresses."""

import json
import re
from typing import Any, Final

from ocf.cluster import Cluster, ListOptions
from ocf.objects import Manifest

__all__ = ["State", "observe"]

State = dict[str, Any]
"""Objects by `Kind/name`, and the distinct events."""

_KINDS: Final = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ControllerRevision"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("policy/v1", "PodDisruptionBudget"),
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_ADDRESS: Final = re.compile(r"\b10\.\d+\.\d+\.\d+\b|\b192\.168\.\d+\.\d+\b")
_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences", "generateName")
_DROPPED: Final = ("deprecated.daemonset.template.generation", "endpoints.kubernetes.io/last-change-trigger-time")
_EVENT_PARTS: Final = (
    # The recorder of the real controllers combines more than ten events that differ only in their text.
    (re.compile(r"\(combined from similar events\): "), ""),
    (re.compile(r"(?<= pod: )(.*-)[a-z0-9]{5}$"), r"\1<random>"),
    (re.compile(r"\bweb-[b-df-hj-np-tv-xz2-9]{6,10}\b"), "web-<old>"),
    # How many pods one step of a rollout replaces depends on how fast the others become ready.
    (re.compile(r"from \d+ to \d+"), "from <number> to <number>"),
)
_IGNORED_EVENTS: Final = re.compile(r"Scheduled|FailedScheduling|SuccessfulRescale|TaintManager")


async def observe(cluster: Cluster, namespace: str) -> State:
    """Return the state of a namespace.

    Args:
        cluster: The cluster.
        namespace: The namespace.
    """
    options = ListOptions(namespace=namespace)
    found: dict[str, Manifest] = {}
    for api_version, kind in _KINDS:
        for each in (await cluster.list(api_version, kind, options)).items:
            found[f"{kind}/{each['metadata']['name']}"] = each
    events = [
        each for each in (await cluster.list("v1", "Event", options)).items if each["involvedObject"]["kind"] != "Pod"
    ]
    texts = sorted(
        {
            f"{each['involvedObject']['kind']}/{each['involvedObject']['name']} {each['reason']}: {each['message']}"
            for each in events
            if not _IGNORED_EVENTS.search(each["reason"])
        }
    )
    names = _names(found)
    shown = [
        f"{key.partition('/')[0]}/{each['metadata']['name']}\t{json.dumps(_kept(each), sort_keys=True)}"
        for key, each in found.items()
    ]
    plain = sorted(_renamed(text, names) for text in shown)
    state: State = {}
    for line in plain:
        name, _, body = line.partition("\t")
        state.setdefault(name, []).append(json.loads(body))
    return {"objects": state, "events": sorted({_event(_renamed(text, names)) for text in texts})}


def _event(text: str) -> str:
    """Return the text of an event without names of pods, numbers of replicas, and hashes of deleted objects."""
    for pattern, plain in _EVENT_PARTS:
        text = pattern.sub(plain, text)
    return text


def _names(found: dict[str, Manifest]) -> list[tuple[str, str]]:
    """Return replacements of generated names, hashes and uids, the longest first."""
    names: dict[str, str] = {}
    for key, each in found.items():
        kind, name = key.split("/", 1)
        metadata = each["metadata"]
        names.update({owner["uid"]: "<uid>" for owner in metadata.get("ownerReferences") or ()})
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        names[metadata["uid"]] = "<uid>"
        if kind == "ReplicaSet" and "pod-template-hash" in labels:
            names[labels["pod-template-hash"]] = f"<hash {annotations['deployment.kubernetes.io/revision']}>"
        if kind == "ControllerRevision":
            names[labels.get("controller.kubernetes.io/hash") or labels["controller-revision-hash"]] = (
                f"<hash {each['revision']}>"
            )
            digest = name.rpartition("-")[2]
            names[digest] = f"<hash {each['revision']}>"
        if metadata.get("generateName") and kind in ("Pod", "EndpointSlice") and not _is_ordinal(each):
            names[name] = f"{metadata['generateName']}<random>"
    return sorted(names.items(), key=lambda pair: -len(pair[0]))


def _is_ordinal(each: Manifest) -> bool:
    return any(owner["kind"] == "StatefulSet" for owner in each["metadata"].get("ownerReferences") or ())


def _renamed(text: str, names: list[tuple[str, str]]) -> str:
    for name, plain in names:
        text = text.replace(name, plain)
    return _ADDRESS.sub("<address>", _TIME.sub("<time>", text))


def _kept(each: Manifest) -> Manifest:
    metadata = {name: each["metadata"][name] for name in _METADATA if each["metadata"].get(name)}
    if "annotations" in metadata:
        metadata["annotations"] = {
            name: value for name, value in metadata["annotations"].items() if name not in _DROPPED
        }
        if not metadata["annotations"]:
            del metadata["annotations"]
    kept: dict[str, Any] = {"metadata": metadata}
    kind = each["kind"]
    if kind == "Job":
        metadata.pop("labels", None)  # set by the API server, not by a controller
    if kind == "Pod":
        labels = metadata.get("labels") or {}
        metadata["labels"] = {name: value for name, value in labels.items() if not name.startswith("topology.")}
        kept |= _pod(each)
    elif kind == "EndpointSlice":
        kept |= {name: each.get(name) for name in ("addressType", "endpoints", "ports")}
        for endpoint in kept["endpoints"] or ():
            endpoint.pop("nodeName", None)
            endpoint.pop("zone", None)
        kept["endpoints"] = sorted(
            kept["endpoints"] or (), key=lambda found: json.dumps(found.get("targetRef", {}).get("name"))
        )
    elif kind == "ControllerRevision":
        kept["revision"] = each["revision"]
    else:
        kept |= {"spec": _spec(each), "status": _status(each)}
    return kept


def _spec(each: Manifest) -> Manifest:
    spec = {name: value for name, value in each["spec"].items() if name in ("replicas", "selector", "minReadySeconds")}
    if each["kind"] == "Job":
        spec.pop("selector", None)
    return spec


def _status(each: Manifest) -> Manifest:
    """Return the status; the observed generation is replaced by whether it is the present one."""
    status = {name: value for name, value in (each.get("status") or {}).items() if value not in (0, None, {}, [])}
    generation = status.pop("observedGeneration", None)
    if generation is not None:
        status["observed"] = generation == each["metadata"]["generation"]
    conditions = [
        {name: value for name, value in found.items() if name in ("type", "status", "reason", "message")}
        for found in status.get("conditions") or ()
    ]
    if conditions:
        status["conditions"] = sorted(conditions, key=lambda found: found["type"])
    return status


def _pod(each: Manifest) -> Manifest:
    spec = each["spec"]
    kept = {name: spec[name] for name in ("hostname", "subdomain", "affinity") if spec.get(name)}
    kept["volumes"] = [found for found in spec.get("volumes") or () if not found["name"].startswith("kube-api-access")]
    kept["containers"] = [{"image": found["image"], "env": found.get("env") or []} for found in spec["containers"]]
    owners = {owner["kind"] for owner in each["metadata"].get("ownerReferences") or ()}
    if "DaemonSet" in owners:
        kept["nodeName"] = spec.get("nodeName")
        kept["tolerations"] = sorted(json.dumps(found, sort_keys=True) for found in spec.get("tolerations") or ())
    ready = [found["status"] for found in each["status"].get("conditions") or () if found["type"] == "Ready"]
    finished = each["status"].get("phase") in ("Succeeded", "Failed")
    # kwok leaves a pod that is not ready pending; with the simulated kubelet, it runs without being ready.
    state = each["status"]["phase"] if finished else f"ready: {ready[0] if ready else 'False'}"
    return {"spec": kept, "state": state}
