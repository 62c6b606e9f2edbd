"""A cluster that kills its process after given writes, each of them once.

All processes with one folder share the steps that are done.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from ocf.cluster import Cluster, Request, Subresource
from ocf.cluster.interceptor import InterceptingCluster
from ocf.objects import Manifest

__all__ = ["KillingCluster", "Step", "done", "stored", "wrote"]

_DONE: Final = "done"
Step: TypeAlias = Callable[[Request, Manifest], bool]
"""Returns whether a write is the one, from the request and the object in the answer."""


def wrote(verb: str, kind: str, subresource: Subresource | None = None) -> Step:
    """Return the step of a request.

    Args:
        verb: Its verb.
        kind: Its kind.
        subresource: Its subresource.
    """
    return lambda request, _: (request.verb, request.kind, request.subresource) == (verb, kind, subresource)


def stored(kind: str, condition: Callable[[Mapping[str, Any]], Any]) -> Step:
    """Return the step of a status.

    Args:
        kind: The kind of the object.
        condition: Returns whether it is the one, from the status.
    """
    written = wrote("update", kind, Subresource.STATUS)
    return lambda request, answer: written(request, answer) and bool(condition(answer.get("status") or {}))


def done(folder: Path) -> list[str]:
    """Return the steps after which a process was killed, in order.

    Args:
        folder: The folder of the processes.
    """
    file = folder / _DONE
    return file.read_text(encoding="ascii").splitlines() if file.exists() else []


class KillingCluster(InterceptingCluster):
    """A cluster that kills this process after the first write that is the next step.

    Args:
        cluster: The cluster.
        folder: The folder of the processes.
        steps: The steps in their order.
        known: What each step is.
    """

    def __init__(self, cluster: Cluster, folder: Path, steps: Sequence[str], known: Mapping[str, Step]) -> None:
        super().__init__(cluster)
        self._folder = folder
        self._steps = steps
        self._known = known

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        answer = await send()
        past = done(self._folder)
        if not request.verb.is_read and len(past) < len(self._steps):
            step = self._steps[len(past)]
            if self._known[step](request, answer):
                (self._folder / _DONE).write_text("\n".join([*past, step]), encoding="ascii")
                os.kill(os.getpid(), signal.SIGKILL)
        return answer
