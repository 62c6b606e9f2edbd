"""Simulation of the autoscaler of a component under a load, for the tests of an operator."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ocf.autoscaling import default
from ocf.autoscaling.algorithm import Autoscaler
from ocf.autoscaling.api.versions import read_hpa
from ocf.autoscaling.targets.targets import find_scale_target
from ocf.component import Component
from ocf.concepts import Resource
from ocf.errors import ConfigError
from ocf.objects import Manifest, dump_document
from ocf.objects.paths import get_field
from ocf.simulation import load_series, parse_scenario, simulate
from ocf.simulation.measures import parse_expression, with_measures
from ocf.simulation.measures.formatting import value_text
from ocf.simulation.result import SimulationResult
from ocf.simulation.scenario.initial import target_requests
from ocf.simulation.scenario.node_groups import NodeGroupSettings

__all__ = ["assert_measures", "simulate_autoscaler"]

_KIND: Final = "HorizontalPodAutoscaler"


def simulate_autoscaler(
    subject: Component | Resource | Manifest,
    *,
    workload: Mapping[str, Any],
    load: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    node_groups: Sequence[NodeGroupSettings | Mapping[str, Any]] = (),
    duration: str | None = None,
    directory: str | Path = ".",
    **settings: Any,
) -> SimulationResult:
    """Simulate an HPA under a load, with the exact algorithm of the controller.

    Args:
        subject: A component with one HPA, the primitive of an HPA, or its manifest.
        workload: Field `workload` of a scenario. Requests that are missing here are those of the target, if the
            component has it: of the resources that the HPA scales on, and with node groups of all resources.
        load: Field `load` of a scenario: a load, or loads that are added up.
        node_groups: Field `nodeGroups` of a scenario: groups of nodes, as models or as mappings. The result has the
            measures of nodes then, such as `node_hours`. Empty: a pod never waits for a node.
        duration: How long the simulation runs, such as `2h`; None: as long as the load.
        directory: The folder that paths of loads are relative to.
        settings: Other fields of a scenario, such as `metrics`, `controller`, `nodes`, `objectives` and `seed`.

    Returns:
        The result with all of its measures; the same for the same arguments.

    Raises:
        ConfigError: If the subject does not have exactly one HPA, or the scenario is invalid.

    Example:
        >>> from ocf.primitives import hpa
        >>> autoscaler = hpa.Builder({
        ...     "apiVersion": "autoscaling/v2",
        ...     "kind": "HorizontalPodAutoscaler",
        ...     "metadata": {"name": "web", "namespace": "shop"},
        ...     "spec": {
        ...         "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        ...         "minReplicas": 2,
        ...         "maxReplicas": 10,
        ...     },
        ... }).build()
        >>> pods = {"capacity": 10, "requests": {"cpu": "100m"}}
        >>> run = simulate_autoscaler(autoscaler, workload=pods, load={"type": "Steady", "rate": 40}, duration="10m")
        >>> run.columns.replicas[0], run.columns.replicas[-1]
        (3, 6)
    """
    manifests = list(_rendered(subject))
    autoscaler = _autoscaler(manifests)
    requests = _requests(autoscaler, manifests, scheduled=bool(node_groups))
    content = {
        **settings,
        "hpa": autoscaler,
        "workload": {**workload, "requests": {**requests, **workload.get("requests", {})}},
        "load": load,
        **({"nodeGroups": list(map(_written, node_groups))} if node_groups else {}),
        **({} if duration is None else {"duration": duration}),
    }
    scenario = parse_scenario(dump_document(content), directory=directory)
    first, *others = (load_series(each, directory) for each in scenario.services())
    return with_measures(simulate(scenario, first, neighbors=others), scenario)


def assert_measures(result: SimulationResult, expectation: str) -> None:
    """Assert an expression over the measures of a simulation.

    Args:
        result: The result, with its measures.
        expectation: What is expected, such as `overload_time < 2% and pod_hours < 40`.

    Raises:
        AssertionError: If it does not hold; the message has the values.
        ConfigError: If it is not an expression over measures.
    """
    expression = parse_expression(expectation)
    if not expression.holds(result.measures):
        values = ", ".join(f"{name} is {value_text(name, result.measures[name])}" for name in expression.names)
        raise AssertionError(f"expected {expectation}: {values}")


def _written(group: NodeGroupSettings | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a node group as a file has it."""
    return group.model_dump(mode="json", by_alias=True) if isinstance(group, NodeGroupSettings) else group


def _rendered(subject: Component | Resource | Manifest) -> Iterator[Manifest]:
    if isinstance(subject, Component):
        yield from subject.render()
    else:
        yield dict(subject) if isinstance(subject, Mapping) else subject.render()


def _autoscaler(manifests: Sequence[Manifest]) -> Manifest:
    found = [each for each in manifests if each.get("kind") == _KIND]
    if len(found) != 1:
        names = ", ".join(str(get_field(each, ("metadata", "name"))) for each in found) or "none"
        raise ConfigError(f"expected exactly one {_KIND}, found {len(found)}: {names}; pass the one to simulate")
    return found[0]


def _requests(manifest: Manifest, manifests: Sequence[Manifest], *, scheduled: bool) -> dict[str, str]:
    """Return the requests of the pods of the target that count, if the target is known."""
    autoscaler = Autoscaler.of(default(read_hpa(manifest)))
    target = find_scale_target(manifest, manifests)
    found = {name: f"{milli}m" for name, milli in target_requests(autoscaler, target).items()}
    if not scheduled or target is None:
        return found
    # The algorithm of node groups is only loaded where there are some.
    from ocf.simulation.scenario.node_values import scheduled_requests

    return {**scheduled_requests(get_field(target, ("spec", "template", "spec")) or {}), **found}
