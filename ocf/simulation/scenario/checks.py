"""Checks of a scenario as a whole: what its metrics need, and what contradicts itself.

Each problem has a location in the models: names of the file format, and positions.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Metric
from ocf.autoscaling.algorithm.decide import tolerances_of
from ocf.objects.durations import format_duration
from ocf.objects.suggestions import nearest
from ocf.schema.metric_sources import PODLESS_METRICS, RESOURCE_METRICS
from ocf.simulation.load.served import ServedLoad
from ocf.simulation.scenario.node_groups import InstanceTypeSettings, NodeGroupSettings
from ocf.simulation.scenario.node_values import misfit
from ocf.simulation.scenario.prediction import PREDICTED
from ocf.simulation.scenario.scenario import Scenario
from ocf.simulation.scenario.workload import SignalSource, Workload

__all__ = [
    "ScenarioProblem",
    "activator_problems",
    "contradictions",
    "doubts",
    "has_prices",
    "missing_inputs",
    "neighbor_problems",
    "node_group_problems",
]

_HOUR = timedelta(hours=1)


class ScenarioProblem(NamedTuple):
    """A problem of a scenario."""

    location: tuple[str | int, ...]
    detail: str


def missing_inputs(scenario: Scenario, autoscaler: Autoscaler) -> Iterator[ScenarioProblem]:
    """Yield the metrics of an HPA that the workload gives no values for."""
    for position, metric in enumerate(autoscaler.metrics):
        subject = f"spec.metrics[{position}] of the HPA"
        if metric.type in RESOURCE_METRICS:
            yield from _missing_request(scenario, metric, subject)
        elif metric.name not in scenario.workload.signals:
            similar = nearest(metric.name, scenario.workload.signals)
            instead = f', in place of "{similar}"?' if similar else ""
            yield ScenarioProblem(
                ("workload", "signals"),
                f"required value: {subject} is the metric {metric.name} of type {metric.type}: add for example"
                f" `{metric.name}: {{source: load}}`{instead}",
            )
        else:
            yield from _of_pods(scenario, metric, subject)


def _of_pods(scenario: Scenario, metric: Metric, subject: str) -> Iterator[ScenarioProblem]:
    signal = scenario.workload.signals[metric.name]
    if signal.schedule is not None and metric.type == "Pods":
        yield ScenarioProblem(
            ("workload", "signals", metric.name, "schedule"),
            f"{subject} is of type Pods, so that each pod has a value of its own: a schedule needs a metric of type"
            " External or Object",
        )


def activator_problems(scenario: Scenario, autoscaler: Autoscaler) -> Iterator[ScenarioProblem]:
    """Yield why the activator could not scale the workload down, or not up again."""
    activator = scenario.activator
    if activator is None:
        return
    idle, minimum = activator.idle_replica_count, autoscaler.minimum
    if idle >= minimum:
        detail = (
            f"must be less than minReplicas of the HPA, {minimum}, got {idle}"
            if minimum
            else "the HPA scales to zero itself: set its minReplicas to at least 1, or remove `activator`"
        )
        yield ScenarioProblem(("activator", "idleReplicaCount"), detail)
    names = [each.name for each in autoscaler.metrics if each.type in PODLESS_METRICS]
    if scenario.prediction is not None:
        names.append(PREDICTED)
    triggers = {name: scenario.workload.signals.get(name) for name in names}
    if not triggers:
        yield ScenarioProblem(
            ("activator",),
            "the HPA has no metric of type External or Object, and no other one has a value without pods: nothing"
            " would ever be active; add such a metric, or remove `activator`",
        )
    for name in activator.activation_thresholds:
        if name not in triggers:
            known = ", ".join(triggers) or "none"
            detail = f"the HPA has no metric of type External or Object with this name; it has {known}"
            yield ScenarioProblem(("activator", "activationThresholds", name), detail)
    sources = [each.source for each in triggers.values() if each is not None]
    if idle == 0 and PREDICTED not in triggers and sources and set(sources) == {SignalSource.SERVED}:
        for name in triggers:
            yield ScenarioProblem(
                ("workload", "signals", name, "source"),
                "must be load, queue or backlog, got served: nothing is served while no pod runs, so the workload would"
                " never be scaled up from zero",
            )


def _missing_request(scenario: Scenario, metric: Metric, subject: str) -> Iterator[ScenarioProblem]:
    workload = scenario.workload
    example = "500m" if metric.name == "cpu" else "256Mi"
    if workload.requests.get(metric.name):
        return
    if metric.target.utilization is not None:
        yield ScenarioProblem(
            ("workload", "requests"),
            f"required value: {subject} is a utilization, a share of the request for {metric.name}: add for example"
            f" `{metric.name}: {example}`",
        )
    elif metric.name not in workload.usage:
        yield ScenarioProblem(
            ("workload", "usage"),
            f"required value: {subject} is the use of {metric.name}: add for example"
            f" `{metric.name}: {{busy: {example}}}`, or a request",
        )


def contradictions(scenario: Scenario, autoscaler: Autoscaler) -> Iterator[ScenarioProblem]:
    """Yield what contradicts itself."""
    yield from _of_workload(scenario.workload)
    yield from _impossible_objectives(scenario, autoscaler)
    yield from _useless_prediction(scenario)
    if scenario.prediction is not None and any(each.name == PREDICTED for each in autoscaler.metrics):
        detail = f"the HPA has a metric with the name {PREDICTED}, which a prediction adds: rename that of the HPA"
        yield ScenarioProblem(("prediction",), detail)
    if scenario.duration is not None:
        yield from _after_the_end(scenario, scenario.duration)


def doubts(scenario: Scenario, autoscaler: Autoscaler) -> Iterator[str]:
    """Yield what a scenario makes of the numbers of a run that its author may not mean."""
    workload = scenario.workload
    tolerance = tolerances_of(autoscaler, scenario.controller.settings()).up
    for position, metric in enumerate(autoscaler.metrics):
        if metric.type not in RESOURCE_METRICS:
            continue
        request, usage = workload.requests.get(metric.name, 0), workload.usage.get(metric.name)
        most = request if usage is None else max(usage.busy, usage.starting or 0)
        share = metric.target.utilization
        target = metric.target.average or 0 if share is None else request * share / 100
        # A ratio within the tolerance changes nothing.
        if most <= target * (1 + tolerance):
            name = f"workload.requests.{metric.name}" if usage is None else f"workload.usage.{metric.name}.busy"
            yield (
                f"spec.metrics[{position}] of the HPA never scales up: a pod at full capacity uses"
                f" {most / target * 100:.3g} % of the target for {metric.name}; measure what it uses, and raise"
                f" `{name}`, or lower the target"
            )
    if workload.connections is not None and scenario.objectives.latency is not None:
        yield (
            "`objectives.latency` is left out with `workload.connections`: the model of latencies has one queue in"
            " front of all pods, while each pod has one of its own"
        )


def _of_workload(workload: Workload) -> Iterator[ScenarioProblem]:
    for name, signal in workload.signals.items():
        if signal.percentile is not None and signal.source is not SignalSource.LATENCY:
            detail = f"needs the source latency, which has percentiles, and not {signal.source.value}"
            yield ScenarioProblem(("workload", "signals", name, "percentile"), detail)
        if (signal.schedule is None) == (signal.source is SignalSource.SCHEDULE):
            detail = "required value with the source schedule, and only with it"
            yield ScenarioProblem(("workload", "signals", name, "schedule"), detail)
    for name, usage in workload.usage.items():
        if usage.busy < usage.idle:
            detail = f"must be at least the usage without load, {usage.idle}m, got {usage.busy}m"
            yield ScenarioProblem(("workload", "usage", name, "busy"), detail)
        if usage.starting is None and usage.starting_time is not None:
            detail = "required value: there is a `startingTime`; add what a pod uses while it starts, such as `2`"
            yield ScenarioProblem(("workload", "usage", name, "starting"), detail)
    budget = workload.disruption_budget
    if budget is not None and (budget.min_available is None) == (budget.max_unavailable is None):
        detail = "must have one of minAvailable and maxUnavailable"
        yield ScenarioProblem(("workload", "disruptionBudget"), detail)
    for position, rollout in enumerate(workload.rollouts):
        if {rollout.max_surge, rollout.max_unavailable} <= {0, "0%"}:
            detail = f"must not be {rollout.max_unavailable} as well as maxSurge: nothing would be replaced"
            yield ScenarioProblem(("workload", "rollouts", position, "maxUnavailable"), detail)


def _impossible_objectives(scenario: Scenario, autoscaler: Autoscaler) -> Iterator[ScenarioProblem]:
    objectives, workload = scenario.objectives, scenario.workload
    service = workload.service_time or timedelta(seconds=1 / workload.capacity)
    if objectives.latency is not None and objectives.latency.at_most < service:
        yield ScenarioProblem(
            ("objectives", "latency", "atMost"),
            f"can never be met: one load unit alone takes {format_duration(service)}, got"
            f" {format_duration(objectives.latency.at_most)}",
        )
    if objectives.cost is not None and not has_prices(scenario):
        yield ScenarioProblem(("objectives", "prices"), "required value: there is a bound of the cost; add `podHour`")
    if scenario.duration is None:
        return
    fewest = min(autoscaler.minimum, autoscaler.maximum) * (scenario.duration / _HOUR)
    if scenario.activator is not None:
        fewest = 0.0  # it may never be active
    for name, bound, least in (
        ("podHours", objectives.pod_hours, fewest),
        ("cost", objectives.cost, fewest * objectives.prices.pod_hour),
    ):
        if bound is not None and bound < least:
            yield ScenarioProblem(
                ("objectives", name),
                f"can never be met: minReplicas {autoscaler.minimum} alone makes {least:g} in"
                f" {format_duration(scenario.duration)}, got {bound:g}",
            )


def has_prices(scenario: Scenario) -> bool:
    """Return whether pods or nodes have a price."""
    prices = scenario.objectives.prices
    types = (each for group in scenario.node_groups for each in group.instance_types)
    return bool(prices.pod_hour or prices.node_hour or any(each.price for each in types))


def _useless_prediction(scenario: Scenario) -> Iterator[ScenarioProblem]:
    prediction, duration = scenario.prediction, scenario.duration
    if prediction is not None and duration is not None and prediction.forecaster.season >= duration:
        yield ScenarioProblem(
            ("prediction", "forecaster", "season"),
            f"must be less than the duration, {format_duration(duration)}, or nothing is known of a season before; got"
            f" {format_duration(prediction.forecaster.season)}",
        )


def _after_the_end(scenario: Scenario, duration: timedelta) -> Iterator[ScenarioProblem]:
    places = [
        *((("metrics", "outages", at, "at"), each.at) for at, each in enumerate(scenario.metrics.outages)),
        *((("workload", "failures", at, "at"), each.at) for at, each in enumerate(scenario.workload.failures)),
        *((("workload", "rollouts", at, "at"), each.at) for at, each in enumerate(scenario.workload.rollouts)),
        *((("nodes", "zoneOutages", at, "at"), each.at) for at, each in enumerate(scenario.nodes.zone_outages)),
        *(
            (("nodeGroups", number, "bootFailures", at, "at"), each.at)
            for number, group in enumerate(scenario.node_groups)
            for at, each in enumerate(group.boot_failures)
        ),
        *((("load", at, "at"), each.at) for at, each in enumerate(scenario.load) if not isinstance(each, ServedLoad)),
    ]
    for location, at in places:
        if at >= duration:
            ends = format_duration(duration)
            detail = f"must be before the end of the simulation at {ends}, got {format_duration(at)}"
            yield ScenarioProblem(location, detail)


def neighbor_problems(scenario: Scenario) -> Iterator[ScenarioProblem]:
    """Yield what is wrong with the names of the workloads, and with the loads that they serve each other."""
    known: list[str] = []
    for position, service in enumerate(scenario.services()):
        base: tuple[str | int, ...] = ("neighbors", position - 1) if position else ()
        if service.name in known:
            yield ScenarioProblem((*base, "name"), f"must be unique, {service.name!r} is the name of another workload")
        served = ((at, each) for at, each in enumerate(service.load) if isinstance(each, ServedLoad))
        for at, load in served:
            if load.by not in known:
                names = ", ".join(known) or "none"
                detail = f"must be the name of the scenario or of a neighbor that comes before, got {load.by!r}"
                yield ScenarioProblem((*base, "load", at, "by"), f"{detail}; there is {names}")
            elif service.prediction is not None:
                detail = "no forecast with a load of the type Served, which is not known before the run"
                yield ScenarioProblem((*base, "prediction"), detail)
        known.append(service.name)
    if scenario.neighbors and scenario.duration is None:
        yield ScenarioProblem(("duration",), "required value: with neighbors, whose loads may end at other times")


def node_group_problems(scenario: Scenario) -> Iterator[ScenarioProblem]:
    """Yield what is wrong with the node groups, alone and with the workload."""
    yield from _unknown_zones(scenario)
    names: set[str] = set()
    for position, group in enumerate(scenario.node_groups):
        where = ("nodeGroups", position)
        if group.name in names:
            yield ScenarioProblem((*where, "name"), f"must be unique, {group.name!r} is the name of another group")
        names.add(group.name)
        yield from _bounds(where, group)
        types = [each.name for each in group.instance_types]
        for number, name in enumerate(types):
            if name in types[:number]:
                detail = f"must be unique in its group, {name!r} is the name of another type"
                yield ScenarioProblem((*where, "instanceTypes", number, "name"), detail)
    for position, service in enumerate(scenario.services()):
        short = [_shortage(service, each) for group in scenario.node_groups for each in group.instance_types]
        if short and all(short):
            name = service.name if position else "the workload"
            location = ("neighbors", position - 1, "workload", "requests") if position else ("nodeGroups",)
            detail = f"no instance type holds a pod of {name}: {'; '.join(dict.fromkeys(short))}"
            yield ScenarioProblem(location, f"{detail}: add a larger type, or lower `workload.requests`")


def _unknown_zones(scenario: Scenario) -> Iterator[ScenarioProblem]:
    known = dict.fromkeys(group.zone for group in scenario.node_groups if group.zone)
    for position, outage in enumerate(scenario.nodes.zone_outages):
        if outage.zone not in known:
            detail = f"no node group is in this zone; there is {', '.join(known) or 'none'}"
            yield ScenarioProblem(("nodes", "zoneOutages", position, "zone"), f"{detail}, got {outage.zone!r}")


def _bounds(where: tuple[str | int, ...], group: NodeGroupSettings) -> Iterator[ScenarioProblem]:
    for name, found in (("minNodes", group.min_nodes), ("initialNodes", group.initial_nodes)):
        if found is not None and found > group.max_nodes:
            detail = f"must be at most maxNodes, {group.max_nodes}, got {found}"
            yield ScenarioProblem((*where, name), detail)


def _shortage(scenario: Scenario, instance_type: InstanceTypeSettings) -> str:
    """Return what an empty node lacks for a pod; empty if it holds one."""
    found = misfit(scenario.workload, instance_type)
    return "" if found is None else f"{instance_type.name}: {', '.join(map(str, found.details))}"
