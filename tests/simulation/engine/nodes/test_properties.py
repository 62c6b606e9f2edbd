"""Rules that hold at each instant of each run, and the equality of the engine with one that decides at each sync."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.simulation import Scenario
from tests.simulation.engine.nodes.clusters import node_scenario, run_of
from tests.simulation.engine.scenarios import hpa_of, rows_of

seconds = st.integers(0, 120).map(lambda value: f"{value}s")
delays = st.builds(lambda mean, spread: {"mean": mean, "spread": f"{spread}s"}, seconds, st.integers(0, 60))
types = st.builds(
    lambda cpu, pods, price: {"cpu": f"{cpu}", "memory": "8Gi", "pods": pods, "price": price},
    st.integers(1, 6),
    st.sampled_from([2, 110]),
    st.integers(1, 4),
)
spots = st.none() | st.builds(
    lambda rate, notice: {"interruptionsPerHour": rate, "notice": notice}, st.sampled_from([1, 20]), seconds
)
policies = st.builds(
    lambda threshold, duration, cooldown, rest: {
        "cpuThreshold": threshold,
        "duration": duration,
        "cooldown": cooldown,
        **rest,
    },
    st.sampled_from([30, 60, 100]),
    seconds,
    seconds,
    st.fixed_dictionaries(
        {},
        optional={
            "enabled": st.booleans(),
            "maxEmpty": st.integers(0, 3),
            "maxDrained": st.integers(0, 3),
            "consolidate": st.booleans(),
            "savingThreshold": st.sampled_from([1, 30]),
            "replaceAfter": st.sampled_from(["0s", "45s"]),
            "drainTimeout": st.sampled_from(["10s", "45s"]),
        },
    ),
)


@st.composite
def groups(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Return a node group."""
    fewest = draw(st.integers(0, 3))
    most = draw(st.integers(max(1, fewest), 8))
    found = draw(st.lists(types, min_size=1, max_size=2))
    return {
        "name": name,
        "minNodes": fewest,
        "maxNodes": most,
        "initialNodes": draw(st.none() | st.integers(fewest, most)),
        "instanceTypes": [{"name": f"t{number}", **each} for number, each in enumerate(found)],
        "choice": draw(st.sampled_from(["preferred", "cheapest"])),
        "priority": draw(st.integers(0, 1)),
        "batchSize": draw(st.integers(0, 2)),
        "scaleUpCooldown": draw(st.sampled_from(["0s", "0s", "40s"])),
        "scaleDown": draw(policies),
        "boot": draw(delays),
        "termination": draw(delays),
        "spot": draw(spots),
        "zone": draw(st.sampled_from([None, "a", "b"])),
        "bootFailures": draw(st.sampled_from([[], [{"share": 0.5}], [{"at": "2m", "duration": "4m"}]])),
        "bootTimeout": draw(st.sampled_from(["3m", "10m"])),
    }


budgets = st.sampled_from([None, None, {"maxUnavailable": 1}, {"minAvailable": "60%"}])


@st.composite
def neighbors(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return up to two neighbors of other sizes and priorities."""
    return [
        {
            "name": f"neighbor-{number}",
            "hpa": hpa_of(minReplicas=1, maxReplicas=draw(st.integers(2, 20)), behavior={"scaleDown": RULES}),
            "workload": {
                "capacity": 10,
                "requests": {"cpu": draw(st.sampled_from(["250m", "1", "2"])), "memory": "2Gi"},
                "priority": draw(st.sampled_from([-20, 0, 10])),
                "disruptionBudget": draw(budgets),
                "termination": draw(delays),
            },
            "load": {"type": "Steady", "rate": 0},
        }
        for number in range(draw(st.integers(0, 2)))
    ]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Return a scenario of twelve minutes."""
    given = [draw(groups(name)) for name in draw(st.sampled_from([["a"], ["a", "b"]]))]
    zones = sorted({each["zone"] for each in given} - {None})
    return node_scenario(
        *given,
        hpa=hpa_of(minReplicas=1, maxReplicas=draw(st.integers(2, 30)), behavior={"scaleDown": RULES}),
        workload={
            "replicas": draw(st.integers(0, 12)),
            "startup": draw(delays),
            "readiness": draw(delays),
            "termination": draw(delays),
            "disruptionBudget": draw(budgets),
            "failures": [{"at": f"{draw(st.integers(0, 700))}s", "pods": 2}] if draw(st.booleans()) else [],
        },
        nodes={
            "syncPeriod": draw(st.sampled_from(["5s", "10s", "7s", "60s"])),
            "scoring": draw(st.sampled_from(["LeastAllocated", "MostAllocated"])),
            "zoneOutages": [
                {"zone": each, "at": "4m", "duration": "3m", "nodesLost": draw(st.booleans())} for each in zones
            ],
        },
        neighbors=draw(neighbors()),
        duration="12m",
        seed=draw(st.integers(0, 9)),
    )


RULES: dict[str, Any] = {"stabilizationWindowSeconds": 30}
loads = st.lists(st.tuples(st.integers(1, 200), st.integers(0, 200)), min_size=1, max_size=8)


@given(scenarios(), loads)
@settings(max_examples=12)
def test_a_run_obeys_the_scheduler_and_the_bounds_and_equals_one_that_decides_at_each_sync(
    scenario: Scenario, changes: list[tuple[int, int]]
) -> None:
    at, steps = 0, [(0.0, float(changes[0][1]))]
    for later, rate in changes[1:]:
        at += later
        steps.append((float(at), float(rate)))
    quick, full = run_of(scenario, *steps), run_of(scenario, *steps, full=True)
    ours, theirs = quick.run(), full.run()
    assert ours.node_actions == theirs.node_actions
    times = [row["time"] for row in rows_of(ours)]
    assert times == sorted(set(times))
    for one, other in zip(rows_of(ours), rows_of(theirs), strict=True):
        assert repr(one) == repr(other)
    assert ours.node_groups == theirs.node_groups
    assert ours.actions == theirs.actions
    for mine, theirs_of_it in zip(ours.neighbors, theirs.neighbors, strict=True):
        assert list(map(repr, rows_of(mine))) == list(map(repr, rows_of(theirs_of_it)))
        assert mine.actions == theirs_of_it.actions
    assert quick.cluster.controller.decisions <= full.cluster.controller.decisions
