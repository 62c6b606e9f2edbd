"""History of pod templates, as ControllerRevisions; StatefulSets and DaemonSets use it.

Source: pkg/controller/history of Kubernetes 1.36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.objects import Manifest, copy_json
from ocf.objects.json_equality import equal_json
from ocf_server.controllers.actions import Action, create, delete, update, update_status
from ocf_server.controllers.ownership import claim, controller_reference
from ocf_server.controllers.replicas import template_hash
from ocf_server.controllers.view import ClusterView

__all__ = ["REVISION_LABEL", "RevisionHistory", "revision_history", "truncated"]

REVISION_LABEL: Final = "controller-revision-hash"
"""Label of a pod with its revision: the name for a StatefulSet, the hash for a DaemonSet."""
_HASH: Final = {"StatefulSet": "controller.kubernetes.io/hash", "DaemonSet": REVISION_LABEL}


@dataclass(frozen=True, slots=True)
class RevisionHistory:
    """The revisions of a workload.

    Args:
        newest: The one with the present template; None if it has to be written first.
        actions: The writes that are needed before anything else.
    """

    revisions: tuple[Manifest, ...]
    newest: Manifest | None
    actions: tuple[Action, ...]


def revision_history(view: ClusterView, owner: Manifest) -> RevisionHistory:
    """Return the revisions of a workload, and the writes that adopt some, or make its present template the newest."""
    mine, claims = claim(view, owner, "ControllerRevision")
    found = sorted(mine, key=lambda each: (each["revision"], each["metadata"]["name"]))
    if claims:
        return RevisionHistory(tuple(found), None, tuple(claims))
    data = _data(owner)
    equal = [each for each in found if equal_json(each["data"], data)]
    if not equal:
        return RevisionHistory(tuple(found), None, tuple(_created(view, owner, _new(owner, data, _next(found)))))
    newest = equal[-1]
    if newest is not found[-1]:
        # A rollback: the old revision becomes the newest again.
        return RevisionHistory(tuple(found), None, (update({**newest, "revision": _next(found)}),))
    return RevisionHistory(tuple(found), newest, ())


def truncated(owner: Manifest, history: RevisionHistory, used: Sequence[str]) -> tuple[Action, ...]:
    """Return the deletes of the oldest revisions beyond the limit of the history.

    Args:
        used: Names of the revisions that pods or the status refer to.
    """
    unused = [each for each in history.revisions if each["metadata"]["name"] not in used]
    surplus = len(unused) - owner["spec"].get("revisionHistoryLimit", 10)
    return tuple(map(delete, unused[:surplus])) if surplus > 0 else ()


def _created(view: ClusterView, owner: Manifest, revision: Manifest) -> Iterable[Action]:
    metadata = revision["metadata"]
    if view.get("ControllerRevision", metadata["namespace"], metadata["name"]) is None:
        return (create(revision),)
    # A revision of another workload has the name: the next hash is computed with a higher count.
    status = owner["status"]
    return update_status(owner, {**status, "collisionCount": status.get("collisionCount", 0) + 1})


def _next(found: Sequence[Manifest]) -> int:
    return int(found[-1]["revision"]) + 1 if found else 1


def _data(owner: Manifest) -> dict[str, Any]:
    """Return the data of a revision: a patch that replaces the template."""
    template: Manifest = copy_json(owner["spec"]["template"])
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def _new(owner: Manifest, data: Manifest, revision: int) -> Manifest:
    digest = template_hash(data, owner["status"].get("collisionCount"))
    template = owner["spec"]["template"].get("metadata") or {}
    labels = template.get("labels") or {}
    annotations = owner["metadata"].get("annotations") or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{owner['metadata']['name']}-{digest}",
            "namespace": owner["metadata"]["namespace"],
            "labels": {**labels, _HASH[owner["kind"]]: digest},
            **({"annotations": dict(annotations)} if annotations else {}),
            "ownerReferences": [controller_reference(owner)],
        },
        "data": data,
        "revision": revision,
    }
