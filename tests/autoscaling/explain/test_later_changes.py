"""What is offered for a later sync holds whatever another controller remembers, by the time that is named."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.algorithm import Decision, Scale, Settings, Snapshot, Status
from ocf.autoscaling.explain import KnownHistory, explain_unknown
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.thresholds import with_total
from tests.autoscaling.explain.incidents import Incident, cpu, external, measured, pods, spec, steady
from tests.autoscaling.explain.test_incidents import changed, drawn_incidents, later, values
from tests.autoscaling.explain.test_rendering import STATUSES
from tests.autoscaling.explain.values import NOON


def changes_by(decision: Decision, snapshot: Snapshot, direction: int, within: timedelta) -> bool:
    """Return whether the replicas change in a direction within a time, one sync period after the next."""
    current = decision.trace.current or 0
    return any((each.desired - current) * direction > 0 for each in later(decision, snapshot, NOON + within))


def check(explanation: Explanation, incident: Incident, status: Status) -> None:
    possible = explanation.range
    assert possible is not None
    for lever, release in explanation.later_levers:
        value, less = values(lever)
        tried, not_yet = (
            replace(incident.snapshot(changed(incident.spec, lever.field, each)), status=status)
            for each in (value, less)
        )
        within, direction = release.at - NOON, 1 if lever.change > 0 else -1
        for decision in possible.decisions:
            if decision.desired == explanation.decision.desired:
                assert changes_by(decision, tried, direction, within), lever
                longer = within + timedelta(minutes=6)
                assert not lever.side or not changes_by(decision, not_yet, direction, longer), lever
    for thresholds in explanation.thresholds:
        for direction, change in ((1, thresholds.grows_later), (-1, thresholds.shrinks_later)):
            if change is not None:
                snapshot = replace(incident.snapshot(), status=status)
                tried = with_total(snapshot, thresholds.position, thresholds.pods, change.total)
                for decision in possible.decisions:
                    assert changes_by(decision, tried, direction, change.release.at - NOON), change


@given(incident=drawn_incidents(), status=STATUSES)
def test_later_changes_hold_for_every_history_that_the_status_permits(incident: Incident, status: Status) -> None:
    snapshot = replace(incident.snapshot(), status=status)
    found = explain_unknown(snapshot, KnownHistory(status, NOON), settings=Settings(), now=NOON)
    for each in filter(None, (found, found.most)):
        check(each, incident, status)


@given(percent=st.integers(20, 60), minimum=st.integers(1, 3))
def test_in_a_steady_state_there_is_a_way_to_fewer_unless_the_minimum_is_reached(percent: int, minimum: int) -> None:
    """Of three pods within the tolerance of their target, or rounded up to three."""
    found = tuple(pods(3))
    incident = Incident(
        "", spec(minimum, 9, cpu(60)), Scale(3, 3, "app=web"), found, [measured(found, percent * 10)], steady(3), ()
    )
    explanation = explain_unknown(
        incident.snapshot(), KnownHistory(Status(), NOON, incident.history), settings=Settings(), now=NOON
    )
    [thresholds] = explanation.thresholds
    assert (thresholds.shrinks_later is not None) == (minimum < 3)


def test_a_disabled_direction_has_no_way_to_fewer() -> None:
    limits = spec(1, 9, external("10"), scaleDown={"selectPolicy": "Disabled"})
    incident = Incident("", limits, Scale(3, 3, "app=web"), tuple(pods(3)), [[30_000]], steady(3), ())
    explanation = explain_unknown(
        incident.snapshot(), KnownHistory(Status(), NOON, incident.history), settings=Settings(), now=NOON
    )
    [thresholds] = explanation.thresholds
    assert thresholds.shrinks_later is None
    assert thresholds.cannot_shrink is not None
