"""What Kubernetes and Prometheus ask an operator over HTTP: whether it lives, whether it is ready, and its metrics.

The answers of `/healthz` and `/readyz` are those of Kubernetes' own components (`apiserver/pkg/server/healthz`): 200
and `ok`, or 500 and the checks that failed; `?verbose` names all, `?exclude=NAME` leaves one out, and `/healthz/NAME`
asks one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.errors import ConfigError
from ocf.runtime.monitoring.metrics import exposition

if TYPE_CHECKING:
    from aiohttp import web
    from prometheus_client import CollectorRegistry

__all__ = ["Check", "Checks", "Endpoints", "serving"]

Check: TypeAlias = Callable[[], str]
"""Returns what is wrong, as a sentence; empty if nothing is. It must not wait."""

Checks: TypeAlias = Mapping[str, Check]
"""Checks by name."""

_PORT: Final = 8080
_FAREWELL: Final = 1.0


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the endpoints are.

    Args:
        host: The address that is listened on.
        port: The port.
    """

    host: str
    port: int

    @property
    def url(self) -> str:
        """What to ask, without a path."""
        return f"http://{self.host}:{self.port}"


@asynccontextmanager
async def serving(
    *,
    registry: CollectorRegistry | None = None,
    live: Checks | None = None,
    ready: Checks | None = None,
    host: str = "0.0.0.0",  # noqa: S104 (the kubelet and Prometheus come from outside of the pod)
    port: int = _PORT,
) -> AsyncIterator[Endpoints]:
    """Serve `/metrics`, `/healthz` and `/readyz` for as long as the block runs.

    Args:
        registry: What `/metrics` shows; without one there is no such page.
        live: What `/healthz` asks besides whether the event loop runs: restart the process if one fails.
        ready: What `/readyz` asks: the process cannot do its work now, but may be able to later.
        host: The address to listen on.
        port: The port to listen on; 0 takes any that is free.

    Yields:
        Where the endpoints are.

    Raises:
        ConfigError: If the address cannot be listened on.

    Example:
        >>> import asyncio
        >>> from aiohttp import ClientSession
        >>> async def main() -> str:
        ...     async with serving(ready={"cache": lambda: "not synced"}, host="127.0.0.1", port=0) as endpoints:
        ...         async with ClientSession() as session, session.get(f"{endpoints.url}/readyz") as answer:
        ...             return f"{answer.status} {await answer.text()}"
        >>> print(asyncio.run(main()))
        500 [+]ping ok
        [-]cache failed: not synced
        readyz check failed
        <BLANKLINE>
    """
    from aiohttp import web

    app = web.Application()
    for page, checks in (("healthz", live), ("readyz", ready)):
        pages = _Probe(page, {"ping": lambda: "", **(checks or {})})
        app.router.add_get(f"/{page}", pages.all)
        app.router.add_get(f"/{page}/{{name}}", pages.one)
    if registry is not None:
        app.router.add_get("/metrics", _metrics_of(registry))
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_FAREWELL)
    await runner.setup()
    try:
        yield await _listen(runner, host, port)
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, host: str, port: int) -> Endpoints:
    from aiohttp import web

    try:
        await web.TCPSite(runner, host, port).start()
    except (OSError, OverflowError) as error:  # the latter for what is no port
        problem = getattr(error, "strerror", "") or error
        raise ConfigError(f"endpoints: {host}:{port} cannot be listened on: {problem}") from error
    address: tuple[Any, ...] = runner.addresses[0]
    return Endpoints(str(address[0]), int(address[1]))


def _metrics_of(registry: CollectorRegistry) -> Callable[[web.Request], Any]:
    from aiohttp import web

    async def metrics(request: web.Request) -> web.Response:
        found = exposition(registry, request.headers.get("Accept", ""))
        return web.Response(body=found.body, headers={"Content-Type": found.content_type})

    return metrics


class _Probe:
    """The pages of one probe.

    Args:
        page: `healthz` or `readyz`.
        checks: What it asks.
    """

    def __init__(self, page: str, checks: Checks) -> None:
        self._page = page
        self._checks = checks

    async def all(self, request: web.Request) -> web.Response:
        """Answer for all checks but those that are left out."""
        left_out = request.query.getall("exclude", [])
        unknown = sorted(set(left_out) - self._checks.keys())
        problems = {name: _asked(check) for name, check in self._checks.items() if name not in left_out}
        return _answer(self._page, problems, left_out, unknown, verbose="verbose" in request.query)

    async def one(self, request: web.Request) -> web.Response:
        """Answer for one check."""
        from aiohttp import web

        name = request.match_info["name"]
        if name not in self._checks:
            return web.Response(status=404, text=f"there is no check {name!r}, only {', '.join(self._checks)}\n")
        problem = _asked(self._checks[name])
        return web.Response(status=500, text=f"{problem}\n") if problem else web.Response(text="ok")


def _answer(
    page: str, problems: Mapping[str, str], left_out: list[str], unknown: list[str], *, verbose: bool
) -> web.Response:
    from aiohttp import web

    failed = any(problems.values())
    if not (failed or verbose):
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in problems.items()]
    lines += [f"[+]{name} excluded: ok" for name in left_out if name not in unknown]
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {', '.join(unknown)}")
    lines.append(f"{page} check {'failed' if failed else 'passed'}")
    return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")


def _asked(check: Check) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (a check that fails is a check that has failed)
        return f"the check raised {type(error).__name__}"
