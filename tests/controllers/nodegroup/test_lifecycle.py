"""The life of a node: each step, lost answers, machines that fail or disappear, and the deletion of machines."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.controllers.nodegroup.lifecycle import Action, NodeState, Observation, Step, accepted, advance
from ocf.controllers.nodegroup.node_model import VPSieNodeStatus
from ocf.nodegroups import Machine, MachineState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PENDING = Machine("m-1", MachineState.PENDING, node_name="n-1")
RUNNING = replace(PENDING, state=MachineState.RUNNING)
DELETING = replace(PENDING, state=MachineState.DELETING)
FAILED = replace(PENDING, state=MachineState.FAILED, problem="no disk")

NOTHING = Observation(None)
UNLISTED: dict[str, Any] = {"machine_id": "m-1", "unlisted_since": NOW - timedelta(minutes=1)}
UNNAMED = Observation(None, keeps_names=False)


def status(phase: str, minutes: float = 0, **fields: Any) -> VPSieNodeStatus:
    """Return the status of a node whose machine was requested so many minutes ago."""
    requested = {} if phase == "Pending" else {"requested_at": NOW - timedelta(minutes=minutes)}
    return VPSieNodeStatus.model_validate({"phase": phase, **requested, **fields})


def test_a_new_node_stores_its_request_before_it_is_sent() -> None:
    step = advance(status("Pending"), replace(UNNAMED, machines=frozenset({"b", "a"})), NOW)
    assert (step.action, step.status.phase, step.status.requested_at) == (Action.CREATE, "Provisioning", NOW)
    assert step.status.excluded_machines == ["a", "b"]
    assert advance(status("Pending"), NOTHING, NOW).status.excluded_machines is None


@pytest.mark.parametrize(
    ("stored", "observed", "action"),
    [
        pytest.param(status("Provisioning"), NOTHING, Action.CREATE, id="the request may be lost"),
        pytest.param(status("Provisioning", accepted_at=NOW), NOTHING, Action.CREATE, id="accepted, but not listed"),
        pytest.param(status("Provisioning", 0.5), UNNAMED, Action.FIND, id="unnamed, and just requested"),
        pytest.param(status("Provisioning", 2.9), UNNAMED, Action.FIND, id="unnamed, not found for a while"),
        pytest.param(status("Provisioning", 9, accepted_at=NOW), UNNAMED, Action.FIND, id="unnamed, but accepted"),
    ],
)
def test_a_machine_that_is_not_listed_is_requested_again_or_looked_for(
    stored: VPSieNodeStatus, observed: Observation, action: Action
) -> None:
    assert advance(stored, observed, NOW) == Step(stored, action)


def test_a_machine_boots_joins_and_becomes_ready() -> None:
    stored = accepted(status("Provisioning"), PENDING, NOW)
    assert stored.machine_id == "m-1"
    booting = advance(stored, Observation(PENDING), NOW)
    assert booting == Step(stored)
    running = advance(stored, Observation(RUNNING), NOW)
    assert (running.status.phase, running.status.node_name, running.action) == ("Joining", "n-1", Action.NONE)
    joined = advance(running.status, Observation(RUNNING, NodeState.NOT_READY, "n-1"), NOW)
    assert (joined.status.joined_at, joined.action) == (NOW, Action.CONFIGURE)
    later = NOW + timedelta(minutes=1)
    ready = advance(joined.status, Observation(RUNNING, NodeState.READY, "n-1"), later)
    assert (ready.status.phase, ready.status.joined_at, ready.status.ready_at) == ("Ready", NOW, later)
    assert ready.action is Action.CONFIGURE
    assert advance(ready.status, Observation(RUNNING, NodeState.READY, "n-1"), later) == Step(ready.status)


@pytest.mark.parametrize(
    ("stored", "observed", "problem"),
    [
        pytest.param(status("Provisioning"), Observation(FAILED), "no disk", id="failed to boot"),
        pytest.param(status("Provisioning"), Observation(DELETING), "deleted while it booted", id="deleted early"),
        pytest.param(
            status("Provisioning", 15), Observation(PENDING), "not ready within 15m0s", id="does not boot in time"
        ),
        pytest.param(
            status("Joining", 15, running_at=NOW), Observation(RUNNING), "not ready within 15m0s", id="does not join"
        ),
        pytest.param(
            status("Joining", running_at=NOW, **UNLISTED), NOTHING, "does not list the machine", id="gone while joining"
        ),
        pytest.param(status("Ready", **UNLISTED), NOTHING, "not by this controller", id="gone while ready"),
        pytest.param(status("Ready"), Observation(DELETING), "not by this controller", id="being deleted while ready"),
        pytest.param(status("Ready"), Observation(FAILED), "no disk", id="failed while ready"),
        pytest.param(status("Draining", **UNLISTED), NOTHING, "not by this controller", id="gone while drained"),
    ],
)
def test_a_node_fails_with_the_reason(stored: VPSieNodeStatus, observed: Observation, problem: str) -> None:
    step = advance(stored, observed, NOW)
    assert (step.status.phase, step.action) == ("Failed", Action.NONE)
    assert problem in step.status.last_error


def test_a_machine_that_is_ready_when_it_is_first_listed_is_known_by_its_id() -> None:
    ready = advance(status("Provisioning"), Observation(RUNNING, NodeState.READY, "n-1"), NOW).status
    assert (ready.phase, ready.machine_id) == ("Ready", "m-1")
    # Stored by an earlier version of the controller.
    known = advance(status("Ready", ready_at=NOW), Observation(RUNNING, NodeState.READY, "n-1"), NOW).status
    assert (known.phase, known.machine_id) == ("Ready", "m-1")


def test_a_node_that_is_ready_at_last_is_not_given_up() -> None:
    step = advance(status("Joining", 15, running_at=NOW), Observation(RUNNING, NodeState.READY, "n-1"), NOW)
    assert step.status.phase == "Ready"


def test_a_node_that_reports_is_not_given_up_though_its_machine_was_never_listed() -> None:
    for minutes in (0, 15, 60):
        step = advance(status("Provisioning", minutes), Observation(None, NodeState.READY, "n-1"), NOW)
        assert (step.status.phase, step.action) == ("Provisioning", Action.CREATE)
    late = advance(status("Provisioning", 60), Observation(RUNNING, NodeState.READY, "n-1"), NOW)
    assert late.status.phase == "Ready"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({}, "no machine was listed within 3m0s after its request", id="crash before the call"),
        pytest.param({"last_error": "timeout"}, "after its request: timeout", id="lost answer"),
    ],
)
def test_a_request_without_a_name_is_sent_once(fields: dict[str, Any], problem: str) -> None:
    """Each repetition could be one more machine, and only one of them would be found by the request."""
    lost = advance(status("Provisioning", 3, excluded_machines=[], **fields), UNNAMED, NOW).status
    assert lost.phase == "Failed"
    assert lost.last_error.endswith(problem)
    # It is looked for on, and boots like any other once it is found, with the whole time that a node has.
    assert advance(lost, UNNAMED, NOW) == Step(lost, Action.FIND)
    found = accepted(lost, PENDING, NOW)
    assert (found.phase, found.machine_id, found.requested_at, found.failed_at) == ("Provisioning", "m-1", NOW, None)
    assert advance(lost, UNNAMED, NOW + timedelta(minutes=30)).action is Action.NONE


REPLACING = replace(RUNNING, state=MachineState.REPLACING)
REPLACEMENT = replace(RUNNING, id="m-2", node_name="n-2")


@pytest.mark.parametrize("phase", ["Joining", "Ready", "Draining"])
@pytest.mark.parametrize(
    "history",
    [
        pytest.param([REPLACEMENT], id="at once, as in a rollout"),
        pytest.param([REPLACING, REPLACING, Machine("", MachineState.PENDING), REPLACEMENT], id="after the old one"),
    ],
)
def test_a_machine_that_is_replaced_belongs_to_the_same_request(phase: str, history: list[Machine]) -> None:
    stored = status(phase, 60, machine_id="m-1", node_name="n-1", accepted_at=NOW, running_at=NOW, ready_at=NOW)
    now = NOW
    for machine in history:
        # However long the pods of the old machine take to leave.
        now += timedelta(minutes=30) if machine.id == "m-1" else timedelta(minutes=1)
        step = advance(stored, Observation(machine, NodeState.NOT_READY, "n-1"), now)
        assert (step.status.phase, step.status.ready_at) == (
            "Joining" if machine is REPLACEMENT else "Provisioning",
            None,
        )
        assert step.action is Action.NONE
        stored = step.status
    assert (stored.machine_id, stored.node_name) == ("m-2", "n-2")
    ready = advance(stored, Observation(REPLACEMENT, NodeState.READY, "n-2"), now).status
    assert (ready.phase, ready.node_name, ready.last_error) == ("Ready", "n-2", "")


def test_a_deleted_node_whose_machine_was_replaced_drains_the_replacement_first() -> None:
    stored = status("Draining", 60, machine_id="m-1", node_name="n-1", ready_at=NOW)
    observed = Observation(REPLACEMENT, NodeState.READY, "n-2", ending=True)
    step = advance(stored, observed, NOW)
    assert (step.status.phase, step.status.node_name, step.action) == ("Ready", "n-2", Action.NONE)
    booting = advance(stored, replace(observed, node=NodeState.NOT_READY), NOW)
    assert (booting.status.phase, booting.action) == ("Terminating", Action.DELETE_MACHINE)


@pytest.mark.parametrize(
    ("stored", "observed", "action"),
    [
        pytest.param(status("Pending"), UNNAMED, Action.REMOVE, id="never requested"),
        pytest.param(status("Provisioning"), NOTHING, Action.DELETE_MACHINE, id="requested, but not listed"),
        pytest.param(
            status("Provisioning", unlisted_since=NOW - timedelta(minutes=1)),
            NOTHING,
            Action.DELETE_MACHINE,
            id="requested, and not listed for a minute",
        ),
        pytest.param(status("Terminating", terminating_at=NOW), NOTHING, Action.REMOVE, id="does not exist"),
        pytest.param(
            status("Provisioning", 29, excluded_machines=[]), UNNAMED, Action.FIND, id="unnamed, may still appear"
        ),
        pytest.param(
            status("Provisioning", 30, excluded_machines=[]), UNNAMED, Action.REMOVE, id="unnamed, did not appear"
        ),
        pytest.param(status("Ready", machine_id="m-1"), Observation(RUNNING), Action.DELETE_MACHINE, id="runs"),
        pytest.param(status("Failed", machine_id="m-1"), Observation(FAILED), Action.DELETE_MACHINE, id="failed"),
        pytest.param(status("Terminating", machine_id="m-1"), Observation(DELETING), Action.NONE, id="being deleted"),
        pytest.param(status("Terminating", machine_id="m-1", terminating_at=NOW), UNNAMED, Action.REMOVE, id="deleted"),
        pytest.param(status("Ready", machine_id="m-1"), NOTHING, Action.DELETE_MACHINE, id="not listed for a moment"),
        pytest.param(status("Failed", **UNLISTED), NOTHING, Action.DELETE_MACHINE, id="lost"),
    ],
)
def test_a_deleted_node_is_removed_when_its_machine_is_gone(
    stored: VPSieNodeStatus, observed: Observation, action: Action
) -> None:
    assert advance(stored, replace(observed, ending=True), NOW).action is action


@pytest.mark.parametrize("phase", ["Ready", "Draining"])
@pytest.mark.parametrize(
    ("minutes", "node", "kept"),
    [
        # https://github.com/kubernetes-sigs/karpenter/issues/1100
        pytest.param(0, NodeState.READY, True, id="for a moment, ready"),
        pytest.param(0, NodeState.NOT_READY, True, id="for a moment, not ready"),
        pytest.param(60, NodeState.READY, True, id="for long, ready"),
        pytest.param(60, NodeState.NOT_READY, False, id="for long, not ready for long"),
        pytest.param(60, NodeState.ABSENT, False, id="for long, without a Node"),
    ],
)
def test_a_machine_that_is_not_listed_is_lost_once_its_node_does_not_report_either(
    phase: str, minutes: int, node: NodeState, kept: bool
) -> None:
    since = NOW - timedelta(minutes=minutes) if minutes else None
    stored = status(phase, running_at=NOW, machine_id="m-1", unlisted_since=since, unready_since=since)
    step = advance(stored, Observation(None, node, "n-1"), NOW)
    assert (step.status.phase == phase, step.action) == (kept, Action.NONE)
    assert step.status.unlisted_since == (since or NOW)
    assert advance(step.status, Observation(RUNNING, node, "n-1"), NOW).status.unlisted_since is None


@pytest.mark.parametrize(
    ("unready", "repair"),
    [
        pytest.param(None, True, id="not ready only now, its pods were not looked at"),
        pytest.param(NOW - timedelta(minutes=1), False, id="a safety rule keeps it"),
    ],
)
def test_a_node_that_is_not_listed_and_not_ready_is_not_given_up_at_once(
    unready: datetime | None,
    repair: bool,
) -> None:
    stored = status("Ready", running_at=NOW, unready_since=unready, **UNLISTED)
    step = advance(stored, Observation(None, NodeState.NOT_READY, "n-1", repair=repair), NOW)
    assert (step.status.phase, step.status.unready_since) == ("Ready", unready or NOW)


@pytest.mark.parametrize(("node", "phase"), [(NodeState.READY, "Joining"), (NodeState.NOT_READY, "Failed")])
def test_a_booting_node_that_reports_is_not_given_up_because_a_list_lacks_its_machine(
    node: NodeState, phase: str
) -> None:
    stored = status("Joining", 30, running_at=NOW, **UNLISTED)
    step = advance(stored, Observation(None, node, "n-1"), NOW)
    assert (step.status.phase, step.action) == (phase, Action.NONE)


MACHINES = st.sampled_from([None, PENDING, RUNNING, DELETING, FAILED])
STATUSES = st.builds(
    status,
    st.sampled_from(["Pending", "Provisioning", "Joining", "Ready", "Draining", "Terminating", "Failed"]),
    st.integers(0, 20),
    machine_id=st.sampled_from(["", "m-1"]),
    accepted_at=st.sampled_from([None, NOW]),
    running_at=st.sampled_from([None, NOW]),
)


@given(STATUSES, MACHINES, st.sampled_from(NodeState), st.booleans())
def test_a_machine_is_deleted_only_with_its_node_object(
    stored: VPSieNodeStatus, machine: Machine | None, node: NodeState, keeps_names: bool
) -> None:
    step = advance(stored, Observation(machine, node, "n-1", keeps_names=keeps_names), NOW)
    assert step.action not in {Action.DELETE_MACHINE, Action.REMOVE}


@given(STATUSES, MACHINES, st.booleans())
def test_a_node_object_is_never_removed_before_its_machine(
    stored: VPSieNodeStatus, machine: Machine | None, keeps_names: bool
) -> None:
    step = advance(stored, Observation(machine, ending=True, keeps_names=keeps_names), NOW)
    assert step.action is not Action.REMOVE or machine is None


@given(STATUSES, MACHINES, st.sampled_from(NodeState), st.booleans())
def test_a_step_that_is_repeated_after_a_crash_repeats_its_action(
    stored: VPSieNodeStatus, machine: Machine | None, node: NodeState, ending: bool
) -> None:
    observed = Observation(machine, node, "n-1", ending=ending)
    step = advance(stored, observed, NOW)
    repeated = {Action.DELETE_MACHINE, Action.REMOVE} | ({Action.CREATE} if machine is None else set())
    if step.action in repeated and step.status.running_at is None:
        assert advance(step.status, observed, NOW).action is step.action


LOST = NOW - timedelta(minutes=15)


@pytest.mark.parametrize(
    ("stored", "observed", "expected"),
    [
        pytest.param(status("Ready"), Observation(RUNNING), status("Ready", unready_since=NOW), id="gone: remembered"),
        pytest.param(
            status("Ready"),
            Observation(RUNNING, NodeState.NOT_READY),
            status("Ready", unready_since=NOW),
            id="not ready",
        ),
        pytest.param(
            status("Ready", unready_since=LOST),
            Observation(RUNNING, NodeState.READY),
            status("Ready"),
            id="back in time",
        ),
        pytest.param(
            status("Ready", unready_since=LOST + timedelta(seconds=1)),
            Observation(RUNNING),
            status("Ready", unready_since=LOST + timedelta(seconds=1)),
            id="a second is left",
        ),
        pytest.param(
            status("Ready", unready_since=LOST),
            Observation(RUNNING, NodeState.NOT_READY, repair=False),
            status("Ready", unready_since=LOST),
            id="kept in a sick cluster",
        ),
    ],
)
def test_a_node_that_is_not_ready_any_more_is_given_time(
    stored: VPSieNodeStatus, observed: Observation, expected: VPSieNodeStatus
) -> None:
    assert advance(stored, observed, NOW) == Step(expected)


@pytest.mark.parametrize(
    ("node", "text"), [(NodeState.ABSENT, "missing for 15m0s"), (NodeState.NOT_READY, "not ready for 15m0s")]
)
def test_a_node_that_stays_away_has_failed(node: NodeState, text: str) -> None:
    step = advance(status("Ready", unready_since=LOST), Observation(RUNNING, node), NOW)
    assert (step.status.phase, step.status.failed_at) == ("Failed", NOW)
    assert text in step.status.last_error
