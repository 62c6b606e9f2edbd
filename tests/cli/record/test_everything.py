"""`ocf record --all`: a scenario of all HPAs of a namespace or a cluster."""

import asyncio
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cli.record import command
from ocf.cli.record.everything import everything
from ocf.cluster import ListOptions, ObjectList, Subresource
from ocf.cluster.interceptor import InterceptingCluster
from ocf.errors import ConfigError, ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.simulation import Scenario, load_series, parse_scenario, simulate
from ocf_server import CustomKind, EmbeddedCluster

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": 5}},
}


def hpa(name: str, namespace: str, *metrics: Manifest, used: int | None = None) -> Manifest:
    current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"token": "a secret"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 9,
            "metrics": list(metrics) or [CPU],
        },
        "status": {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": [current] if used else []},
    }


def template(name: str, cpu: str | None) -> Manifest:
    container: dict[str, Any] = {"name": "app", "image": "app:1", "env": [{"name": "TOKEN", "value": "a secret"}]}
    if cpu is not None:
        container["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


def deployment(name: str, namespace: str, cpu: str | None = "500m") -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template(name, cpu)},
    }


def pod(name: str, app_name: str, namespace: str, cpu: str, **spec: Any) -> Manifest:
    made = template(app_name, cpu)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**made["metadata"], "name": name, "namespace": namespace},
        "spec": {**made["spec"], "nodeName": "n-1", **spec},
        "status": {"phase": "Running"},
    }


def node(name: str, zone: str, **labels: str) -> Manifest:
    known = {"node.kubernetes.io/instance-type": "m5", "topology.kubernetes.io/zone": zone, **labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": known},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "58", "example.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


OBJECTS = (
    deployment("web", "shop"),
    deployment("jobs", "batch", None),
    hpa("web", "shop", used=30),
    hpa("jobs", "batch", QUEUE, CPU),
    pod("web-0", "web", "shop", "500m"),
    pod("agent-0", "agent", "kube-system", "200m"),
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    node("n-1", "a"),
    node("n-2", "a"),
    node("n-3", "b"),
    node("n-0", "a", **{"node-role.kubernetes.io/control-plane": ""}),
)


CONFIG = "DeploymentConfig"
_ALL = ListOptions()


class Forbidding(InterceptingCluster):
    """A cluster of which some kinds may not be read, or only in a namespace."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        *,
        kinds: AbstractSet[str] = frozenset(),
        everywhere: AbstractSet[str] = frozenset(),
    ) -> None:
        super().__init__(cluster)
        self._kinds, self._everywhere = kinds, everywhere

    async def list(self, api_version: str, kind: str, options: ListOptions = _ALL) -> ObjectList:
        """List, if that is allowed."""
        if kind in self._kinds or (kind in self._everywhere and not options.namespace):
            raise ForbiddenError(f"{kind} is forbidden", code=403, reason="Forbidden")
        return await super().list(api_version, kind, options)

    async def get(self, key: ObjectKey, *, subresource: Any = None) -> Manifest:
        """Read, if that is allowed."""
        if key.kind in self._kinds:
            raise ForbiddenError(f"{key.kind} is forbidden", code=403, reason="Forbidden")
        return await super().get(key, subresource=subresource)


def dumped(
    namespace: str = "", *, objects: tuple[Manifest, ...] = OBJECTS, **forbidden: AbstractSet[str]
) -> tuple[str, list[str]]:
    async def work() -> tuple[str, list[str]]:
        cluster = EmbeddedCluster(namespaces=["shop", "batch"], kinds=[CustomKind("apps.openshift.io", "v1", CONFIG)])
        for each in objects:
            made = await cluster.create(each, field_manager="test")
            if "status" in each:
                changed = {**made, "status": each["status"]}
                await cluster.update(changed, field_manager="test", subresource=Subresource.STATUS)
        return await everything(Forbidding(cluster, **forbidden), namespace)

    return asyncio.run(work())


def read(text: str) -> Scenario:
    scenario = parse_scenario(text)
    first, *others = (load_series(each) for each in scenario.services())
    simulate(scenario.model_copy(update={"duration": scenario.metrics.scrape_period}), first, neighbors=others)
    return scenario


def test_all_hpas_run_together_on_the_nodes() -> None:
    text, notes = dumped()
    scenario = read(text)

    assert notes == []
    assert [each.name for each in scenario.services()] == ["batch/jobs", "shop/web"]
    jobs, web = (each.workload for each in scenario.services())
    assert (jobs.replicas, jobs.requests, list(jobs.signals)) == (2, {"cpu": 500}, ["jobs"])
    assert web.requests == {"cpu": 500, "memory": 2**30 * 1000}
    assert web.disruption_budget is not None
    assert (web.disruption_budget.max_unavailable, jobs.disruption_budget) == (1, None)
    # Two pods at 30 % of what a pod serves.
    assert scenario.neighbors[0].load[0].model_dump()["rate"] == 60
    groups = [(each.name, each.zone, each.min_nodes, each.max_nodes) for each in scenario.node_groups]
    assert groups == [("m5-a", "a", 2, 2), ("m5-b", "b", 1, 1)]
    # A pod of another workload with 200m on one of two nodes.
    [first], [second] = (each.instance_types for each in scenario.node_groups)
    assert (first.cpu, second.cpu, second.extended) == (3900, 4000, {"example.com/gpu": 1000})
    assert "a secret" not in text


def test_what_is_assumed_is_in_a_comment() -> None:
    text, _ = dumped()
    comment = [line for line in text.splitlines() if line.startswith("#")]

    assert any("batch/jobs: its request for cpu is not known, 500m is an assumption" in line for line in comment)
    assert any("jobs is assumed to follow the load" in line for line in comment)


def test_a_namespace_has_only_its_own() -> None:
    scenario = read(dumped("shop")[0])
    assert (scenario.name, scenario.neighbors) == ("web", ())


@pytest.mark.parametrize(
    ("forbidden", "note"),
    [
        ({"kinds": {"Node"}}, "Node of the cluster: Node is forbidden; pods never wait for a node"),
        (
            {"kinds": {"PodDisruptionBudget"}},
            "PodDisruptionBudget of shop: PodDisruptionBudget is forbidden; drains of",
        ),
        (
            {"everywhere": {"Pod"}},
            "Pod of the cluster: Pod is forbidden; the room that other pods take on nodes is not",
        ),
        (
            {"kinds": {"Deployment"}},
            "Deployment/shop/web: Deployment is forbidden; its replicas and requests are assumptions",
        ),
    ],
)
def test_what_may_not_be_read_is_left_out_with_a_note(forbidden: dict[str, AbstractSet[str]], note: str) -> None:
    text, notes = dumped("shop", objects=OBJECTS, **forbidden)
    read(text)

    [found] = notes
    assert found.startswith(note)
    assert f"# * {found}" in text


def test_a_target_whose_selector_is_of_another_form_is_dumped_without_its_pods() -> None:
    """A DeploymentConfig of OpenShift selects by a map of labels; the other HPAs are dumped as ever."""
    other = deployment("old", "shop", "250m")
    config = {**other, "apiVersion": "apps.openshift.io/v1", "kind": CONFIG}
    config["spec"] = {**other["spec"], "selector": {"app": "old"}}
    scaled = hpa("old", "shop")
    reference = {"apiVersion": config["apiVersion"], "kind": CONFIG, "name": "old"}
    scaled["spec"] = {**scaled["spec"], "scaleTargetRef": reference}
    text, notes = dumped("shop", objects=(*OBJECTS, config, scaled))
    scenario = read(text)

    assert [note for note in notes if note.startswith(f"{CONFIG}/shop/old: spec.selector: ")] == notes
    assert len(notes) == 1
    assert "250m" in text
    assert len(scenario.neighbors) == 1


def test_without_the_right_to_list_hpas_nothing_is_written() -> None:
    with pytest.raises(ForbiddenError, match="HorizontalPodAutoscaler is forbidden"):
        dumped(kinds={"HorizontalPodAutoscaler"})


def test_a_cluster_without_hpas_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there is no HorizontalPodAutoscaler in shop"):
        dumped("shop", objects=())


def invoke(*words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["record", *words])
    return answer.exit_code, answer.output


def test_the_command_writes_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(*_: object) -> tuple[str, list[str]]:
        return "name: web\n", ["nodes are not here"]

    monkeypatch.setattr(command, "_everything", answered)
    file = tmp_path / "shop.yaml"
    assert invoke("--all", "-n", "shop", "-o", str(file)) == (0, "note: nodes are not here\n")
    assert file.read_text() == "name: web\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--all", "web"), "NAME: not with --all"),
        (("--all", "--for", "1h"), "--for: not with --all"),
        ((), "Missing argument 'NAME'"),
        (("web", "--prometheus", "http://localhost", "--every", "5s"), "--every: not with --prometheus"),
    ],
)
def test_options_that_do_not_belong_together_are_rejected(words: tuple[str, ...], message: str) -> None:
    code, text = invoke(*words, "-o", "-")
    assert (code, message in text) == (2, True)
