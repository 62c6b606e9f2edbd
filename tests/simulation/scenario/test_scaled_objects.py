"""Scenarios of ScaledObjects: the HPA that KEDA makes of them, its activator, and what their triggers follow."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.errors import ManifestError
from ocf.simulation import Scenario, initial_scenario, load_series, parse_scenario, simulate
from ocf.simulation.scenario.scaled_objects import parts_of_scaled_object
from tests.simulation.scenario.test_initial import DEPLOYMENT


def trigger(kind: str, metric_type: str | None = None, **metadata: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind, "metadata": metadata}
    return found if metric_type is None else {**found, "metricType": metric_type}


JOBS = trigger("rabbitmq", host="amqp://user:secret@rabbit/", queueName="jobs", mode="QueueLength", value="5")
OFFICE = trigger("cron", timezone="Europe/Berlin", start="0 8 * * 1-5", end="0 18 * * 1-5", desiredReplicas="4")
CPU = trigger("cpu", "Utilization", value="70")


def scaled_object(*triggers: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a ScaledObject as the API server has it."""
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "worker", "namespace": "shop", "uid": "1", **(metadata or {})},
        "spec": {"scaleTargetRef": {"name": "worker"}, "triggers": list(triggers or (JOBS,)), **spec},
        "status": {"hpaName": "keda-hpa-worker"},
    }


def metrics_of(*triggers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return name and target of the metrics of the HPA."""
    found = parts_of_scaled_object(scaled_object(*triggers)).hpa["spec"]["metrics"]
    sources = [each[each["type"][0].lower() + each["type"][1:]] for each in found]
    return [{"name": each.get("name") or each["metric"]["name"], **each["target"]} for each in sources]


@pytest.mark.parametrize(
    ("given", "name", "target"),
    [
        pytest.param(JOBS, "s0-rabbitmq-jobs", "5", id="rabbitmq"),
        pytest.param(trigger("rabbitmq", queueName="a/b.c", queueLength="7"), "s0-rabbitmq-a-b-c", "7", id="old field"),
        pytest.param(trigger("kafka", topic="orders"), "s0-kafka-orders", "10", id="kafka with its default"),
        pytest.param(trigger("apache-kafka", topic="x", lagThreshold="50"), "s0-kafka-x", "50", id="apache-kafka"),
        pytest.param(
            trigger("aws-sqs-queue", queueURL="https://sqs.eu-west-1.amazonaws.com/1234/mail", queueLength="9"),
            "s0-aws-sqs-mail",
            "9",
            id="sqs",
        ),
        pytest.param(trigger("azure-queue", queueName="q"), "s0-azure-queue-q", "5", id="azure-queue"),
        pytest.param(
            trigger("azure-servicebus", topicName="t", messageCount="8"), "s0-azure-servicebus-t", "8", id="servicebus"
        ),
        pytest.param(trigger("redis", listName="l", listLength="3"), "s0-redis-l", "3", id="redis"),
        pytest.param(trigger("prometheus", query="q", threshold="2.5"), "s0-prometheus", "2.5", id="prometheus"),
        pytest.param(OFFICE, "s0-cron-Europe-Berlin-08xx1-5-018xx1-5", "1", id="cron"),
        pytest.param(
            trigger("cron", timezone="UTC", start="*/5 1,2 ? * *", end="0 9 * * *", desiredReplicas="2"),
            "s0-cron-UTC-xSl51Cm2Qmxx-09xxx",
            "1",
            id="cron with all characters",
        ),
        pytest.param(trigger("mysql", query="q", queryValue="12"), "s0-mysql", "12", id="another type"),
        pytest.param(trigger("external", scalerAddress="x:1"), "s0-external", "1", id="a target that is not known"),
    ],
)
def test_a_trigger_is_an_external_metric_with_the_name_that_keda_gives_it(
    given: dict[str, Any], name: str, target: str
) -> None:
    assert metrics_of(given) == [{"name": name, "type": "AverageValue", "averageValue": target}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(CPU, {"name": "cpu", "type": "Utilization", "averageUtilization": 70}, id="utilization"),
        pytest.param(
            trigger("memory", type="AverageValue", value="1Gi"),
            {"name": "memory", "type": "AverageValue", "averageValue": "1Gi"},
            id="the type in the metadata",
        ),
        pytest.param(
            trigger("kafka", "Value", topic="orders", lagThreshold="500"),
            {"name": "s0-kafka-orders", "type": "Value", "value": "500"},
            id="a total",
        ),
    ],
)
def test_the_type_of_a_target_is_kept(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert metrics_of(given) == [expected]


def test_a_trigger_of_one_container_is_a_metric_of_it() -> None:
    one = trigger("cpu", "Utilization", value="70", containerName="app")
    (metric,) = parts_of_scaled_object(scaled_object(one)).hpa["spec"]["metrics"]
    assert (metric["type"], metric["containerResource"]["container"]) == ("ContainerResource", "app")


def test_the_names_of_triggers_have_their_positions_and_metrics_are_ordered_by_type() -> None:
    names = [each["name"] for each in metrics_of(CPU, JOBS, trigger("kafka", topic="orders"))]
    assert names == ["s1-rabbitmq-jobs", "s2-kafka-orders", "cpu"]


@pytest.mark.parametrize(
    ("spec", "bounds"),
    [
        pytest.param({}, (1, 100), id="defaults"),
        pytest.param({"minReplicaCount": 0, "maxReplicaCount": 7}, (1, 7), id="zero is not that of the HPA"),
        pytest.param({"minReplicaCount": 3}, (3, 100), id="a minimum"),
    ],
)
def test_the_bounds_are_those_of_the_hpa_that_keda_makes(spec: dict[str, Any], bounds: tuple[int, int]) -> None:
    found = parts_of_scaled_object(scaled_object(**spec)).hpa["spec"]
    assert (found["minReplicas"], found["maxReplicas"]) == bounds


def test_the_hpa_has_the_name_the_target_and_the_behavior_of_the_scaled_object() -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    advanced = {"horizontalPodAutoscalerConfig": {"name": "mine", "behavior": behavior}}
    target = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "worker"}
    found = parts_of_scaled_object(scaled_object(advanced=advanced, scaleTargetRef=target)).hpa
    assert found["metadata"] == {"name": "mine", "namespace": "shop"}
    assert (found["spec"]["behavior"], found["spec"]["scaleTargetRef"]) == (behavior, target)


ACTIVATION = trigger("kafka", topic="orders", activationLagThreshold="30")


@pytest.mark.parametrize(
    ("triggers", "spec", "expected"),
    [
        pytest.param((), {}, {"pollingInterval": 30, "cooldownPeriod": 300}, id="defaults"),
        pytest.param((), {"minReplicaCount": 2}, None, id="never below two"),
        pytest.param(
            (),
            {"minReplicaCount": 2, "idleReplicaCount": 1, "cooldownPeriod": 60},
            {"pollingInterval": 30, "cooldownPeriod": 60, "idleReplicaCount": 1},
            id="idle replicas",
        ),
        pytest.param(
            (ACTIVATION,),
            {"pollingInterval": 5, "initialCooldownPeriod": 120},
            {
                "pollingInterval": 5,
                "cooldownPeriod": 300,
                "initialCooldownPeriod": 120,
                "activationThresholds": {"s0-kafka-orders": 30.0},
            },
            id="activation threshold",
        ),
        pytest.param((CPU,), {}, None, id="cpu alone"),
    ],
)
def test_the_activator_is_that_of_the_scaled_object(
    triggers: tuple[dict[str, Any], ...], spec: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    parts = parts_of_scaled_object(scaled_object(*triggers, **spec))
    assert parts.activator == expected


@pytest.mark.parametrize(
    ("given", "source"),
    [
        pytest.param(JOBS, "queue", id="AMQP"),
        pytest.param(trigger("rabbitmq", protocol="http"), "backlog", id="HTTP"),
        pytest.param(trigger("rabbitmq", host="https://rabbit/"), "backlog", id="HTTP by its host"),
        pytest.param(trigger("rabbitmq", host="https://rabbit/", protocol="amqp"), "queue", id="AMQP by its protocol"),
        pytest.param(trigger("rabbitmq", protocol="http", excludeUnacknowledged="true"), "queue", id="ready only"),
        pytest.param(trigger("aws-sqs-queue"), "backlog", id="SQS"),
        pytest.param(trigger("aws-sqs-queue", scaleOnInFlight="false"), "queue", id="SQS, visible only"),
        pytest.param(trigger("azure-queue"), "backlog", id="Azure"),
        pytest.param(trigger("azure-queue", queueLengthStrategy="visibleonly"), "queue", id="Azure, visible only"),
        pytest.param(trigger("azure-servicebus"), "backlog", id="service bus"),
        pytest.param(trigger("kafka"), "backlog", id="lag"),
        pytest.param(trigger("redis"), "queue", id="a list"),
        pytest.param(trigger("rabbitmq", queueName="jobs", mode="MessageRate", value="5"), "load", id="a rate"),
        pytest.param(OFFICE, "schedule", id="a schedule"),
    ],
)
def test_what_a_trigger_follows_is_known_of_queues_and_schedules(given: dict[str, Any], source: str) -> None:
    parts = parts_of_scaled_object(scaled_object(given))
    assert [each.signal["source"] for each in parts.signals] == [source]
    assert parts.notes == ()


@pytest.mark.parametrize(
    ("given", "note"),
    [
        pytest.param(
            scaled_object(JOBS, trigger("mysql", queryValue="12")),
            "workload.signals.s1-mysql: trigger 1, mysql: assumed; write its source (load, served, queue, backlog,"
            " latency) and factor",
            id="another type",
        ),
        pytest.param(
            scaled_object(trigger("external", scalerAddress="x:1")),
            "workload.signals.s0-external: trigger 0, external: assumed; write its source (load, served, queue,"
            " backlog, latency) and factor, and its target in the HPA, which is assumed as 1",
            id="a target that is not known",
        ),
        pytest.param(
            scaled_object(CPU),
            "spec.minReplicaCount: CPU and memory alone do not scale to zero, so that the scenario has no activator and"
            " at least 1 replica; set minReplicaCount to 1, or add another trigger",
            id="cpu alone",
        ),
        pytest.param(
            scaled_object(metadata={"annotations": {"autoscaling.keda.sh/paused-replicas": "0"}}),
            "metadata.annotations[autoscaling.keda.sh/paused-replicas]: pausing is not simulated: the scenario scales"
            " as without it",
            id="paused",
        ),
        pytest.param(
            scaled_object(fallback={"failureThreshold": 3, "replicas": 5}),
            "spec.fallback: is not simulated: an outage of the metrics stops scaling",
            id="fallback",
        ),
        pytest.param(
            scaled_object(advanced={"scalingModifiers": {"formula": "a + b", "target": "1"}}),
            "spec.advanced.scalingModifiers: is not simulated: each trigger counts by itself",
            id="formula",
        ),
    ],
)
def test_what_is_not_known_is_named_with_what_to_write(given: dict[str, Any], note: str) -> None:
    assert parts_of_scaled_object(given).notes == (note,)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({**scaled_object(), "metadata": {}}, "metadata.name: required value", id="no name"),
        pytest.param(
            {**scaled_object(), "spec": {"triggers": [JOBS]}}, "spec.scaleTargetRef: required value", id="no target"
        ),
        pytest.param(
            {**scaled_object(), "spec": {"scaleTargetRef": {"name": "x"}, "triggers": []}},
            "spec.triggers: required value: at least one trigger",
            id="no trigger",
        ),
        pytest.param(
            scaled_object(idleReplicaCount=1, minReplicaCount=1),
            "spec.idleReplicaCount: must be less than minReplicaCount, 1, got 1",
            id="idle replicas",
        ),
        pytest.param(
            scaled_object(
                JOBS, trigger("cron", timezone="UTC", start="0 0 * * 7", end="0 0 * * 1", desiredReplicas="1")
            ),
            "spec.triggers[1].metadata.start: the day of the week must be 0 to 6, in rising order, got '7'",
            id="Sunday is 0",
        ),
        pytest.param(
            scaled_object(trigger("cron", timezone="UTC", start="0 0 * * 6", end="0 0 * * 1", desiredReplicas="0")),
            "spec.triggers[0].metadata.desiredReplicas: must be greater than or equal to 1, got 0",
            id="a schedule of zero",
        ),
        pytest.param(
            scaled_object(trigger("cron", timezone="Berlin", start="0 0 * * 6", end="0 0 * * 1", desiredReplicas="2")),
            "spec.triggers[0].metadata.timezone: must be a time zone",
            id="a time zone",
        ),
    ],
)
def test_what_keda_rejects_is_an_error_of_its_field(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ManifestError) as error:
        parts_of_scaled_object(given)
    assert problem in str(error.value)


def read(manifest: dict[str, Any], target: dict[str, Any] | None = None) -> tuple[str, Scenario]:
    text = initial_scenario(manifest, target)
    return text, parse_scenario(text)


@pytest.mark.parametrize(
    "triggers",
    [
        pytest.param((trigger("rabbitmq", protocol="http", queueName="jobs"),), id="a queue"),
        pytest.param((OFFICE, CPU), id="a schedule and cpu"),
        pytest.param((CPU,), id="cpu"),
        pytest.param((trigger("external", scalerAddress="x:1"), ACTIVATION), id="a type that is not known"),
    ],
)
def test_its_scenario_runs_as_it_is(triggers: tuple[dict[str, Any], ...]) -> None:
    manifest = scaled_object(*triggers, maxReplicaCount=8)
    _, scenario = read(manifest, DEPLOYMENT)
    result = simulate(scenario, load_series(scenario))
    assert result.syncs >= 240
    assert result.warnings == ()
    assert (min(result.columns.replicas) == 0) == (scenario.activator is not None)


def test_its_scenario_has_requests_signals_and_nothing_secret() -> None:
    text, scenario = read(scaled_object(JOBS, OFFICE, CPU), DEPLOYMENT)
    assert scenario.workload.requests == {"cpu": 750}
    assert scenario.workload.replicas == 4
    assert "    # trigger 0, rabbitmq: what waits\n    s0-rabbitmq-jobs:\n      source: queue\n" in text
    assert "secret" not in text
    # An hour from midnight on would not have the schedule in it.
    assert load_series(scenario).end == 24 * 3600


@pytest.mark.parametrize(
    ("manifest", "period", "window"),
    [
        pytest.param(scaled_object(JOBS), 1, None, id="KEDA asks the source"),
        pytest.param(scaled_object(JOBS, CPU), 1, 15, id="cpu is averaged"),
        pytest.param(scaled_object(CPU), 15, None, id="cpu alone"),
    ],
)
def test_the_values_of_triggers_are_read_at_their_source(
    manifest: dict[str, Any], period: int, window: int | None
) -> None:
    _, scenario = read(manifest, DEPLOYMENT)
    found = scenario.metrics
    assert found.scrape_period == timedelta(seconds=period)
    assert found.window == (None if window is None else timedelta(seconds=window))
