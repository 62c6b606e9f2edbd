"""What holds on a hostile cloud, whatever it does: in virtual time, with random faults."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from ocf.objects import ObjectKey, parse_time
from ocf.objects.conditions import is_condition_true
from ocf.testing.hostile_cloud import HostileCloud, ListAnswer
from tests.controllers.nodegroup.conftest import GROUP, Env, run
from tests.controllers.nodegroup.test_hostile_cloud import (
    RICH,
    Change,
    as_promised,
    hostile,
    with_amounts,
    with_taint,
    without_label,
)
from tests.controllers.nodegroup.test_repair import set_ready

MOST: Final = 4
STEP: Final = timedelta(minutes=1)
SLOT: Final = 12  # steps with the same faults
WAITING: Final = "last-0"
# An example takes as long as ten of others: 4 in `make test`, 50 in `make properties`.
EXAMPLES: Final = settings().max_examples // 10


@dataclass(frozen=True)
class Slot:
    """What the cloud does for some minutes."""

    answer: ListAnswer
    loses: frozenset[str]
    fails: frozenset[str]
    wait: timedelta
    joins_after: timedelta | None
    change: Change
    sick: int
    doubles: bool = False


slots = st.builds(
    Slot,
    st.sampled_from(ListAnswer),
    st.sets(st.sampled_from(["create", "delete"])).map(frozenset),
    st.sets(st.sampled_from(["create", "delete"])).map(frozenset),
    st.sampled_from([timedelta(0), timedelta(0), timedelta(minutes=5)]),
    st.sampled_from([timedelta(0), timedelta(minutes=10), None]),
    st.sampled_from([as_promised, with_amounts(cpu="1800m"), with_taint, without_label]),
    st.integers(0, 2),
    st.booleans(),
)


@dataclass
class Watcher:
    """What is seen from outside, and what must not be."""

    env: Env
    cloud: HostileCloud
    ready: set[str] = field(default_factory=set)
    bought: dict[str, datetime] = field(default_factory=dict)

    async def look(self) -> None:
        # A second machine for a request is the cloud's.
        assert sum(not each.name.endswith("-twin") for each in self.cloud.machines()) <= MOST
        nodes = {each["metadata"]["name"]: each for each in await self.env.objects("Node")}
        assert self.ready <= nodes.keys(), "a Ready node with a protected pod is gone"
        protected = {
            pod["spec"].get("nodeName", "")
            for pod in await self.env.objects("Pod")
            if "annotations" in pod["metadata"] and "deletionTimestamp" not in pod["metadata"]
        }
        self.ready = {
            name
            for name, node in nodes.items()
            if name in protected and is_condition_true(node["status"].get("conditions", []), "Ready")
        }
        for each in await self.env.objects("VPSieNode"):
            # One that never was ready may be followed by another after the pause of its type.
            ready = (each.get("status") or {}).get("readyAt")
            if ready and f"shop/{WAITING}" in (each["spec"].get("pods") or ()):
                self.bought.setdefault(each["metadata"]["name"], parse_time(each["metadata"]["creationTimestamp"]))


NOW: Final = timedelta(0)
NONE: Final = frozenset[str]()
BOTH: Final = frozenset({"create", "delete"})

# The machine of a request that was given up is listed afterwards, and has pods.
LATE: Final = [
    Slot(ListAnswer.STALE, BOTH, NONE, NOW, NOW, as_promised, 0),
    Slot(ListAnswer.EMPTY, BOTH, NONE, NOW, NOW, without_label, 1),
    Slot(ListAnswer.FAILS, BOTH, NONE, NOW, NOW, without_label, 0),
    Slot(ListAnswer.TRUE, NONE, NONE, NOW, NOW, with_taint, 0),
]
# A node with a protected pod is neither listed nor ready, its deletion fails, and it comes back.
BACK: Final = [
    Slot(ListAnswer.TRUE, NONE, BOTH, timedelta(minutes=5), NOW, without_label, 2),
    Slot(ListAnswer.EMPTY, BOTH, frozenset({"delete"}), NOW, NOW, without_label, 1),
    Slot(ListAnswer.PARTIAL, BOTH, frozenset({"create"}), timedelta(minutes=5), timedelta(minutes=10), as_promised, 0),
]
# The node that did not help leaves while an older one is as promised.
GAP: Final = [
    Slot(ListAnswer.TRUE, NONE, NONE, NOW, NOW, without_label, 0),
    Slot(ListAnswer.PARTIAL, NONE, NONE, NOW, timedelta(minutes=10), with_taint, 0),
    Slot(ListAnswer.TRUE, NONE, NONE, NOW, NOW, without_label, 0),
]
# Each request gets two machines, and the second ones have pods before they are seen.
TWICE: Final = [
    Slot(ListAnswer.TRUE, NONE, NONE, NOW, NOW, as_promised, 0, doubles=True),
    Slot(ListAnswer.STALE, NONE, NONE, NOW, NOW, as_promised, 0, doubles=True),
]


@pytest.mark.promise("node-groups-hostile")
@settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate])
@example(LATE)
@example(BACK)
@example(GAP)
@example(TWICE)
@given(st.lists(slots, min_size=2, max_size=4))
def test_no_fault_of_the_cloud_breaks_the_promises_of_node_groups(faults: list[Slot]) -> None:
    env, cloud = hostile(as_promised, RICH)
    watcher = Watcher(env, cloud)

    async def scenario() -> None:
        await env.set_up(offeringIDs=["rich"], maxNodes=MOST, scaleDownCooldown="0s")
        await env.add_pod("old-0", cpu="1500m")
        await env.merge_patch(
            ObjectKey("v1", "Pod", "old-0", "shop"),
            {"metadata": {"annotations": {"ocf.dev/do-not-disrupt": "true"}}},
            by="user",
        )
        await env.tick(6)
        await env.add_pod(WAITING, cpu="1900m", nodeSelector={"disk": "ssd"})
        for slot in faults:
            cloud.answer, cloud.loses, cloud.node = slot.answer, slot.loses, slot.change
            cloud.fails_before, cloud.joins_after = slot.fails, slot.joins_after
            cloud.doubles = slot.doubles
            cloud.throttle(slot.wait)
            await set_ready(env, (await env.nodes())[: slot.sick], "Unknown")
            for _ in range(SLOT):
                await env.tick(by=STEP)
                await watcher.look()
            await set_ready(env, await env.nodes(), "True")
            await env.tick(by=STEP)
        times = sorted(watcher.bought.values())
        if WAITING in await env.waiting():
            # Each of them was ready, and did not help.
            assert all(later - earlier >= timedelta(hours=1) for earlier, later in pairwise(times))
            status = await env.read_conditions(GROUP)
            assert "True" in (status["Error"]["status"], status["Scaling"]["status"]), status
        cloud.answer, cloud.loses, cloud.node = ListAnswer.TRUE, frozenset(), as_promised
        cloud.fails_before, cloud.joins_after, cloud.doubles = frozenset(), timedelta(0), False
        await env.tick(40, by=STEP)
        # No machine is left behind; an object may be about to get one.
        objects = await env.objects("VPSieNode")
        owners = {each["status"].get("machineId") or each["metadata"]["name"] for each in objects}
        assert {each.id for each in cloud.machines()} <= owners

    run(scenario())
