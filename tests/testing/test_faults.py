"""A fault is a value that says what happens and when; one that could never happen is refused."""

import pytest

from ocf.cluster import Request, Subresource, Verb
from ocf.errors import (
    ApiError,
    BuildError,
    ConflictError,
    ExpiredError,
    InvalidError,
    ServerError,
    TooManyRequestsError,
    api_error,
)
from ocf.testing import faults
from ocf.testing.faults import Fault

APPLY = Request(Verb.APPLY, "apps/v1", "Deployment", "shop", "web", None, "me")
STATUS = Request(Verb.UPDATE, "example.com/v1", "Shop", "shop", "demo", Subresource.STATUS, "me")
READ = Request(Verb.GET, "apps/v1", "Deployment", "shop", "web")
LIST = Request(Verb.LIST, "apps/v1", "Deployment", "shop")
WATCH = Request(Verb.WATCH, "apps/v1", "Deployment", "shop")


async def nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        pytest.param(faults.conflict(), {APPLY, STATUS}, id="a conflict hits writes"),
        pytest.param(faults.lost_reply(), {APPLY, STATUS}, id="a reply is lost to writes"),
        pytest.param(faults.stale(), {READ, LIST}, id="reads are stale"),
        pytest.param(faults.expired(), {WATCH}, id="a watch expires"),
        pytest.param(faults.expired(verbs=[Verb.LIST]), {LIST}, id="a list if its verb is given"),
        pytest.param(faults.dropped_event(), {WATCH}, id="a watch loses events"),
        pytest.param(faults.timeout(), {APPLY, STATUS, READ, LIST, WATCH}, id="anything times out"),
        pytest.param(faults.meanwhile(nothing, verbs=[Verb.GET]), {READ}, id="by verb"),
        pytest.param(faults.server_error(kind="Shop"), {STATUS}, id="by kind"),
        pytest.param(faults.server_error(api_version="apps/v2"), set(), id="by version"),
        pytest.param(faults.server_error(name="web"), {APPLY, READ}, id="by name"),
        pytest.param(faults.server_error(namespace="mall"), set(), id="by namespace"),
        pytest.param(faults.server_error(subresource="status"), {STATUS}, id="by subresource"),
        pytest.param(faults.conflict(subresource=""), {APPLY}, id="the object itself"),
        pytest.param(faults.stale(name="web"), {READ, LIST}, id="a list may show the named object"),
    ],
)
def test_what_is_hit(fault: Fault, hit: set[Request]) -> None:
    assert {request for request in (APPLY, STATUS, READ, LIST, WATCH) if fault.matches(request)} == hit


@pytest.mark.parametrize(
    ("fault", "due"),
    [
        pytest.param(faults.timeout(), [1], id="once"),
        pytest.param(faults.timeout(first=3), [3], id="the third"),
        pytest.param(faults.timeout(first=2, times=2), [2, 3], id="two in a row"),
        pytest.param(faults.timeout(first=3, times=None), [3, 4, 5], id="for ever"),
    ],
)
def test_how_often(fault: Fault, due: list[int]) -> None:
    assert [number for number in range(1, 6) if fault.is_due(number)] == due


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        pytest.param(faults.conflict(), ConflictError, 409, id="conflict"),
        pytest.param(faults.too_many_requests(), TooManyRequestsError, 429, id="too many requests"),
        pytest.param(faults.server_error(), ServerError, 500, id="internal error"),
        pytest.param(faults.server_error(503), ServerError, 503, id="unavailable"),
        pytest.param(faults.timeout(), ServerError, 0, id="timeout"),
        pytest.param(faults.expired(), ExpiredError, 410, id="expired"),
        pytest.param(faults.rejected(api_error("no", code=422, reason="Invalid")), InvalidError, 422, id="any other"),
    ],
)
def test_what_is_raised(fault: Fault, kind: type[ApiError], code: int) -> None:
    assert isinstance(fault.effect, faults.Refusal)
    assert type(fault.effect.error) is kind
    assert fault.effect.error.code == code


def test_too_many_requests_says_how_long_to_wait() -> None:
    effect = faults.too_many_requests(retry_after=7).effect
    assert isinstance(effect, faults.Refusal)
    assert effect.error.retry_after == 7


@pytest.mark.parametrize(
    ("effect", "verbs", "problem"),
    [
        pytest.param(faults.LostReply(), [Verb.GET, Verb.LIST], "LostReply cannot happen to get, list", id="lost read"),
        pytest.param(
            faults.Stale(), [Verb.APPLY], "Stale cannot happen to apply; it can to get, list", id="stale write"
        ),
        pytest.param(faults.DroppedEvent(), [Verb.LIST], "DroppedEvent cannot happen to list", id="list event"),
        pytest.param(faults.Stale(0), [], "at least 1 version behind", id="not behind"),
    ],
)
def test_a_fault_that_could_never_happen_is_rejected(effect: faults.Effect, verbs: list[Verb], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Fault(effect=effect, verbs=verbs)


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(BuildError) as refused:
        faults.timeout(first=0, times=0, subresource="log")
    assert refused.value.problems == (
        "first is counted from 1, got 0",
        "times must be at least 1, or None for ever, got 0",
        'subresource must be "status", "scale", "" or "*", got "log"',
    )


def test_a_server_error_has_a_status_from_500_to_599() -> None:
    with pytest.raises(BuildError, match="from 500 to 599, got 404"):
        faults.server_error(404)
