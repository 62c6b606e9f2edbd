"""Prometheus metrics of the requests to the webhook server.

Names and help of the first two are those of controller-runtime (`pkg/webhook/internal/metrics`), so existing dashboards
work. The label `webhook` is a path of the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ocf.concepts import Clock

__all__ = ["MeasuredRequest", "WebhookMetrics"]


class MeasuredRequest:
    """A request that is measured."""

    def __init__(self, failures: Counter, ignored: Counter) -> None:
        self._failures = failures
        self._ignored = ignored

    def failed(self, *, ignored: bool) -> None:
        """Count a failure of the webhook itself.

        Args:
            ignored: Whether the request was allowed all the same.
        """
        self._failures.inc()
        if ignored:
            self._ignored.inc()


class WebhookMetrics:
    """The metrics of a webhook server."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing webhook requests",
            labelnames=("webhook",),
            registry=registry,
        )
        self._requests = Counter(
            "controller_runtime_webhook_requests_total",
            "Total number of webhook requests by HTTP status code.",
            labelnames=("webhook", "code"),
            registry=registry,
        )
        self._failures = Counter(
            "ocf_webhook_failures_total",
            "Requests that a webhook could not process: failed conversions, failed or late functions.",
            labelnames=("webhook",),
            registry=registry,
        )
        self._ignored = Counter(
            "ocf_webhook_ignored_failures_total",
            "Requests that were allowed although the webhook failed, because its failure policy is Ignore.",
            labelnames=("webhook",),
            registry=registry,
        )

    @contextmanager
    def measured(self, path: str) -> Iterator[MeasuredRequest]:
        """Measure a request for as long as the block runs."""
        from aiohttp import web

        started, code = self._clock.elapsed(), 500
        try:
            yield MeasuredRequest(self._failures.labels(path), self._ignored.labels(path))
            code = 200
        except web.HTTPException as error:
            code = error.status
            raise
        except asyncio.CancelledError:
            code = 0  # its client is gone, and gets no response
            raise
        finally:
            if code:
                self._latency.labels(path).observe((self._clock.elapsed() - started).total_seconds())
                self._requests.labels(path, str(code)).inc()
