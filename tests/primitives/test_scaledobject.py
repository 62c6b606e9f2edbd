"""The ScaledObject primitive: a scaler of its target, paused while it is suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import reconciling
from ocf.concepts import ApplyOperation, GraceStatus, OperationalStatus, Scaler, StatusReport, SuspensionStatus
from ocf.objects import Manifest, ObjectKey
from ocf.objects.third_party.keda import ScaledObject
from ocf.primitives import deployment, scaledobject
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from ocf.cluster import Cluster

PAUSED = "autoscaling.keda.sh/paused"
REPLICAS = "autoscaling.keda.sh/paused-replicas"
BASE: Manifest = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"name": "web"},
        "triggers": [{"type": "cron", "metadata": {"timezone": "UTC"}}],
        "advanced": {"restoreToOriginalReplicaCount": True},
    },
}


def live(annotations: Manifest | None = None, **conditions: tuple[str, str]) -> Manifest:
    found = [{"type": name, "status": status, "message": text} for name, (status, text) in conditions.items()]
    metadata = {**BASE["metadata"], **({"annotations": annotations} if annotations else {})}
    return {**BASE, "metadata": metadata, "status": {"conditions": found}}


WAITING = "Waiting for condition Ready of the ScaledObject"


@pytest.mark.parametrize(
    ("seen", "status", "grace", "reason"),
    [
        pytest.param(BASE, "OperationPending", "Degraded", WAITING, id="no status"),
        pytest.param(live(Active=("True", "")), "OperationPending", "Degraded", WAITING, id="no condition Ready"),
        pytest.param(live(Ready=("Unknown", "")), "OperationPending", "Degraded", WAITING, id="unknown"),
        pytest.param(live(Ready=("True", "scales")), "Operational", "Healthy", "scales", id="ready"),
        pytest.param(live(Ready=("True", "")), "Operational", "Healthy", "Ready is True", id="no message"),
        pytest.param(live(Ready=("False", "no trigger")), "OperationFailing", "Down", "no trigger", id="not ready"),
        pytest.param(
            live(Ready=("True", "ScaledObject is paused"), Paused=("True", "")),
            "OperationPending",
            "Degraded",
            "Waiting for KEDA to resume the ScaledObject",
            id="resumed, with the status of the suspension",
        ),
        pytest.param(
            live({PAUSED: "true"}, Ready=("True", "ScaledObject is paused"), Paused=("True", "")),
            "Operational",
            "Healthy",
            "ScaledObject is paused",
            id="paused by a user",
        ),
        pytest.param(
            live(Ready=("True", "scales"), Paused=("True", "")),
            "Operational",
            "Healthy",
            "scales",
            id="a condition Paused that KEDA has kept after a resume",
        ),
    ],
)
def test_status(seen: Manifest, status: str, grace: str, reason: str) -> None:
    resource = scaledobject.Builder(BASE).build()
    assert resource.operational_status(ApplyOperation.NONE, seen) == StatusReport(OperationalStatus(status), reason)
    assert resource.grace_status(seen) == StatusReport(GraceStatus(grace), reason)


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        pytest.param(
            live(Paused=("True", "")), "Suspending", "Waiting for the pause annotation to be applied", id="not applied"
        ),
        pytest.param(
            live({PAUSED: "true"}), "Suspending", "Waiting for KEDA to pause the ScaledObject", id="not yet paused"
        ),
        pytest.param(
            live({PAUSED: "true"}, Paused=("False", "")),
            "Suspending",
            "Waiting for KEDA to pause the ScaledObject",
            id="running",
        ),
        pytest.param(live({PAUSED: "true"}, Paused=("True", "")), "Suspended", "ScaledObject paused", id="paused"),
        pytest.param(
            live({PAUSED: "true"}, Paused=("True", ""), Ready=("False", "failed to delete HPA: no")),
            "Suspending",
            "KEDA has not paused the ScaledObject: failed to delete HPA: no",
            id="its HPA cannot be deleted",
        ),
        *(
            pytest.param(
                live({PAUSED: value}, Paused=("True", "")),
                "Suspending",
                f'Waiting for the annotation {PAUSED} to be applied, which is "{value}"',
                id=f"a value that does not pause: {value}",
            )
            for value in ("false", "False", "FALSE", "f", "F", "0")
        ),
        *(
            pytest.param(
                live({PAUSED: value}, Paused=("True", "")),
                "Suspended",
                "ScaledObject paused",
                id=f"a value that pauses: {value or 'empty'}",
            )
            for value in ("True", "1", "t", "", "no", "fAlse", "until Monday")
        ),
        pytest.param(
            live({REPLICAS: "0"}, Paused=("True", "")), "Suspended", "ScaledObject paused", id="paused at a count"
        ),
        pytest.param(
            live({REPLICAS: "2", PAUSED: "false"}, Paused=("True", "")),
            "Suspended",
            "ScaledObject paused",
            id="paused at a count, whatever the other annotation is",
        ),
        pytest.param(
            live({"autoscaling.keda.sh/paused-scale-in": "true"}, Paused=("True", "")),
            "Suspending",
            "Waiting for the pause annotation to be applied",
            id="paused in one direction",
        ),
    ],
)
def test_suspension_waits_until_keda_reports_the_pause(seen: Manifest, status: str, reason: str) -> None:
    resource = scaledobject.Builder(BASE).build()
    assert resource.suspension_status(seen) == StatusReport(SuspensionStatus(status), reason)
    assert resource.delete_on_suspend() is False


OLDER = "Waiting for KEDA to pause the ScaledObject: its condition Paused is older than the annotation"


def written(seen: Manifest, *, annotation: str = "", conditions: str = "") -> Manifest:
    """Return the object with the times at which the annotation and the conditions were written, as far as given."""
    fields: Manifest = {"f:metadata": {"f:annotations": {f"f:{PAUSED}": {}, f"f:{REPLICAS}": {}}}}
    ours = {"manager": "us", "operation": "Apply", "fieldsV1": fields, "time": annotation}
    status: Manifest = {"f:status": {"f:conditions": {}}}
    theirs = {"manager": "keda", "operation": "Update", "subresource": "status", "fieldsV1": status, "time": conditions}
    entries = [entry for entry in (ours, theirs) if entry["time"]]
    return {**seen, "metadata": {**seen["metadata"], "managedFields": entries}}


EARLY, LATE = "2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"
RUNNING = "ScaledObject is defined correctly and is ready for scaling"
DONE = "ScaledObject is paused"


@pytest.mark.parametrize(
    ("times", "ready", "reason"),
    [
        pytest.param({"annotation": LATE, "conditions": EARLY}, RUNNING, OLDER, id="older"),
        pytest.param({"annotation": EARLY, "conditions": LATE}, RUNNING, "ScaledObject paused", id="newer"),
        pytest.param({"annotation": EARLY, "conditions": EARLY}, RUNNING, "ScaledObject paused", id="same second"),
        pytest.param({"annotation": LATE}, RUNNING, "ScaledObject paused", id="only our own entry, as from a cache"),
        pytest.param({"conditions": EARLY}, RUNNING, "ScaledObject paused", id="the annotation has no manager"),
        pytest.param(
            {"annotation": LATE, "conditions": EARLY},
            DONE,
            "ScaledObject paused",
            id="paused, with a later change of ours",
        ),
    ],
)
@pytest.mark.parametrize("annotation", [{PAUSED: "true"}, {REPLICAS: "0"}], ids=["paused", "paused-replicas"])
@pytest.mark.parametrize("as_model", [False, True], ids=["manifest", "model"])
def test_a_pause_that_was_reported_before_the_annotation_is_not_one_of_it(
    annotation: Manifest, times: dict[str, str], ready: str, reason: str, *, as_model: bool
) -> None:
    """KEDA reports the pause of one direction as `Paused`, too, and has kept the condition after a resume.

    https://github.com/kedacore/keda/issues/6421, https://github.com/kedacore/keda/issues/6982,
    https://github.com/kedacore/keda/issues/7231; and https://github.com/kedacore/keda/issues/5215 about "false".
    """
    seen = written(live(annotation, Paused=("True", DONE), Ready=("True", ready)), **times)
    read = ScaledObject.model_validate(seen) if as_model else seen
    assert scaledobject.default_suspension_status_handler(read).reason == reason


def test_a_pause_of_an_older_generation_is_not_one_of_this_one() -> None:
    seen = live({PAUSED: "true"}, Paused=("True", ""))
    seen["metadata"]["generation"] = 2
    seen["status"]["conditions"][0]["observedGeneration"] = 1
    assert scaledobject.default_suspension_status_handler(seen).reason == OLDER
    seen["status"]["conditions"][0]["observedGeneration"] = 2
    assert scaledobject.default_suspension_status_handler(seen).reason == "ScaledObject paused"


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        pytest.param({"name": "web"}, "apps/v1/Deployment/shop/web", id="defaults"),
        pytest.param({"name": "db", "kind": "StatefulSet"}, "apps/v1/StatefulSet/shop/db", id="kind"),
        pytest.param(
            {"name": "x", "kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"},
            "argoproj.io/v1alpha1/Rollout/shop/x",
            id="custom resource",
        ),
    ],
)
def test_it_scales_its_target(reference: Manifest, target: str) -> None:
    resource = scaledobject.Builder({**BASE, "spec": {**BASE["spec"], "scaleTargetRef": reference}}).build()
    assert isinstance(resource, Scaler)
    assert str(resource.scale_target().key) == target


OWNER: Manifest = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "shop"}}
WEB: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


async def reconcile(cluster: Cluster, *, suspended: bool = False) -> Any:
    """Build the component anew, as an operator does."""
    built = (
        component.Builder("web", condition_type="WebReady")
        .with_resource(deployment.Builder(WEB).build())
        .with_resource(scaledobject.Builder(BASE).build())
        .suspend(suspended)
        .build()
    )
    async with reconciling(await cluster.get(ObjectKey.of(OWNER)), cluster) as context:
        return await built.reconcile(context)


async def test_the_replica_count_is_handed_over_saved_while_suspended_and_given_back() -> None:
    kinds = [CustomKind("example.com", "v1", "Shop"), CustomKind("keda.sh", "v1alpha1", "ScaledObject")]
    cluster = EmbeddedCluster(kinds=kinds, namespaces=["shop"])
    await cluster.create(OWNER, field_manager="user")

    async def status(key: ObjectKey, patch: Manifest, subresource: Subresource | None = Subresource.STATUS) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="other", subresource=subresource)
        await cluster.patch(key, patch, options)

    scaler, target = ObjectKey.of(BASE), ObjectKey.of(WEB)
    await reconcile(cluster)
    await status(target, {"spec": {"replicas": 7}}, None)
    await reconcile(cluster)
    assert (await cluster.get(target))["spec"]["replicas"] == 7

    suspending = await reconcile(cluster, suspended=True)
    assert suspending.condition.reason == "Suspending"
    assert "Waiting for KEDA to pause the ScaledObject" in suspending.condition.message
    assert (await cluster.get(scaler))["metadata"]["annotations"][PAUSED] == "true"
    assert (await cluster.get(target))["spec"]["replicas"] == 0
    conditions = [{"type": "Paused", "status": "True", "reason": "ScaledObjectPaused"}]
    await status(scaler, {"status": {"conditions": conditions}})
    assert (await reconcile(cluster, suspended=True)).condition.reason == "Suspended"

    await reconcile(cluster)
    assert PAUSED not in (await cluster.get(scaler))["metadata"].get("annotations", {})
    assert (await cluster.get(target))["spec"]["replicas"] == 7
