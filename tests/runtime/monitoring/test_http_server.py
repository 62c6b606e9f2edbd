"""The pages that Kubernetes and Prometheus ask for, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry, Counter

from ocf.errors import ConfigError
from ocf.runtime.monitoring.http_server import Endpoints, serving


@asynccontextmanager
async def asking(**options: Any) -> AsyncIterator[tuple[ClientSession, Endpoints]]:
    async with serving(host="127.0.0.1", port=0, **options) as endpoints, ClientSession(endpoints.url) as session:
        yield session, endpoints


async def asked(session: ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


def broken() -> str:
    raise RuntimeError("secret")


async def test_a_process_without_checks_lives_and_is_ready() -> None:
    async with asking() as (session, _):
        assert await asked(session, "/healthz") == (200, "ok")
        assert await asked(session, "/readyz") == (200, "ok")
        assert await asked(session, "/healthz?verbose") == (200, "[+]ping ok\nhealthz check passed\n")


async def test_a_check_that_passes_may_say_more_on_the_verbose_page_of_readiness() -> None:
    problem = ""
    checks, notes = {"shards": lambda: problem, "queue": lambda: ""}, {"shards": lambda: "4 of 64 slots"}
    async with asking(live=checks, ready=checks, notes=notes) as (session, _):
        assert await asked(session, "/readyz") == (200, "ok")
        passed = "[+]ping ok\n[+]shards ok: 4 of 64 slots\n[+]queue ok\nreadyz check passed\n"
        assert await asked(session, "/readyz?verbose") == (200, passed)
        assert await asked(session, "/readyz/shards") == (200, "ok")
        problem = "lost"
        failed = "[+]ping ok\n[-]shards failed: lost\n[+]queue ok\nreadyz check failed\n"
        assert await asked(session, "/readyz") == (500, failed)


async def test_a_check_that_fails_is_named_and_all_others_too() -> None:
    problem = "lost"
    async with asking(live={"watch": lambda: problem, "queue": lambda: ""}) as (session, _):
        body = "[+]ping ok\n[-]watch failed: lost\n[+]queue ok\nhealthz check failed\n"
        assert await asked(session, "/healthz") == (500, body)
        assert await asked(session, "/readyz") == (200, "ok")
        problem = ""
        assert await asked(session, "/healthz") == (200, "ok")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        pytest.param("?exclude=watch", 200, "ok", id="without the one that fails"),
        pytest.param(
            "?verbose&exclude=watch",
            200,
            "[+]ping ok\n[+]queue ok\n[+]watch excluded: ok\nreadyz check passed\n",
            id="all but the one that fails",
        ),
        pytest.param(
            "?exclude=none",
            500,
            "[+]ping ok\n[-]watch failed: lost\n[+]queue ok\n"
            "warn: some health checks cannot be excluded: no matches for none\nreadyz check failed\n",
            id="without one that is not there",
        ),
        pytest.param("/watch", 500, "lost\n", id="the one that fails"),
        pytest.param("/queue", 200, "ok", id="one that does not"),
        pytest.param("/none", 404, "unknown check 'none', expected ping, watch, queue\n", id="one that is not there"),
    ],
)
async def test_single_checks_can_be_asked_and_left_out(path: str, status: int, text: str) -> None:
    async with asking(ready={"watch": lambda: "lost", "queue": lambda: ""}) as (session, _):
        assert await asked(session, f"/readyz{path}") == (status, text)


async def test_a_check_that_raises_has_failed_and_shows_no_secret() -> None:
    async with asking(live={"odd": broken}) as (session, _):
        status, text = await asked(session, "/healthz")
        assert (status, "[-]odd failed: the check raised RuntimeError" in text, "secret" in text) == (500, True, False)


async def test_metrics_are_shown_in_the_format_that_is_asked_for() -> None:
    registry = CollectorRegistry()
    Counter("shops", "Shops.", registry=registry).inc()
    async with asking(registry=registry) as (session, _):
        status, text = await asked(session, "/metrics")
        assert (status, "shops_total 1.0" in text) == (200, True)
        async with session.get("/metrics", headers={"Accept": "application/openmetrics-text"}) as answer:
            assert answer.content_type == "application/openmetrics-text"
            assert (await answer.text()).endswith("# EOF\n")


async def test_without_a_registry_there_are_no_metrics() -> None:
    async with asking() as (session, _):
        assert (await asked(session, "/metrics"))[0] == 404


async def test_a_port_that_is_taken_is_named() -> None:
    async with asking() as (_, endpoints):
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{endpoints.port}"):
            async with serving(host="127.0.0.1", port=endpoints.port):
                pass


async def test_the_port_is_free_again_afterwards() -> None:
    async with asking() as (_, endpoints):
        pass
    async with serving(host="127.0.0.1", port=endpoints.port) as again:
        assert again.url == endpoints.url
