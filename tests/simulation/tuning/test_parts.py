"""Parts of a run."""

from datetime import timedelta

import pytest

from ocf.simulation import simulate
from ocf.simulation.measures import MEASURES, Unit, measure
from ocf.simulation.scenario import Objectives, Workload
from ocf.simulation.tuning.parts import part_of, scaled_totals
from tests.simulation.runs import run, scaled
from tests.simulation.tuning.cases import trace

WORKLOAD = Workload(capacity=10)


@pytest.mark.parametrize("end", [300, 611, 900])
def test_the_first_part_of_a_run_has_the_measures_of_a_run_that_ends_there(end: int) -> None:
    web = trace()
    short = simulate(web.scenario.model_copy(update={"duration": timedelta(seconds=end)}), web.load)
    part = part_of(simulate(web.scenario, web.load), 0, end)
    found = [measure(each, workload=web.scenario.workload, objectives=Objectives()) for each in (part, short)]
    assert found[0] == found[1]
    assert (part.syncs, part.actions, part.condition_changes) == (short.syncs, short.actions, short.condition_changes)


def test_totals_of_two_parts_add_up_to_those_of_the_run() -> None:
    whole = run([0, 60, 120], duration=180, ready=[1, 2, 4], actions=[scaled(60, 1, 2), scaled(120, 2, 4)])
    parts = [part_of(whole, begin, end) for begin, end in ((0, 90), (90, 180))]
    found = [measure(each, workload=WORKLOAD, objectives=Objectives()) for each in (*parts, whole)]
    for name in ("pod_hours", "scaling_actions", "scale_ups"):
        assert found[0][name] + found[1][name] == pytest.approx(found[2][name])
    assert [[each.time for each in part.actions] for part in parts] == [[60], [30]]


def test_a_row_that_is_cut_holds_from_the_begin_and_is_not_a_sync() -> None:
    part = part_of(run([0, 60, 120], duration=180, ready=[1, 2, 4]), 90, 150)
    assert (list(part.columns.time), list(part.columns.ready), list(part.columns.synced)) == ([0, 30], [2, 4], [0, 1])
    assert part.duration == 60


def test_only_totals_are_scaled() -> None:
    scaled_names = {name for name, value in scaled_totals(dict.fromkeys(MEASURES, 1.0), 4).items() if value == 4}
    assert {"pod_hours", "cost", "scaling_actions", "flaps", "overloads", "dropped"} <= scaled_names
    rates = {Unit.SHARE, Unit.SECONDS, Unit.PODS, Unit.PER_HOUR, Unit.PLAIN}
    assert not {name for name in scaled_names if MEASURES[name].unit in rates}
    assert "backlog_max" not in scaled_names
