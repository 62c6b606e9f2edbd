"""`RetryingReader`: reads are retried if the server asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from ocf.controllers.metrics_client import RESTMetricsClient
from ocf.controllers.metrics_client.retry import RetryingReader
from ocf.errors import ApiError, api_error
from ocf.objects import Manifest
from ocf.testing import run_in_virtual_time


class Busy:
    """Responds with errors first, and records the times of the requests."""

    def __init__(self, *errors: ApiError) -> None:
        self.errors = list(errors)
        self.asked: list[float] = []

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        del path, query, most_bytes
        self.asked.append(asyncio.get_running_loop().time())
        if self.errors:
            raise self.errors.pop(0)
        return {"items": ["entry"]}

    @property
    def pauses(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.asked, self.asked[1:], strict=False)]


def refused(code: int, retry_after: float | None) -> ApiError:
    return api_error("not now", code=code, retry_after=retry_after)


@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_a_read_is_retried_after_the_time_that_the_server_asks_for(code: int) -> None:
    busy = Busy(refused(code, 1), refused(code, 3))
    assert run_in_virtual_time(RetryingReader(busy).read_path("/version")) == {"items": ["entry"]}
    assert busy.pauses == [1, 3]


@pytest.mark.parametrize(("code", "retry_after"), [(503, None), (429, None), (404, 1), (409, 1), (0, None)])
def test_other_errors_are_not_retried(code: int, retry_after: float | None) -> None:
    busy = Busy(refused(code, retry_after))
    with pytest.raises(ApiError, match="not now"):
        run_in_virtual_time(RetryingReader(busy).read_path("/version"))
    assert len(busy.asked) == 1


def test_a_read_is_retried_ten_times() -> None:
    busy = Busy(*[refused(429, 0)] * 20)
    with pytest.raises(ApiError, match="not now"):
        run_in_virtual_time(RetryingReader(busy).read_path("/version"))
    assert len(busy.asked) == 11


@pytest.mark.parametrize(("retry_after", "asked"), [(3600, 1), (4, 3)])
def test_the_total_waiting_time_is_limited(retry_after: float, asked: int) -> None:
    busy = Busy(*[refused(503, retry_after)] * 20)
    with pytest.raises(ApiError, match="not now"):
        run_in_virtual_time(RetryingReader(busy, longest=timedelta(seconds=10)).read_path("/version"))
    assert len(busy.asked) == asked


def test_reads_of_the_metrics_apis_are_retried() -> None:
    busy = Busy(refused(503, 2))
    assert run_in_virtual_time(RESTMetricsClient(busy).external_metric("shop", "queue")) == ["entry"]
    assert busy.pauses == [2]
