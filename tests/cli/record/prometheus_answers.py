"""A server that answers as Prometheus did: `scripts/record/prometheus.py` recorded its answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeAlias

from aiohttp import web

from ocf.objects import Manifest
from tests.support import serving_locally

__all__ = ["DATA", "FAILING", "PATH", "Answer", "Ask", "PrometheusStub", "Question", "hpa", "load", "save"]

DATA: Final = Path(__file__).parent / "data" / "prometheus.json.gz"
PATH: Final = "/api/v1/query_range"
Question: TypeAlias = tuple[tuple[str, str], ...]
Answer: TypeAlias = tuple[int, str]
Ask: TypeAlias = Callable[[Question], Awaitable[Answer]]
FAILING: Final = {
    "too many points": ("up", timedelta(seconds=11_001)),
    "as many points as possible": ("up", timedelta(seconds=11_000)),
    "invalid query": ("up{", timedelta(seconds=60)),
}
"""Queries beside those of a recording, with the length of their range at a step of one second."""


def save(answers: Mapping[Question, Answer]) -> None:
    """Write answers."""
    text = "".join(f"{json.dumps([question, answer])}\n" for question, answer in sorted(answers.items()))
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_bytes(gzip.compress(text.encode(), mtime=0))


def load() -> dict[Question, Answer]:
    """Read answers."""
    found: dict[Question, Answer] = {}
    for line in gzip.decompress(DATA.read_bytes()).decode().splitlines():
        question, (status, body) = json.loads(line)
        found[tuple((name, value) for name, value in question)] = status, body
    return found


@dataclass(slots=True)
class PrometheusStub:
    """A server on this machine.

    Args:
        ask: Returns the answer to a question.
        url: Its address, while it runs.
        questions: The questions so far.
        headers: The headers of the requests so far.
    """

    ask: Ask
    url: str = ""
    questions: list[Question] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[PrometheusStub]:
        """Serve for the duration of a block."""
        application = web.Application()
        application.router.add_post(PATH, self._answer)
        async with serving_locally(application) as self.url:
            yield self

    async def _answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        question = tuple(sorted((name, str(value)) for name, value in form.items()))
        self.questions.append(question)
        self.headers.append(dict(request.headers))
        status, body = await self.ask(question)
        return web.Response(status=status, text=body, content_type="application/json")


def hpa(namespace: str) -> Manifest:
    """Return a manifest of the HPA, for what kube-state-metrics does not have of it."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": cpu}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        },
    }
