"""`ShardedChildren`: a cluster whose cache has of the kinds of children only the objects in the slots of this process.

Owners that are divided by namespace have their children in the same one, so each replica needs those of its namespaces.
What it reads of the others by name, in single watches or beside the cache passes as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from copy import copy
from typing import TYPE_CHECKING, Final

from ocf.cluster import InterceptingCluster
from ocf.cluster.protocol import DEFAULT_LIST_OPTIONS, ListOptions, WatchEvent
from ocf.cluster.request_purpose import Purpose, current_purpose
from ocf.errors import ApiError
from ocf.runtime.sharding.sharded_objects import ShardedObjects

if TYPE_CHECKING:
    from ocf.cluster import Cluster, ObjectList, WatchOptions
    from ocf.runtime.sharding.slots import Slots

__all__ = ["ShardedChildren"]

_log: Final = logging.getLogger(__name__)
_Kind = tuple[str, str]


class ShardedChildren(InterceptingCluster):
    """A cluster in which the lists and watches of a cache show of some kinds only what is in the slots of this process.

    It is the `Division` of that cache.

    Args:
        kinds: The kinds; one that is cluster-scoped is not divided.
    """

    def __init__(self, cluster: Cluster, kinds: Collection[_Kind], slots: Slots) -> None:
        super().__init__(cluster)
        self._slots = slots
        self._parts: Final = {kind: ShardedObjects(cluster, kind, slots) for kind in kinds}
        self._whole: dict[_Kind, bool] = {}
        """The kinds that are not divided any more, each with whether a list of all has ended."""
        self._lists_all: dict[_Kind, bool] = {}
        """Whether the last list that was begun is one of all."""
        self._errors: dict[_Kind, ApiError] = {}
        """The error of the last list, if it failed."""
        self._ended = {kind: asyncio.Event() for kind in kinds}
        """Set at the end of a list, and replaced by a new event then."""

    def divides(self, kind: _Kind) -> bool:
        """Return whether a kind is divided."""
        return kind in self._parts

    def has(self, kind: _Kind, namespace: str) -> bool:
        """Return whether lists that begin now have the objects of a namespace; of an empty one, those of all."""
        return kind in self._whole or bool(namespace and self._slots.term_of("", namespace))

    def shows(self, kind: _Kind, namespace: str) -> bool:
        """Return whether the last list that has ended has them, and the watch has had them since."""
        if kind in self._whole:
            return self._whole[kind]
        return bool(namespace) and self._parts[kind].shows("", namespace)

    async def listed(self, kind: _Kind) -> None:
        """Wait for the end of a list; raise the error of one that fails, or has failed last."""
        if kind not in self._errors:
            await self._ended[kind].wait()
        if kind in self._errors:
            raise copy(self._errors[kind])

    def widen(self, kind: _Kind) -> None:
        """Let all later lists have all objects of a kind."""
        if kind not in self._whole:
            self._whole[kind] = False
            text = (
                "objects of the kind %s in other namespaces than those of this replica are read: it holds all of them"
            )
            _log.info(text, kind[1])

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read the objects in these slots for the cache, or all that the options select."""
        of = (api_version, kind)
        if not self._is_part(of, options):
            return await self._inner.list(api_version, kind, options)
        try:
            page = await self._page(of, options)
        except ApiError as error:
            self._errors[of] = error
            self._end(of)
            raise
        self._errors.pop(of, None)
        if options.limit != 1 and not page.continue_token:
            if self._lists_all[of]:
                self._whole[of] = True
            self._end(of)
        return page

    async def _page(self, of: _Kind, options: ListOptions) -> ObjectList:
        # A list of one object looks for the version of the cluster.
        if options.limit != 1 and not options.continue_token:
            if of not in self._whole and not await self._inner.is_namespaced(*of):
                self._whole[of] = False
            self._lists_all[of] = of in self._whole
        reads_all = options.limit == 1 or self._lists_all[of]
        return await (self._inner if reads_all else self._parts[of]).list(*of, options)

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects in these slots to the cache, or to all that the options select."""
        of = (api_version, kind)
        divided = self._is_part(of, options) and of not in self._whole
        async for event in self._parts[of].watch(*of, options) if divided else super().watch(*of, options):
            yield event

    def _is_part(self, of: _Kind, options: ListOptions | WatchOptions) -> bool:
        """Return whether a request is one of the cache for a kind, and not for a single object of it."""
        return of in self._parts and current_purpose() is Purpose.CACHE and not options.field_selector

    def _end(self, of: _Kind) -> None:
        self._ended[of].set()
        self._ended[of] = asyncio.Event()
