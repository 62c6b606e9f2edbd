"""`ocf explain KIND/NAME --watch`: what is shown, and when and with which status it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from ocf.cli.explain.follow import FollowEnd, follow
from ocf.cli.explain.owner_answer import OwnerAnswer
from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerSnapshot, explain_owner
from ocf.testing.virtual_time import LoopClock, run_in_virtual_time
from tests.cli.explain.test_owner import CRASHING, explain, served
from tests.ownership.world import NOW, condition, shop

WAITING: Final = shop(condition("Ready", reason="Progressing", message="waiting for a license", minutes=3))
READY: Final = shop(condition("Ready", "True", minutes=0))
STALLED: Final = shop(condition("Ready", message="no"), condition("Stalled", "True", message="wrong password"))
SEEN_BEFORE: Final = shop(condition("Stalled", "True", message="wrong password"), metadata={"generation": 2})


def answer(owner: Manifest, later: float = 0) -> OwnerAnswer:
    now = NOW + timedelta(seconds=later)
    found = explain_owner(OwnerSnapshot(objects=[owner], now=now), ObjectKey.of(owner))
    return OwnerAnswer((found,), now, is_one=True)


def followed(
    answers: Sequence[Manifest | Exception], limit: float | None = None, reading: float = 0
) -> tuple[FollowEnd, list[str], float]:
    """Return how following ends, what is shown, and after how many seconds; the last answer is repeated."""
    given: Iterator[Manifest | Exception] = iter([*answers, *[answers[-1]] * 1_000])
    shown: list[str] = []

    async def work() -> tuple[FollowEnd, float]:
        clock = LoopClock()

        async def read() -> OwnerAnswer:
            await asyncio.sleep(reading)
            one = next(given)
            if isinstance(one, Exception):
                raise one
            return answer(one, clock.elapsed().total_seconds())

        end, _ = await follow(
            read, shown.append, clock=clock, limit=None if limit is None else timedelta(seconds=limit)
        )
        return end, clock.elapsed().total_seconds()

    end, seconds = run_in_virtual_time(work())
    return end, shown, seconds


OUTAGE: Final = ServerError("no answer", code=0, reason="")


def gone() -> Exception:
    error = ConfigError("Shop corner does not exist")
    error.__cause__ = NotFoundError("not found", code=404, reason="NotFound")
    return error


@pytest.mark.parametrize(
    ("answers", "limit", "end", "seconds"),
    [
        pytest.param([READY], None, FollowEnd.READY, 0, id="ready at the start"),
        pytest.param([WAITING, WAITING, READY], None, FollowEnd.READY, 4, id="ready later"),
        pytest.param([WAITING], 5, FollowEnd.TIMEOUT, 5, id="never ready"),
        pytest.param([WAITING], 0, FollowEnd.TIMEOUT, 0, id="no time"),
        pytest.param([READY], 0, FollowEnd.READY, 0, id="no time is needed"),
        pytest.param([WAITING, STALLED], None, FollowEnd.FAILED, 2, id="failed for good"),
        pytest.param([SEEN_BEFORE, READY], None, FollowEnd.READY, 2, id="failed before the last change"),
        pytest.param([WAITING, gone()], None, FollowEnd.DELETED, 2, id="deleted"),
        pytest.param([WAITING, *[OUTAGE] * 29, READY], None, FollowEnd.READY, 60, id="an outage of a minute"),
    ],
)
def test_following_ends(
    answers: Sequence[Manifest | Exception], limit: float | None, end: FollowEnd, seconds: float
) -> None:
    found, _, after = followed(answers, limit)
    assert (found, after) == (end, seconds)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([gone()], id="there is no owner"),
        pytest.param([OUTAGE], id="no answer at the start"),
        pytest.param([WAITING, OUTAGE], id="no answer for long"),
        pytest.param([WAITING, ForbiddenError("no", code=403, reason="Forbidden")], id="the right is taken away"),
        pytest.param([WAITING, ConfigError("the cluster serves no kind")], id="its kind is deleted"),
    ],
)
def test_what_cannot_be_followed_is_an_error(answers: Sequence[Manifest | Exception]) -> None:
    with pytest.raises((ApiError, ConfigError)):
        followed(answers)


def test_a_line_is_shown_when_more_than_a_duration_changes() -> None:
    _, shown, seconds = followed([*[WAITING] * 100, READY])
    assert seconds == 200
    assert shown == [
        "Shop corner is not ready for 3 minutes: Progressing: waiting for a license.",
        "Shop corner is ready for 3 minutes, with 0 objects.",
    ]


def test_a_kind_without_owners_is_waited_for() -> None:
    none = OwnerAnswer((), NOW, is_one=False)

    async def read() -> OwnerAnswer:
        return none

    shown: list[str] = []

    async def work() -> FollowEnd:
        end, _ = await follow(read, shown.append, clock=LoopClock(), limit=timedelta(seconds=5))
        return end

    assert run_in_virtual_time(work()) is FollowEnd.TIMEOUT


@pytest.mark.parametrize(("reading", "seconds"), [(0.1, 2.2), (1, 7), (20, 70)])
def test_a_cluster_that_takes_long_to_read_is_read_less_often(reading: float, seconds: float) -> None:
    assert followed([WAITING, READY], reading=reading)[2] == pytest.approx(seconds)


def test_the_command_ends_with_a_status(tmp_path: Path) -> None:
    ready = shop(condition("Ready", "True"), name="good")
    with served(tmp_path, [*CRASHING, ready]) as kubeconfig:
        good = explain("--watch", "shop/good", "--kubeconfig", kubeconfig)
        bad = explain("shop/corner", "--watch", "--timeout", "0s", "--output", "json", "--kubeconfig", kubeconfig)
        every = explain("shop", "--all", "--watch", "--timeout", "0s", "--kubeconfig", kubeconfig)
    assert (good.exit_code, bad.exit_code, every.exit_code) == (0, 1, 1)
    assert good.stdout.startswith("Shop good is ready")
    assert json.loads(bad.stdout)["sentence"].endswith("so Shop corner is not ready.")
    assert bad.stderr.splitlines()[-1] == "shop corner is not ready in time"
    assert every.stderr.splitlines()[-1] == "shop is not ready in time"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param("shop/corner --watch -f x.yaml", "--watch needs a cluster; files do not change", id="files"),
        pytest.param(
            "shop/corner --watch 5m", "--watch of an owner takes no duration: write --watch --timeout 5m", id="duration"
        ),
        pytest.param("shop/corner --timeout 5m", "--timeout needs --watch", id="a time alone"),
        pytest.param("shop/corner --watch --timeout soon", "--timeout ", id="no time"),
        pytest.param("web --watch", "--watch of an autoscaler needs a DURATION, such as 5m", id="autoscaler"),
        pytest.param("web --watch 5m --timeout 5m", "--timeout is for owners", id="autoscaler with a time"),
    ],
)
def test_options_that_do_not_fit_are_an_error(words: str, message: str) -> None:
    found = explain(*words.split())
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    assert found.stderr.startswith(f"error: {message}")
