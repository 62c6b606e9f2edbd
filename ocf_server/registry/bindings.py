"""Binding of pods to nodes, as the scheduler requests it.

Source: pkg/registry/core/pod/storage/storage.go of Kubernetes 1.36, and its admission plugin PodTopologyLabels.
"""

from typing import Final

from ocf.errors import api_error
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import stale
from ocf_server.api.write_options import WriteOptions
from ocf_server.registry.generic_store import require_unchanged
from ocf_server.registry.pending_write import PendingWrite
from ocf_server.registry.pod_conditions import with_condition
from ocf_server.registry.registry import Registry
from ocf_server.registry.request_checks import metadata_of, precondition_failed

__all__ = ["bind"]

_TOPOLOGY: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(
    registry: Registry, resource: ApiResource, key: ObjectKey, sent: Manifest, options: WriteOptions
) -> PendingWrite[None]:
    """Bind a pod to a node, which need not exist.

    Raises:
        ConflictError: If the pod is bound, is being deleted, has scheduling gates, or is not the one that the Binding
            names by uid and resourceVersion.
        ApiError: If the Binding is invalid, or the pod does not exist.
    """
    yield from ()
    node = _node_name(sent)
    live = registry.find(resource, key)
    for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        asked, found = metadata_of(sent).get(field), live["metadata"][field]
        if asked and asked != found:
            problem = f"{what} in precondition: {asked}, {what} in object meta: {found}"
            raise precondition_failed(resource, key, problem)
    # After the preconditions and in the order of assignPod: users and schedulers match these texts.
    problem = _problem(live)
    if problem:
        raise stale("pods/binding", key.name, problem)
    if options.dry_run:
        return
    require_unchanged(registry, resource, live)
    registry.write(resource, (key.namespace, key.name), _bound(registry, live, node, metadata_of(sent)))


def _node_name(sent: Manifest) -> str:
    target = sent.get("target") or {}
    kind, name = target.get("kind") or "", target.get("name") or ""
    problems = []
    if kind not in ("", "Node"):
        problems.append(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not name:
        problems.append("target.name: Required value")
    if problems:
        # The API server does not report it as an invalid object.
        raise api_error(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]", code=500)
    return str(name)


def _problem(live: Manifest) -> str:
    """Return why a pod cannot be bound; empty if it can."""
    name, spec = live["metadata"]["name"], live["spec"]
    if "deletionTimestamp" in live["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _bound(registry: Registry, live: Manifest, node: str, wanted: Manifest) -> Manifest:
    pod: Manifest = copy_json(with_condition(live, registry.timestamp(), type="PodScheduled", status="True"))
    pod["spec"]["nodeName"] = node
    pod["status"].pop("nominatedNodeName", None)
    found = registry.store.get(("", "Node"), ("", node))
    labels = found["metadata"].get("labels") or {} if found else {}
    topology = {name: labels[name] for name in _TOPOLOGY if name in labels}
    for field, added in (("annotations", {}), ("labels", topology)):
        merged = {**(pod["metadata"].get(field) or {}), **(wanted.get(field) or {}), **added}
        if merged:
            pod["metadata"][field] = merged
    return pod
