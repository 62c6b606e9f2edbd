"""Control of a running `ocf serve`: faults, compaction, and the log of requests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.serve.faults import read_faults
from ocf.cluster.interceptor import describe
from ocf.errors import ConfigError, api_error
from ocf.objects.json_syntax import json_problem
from ocf.testing.fault_cluster import FaultyCluster

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf_server.http.server import HttpServer

__all__ = ["ServerControl"]

_LAST: Final = 100
"""Number of requests in the log that are returned."""


class ServerControl:
    """Handles the requests under `/ocf/`.

    Args:
        server: The server; its wrapper is replaced when the faults change.
    """

    def __init__(self, server: HttpServer, texts: Iterable[str] = ()) -> None:
        self._server = server
        self._cluster = server.cluster
        self._texts: list[str] = []
        self._faulty: FaultyCluster | None = None
        self._set(texts)

    def _set(self, texts: Iterable[str]) -> None:
        """Replace the faults; their counts start from here."""
        known = list(texts)
        faults = read_faults(known)

        def wrap(cluster: Cluster) -> Cluster:
            self._faulty = FaultyCluster(cluster, faults)
            return self._faulty

        self._server.wrap(wrap)
        self._texts = known

    async def __call__(self, method: str, path: str, body: bytes) -> Any:
        """Handle a request."""
        action = _ACTIONS.get((method, path.strip("/")))
        if action is None:
            known = ", ".join(f"{verb} /ocf/{action_path}" for verb, action_path in _ACTIONS)
            raise api_error(
                f"unknown request {method} /ocf/{path}; known requests: {known}", code=404, reason="NotFound"
            )
        return await action(self, body)

    async def _faults(self, _body: bytes) -> Mapping[str, Any]:
        injected = self._faulty.injected if self._faulty is not None else ()
        return {"faults": self._texts, "injected": [str(one) for one in injected]}

    async def _replace(self, body: bytes) -> Mapping[str, Any]:
        self._set(_texts(body))
        return await self._faults(b"")

    async def _clear(self, _body: bytes) -> Mapping[str, Any]:
        self._set(())
        return await self._faults(b"")

    async def _compact(self, _body: bytes) -> Mapping[str, Any]:
        self._cluster.compact()
        return {"resourceVersion": self._cluster.resource_version}

    async def _requests(self, _body: bytes) -> Mapping[str, Any]:
        log = self._cluster.requests
        last = [f"{describe(one)}: {one.code}" for one in log][-_LAST:]
        return {"reads": log.reads, "writes": log.writes, "changes": log.changes, "last": last}

    async def _forget(self, _body: bytes) -> Mapping[str, Any]:
        self._cluster.requests.clear()
        return await self._requests(b"")


def _texts(body: bytes) -> list[str]:
    try:
        found = json.loads(body)
    except ValueError as error:
        problem = json_problem(body).message or "not UTF-8, or a number too long"
        raise ConfigError(f"the body is not JSON: {problem}") from error
    texts = found.get("faults") if isinstance(found, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError('the body must be {"faults": ["conflict,kind=Deployment", ...]}')
    return texts


_Action = Callable[[ServerControl, bytes], Awaitable[Mapping[str, Any]]]
_ACTIONS: Final[Mapping[tuple[str, str], _Action]] = {
    ("GET", "faults"): ServerControl._faults,  # noqa: SLF001 (the table must follow its class)
    ("PUT", "faults"): ServerControl._replace,
    ("DELETE", "faults"): ServerControl._clear,  # noqa: SLF001 (likewise)
    ("POST", "compact"): ServerControl._compact,  # noqa: SLF001 (likewise)
    ("GET", "requests"): ServerControl._requests,  # noqa: SLF001 (likewise)
    ("DELETE", "requests"): ServerControl._forget,  # noqa: SLF001 (likewise)
}
