"""Which connections a limit concerns, and how many there may be."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.concepts.open_files import open_files_limit
from ocf.http.limits import Limits, Waiting, WaitsFor, connections_within, longest_waiting

UNLIMITED = Limits(connections=8, body=None, reading=None)

WAITING = st.builds(Waiting, st.sampled_from(WaitsFor), st.floats(0, 100))


@pytest.mark.parametrize(
    ("what", "seconds"),
    [
        pytest.param(WaitsFor.HEADERS, 32, id="headers, as in controller-runtime"),
        pytest.param(WaitsFor.REQUEST, 90, id="no request, as in the API server"),
        pytest.param(WaitsFor.BODY, 60, id="a body"),
        pytest.param(WaitsFor.READING, 60, id="a response that is not read"),
    ],
)
def test_a_client_may_let_the_server_wait_for_a_time(what: WaitsFor, seconds: float) -> None:
    limits, waiting = Limits(connections=8), Waiting(what, 100.0)
    assert not limits.is_overdue(waiting, 100.0 + seconds - 0.001)
    assert limits.is_overdue(waiting, 100.0 + seconds)
    assert f"{seconds} s" in limits.reason(what)


@pytest.mark.parametrize("what", [WaitsFor.BODY, WaitsFor.READING])
def test_without_a_limit_nothing_is_overdue(what: WaitsFor) -> None:
    assert not UNLIMITED.is_overdue(Waiting(what, 0.0), 1e9)


def test_a_client_that_reads_on_is_not_overdue() -> None:
    assert not Limits(connections=8).is_overdue(Waiting(WaitsFor.READING, 0.0, progress=500.0), 559.0)
    assert Limits(connections=8).is_overdue(Waiting(WaitsFor.READING, 0.0, progress=500.0), 560.0)


@given(st.lists(st.none() | WAITING))
def test_the_connection_that_waits_longest_is_found(waiting: list[Waiting | None]) -> None:
    found = longest_waiting(enumerate(waiting))
    since = [each.since for each in waiting if each is not None]
    if found is None:
        assert not since
    else:
        chosen = waiting[found]
        assert chosen is not None
        assert chosen.since == min(since)


def test_a_client_that_reads_on_waits_since_its_last_progress() -> None:
    slow = ("a list", Waiting(WaitsFor.READING, 1.0, progress=9.0))
    assert longest_waiting([slow, ("silent", Waiting(WaitsFor.HEADERS, 8.0))]) == "silent"
    assert longest_waiting([slow, ("silent", Waiting(WaitsFor.HEADERS, 10.0))]) == "a list"


@given(st.integers(1, 2**31))
def test_the_servers_of_a_process_leave_files_to_its_own_connections(files: int) -> None:
    """The shares of probes and metrics, of webhooks, and of the embedded API server of `ocf dev`."""
    held = sum(
        connections_within(share, most, files=files) for share, most in ((1 / 8, 128), (1 / 4, 512), (1 / 2, None))
    )
    assert held <= max(24, files * 7 / 8 + 24)
    assert connections_within(1 / 8, 128, files=files) >= 8


def test_the_limit_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_files_limit() > 0
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert connections_within(1 / 4) == 256
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert connections_within(1 / 4, 512) == 512
