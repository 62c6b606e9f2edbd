"""Which of some objects exist: by a read of each, or by lists of all if there are many."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.protocol import ListOptions
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from ocf.cluster import Cluster

__all__ = ["existing_objects"]

# A list of so many objects costs about as much as these single reads, of which a few are sent at once.
_MOST_READS: Final = 50
_AT_ONCE: Final = 10
_PAGE: Final = 500


async def existing_objects(
    cluster: Cluster, kind: tuple[str, str], names: set[NamespacedName], homes: Iterable[str]
) -> set[NamespacedName]:
    """Return which of some objects the API server has.

    Args:
        homes: The namespaces in which they are; an empty one for all.
    """
    ordered, at_once = sorted(names), asyncio.Semaphore(_AT_ONCE)

    async def exists(name: NamespacedName) -> bool:
        async with at_once:
            try:
                await cluster.get(ObjectKey(*kind, name[1], name[0]))
            except NotFoundError:
                return False
            return True

    if len(ordered) <= _MOST_READS:
        reads = [asyncio.ensure_future(exists(name)) for name in ordered]
        try:
            answers = await asyncio.gather(*reads)
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
        return {name for name, is_there in zip(ordered, answers, strict=True) if is_there}
    found: set[NamespacedName] = set()
    for home in homes:
        options = ListOptions(namespace=home, limit=_PAGE, metadata_only=True)
        while True:
            page = await cluster.list(*kind, options)
            found |= names.intersection(map(namespaced_name, page.items))
            if not page.continue_token:
                break
            options = replace(options, continue_token=page.continue_token)
    return found
