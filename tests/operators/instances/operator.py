"""The operators of a process: of instances, and of what is in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

from aiohttp import ClientSession

from ocf.runtime.operator import Operator, Process
from tests.operators.instances.contents import dashboards, folders, sources
from tests.operators.instances.instances import SESSION, instances

__all__ = ["panels"]


def panels(
    connect: Callable[[], AbstractAsyncContextManager[ClientSession]] = ClientSession,
) -> Sequence[Operator[Any]]:
    """Return the operators.

    Args:
        connect: Opens the HTTP session that they share.
    """

    @asynccontextmanager
    async def lifespan(process: Process) -> AsyncIterator[None]:
        async with connect() as session:
            process.values[SESSION] = session
            yield

    every: Sequence[Operator[Any]] = (instances(), folders(), sources(), dashboards())
    return [replace(one, lifespan=lifespan) for one in every]
