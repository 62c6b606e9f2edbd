"""The API `external.metrics.k8s.io`, out of the cache of the operator: what the HPA of each scaler asks for.

A product registers it with an APIService, and lets in only the API server, by its client certificate.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from aiohttp import web

from ocf.cluster import Cluster, ListOptions
from ocf.objects import Manifest, format_time, parse_time, selects
from tests.operators.scaler.model import Scaler
from tests.operators.scaler.triggers import Reading, Readings

__all__ = ["METRICS", "SCALER_LABEL", "effective_readings", "metrics_app"]

METRICS: Final = "external.metrics.k8s.io/v1beta1"
SCALER_LABEL: Final = "scaler.example.com/scaler"


def metrics_app(cluster: Cluster, readings: Readings) -> web.Application:
    """Return the application that serves the metrics of all scalers.

    Args:
        cluster: The cache, so that a query costs the API server no request.
    """

    async def answer(request: web.Request) -> web.Response:
        metric, namespace = request.match_info["metric"], request.match_info["namespace"]
        found = await cluster.list(Scaler.api_version, Scaler.kind, ListOptions(namespace=namespace))
        items, problems = [], []
        for live in found.items:
            labels = {SCALER_LABEL: live["metadata"]["name"]}
            if not selects(request.query.get("labelSelector", ""), labels):
                continue
            for one in await effective_readings(Scaler.model_validate(live), readings, only=metric):
                items += [_item(one, labels)] if one.value is not None else []
                problems += [one.problem] if one.value is None else []
        if problems or not items:
            return _failure("; ".join(problems) or f"no scaler has the trigger {metric}", 503 if problems else 404)
        return web.json_response(
            {"kind": "ExternalMetricValueList", "apiVersion": METRICS, "metadata": {}, "items": items}
        )

    async def discover(_: web.Request) -> web.Response:
        body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": METRICS, "resources": []}
        return web.json_response(body)

    app = web.Application()
    app.router.add_get(f"/apis/{METRICS}", discover)
    app.router.add_get(f"/apis/{METRICS}/namespaces/{{namespace}}/{{metric}}", answer)
    return app


async def effective_readings(scaler: Scaler, readings: Readings, *, only: str = "") -> list[Reading]:
    """Return what the triggers of a scaler count for now, in the operator and in the metrics API alike.

    Args:
        only: The name of the trigger; empty for all.
    """
    chosen = [one for one in scaler.spec.triggers if only in ("", one.name)]
    found = await readings.read(chosen, timedelta(seconds=scaler.spec.poll_seconds))
    since = (scaler.status.failing if scaler.status else None) or {}
    return [one.with_fallback(scaler.spec.fallback, _time(since.get(one.trigger.name))) for one in found]


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def _item(reading: Reading, labels: dict[str, str]) -> Manifest:
    return {
        "metricName": reading.trigger.name,
        "metricLabels": labels,
        "timestamp": format_time(reading.at),
        "value": f"{round((reading.value or 0) * 1000)}m",
    }


def _failure(message: str, code: int) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": code,
    }
    reason = "NotFound" if code == 404 else "ServiceUnavailable"
    return web.json_response({**status, "reason": reason}, status=code)
