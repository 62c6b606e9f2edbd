"""When the real controller looked at an autoscaler: the API server notes who reads a Scale, and when."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self

TARGET: Final = "web"
"""The name of the target in every namespace; others may be there, and are looked at at other times."""

_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "users": ["system:kube-controller-manager"],
            "verbs": ["get"],
            "resources": [{"group": group, "resources": ["*/scale"]} for group in ("apps", "example.com")],
        },
        {"level": "None"},
    ],
}
_PAUSE: Final = 0.02


class Audit:
    """The ticks of each namespace, as they appear in the API server's log.

    Args:
        folder: Where policy and log are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._policy = folder / "policy.json"
        self._log = folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY))
        self._read = 0
        self._ticks: defaultdict[str, list[str]] = defaultdict(list)
        self._news = asyncio.Condition()

    @property
    def flags(self) -> dict[str, str | None]:
        """The flags of the API server."""
        return {"audit-policy-file": str(self._policy), "audit-log-path": str(self._log)}

    def ticks(self, namespace: str) -> list[str]:
        """Return when the target of a namespace was looked at, so far."""
        return list(self._ticks[namespace])

    async def tick(self, namespace: str, number: int) -> str:
        """Return when the target of a namespace was looked at for the given time, once it was."""
        async with self._news:
            await self._news.wait_for(lambda: len(self._ticks[namespace]) > number)
        return self._ticks[namespace][number]

    @asynccontextmanager
    async def followed(self) -> AsyncGenerator[Self, None]:
        """Follow the log while a block runs."""
        task = asyncio.create_task(self._follow())
        try:
            yield self
        finally:
            task.cancel()

    async def _follow(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_PAUSE)

    async def _look(self) -> None:
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            event = json.loads(line)
            place = event["objectRef"]
            if place["name"] == TARGET:
                self._ticks[place["namespace"]].append(event["requestReceivedTimestamp"])
        if whole:
            async with self._news:
                self._news.notify_all()
