"""The five questions about an autoscaler, answered from the objects around it; each case is a public report."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.autoscaling.algorithm import Autoscaler, Metric, MetricTarget, Scale, Snapshot, Status
from ocf.autoscaling.algorithm.status import HpaCondition
from ocf.autoscaling.explain import KnownHistory, explain, explain_unknown
from ocf.cli.app import app
from ocf.cli.explain.answers import answers, unread_lines
from ocf.cli.explain.surroundings import CONTROLLERS, Surroundings, Unread, surroundings_of
from ocf.controllers.hpa.status_writer import FIELD_MANAGER
from ocf.objects import Manifest
from ocf.objects.timestamps import parse_time

NOON: Final = "2026-01-31T12:00:00Z"


def hpa(minimum: int = 2, maximum: int = 10, *, name: str = "web", owner: str = "", **spec: Any) -> Manifest:
    kind, _, owner_name = owner.partition(" ")
    reference = {"apiVersion": "example.com/v1", "kind": kind, "name": owner_name, "uid": "1", "controller": True}
    references = [reference] if owner else []
    queue = {"metric": {"name": "s0-rabbitmq"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    bounds = {"minReplicas": minimum, "maxReplicas": maximum}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": references},
        "spec": {"scaleTargetRef": target, **bounds, "metrics": [{"type": "External", "external": queue}], **spec},
    }


def writer(name: str, at: str, *, operation: str = "Update", subresource: str = "") -> Manifest:
    return {
        "manager": name,
        "operation": operation,
        "subresource": subresource,
        "time": f"2026-01-31T{at}Z",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }


CONTROLLER: Final = writer("kube-controller-manager", "11:30:00", subresource="scale")
IMAGE: Final = {
    "manager": "kubectl-edit",
    "operation": "Update",
    "time": NOON,
    "fieldsV1": {"f:spec": {"f:template": {}}},
}


def deployment(replicas: int, *writers: Manifest) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "managedFields": list(writers)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app"}]}},
        },
    }


def replica_set(name: str, replicas: int, ready: int, created: str, owner: str = "web") -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "creationTimestamp": f"2026-01-31T{created}Z",
            "ownerReferences": [{"kind": "Deployment", "name": owner, "controller": True}],
        },
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready},
    }


def rescale(size: int, reason: str, at: str, times: int = 1) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"web.{size}.{at}", "namespace": "shop"},
        "involvedObject": {"kind": "HorizontalPodAutoscaler", "name": "web", "namespace": "shop"},
        "type": "Normal",
        "reason": "SuccessfulRescale",
        "message": f"New size: {size}; reason: {reason}",
        "lastTimestamp": f"2026-01-31T{at}Z",
        "count": times,
    }


def scaled_object(name: str = "web", target: str = "web") -> Manifest:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"scaleTargetRef": {"name": target}, "triggers": []},
    }


def snapshot(total: int) -> Manifest:
    values = [{"name": "s0-rabbitmq", "total": total}]
    history = {"recommendations": [{"replicas": 1, "ago": "15s"}]}
    return {"apiVersion": "ocf.dev/v1", "kind": "Snapshot", "now": NOON, "metrics": values, "history": history}


def explained(tmp_path: Path, total: int, *objects: Manifest, output: str = "json") -> str:
    path = tmp_path / "web.yaml"
    path.write_text("\n---\n".join(map(json.dumps, [*objects, snapshot(total)])))
    answer = CliRunner().invoke(app, ["explain", "web", "-f", str(path), "--output", output])
    assert (answer.exit_code, answer.exception) == (0, None), answer.output
    return answer.stdout


ABOVE: Final = "external metric s0-rabbitmq(nil) above target"
BELOW: Final = "All metrics below target"
TOO_FEW: Final = "Current number of replicas below Spec.MinReplicas"
UNSTABLE: Final = (
    rescale(6, ABOVE, "11:50:00"),
    rescale(3, BELOW, "11:52:00"),
    rescale(6, ABOVE, "11:57:00"),
    rescale(3, BELOW, "11:58:00"),
)


@pytest.mark.parametrize(
    ("total", "objects", "expected"),
    [
        pytest.param(
            30,
            [
                hpa(4),
                deployment(2, writer("argocd-controller", "11:59:50"), CONTROLLER),
                rescale(4, TOO_FEW, "11:59:00", 7),
            ],
            {
                "whoElseWrites": "argocd-controller (last write 2026-01-31 11:59:50 UTC)",
                "whySoMany": "argocd-controller",
            },
            id="github.com/uberswe/createmod.com/pull/1097",
        ),
        pytest.param(
            30,
            [
                hpa(2),
                deployment(1, writer("argocd-controller", "11:59:50", operation="Apply"), CONTROLLER),
                rescale(2, TOO_FEW, "11:58:00", 9),
                rescale(2, BELOW, "11:40:00", 2),
            ],
            {"whyBackAndForth": "argocd-controller writes the replicas as well, out of the limits"},
            id="github.com/argoproj/argo-cd/issues/5105",
        ),
        pytest.param(
            30,
            [hpa(), hpa(name="keda-hpa-web", owner="ScaledObject web"), scaled_object(), deployment(3, CONTROLLER)],
            {"whoElseWrites": "same target: HorizontalPodAutoscaler keda-hpa-web, ScaledObject web."},
            id="github.com/kedacore/keda/issues/5825",
        ),
        pytest.param(
            30,
            [hpa(owner="ScaledObject web"), scaled_object(), deployment(3, CONTROLLER)],
            {"whoElseWrites": "ScaledObject web controls this autoscaler and reverts changes of its fields. Otherwise"},
            id="github.com/kedacore/keda/issues/6844",
        ),
        pytest.param(
            30,
            [
                hpa(),
                deployment(3, CONTROLLER, IMAGE),
                replica_set("web-old", 3, 3, "08:00:00"),
                replica_set("web-new", 2, 1, "11:58:00"),
                replica_set("web-older", 0, 0, "07:00:00"),
                replica_set("blog-new", 2, 2, "11:58:00", owner="blog"),
            ],
            {"whySoFew": "A rollout is in progress: ReplicaSets web-new with 1 of 2 ready, web-old with 3 of 3 ready."},
            id="github.com/kubernetes/kubernetes/issues/98914",
        ),
        pytest.param(
            30,
            [
                hpa(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}),
                deployment(3, CONTROLLER),
                *UNSTABLE,
            ],
            {
                "whyBackAndForth": "In the last hour 2 up and 2 down, 11:50:00 to 11:58:00. Scale-ups are up to"
                " 7m apart, longer than the scale-down window (1m):"
                " spec.behavior.scaleDown.stabilizationWindowSeconds of 420",
            },
            id="github.com/kubernetes/kubernetes/issues/81581",
        ),
        pytest.param(
            30,
            [hpa(), deployment(3, writer("kubectl", "11:55:00", subresource="scale"), CONTROLLER), *UNSTABLE],
            {
                "whyBackAndForth": "kubectl writes the replicas as well (last at 11:55:00)",
                "whoElseWrites": "kubectl through the scale subresource",
            },
            id="github.com/nextcloud/helm/issues/561",
        ),
        pytest.param(
            30,
            [
                hpa(),
                deployment(3, CONTROLLER),
                rescale(3, BELOW, "11:40:00"),
                rescale(6, BELOW, "11:50:00"),
                rescale(4, ABOVE, "11:55:00"),
            ],
            {"whyBackAndForth": "In the last hour 1 up and 2 down"},
            id="directions-are-those-of-the-sizes-not-of-the-reasons",
        ),
        pytest.param(
            90,
            [hpa(maximum=5), deployment(5, CONTROLLER), rescale(5, ABOVE, "11:45:00")],
            {
                "whySoFew": "5 replicas next: maxReplicas is 5, and 9 are wanted",
                "whyBackAndForth": "It does not: in the last hour 1 up and 0 down",
                "whoElseWrites": "No other field manager owns spec.replicas",
            },
            id="github.com/kubernetes/kubernetes/issues/59888",
        ),
        pytest.param(
            20,
            [hpa(), deployment(2, CONTROLLER), rescale(2, BELOW, "09:00:00")],
            {
                "whySoMany": "2 replicas are minReplicas.",
                "whyNotNow": "Nothing is held back: the metrics want 2 replicas",
                "whyBackAndForth": "No event of the last hour",
            },
            id="github.com/kubernetes/kubernetes/issues/100420",
        ),
    ],
)
def test_the_answer_names_what_caused_it(
    tmp_path: Path, total: int, objects: Sequence[Manifest], expected: Mapping[str, str]
) -> None:
    found = json.loads(explained(tmp_path, total, *objects))["answers"]
    for question, text in expected.items():
        assert text in found[question]


def test_the_first_sentence_names_who_set_replicas_out_of_the_limits(tmp_path: Path) -> None:
    """https://github.com/curityio/idsvr-helm/pull/69."""
    objects = hpa(4), deployment(2, writer("argocd-controller", "11:59:50"), CONTROLLER)
    _, first, second, *_ = explained(tmp_path, 30, *objects, output="text").splitlines()
    assert "fewer than minReplicas (4)" in f"{first} {second}".replace("  ", "")
    assert (
        "the field manager argocd-controller owns the replicas"
        in json.loads(explained(tmp_path, 30, *objects))["least"]["cause"]
    )


def test_fields_are_those_of_the_object_that_controls_the_autoscaler(tmp_path: Path) -> None:
    """https://github.com/kedacore/keda/issues/804: what a user writes into the HPA is reverted."""
    objects = hpa(owner="ScaledObject web"), scaled_object(), deployment(3, CONTROLLER)
    found = json.loads(explained(tmp_path, 60, *objects))
    names = {each["field"]: each["changeField"] for each in found["least"]["levers"]}
    assert names["spec.minReplicas"] == "spec.minReplicaCount of ScaledObject web"
    assert names["spec.metrics[0].external.target.averageValue"] == (
        "the threshold of spec.triggers[0] of ScaledObject web"
    )
    behavior = "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp.tolerance of ScaledObject web"
    assert names["spec.behavior.scaleUp.tolerance"] == behavior
    text = explained(tmp_path, 60, *objects, output="text")
    assert "spec.minReplicas" not in text
    assert "spec.metrics[" not in text


def test_of_an_operator_the_owner_is_named(tmp_path: Path) -> None:
    objects = hpa(owner="Shop corner"), deployment(3, CONTROLLER)
    assert "what Shop corner sets as spec.maxReplicas, now 10" in explained(tmp_path, 60, *objects, output="text")


def test_files_with_nothing_about_the_surroundings_have_no_answers(tmp_path: Path) -> None:
    found = json.loads(explained(tmp_path, 30, hpa(), deployment(3)))
    assert found["answers"] is None


@pytest.mark.parametrize(
    ("kind", "question", "expected"),
    [
        ("Event", "whyBackAndForth", "Not known: the events could not be read."),
        ("Deployment", "whoElseWrites", "which field managers own spec.replicas of the target."),
        ("ScaledObject", "whoElseWrites", "which other autoscalers scale it."),
        ("VerticalPodAutoscaler", "whoElseWrites", "whether a VerticalPodAutoscaler sets requests."),
        ("ReplicaSet", "whyBackAndForth", "No event of the last hour reports a rescale."),
        ("ReplicaSet", "whoElseWrites", "No other field manager owns spec.replicas of the target"),
    ],
)
def test_what_depends_on_objects_that_were_not_read_is_not_known(kind: str, question: str, expected: str) -> None:
    web = Autoscaler(name="web", maximum=9, kind="Deployment", target="web")
    explanation = explain(Snapshot(autoscaler=web, scale=Scale(3, 3, "app=web")), now=parse_time(NOON))
    found = {
        each.key: each.text for each in answers(explanation, Surroundings(unread=(Unread(kind, "", "forbidden"),)))
    }
    assert expected in found[question]


def test_a_missing_permission_is_named_with_the_command_that_prints_the_role() -> None:
    """Another error needs no role."""
    failed = Unread("Event", "", "timeout")
    denied = Unread("ReplicaSet", "", 'replicasets.apps is forbidden: User "jane" cannot list resource "replicasets"')
    line = "Not read, so that answers may be incomplete: "
    role = "`ocf explain --role --namespace shop` prints a Role with all permissions that explain needs."

    assert list(unread_lines(Surroundings(unread=(failed,)), "shop")) == [f"{line}{failed}"]
    both = Surroundings(unread=(failed, denied))
    assert list(unread_lines(both, "shop")) == [f"{line}{failed}", f"{line}{denied}", role]


@pytest.mark.parametrize(
    ("total", "key", "expected"),
    [
        pytest.param(30_000, "whySoFew", "More may come with the next sync, up to 6: ", id="perhaps-more"),
        pytest.param(10_000, "whySoMany", "Perhaps they become 1 at the next sync: ", id="perhaps-fewer"),
    ],
)
def test_the_other_end_of_a_range_is_named(total: int, key: str, expected: str) -> None:
    """Of the last sync only that is known that it wanted more than 3."""
    conditions = (
        HpaCondition("AbleToScale", "True", "SucceededGetScale", ""),
        HpaCondition("ScalingLimited", "True", "ScaleUpLimit", ""),
    )
    status = Status(3, 3, None, (), conditions)
    queue = Metric("External", "queue", MetricTarget("AverageValue", average=10_000))
    web = Autoscaler(name="web", target="web", maximum=9, metrics=(queue,))
    snapshot = Snapshot(autoscaler=web, scale=Scale(3, 3, "app=web"), metric_values=((total,),), status=status)
    now = parse_time(NOON)
    explanation = explain_unknown(snapshot, KnownHistory(status, now), now=now)
    found = {each.key: each.text for each in answers(explanation, Surroundings())}
    assert found[key].startswith(expected)


def test_the_own_controller_is_not_another_writer() -> None:
    assert FIELD_MANAGER in CONTROLLERS


def vertical(target: str = "web", kind: str = "Deployment", **spec: Any) -> Manifest:
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "requests", "namespace": "shop"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target}, **spec},
    }


MEMORY_ONLY: Final = {"containerPolicies": [{"containerName": "*", "controlledResources": ["memory"]}]}


@pytest.mark.parametrize(
    ("vpa", "is_named"),
    [
        pytest.param(vertical(), True, id="github.com/kubernetes/autoscaler/issues/2939"),
        pytest.param(vertical(kind="deployment"), True, id="another case of the kind"),
        pytest.param(vertical("api"), False, id="another target"),
        pytest.param(vertical(updatePolicy={"updateMode": "Off"}), False, id="recommendations only"),
        pytest.param(vertical(resourcePolicy=MEMORY_ONLY), False, id="another resource"),
    ],
)
def test_what_sets_the_requests_of_a_utilization_is_named(vpa: Manifest, is_named: bool) -> None:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    live = hpa(metrics=[{"type": "Resource", "resource": cpu}])
    web = Autoscaler(name="web", maximum=9, kind="Deployment", target="web")
    explanation = explain(Snapshot(autoscaler=web, scale=Scale(3, 3, "app=web")), now=parse_time(NOON))
    surroundings = surroundings_of(live, deployment(3), verticals=[vpa])
    found = {each.key: each.text for each in answers(explanation, surroundings)}
    sentence = (
        "VerticalPodAutoscaler requests sets the cpu requests of the pods, of which the utilization is a percentage."
    )
    assert (sentence in found["whoElseWrites"]) is is_named
    assert bool(surroundings.to_json()["verticalAutoscalers"]) is is_named


def test_vertical_autoscalers_in_files_are_read(tmp_path: Path) -> None:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    queue = hpa()["spec"]["metrics"][0]
    both = hpa(metrics=[queue, {"type": "Resource", "resource": cpu}])
    page = explained(tmp_path, 30, both, deployment(3, CONTROLLER), vertical(), output="text")
    assert "VerticalPodAutoscaler requests sets the cpu requests" in " ".join(page.split())
