"""Which of some objects exist: by a read of each, or by lists of all if there are many."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ocf.cluster.cache.keys import NamespacedName, namespaced_name
from ocf.cluster.protocol import ListOptions
from ocf.errors import ApiError, NotFoundError
from ocf.objects import ObjectKey

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.objects import Manifest

__all__ = ["existing_objects", "read_each"]

# A list of so many objects costs about as much as these single reads, of which a few are sent at once.
_MOST_READS: Final = 50
_AT_ONCE: Final = 10
_PAGE: Final = 500


async def read_each(
    cluster: Cluster,
    kind: tuple[str, str],
    names: Iterable[NamespacedName],
    absent: tuple[type[ApiError], ...] = (NotFoundError,),
) -> dict[NamespacedName, Manifest]:
    """Read objects by name, a few at once.

    Args:
        absent: The errors of a read that leave an object out.
    """
    ordered, at_once = sorted(names), asyncio.Semaphore(_AT_ONCE)

    async def read(name: NamespacedName) -> Manifest | None:
        async with at_once:
            try:
                return await cluster.get(ObjectKey(*kind, name[1], name[0]))
            except absent:
                return None

    reads = [asyncio.ensure_future(read(name)) for name in ordered]
    try:
        answers = await asyncio.gather(*reads)
    finally:
        for each in reads:
            each.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
    return {name: found for name, found in zip(ordered, answers, strict=True) if found is not None}


async def existing_objects(
    cluster: Cluster, kind: tuple[str, str], names: set[NamespacedName], homes: Iterable[str]
) -> set[NamespacedName]:
    """Return which of some objects the API server has.

    Args:
        homes: The namespaces in which they are; an empty one for all.
    """
    if len(names) <= _MOST_READS:
        return {*await read_each(cluster, kind, names)}
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
