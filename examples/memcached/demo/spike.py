"""The chapter about nodes: a spike makes pods wait, nodes arrive, and everything drains afterwards."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from examples.memcached.demo.nodes import GROUP, Nodes
from examples.memcached.demo.output import chapter, fact, say, show, time_of
from examples.memcached.demo.played import READY_AFTER
from examples.memcached.demo.stage import BUDGET, CACHE, DEPLOYMENT
from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition

if TYPE_CHECKING:
    from examples.memcached.demo.stage import Stage

__all__ = ["add_nodes"]

LOAD: Final = {0: 150, 2: 400, 5: 900, 12: 120}
"""Number of an HPA period to the cpu demand of the clients from then on, in millicores."""

PERIODS: Final = 50
NODES: Final = 3
PODS: Final = 10
QUIET: Final = "nothing to do"


class Row(NamedTuple):
    """Row of the table: the state after one HPA period."""

    load: int
    replicas: int
    waiting: int
    ready: int
    nodes: int
    booting: int


async def add_nodes(stage: Stage) -> None:
    """Let a spike need more nodes than there are."""
    chapter("8. A spike that needs more nodes than there are")
    # What the controller logs is printed from its status.
    logging.getLogger("ocf.controllers.nodegroup").addHandler(logging.NullHandler())
    for definition in (node_group_definition(), node_definition()):
        await stage.apply(definition)
    stage.world.nodes = nodes = Nodes(stage.cluster, stage.clock, DEPLOYMENT, BUDGET, ready_after=READY_AFTER)
    await nodes.add_fixed_node()
    say("There is one node, with room for four pods. A user adds a node group, and a budget for disruptions:")
    await stage.apply(GROUP)
    show(GROUP["spec"])
    await stage.change(CACHE, highAvailability={"podDisruptionBudget": {"enabled": True, "minAvailable": 1}})

    async def is_protected() -> bool:
        return await stage.get(BUDGET) is not None

    await stage.until(is_protected)
    stage.world.load = LOAD[0]
    await stage.rollout()
    rows = await follow(stage, nodes)
    most = max(row.nodes for row in rows)
    fact(
        f"{most} nodes at most, and all {PODS} pods ran",
        holds=(most, max(row.ready for row in rows)) == (NODES, PODS),
    )
    fact("at least one pod was ready at any time", holds=min(row.ready for row in rows) > 0)
    fact("one node at the end", holds=rows[-1].nodes == 1 and rows[-1].ready == rows[-1].replicas)


async def follow(stage: Stage, nodes: Nodes) -> list[Row]:
    """Print what changes; return what was seen after each period."""
    say("time     load  replicas  waiting  ready  nodes  booting", "bold")
    rows: list[Row] = []
    decision = ""
    for number in range(PERIODS):
        stage.world.load = LOAD.get(number, stage.world.load)
        await stage.sync()
        there, booting = await nodes.count()
        row = Row(stage.world.load, await stage.replicas(), await nodes.waiting(), stage.world.ready, there, booting)
        if [row] != rows[-1:]:
            print_row(number, row)
        before, decision = decision, await nodes.decision()
        if decision not in (before, QUIET):
            say(f"{time_of(number)}  {decision}", "magenta")
        rows.append(row)
    return rows


def print_row(number: int, row: Row) -> None:
    """Print a row of the table."""
    counts = f"{row.replicas:>8}  {row.waiting:>7}  {row.ready:>5}  {row.nodes:>5}  {row.booting:>7}"
    say(f"{time_of(number)}  {row.load:>4}m  {counts}")
