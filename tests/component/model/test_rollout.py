"""Which member of a rollout is changed next: safe for those that are available, and never stuck.

Public reports: https://github.com/kubernetes/kubernetes/issues/67250 (a broken rollout cannot be repaired, because the
broken one is waited for), https://github.com/metacontroller/metacontroller/issues/261 (one of three StatefulSets is
updated, and the others never are).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.component.model.rollout import Member, next_member

READY = Member(is_ready=True, is_down=False, is_pending=True)
PARTLY = Member(is_ready=False, is_down=False, is_pending=True)
DOWN = Member(is_ready=False, is_down=True, is_pending=True)
STOPPED = Member(is_ready=True, is_down=True, is_pending=True)
DONE = Member(is_ready=True, is_down=False, is_pending=False)
UPDATING = Member(is_ready=False, is_down=False, is_pending=False)


@pytest.mark.promise("rollout-order")
@pytest.mark.parametrize(
    ("members", "most", "expected"),
    [
        pytest.param([READY, READY], 1, 0, id="in the given order"),
        pytest.param([DONE, READY], 1, 1, id="after one that is done"),
        pytest.param([UPDATING, READY], 1, None, id="not while one is updated"),
        pytest.param([UPDATING, READY], 2, 1, id="beside one that is updated, if two may be"),
        pytest.param([UPDATING, UPDATING, READY], 2, None, id="not beside two"),
        pytest.param([READY, PARTLY], 1, 1, id="a broken one first"),
        pytest.param([READY, PARTLY, DOWN], 1, 2, id="one that is down before one that is partly available"),
        pytest.param([UPDATING, DOWN], 1, 1, id="one that is down waits for none"),
        pytest.param([UPDATING, STOPPED], 1, 1, id="nor does one without pods, which reports no problem"),
        pytest.param([UPDATING, PARTLY], 1, None, id="one that is partly available waits for one that is updated"),
        pytest.param([PARTLY, PARTLY, READY], 1, 0, id="one of several that are partly available"),
        pytest.param([UPDATING, PARTLY, READY], 3, 1, id="broken ones first, also with room for all"),
        pytest.param([DONE, DONE], 1, None, id="none is left"),
        pytest.param([], 1, None, id="no members"),
    ],
)
def test_the_next_member(members: list[Member], most: int, expected: int | None) -> None:
    assert next_member(members, most) == expected


MEMBERS = st.lists(st.sampled_from([READY, PARTLY, DOWN, STOPPED, DONE, UPDATING]), max_size=8)


@pytest.mark.promise("rollout-order", runs="any states of up to eight members, of which any becomes ready next")
@given(members=MEMBERS, most=st.integers(1, 4), data=st.data())
def test_a_rollout_ends_and_takes_no_available_member_beyond_the_limit(
    members: list[Member], most: int, data: st.DataObject
) -> None:
    for _ in range(2 * len(members) + 1):
        while (at := next_member(members, most)) is not None:
            taken = members[at]
            if taken.is_ready and not taken.is_down:
                assert sum(not one.is_ready for one in members) < most
            members = [*members[:at], UPDATING, *members[at + 1 :]]
        busy = [at for at, one in enumerate(members) if one == UPDATING]
        if not busy:
            break
        ready = data.draw(st.sampled_from(busy))
        members = [*members[:ready], DONE, *members[ready + 1 :]]

    assert all(one == DONE for one in members)
