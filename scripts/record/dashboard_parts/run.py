"""An hour of the README's operator on the embedded cluster, in virtual time, and its metrics every 15 seconds.

What happens is chosen so that every panel of the dashboard has something to show.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prometheus_client import generate_latest

from ocf.cluster import PatchOptions, PatchType, Request
from ocf.cluster.cache import CacheTiming
from ocf.cluster.interceptor import InterceptingCluster
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ManagerOptions, running
from ocf.runtime.operator.manager import Manager
from ocf.testing import LoopClock, run_in_virtual_time
from ocf_server import EmbeddedCluster
from ocf_server.controllers.settings import ControllerSettings

if TYPE_CHECKING:
    from ocf.runtime.operator import Operator

__all__ = ["END", "SCRAPE_INTERVAL", "START", "Scrape", "readme_operator", "record"]

START: Final = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
"""The first instant of the run."""
END: Final = START + timedelta(hours=1)
"""The last instant of the run, that of the last scrape."""
SCRAPE_INTERVAL: Final = timedelta(seconds=15)
"""The time from one scrape to the next."""

_README: Final = Path(__file__).parents[3] / "README.md"
_OPERATOR: Final = re.compile(r"^The operator, `shop\.py`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMESPACE: Final = "default"
_MINUTE: Final = 60.0
# What happens, and all retries after it, must not coincide with a scrape: which comes first would be undefined.
_AFTER_A_SCRAPE: Final = 1.37


class Scrape(NamedTuple):
    """What Prometheus gets from the operator at one time.

    Args:
        at: The time, in whole Unix seconds.
        text: The metrics, in the text format.
    """

    at: int
    text: str


class _Gateway(InterceptingCluster):
    """The operator's connection to the API server, which fails while the server is down."""

    is_down = False

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if self.is_down:
            raise ServerError(f"{request.verb} {request.kind}: the API server is not available", code=503)
        return await send()


def record(length: timedelta = END - START) -> list[Scrape]:
    """Run the operator in virtual time; return what was scraped, oldest first.

    Args:
        length: How long it runs; by default, until all that is planned has happened.
    """
    logging.disable(logging.CRITICAL)
    try:
        return run_in_virtual_time(_record(START + length))
    finally:
        logging.disable(logging.NOTSET)


def readme_operator() -> tuple[Operator[Any], Manifest]:
    """Return the operator of the README, and its definition."""
    found = _OPERATOR.search(_README.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{_README.name} has no operator that {_OPERATOR.pattern!r} finds")
    # A generic pydantic model registers its concrete classes in the module that it finds by this name.
    names: dict[str, Any] = {"__name__": __name__}
    code = compile(found[1], _README.name, "exec", dont_inherit=True)
    exec(code, names)  # noqa: S102 (the code of our own README)
    return names["operator"], names["Shop"].definition()


def _in_the_middle() -> float:
    """Return the random number of every jitter, so that each run is the same."""
    return 0.5


async def _record(end: datetime) -> list[Scrape]:
    loop, clock = asyncio.get_running_loop(), LoopClock(START)
    cluster = EmbeddedCluster(now=clock.now)
    gateway = _Gateway(cluster)
    shops, definition = readme_operator()
    operator = replace(shops, rate_limiter=ExponentialBackoff(random=_in_the_middle))
    await cluster.apply(definition, field_manager="kubectl")
    timing = CacheTiming(monotonic=loop.time, random=_in_the_middle)
    options = ManagerOptions(listen=None, clock=clock, random=_in_the_middle, cache_timing=timing)
    controllers = cluster.controllers(ControllerSettings(ready_after=timedelta(seconds=45)))
    async with controllers.running(), running(gateway, operator, options=options) as manager:
        events = asyncio.create_task(_happen(cluster, gateway))
        scrapes = await _scrape(manager, clock, end)
        events.cancel()
        with suppress(asyncio.CancelledError):
            await events
    return scrapes


async def _scrape(manager: Manager, clock: LoopClock, end: datetime) -> list[Scrape]:
    if manager.registry is None:
        raise ValueError("the manager has no metrics")
    scrapes = []
    while True:
        scrapes.append(Scrape(round(clock.now().timestamp()), generate_latest(manager.registry).decode()))
        if clock.now() >= end:
            return scrapes
        await asyncio.sleep(SCRAPE_INTERVAL.total_seconds())


async def _happen(cluster: EmbeddedCluster, gateway: _Gateway) -> None:
    """Let users, another controller and the API server do what the dashboard should show."""
    loop = asyncio.get_running_loop()

    async def until(minute: float) -> None:
        await asyncio.sleep(minute * _MINUTE + _AFTER_A_SCRAPE - loop.time())

    for number, name in enumerate(("corner", "market", "station", "harbour")):
        await until(3 + number)
        await cluster.create(_shop(name), field_manager="kubectl")
    await until(12)
    await cluster.create(_shop("airport", version="latest"), field_manager="kubectl")
    await until(17)
    await _change(cluster, "harbour", suspended=True)
    await until(23)
    await _fight(cluster, "market")
    await until(38)
    gateway.is_down = True
    await _change(cluster, "corner", version="1.9.0")
    await until(38.6)
    await _change(cluster, "station", version="1.9.0")
    await until(43)
    gateway.is_down = False
    await until(49)
    await _change(cluster, "harbour", suspended=False)
    await until(54)
    await _change(cluster, "corner", version="broken")
    await until(59.5)
    await cluster.create(_shop("museum"), field_manager="kubectl")


async def _fight(cluster: EmbeddedCluster, name: str) -> None:
    """Replace the image of a Deployment every 20 seconds for eight minutes; the operator restores it."""
    theirs = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "shop:mirror"}]}}}}
    key = ObjectKey("apps/v1", "Deployment", name, _NAMESPACE)
    patch = PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="image-mirror")
    for _ in range(24):
        await cluster.patch(key, theirs, patch)
        await asyncio.sleep(_MINUTE / 3)


async def _change(cluster: EmbeddedCluster, name: str, **spec: object) -> None:
    key = ObjectKey("example.com/v1", "Shop", name, _NAMESPACE)
    await cluster.patch(key, {"spec": spec}, PatchOptions(patch_type=PatchType.MERGE, field_manager="kubectl"))


def _shop(name: str, version: str = "2.3.1") -> Manifest:
    metadata = {"name": name, "namespace": _NAMESPACE}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"version": version}}
