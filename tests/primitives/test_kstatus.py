"""Our verdict of states of built-in kinds beside that of kstatus, by which Flux and other tools wait for objects.

`scripts/record/kstatus.py` records the verdicts of kstatus. Where the two differ, `DIFFERENCES` has ours, and why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from ocf.component.status.reasons import READY
from ocf.concepts import ApplyOperation
from ocf.primitives import daemonset, deployment, hpa, ingress, job, pod, pvc, replicaset, service, statefulset
from ocf.primitives.kind import OnManifest

if TYPE_CHECKING:
    from ocf.objects import Manifest

TABLE: Final = json.loads((Path(__file__).parent / "recorded" / "kstatus.json").read_text(encoding="utf-8"))
STATES: Final[dict[str, tuple[Manifest, str]]] = {
    row["state"]: (row["object"], row["kstatus"]["status"]) for row in TABLE["states"]
}
KINDS: Final[dict[str, Any]] = {
    "DaemonSet": daemonset,
    "Deployment": deployment,
    "HorizontalPodAutoscaler": hpa,
    "Ingress": ingress,
    "Job": job,
    "PersistentVolumeClaim": pvc,
    "Pod": pod,
    "ReplicaSet": replicaset,
    "Service": service,
    "StatefulSet": statefulset,
}


class Difference(NamedTuple):
    """Our verdict, and why it is not that of kstatus."""

    ours: str
    why: str


DIFFERENCES: Final = {
    "deployment, pods refused": Difference("Failed", "kstatus does not read ReplicaFailure"),
    "deployment, paused with old pods ready": Difference("Current", "a paused rollout is as far as its user lets it"),
    "statefulset, on delete, too few ready": Difference("InProgress", "kstatus counts no pods with OnDelete"),
    # https://github.com/fluxcd/flux2/issues/2078.
    "daemonset, on delete, old pods": Difference("Current", "only the user replaces the pods, by deleting them"),
    "replicaset, pods refused": Difference("Failed", "the API server refuses the pods, and its sentence is shown"),
    "job, running": Difference(
        "InProgress", "a task is ready once it has completed; kstatus means that it has started"
    ),
    "job, will fail, last pod terminates": Difference("Failed", "the controller has already decided that it fails"),
    "pvc, lost": Difference("Failed", "a lost volume does not come back"),
    "pvc, resize under way": Difference("InProgress", "the requested capacity is not there"),
    "service, load balancer without address": Difference("InProgress", "kstatus waits for the cluster address only"),
    "ingress, without address": Difference("InProgress", "kstatus knows no rule for the kind"),
    "pod, unschedulable": Difference("InProgress", "the scheduler tries again; a node may be added"),
    "pod, failed": Difference("Failed", "kstatus means that the pod has ended; a workload must run"),
    "hpa, cannot scale": Difference("Failed", "kstatus knows no rule for the kind"),
}


def verdict(live: Manifest) -> str:
    """Return our status in the vocabulary of kstatus."""
    builder = KINDS[live["kind"]].Builder
    handler, observed = builder.handlers.status, live
    if isinstance(handler, OnManifest):
        handler = handler.handler
    else:
        observed = builder.kind.read_live(live)
    found = handler(ApplyOperation.NONE, observed).status
    return "Current" if found in READY else "Failed" if found.endswith("Failing") else "InProgress"


@pytest.mark.promise("kstatus")
@pytest.mark.parametrize("state", STATES)
def test_the_verdict_is_that_of_kstatus_but_for_the_documented_differences(state: str) -> None:
    live, theirs = STATES[state]
    ours = DIFFERENCES[state].ours if state in DIFFERENCES else theirs
    assert verdict(live) == ours


def test_each_difference_is_one_and_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "kinds.md").read_text(encoding="utf-8")
    rows = [f"| {state} | {STATES[state][1]} | {one.ours} | {one.why} |" for state, one in DIFFERENCES.items()]
    assert [row for row in rows if row not in page] == []
    assert [state for state, difference in DIFFERENCES.items() if STATES[state][1] == difference.ours] == []
