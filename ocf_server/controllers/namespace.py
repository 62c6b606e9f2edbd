"""Namespace controller: reports what keeps a namespace that is being deleted.

The deletion of the content itself is the task of the garbage collector of the embedded cluster.

Source: pkg/controller/namespace/deletion of Kubernetes 1.36.
"""

from collections import Counter
from typing import Final

from ocf.objects import Manifest
from ocf.objects.conditions import find_condition
from ocf.schema.builtin import ApiResource
from ocf_server.controllers.actions import Outcome, update_status
from ocf_server.controllers.ownership import is_deleted
from ocf_server.controllers.view import ClusterView

__all__ = ["reconcile_namespace"]

_DONE: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
}
_REMAINING: Final = ("NamespaceContentRemaining", "SomeResourcesRemain", "ContentRemoved")
_FINALIZERS: Final = ("NamespaceFinalizersRemaining", "SomeFinalizersRemain", "ContentHasNoFinalizers")


def reconcile_namespace(view: ClusterView, namespace: Manifest) -> Outcome:
    """Report the objects and finalizers that are left in a namespace that is being deleted."""
    if not is_deleted(namespace):
        return Outcome()
    kinds: Counter[str] = Counter()
    finalizers: Counter[str] = Counter()
    for kind, _, manifest in view.registry.store.everything(namespace["metadata"]["name"]):
        resource: ApiResource = view.registry.stored_as(manifest["apiVersion"], kind[1])
        kinds[resource.group_resource if resource.group else f"{resource.group_resource}."] += 1
        finalizers.update(manifest["metadata"].get("finalizers") or ())
    left = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(kinds.items()))
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    conditions = [_condition(view, namespace, name, *texts) for name, texts in _DONE.items()]
    message = f"Some resources are remaining: {left}" if left else "All content successfully removed"
    conditions.append(
        _condition(view, namespace, _REMAINING[0], _REMAINING[1 if left else 2], message, remains=bool(left))
    )
    message = (
        f"Some content in the namespace has finalizers remaining: {held}"
        if held
        else "All content-preserving finalizers finished"
    )
    conditions.append(
        _condition(view, namespace, _FINALIZERS[0], _FINALIZERS[1 if held else 2], message, remains=bool(held))
    )
    return Outcome(tuple(update_status(namespace, {**namespace["status"], "conditions": conditions})))


def _condition(
    view: ClusterView, namespace: Manifest, name: str, reason: str, message: str, *, remains: bool = False
) -> Manifest:
    status = "True" if remains else "False"
    known = find_condition(namespace["status"].get("conditions"), name) or {}
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    head = {"type": name, "status": status, "lastTransitionTime": since or view.timestamp}
    return {**head, "reason": reason, "message": message}
