"""Ownership between controllers and the objects that they make.

Source: pkg/controller/controller_ref_manager.go of Kubernetes 1.36.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf.objects.owner_references import ControllerReference, controller_of
from ocf.objects.selectors import LabelSelector
from ocf_server.controllers.actions import Action, update
from ocf_server.controllers.view import API_VERSIONS, ClusterView

__all__ = [
    "claim",
    "controlled",
    "controller_among",
    "controller_reference",
    "controller_uid",
    "is_controlled_by",
    "is_deleted",
    "reference_to",
]


def controller_reference(owner: Manifest) -> Manifest:
    """Return the owner reference by which a controller marks the objects that it makes."""
    return {
        "apiVersion": API_VERSIONS[owner["kind"]],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def reference_to(manifest: Manifest, *kinds: str) -> ControllerReference | None:
    """Return the reference to the controlling owner if that is of one of these built-in kinds, by group and kind."""
    found = controller_of(manifest)
    if found is None or found.kind not in kinds:
        return None
    return found if found.group == split_api_version(API_VERSIONS[found.kind])[0] else None


def controller_among(view: ClusterView, manifest: Manifest, *kinds: str) -> Manifest | None:
    """Return the controlling owner if it exists and is of one of these built-in kinds: by group, kind, name and uid."""
    reference = reference_to(manifest, *kinds)
    owner = view.get(reference.kind, manifest["metadata"]["namespace"], reference.name) if reference else None
    return owner if owner is not None and is_controlled_by(manifest, owner) else None


def controller_uid(manifest: Manifest) -> str:
    """Return the uid of the controlling owner; empty if there is none."""
    found = controller_of(manifest)
    return found.uid if found is not None else ""


def is_controlled_by(manifest: Manifest, owner: Manifest) -> bool:
    """Return whether an owner controls an object."""
    return controller_uid(manifest) == str(owner["metadata"]["uid"])


def is_deleted(manifest: Manifest) -> bool:
    """Return whether an object is being deleted."""
    return "deletionTimestamp" in manifest["metadata"]


def controlled(view: ClusterView, owner: Manifest, kind: str) -> list[Manifest]:
    """Return the objects of a kind that an owner controls, ordered by name."""
    return [each for each in view.dependents(owner, kind) if is_controlled_by(each, owner)]


def claim(
    view: ClusterView, owner: Manifest, kind: str, is_member: Callable[[Manifest], bool] = lambda _: True
) -> tuple[list[Manifest], Sequence[Action]]:
    """Return the objects of an owner, and the writes that adopt or release objects.

    An object without a controller that the selector matches is adopted; one of the owner that it does not match any
    more is released.

    Args:
        owner: The owner; it has a label selector.
        is_member: Whether an object can be one of the owner's; another one is treated as if the selector did not match.
    """
    selector = LabelSelector.of(owner["spec"].get("selector"))
    mine: list[Manifest] = []
    actions: list[Action] = []
    for each in view.dependents(owner, kind):
        if not is_controlled_by(each, owner):
            continue
        if _matches(selector, each) and is_member(each):
            mine.append(each)
        # An owner that is being deleted leaves its objects to the garbage collector.
        elif not is_deleted(owner):
            kept = [ref for ref in each["metadata"]["ownerReferences"] if ref["uid"] != owner["metadata"]["uid"]]
            actions.append(update(_with_owners(each, kept)))
    if not is_deleted(owner):
        for each in view.objects(kind, owner["metadata"]["namespace"]):
            references = each["metadata"].get("ownerReferences") or []
            if any(ref.get("controller") for ref in references) or is_deleted(each):
                continue
            if _matches(selector, each) and is_member(each):
                actions.append(update(_with_owners(each, [*references, controller_reference(owner)])))
    return mine, actions


def _matches(selector: LabelSelector, manifest: Manifest) -> bool:
    return selector.matches(manifest["metadata"].get("labels") or {})


def _with_owners(manifest: Manifest, owners: list[Any]) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "ownerReferences"}
    return {**manifest, "metadata": {**metadata, **({"ownerReferences": owners} if owners else {})}}
