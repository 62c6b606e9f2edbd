"""HTTP handlers of the stub: the three metrics APIs and their discovery."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ocf.concepts import Clock
from ocf.controllers.metrics_client import RESOURCE_METRICS
from ocf.controllers.metrics_client.client import CUSTOM_METRICS, EXTERNAL_METRICS
from ocf.errors import ApiError
from ocf.objects import Manifest
from ocf.testing.fake_metrics import FakeMetricsClient

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["VERSIONS", "MetricsHandlers", "MetricsQuery", "make_app"]

VERSIONS: Final = {RESOURCE_METRICS: "v1beta1", CUSTOM_METRICS: "v1beta2", EXTERNAL_METRICS: "v1beta1"}
"""The served version of each API group."""

_PODS: Final = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}


@dataclass(frozen=True, slots=True)
class MetricsQuery:
    """A request for metrics.

    Args:
        at: When it arrived.
        query: Its query parameters.
        user: The user, as the API server reports it; empty if it does not.
    """

    at: datetime
    path: str
    query: tuple[tuple[str, str], ...]
    user: str = ""


class MetricsHandlers:
    """Responds to requests for metrics, and records them.

    Args:
        plural_of: Returns the plural name of a kind, such as `ingresses`, for a group and a kind.
    """

    def __init__(
        self, metrics: FakeMetricsClient, plural_of: Callable[[str, str], Awaitable[str]], clock: Clock
    ) -> None:
        self.metrics = metrics
        self.queries: list[MetricsQuery] = []
        self.overrides: dict[str, tuple[int, bytes]] = {}
        self._plural_of = plural_of
        self._clock = clock

    async def answer(self, request: "web.Request") -> "web.Response":
        """Respond to a request for metrics."""
        from aiohttp import web

        user = request.headers.get("X-Remote-User", "")
        query = tuple(sorted(request.query.items()))
        self.queries.append(MetricsQuery(self._clock.now(), request.path, query, user))
        if request.path in self.overrides:
            status, body = self.overrides[request.path]
            kind = "application/json" if body.startswith(b"{") else "text/plain"
            return web.Response(status=status, body=body, content_type=kind)
        try:
            kind, items = await self._items(request)
        except ApiError as error:
            return _error_response(error)
        version = f"{request.match_info['group']}/{request.match_info['version']}"
        return web.json_response({"kind": kind, "apiVersion": version, "metadata": {}, "items": list(items)})

    async def _items(self, request: "web.Request") -> tuple[str, Sequence[Any]]:
        place = request.match_info
        group, namespace, rest = place["group"], place["namespace"], place["rest"].split("/")
        selector = request.query.get("labelSelector", "")
        if group == RESOURCE_METRICS and rest == ["pods"]:
            return "PodMetricsList", await self.metrics.pod_metrics(namespace, selector)
        if group == EXTERNAL_METRICS and len(rest) == 1:
            return "ExternalMetricValueList", await self.metrics.external_metric(namespace, rest[0], selector=selector)
        if group == CUSTOM_METRICS:
            return "MetricValueList", await self._custom(request, namespace, rest)
        return "List", ()

    async def _custom(self, request: "web.Request", namespace: str, rest: list[str]) -> Sequence[Any]:
        chosen = request.query.get("metricLabelSelector", "")
        match rest:
            case ["pods", "*", metric]:
                selector = request.query.get("labelSelector", "")
                return await self.metrics.pods_metric(namespace, metric, selector=selector, metric_selector=chosen)
            case ["metrics", metric]:
                whole = {"kind": "Namespace", "name": namespace}
                return await self.metrics.object_metric(namespace, whole, metric, metric_selector=chosen)
            case [resource, name, metric]:
                described = await self._described(namespace, resource, name)
                return await self.metrics.object_metric(namespace, described, metric, metric_selector=chosen)
        return ()

    async def _described(self, namespace: str, resource: str, name: str) -> Manifest:
        """Return the object of a request, looked up among the objects that have metrics."""
        plural, _, group = resource.partition(".")
        for home, its_group, kind, its_name in self.metrics.described:
            if (home, its_group, its_name) == (namespace, group, name) and await self._plural_of(group, kind) == plural:
                return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "name": name}
        return {"kind": resource, "name": name}


def make_app(handlers: MetricsHandlers) -> "web.Application":
    """Return the application that serves the APIs."""
    from aiohttp import web

    app = web.Application()
    app.router.add_get("/apis/{group}/{version}", _resources)
    app.router.add_get("/apis/{group}/{version}/namespaces/{namespace}/{rest:.+}", handlers.answer)
    return app


async def _resources(request: "web.Request") -> "web.Response":
    from aiohttp import web

    group, version = request.match_info["group"], request.match_info["version"]
    if VERSIONS.get(group) != version:
        return web.Response(status=404, text="404 page not found")
    resources = [_PODS] if group == RESOURCE_METRICS else []
    return web.json_response(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": resources}
    )


def _error_response(error: ApiError) -> "web.Response":
    """Return the response for an error: a Status if it has a reason, else a plain text like that of a proxy."""
    from aiohttp import web

    code = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    if not error.reason:
        return web.Response(status=code, text=error.message)
    status = {"status": "Failure", "message": error.message, "reason": error.reason, "code": code}
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, **status})
    return web.Response(status=code, text=body, content_type="application/json")
