"""Checks of the node groups of a scenario."""

from collections.abc import Iterator

from ocf.simulation.scenario.checks import ScenarioProblem
from ocf.simulation.scenario.node_groups import InstanceTypeSettings, NodeGroupSettings
from ocf.simulation.scenario.node_values import misfit
from ocf.simulation.scenario.scenario import Scenario

__all__ = ["node_group_problems"]


def node_group_problems(scenario: Scenario) -> Iterator[ScenarioProblem]:
    """Yield what is wrong with the node groups, alone and with the workload.

    Args:
        scenario: The scenario.
    """
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
    short = [_shortage(scenario, each) for group in scenario.node_groups for each in group.instance_types]
    if short and all(short):
        detail = f"no instance type holds a pod of the workload: {'; '.join(dict.fromkeys(short))}"
        yield ScenarioProblem(("nodeGroups",), f"{detail}: add a larger type, or lower `workload.requests`")


def _bounds(where: tuple[str | int, ...], group: NodeGroupSettings) -> Iterator[ScenarioProblem]:
    for name, found in (("minNodes", group.min_nodes), ("initialNodes", group.initial_nodes)):
        if found is not None and found > group.max_nodes:
            detail = f"must be at most maxNodes, {group.max_nodes}, got {found}"
            yield ScenarioProblem((*where, name), detail)


def _shortage(scenario: Scenario, instance_type: InstanceTypeSettings) -> str:
    """Return what an empty node lacks for a pod; empty if it holds one."""
    found = misfit(scenario.workload, instance_type)
    return "" if found is None else f"{instance_type.name}: {', '.join(map(str, found.details))}"
