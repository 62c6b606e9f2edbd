"""Roles of members, as values: whatever happens, there is one primary, and no member has two roles."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.primary.roles import Roles, is_ready

START: Final = Roles("db-0", ("db-1", "db-2"), last_index=2)


@pytest.mark.parametrize(
    ("roles", "then"),
    [
        pytest.param(START.switching_over("db-1").promoted(), ("db-1", ("db-2", "db-0")), id="they change places"),
        pytest.param(START.switching_over("db-0").promoted(), ("db-0", ("db-1", "db-2")), id="taken back"),
        pytest.param(START.failing_over("db-2").promoted(), ("db-2", ("db-1",)), id="the primary has failed"),
        pytest.param(
            START.failing_over("db-2").failing_over("db-1").promoted(), ("db-1", ()), id="the candidate has failed, too"
        ),
        pytest.param(
            START.switching_over("db-1").failing_over("db-1").promoted(),
            ("db-1", ("db-2",)),
            id="failed in a switchover",
        ),
        pytest.param(
            START.switching_over("db-0").failing_over("db-1").promoted(),
            ("db-1", ("db-2",)),
            id="failed when taken back",
        ),
    ],
)
def test_the_members_after_a_promotion(roles: Roles, then: tuple[str, tuple[str, ...]]) -> None:
    assert (roles.primary, roles.replicas) == then
    assert (roles.promoting, roles.failed) == ("", ())


def test_what_has_failed_is_no_candidate() -> None:
    assert START.candidates(["db-1", "db-2"]) == ["db-1", "db-2"]
    assert START.candidates(["db-2"]) == ["db-2"]
    assert START.failing_over("db-2").candidates(["db-1", "db-2"]) == ["db-1"]
    assert START.failing_over("db-2").failing_over("db-1").candidates(["db-1", "db-2"]) == []


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["over", "switch", "end"]), st.integers(0, 3)), max_size=8))
def test_no_member_has_two_roles_and_what_is_stored_is_read_again(steps: list[tuple[str, int]]) -> None:
    roles = START
    for step, number in steps:
        candidates = roles.candidates(roles.replicas)
        if step == "end":
            roles = roles.promoted() if roles.promoting else roles
        elif candidates and step == "over":
            roles = roles.failing_over(candidates[number % len(candidates)])
        elif candidates and not roles.promoting:
            roles = roles.switching_over(candidates[number % len(candidates)])
        assert len({*roles.members}) == len(roles.members)
        assert {roles.writable} | {*roles.failed} <= {*roles.members}
        assert roles.writable not in roles.failed
        assert Roles.read("db", roles.to_status(), {}) == roles


@pytest.mark.parametrize(
    ("existing", "read"),
    [
        pytest.param({}, Roles("db-0"), id="a new database"),
        pytest.param(
            {"db-10": "replica", "db-2": "primary", "db-9": "replica"},
            Roles("db-2", ("db-9", "db-10"), last_index=10),
            id="members that exist",
        ),
        pytest.param({"db-x": "replica"}, Roles("db-0", ("db-x",)), id="a name without a number"),
    ],
)
def test_roles_without_a_status_are_those_of_the_members(existing: dict[str, str], read: Roles) -> None:
    assert Roles.read("db", {}, existing) == read


@pytest.mark.parametrize(
    ("live", "ready"),
    [
        pytest.param(None, False, id="absent"),
        pytest.param({"metadata": {}}, False, id="not observed"),
        pytest.param({"metadata": {}, "status": {"readyReplicas": 0}}, False, id="no pod is ready"),
        pytest.param({"metadata": {}, "status": {"readyReplicas": 1}}, True, id="its pod is ready"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"readyReplicas": 1}},
            False,
            id="being deleted",
        ),
    ],
)
def test_a_member_is_ready_while_it_stays(live: dict[str, object] | None, *, ready: bool) -> None:
    assert is_ready(live) is ready
