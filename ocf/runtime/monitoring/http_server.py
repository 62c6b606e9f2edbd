"""HTTP server of an operator: liveness, readiness and metrics.

The responses of `/healthz` and `/readyz` are those of Kubernetes' own components (`apiserver/pkg/server/healthz`): 200
and `ok`, or 500 and the failed checks; `?verbose` lists all checks, `?exclude=NAME` skips one, and `/healthz/NAME` runs
one. A line of a check that passes may say more, after `ok: `.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf.http.limits import Limits, connections_within
from ocf.runtime.monitoring.metrics import render_metrics

if TYPE_CHECKING:
    from aiohttp import web
    from prometheus_client import CollectorRegistry

__all__ = ["Check", "Checks", "Endpoints", "serving"]

Check: TypeAlias = Callable[[], str]
"""Returns the problem as a sentence; empty if there is none. It must not block."""

Checks: TypeAlias = Mapping[str, Check]
"""Checks by name."""

_PORT: Final = 8080
# Of the files that the process may open; webhooks hold a quarter, and the rest is for its own connections.
_SHARE: Final = 1 / 8
_MOST: Final = 128


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Address of the endpoints."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The URL without a path."""
        return f"http://{self.host}:{self.port}"


@asynccontextmanager
async def serving(
    *,
    registry: CollectorRegistry | None = None,
    live: Checks | None = None,
    ready: Checks | None = None,
    notes: Checks | None = None,
    host: str = "0.0.0.0",  # noqa: S104 (the kubelet and Prometheus connect from outside of the pod)
    port: int = _PORT,
) -> AsyncIterator[Endpoints]:
    """Serve `/metrics`, `/healthz` and `/readyz` for as long as the block runs.

    Args:
        registry: The registry that `/metrics` renders; None does not serve `/metrics`.
        live: The checks of `/healthz`, in addition to the event loop's: if one fails, the process is to be restarted.
        ready: The checks of `/readyz`: if one fails, the process cannot work now, but may be able to later.
        notes: What `/readyz?verbose` says of a check of `ready` that passes, by its name.
        host: The address to listen on.
        port: The port to listen on; 0 takes any free port.

    Yields:
        The address of the endpoints.

    Raises:
        ConfigError: If the server cannot listen on the address.

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

    from ocf.http.server import serving_app

    app = web.Application()
    for page, checks in (("healthz", live), ("readyz", ready)):
        pages = _Probe(page, {"ping": lambda: "", **(checks or {})}, (notes or {}) if checks is ready else {})
        app.router.add_get(f"/{page}", pages.all)
        app.router.add_get(f"/{page}/{{name}}", pages.one)
    if registry is not None:
        app.router.add_get("/metrics", _metrics_of(registry))
    limits = Limits(connections=connections_within(_SHARE, _MOST))
    async with serving_app(app, limits, name="endpoints", address=(host, port)) as server:
        yield Endpoints(server.host, server.port)


def _metrics_of(registry: CollectorRegistry) -> Callable[[web.Request], Any]:
    from aiohttp import web

    async def metrics(request: web.Request) -> web.Response:
        found = render_metrics(registry, request.headers.get("Accept", ""))
        return web.Response(body=found.body, headers={"Content-Type": found.content_type})

    return metrics


class _Probe:
    """The pages of one probe.

    Args:
        page: `healthz` or `readyz`.
    """

    def __init__(self, page: str, checks: Checks, notes: Checks) -> None:
        self._page = page
        self._checks = checks
        self._notes = notes

    async def all(self, request: web.Request) -> web.Response:
        """Respond with the result of all checks that are not excluded."""
        from aiohttp import web

        excluded = request.query.getall("exclude", [])
        unknown = sorted(set(excluded) - self._checks.keys())
        problems = {name: _run(check) for name, check in self._checks.items() if name not in excluded}
        failed = any(problems.values())
        if not (failed or "verbose" in request.query):
            return web.Response(text="ok")
        lines = [self._line(name, problem) for name, problem in problems.items()]
        lines += [f"[+]{name} excluded: ok" for name in excluded if name not in unknown]
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {', '.join(unknown)}")
        lines.append(f"{self._page} check {'failed' if failed else 'passed'}")
        return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")

    def _line(self, name: str, problem: str) -> str:
        if problem:
            return f"[-]{name} failed: {problem}"
        return f"[+]{name} ok: {_run(self._notes[name])}" if name in self._notes else f"[+]{name} ok"

    async def one(self, request: web.Request) -> web.Response:
        """Respond with the result of one check."""
        from aiohttp import web

        name = request.match_info["name"]
        if name not in self._checks:
            return web.Response(status=404, text=f"unknown check {name!r}, expected {', '.join(self._checks)}\n")
        problem = _run(self._checks[name])
        return web.Response(status=500, text=f"{problem}\n") if problem else web.Response(text="ok")


def _run(check: Check) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (a check that raises has failed)
        return f"the check raised {type(error).__name__}"
