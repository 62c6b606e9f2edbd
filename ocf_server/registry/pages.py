"""Pages of lists, as objects of the store."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ocf.cluster.protocol import ListOptions, ObjectList, WatchOptions
from ocf.objects import Manifest
from ocf.objects.shards import ShardSelector
from ocf.schema.builtin import ApiResource
from ocf_server.api.status_errors import ExpiredPageError, method_not_allowed
from ocf_server.registry.continue_tokens import LATEST, read_token, write_token
from ocf_server.registry.registry import Registry, kind_of, place_of
from ocf_server.registry.selectors import Predicate, selection
from ocf_server.registry.storage import Listing

__all__ = ["BATCH", "read_page", "selected_by"]

BATCH: Final = 500
"""Number of objects after which a long list lets other requests run."""


def selected_by(
    resource: ApiResource, options: ListOptions | WatchOptions, *, sharded: bool
) -> tuple[Predicate | None, ShardSelector | None]:
    """Parse the selectors of a list or a watch.

    Args:
        sharded: Whether there are shard selectors; they are ignored otherwise.

    Returns:
        The predicate of all selectors, and the shard selector; None for what selects everything.

    Raises:
        BadRequestError: If a label or field selector is malformed.
        ServerError: If the shard selector is malformed.
    """
    shards = None
    if sharded and options.shard_selector:
        # It is CEL, whose parser takes a while to import.
        from ocf_server.registry.shard_selectors import read_shard_selector

        shards = read_shard_selector(options.shard_selector)
    return selection(resource, options.label_selector, options.field_selector, shards), shards


async def read_page(
    registry: Registry, resource: ApiResource, options: ListOptions, *, sharded: bool = False
) -> ObjectList:
    """Return one page of the objects of a kind.

    Args:
        sharded: Whether there are shard selectors; they are ignored otherwise.

    Returns:
        The page. Its items are those of the store, in the version in which they are stored: they must not be changed,
        and `Registry.shown` converts them.

    Raises:
        ApiError: If the objects of the kind are not stored (405).
        BadRequestError: If a label or field selector, or the continue token, is malformed.
        ServerError: If the shard selector is malformed.
        ExpiredPageError: If the continue token is of a version that the log does not contain any more.
    """
    if "list" not in resource.verbs:
        raise method_not_allowed()
    selects, shards = selected_by(resource, options, sharded=sharded)
    store = registry.store
    version, after = store.version, None
    if options.continue_token:
        version, after = read_token(options.continue_token, store.version)
        # The token in this error continues at the latest version, with the risk of a page that does not fit the others.
        if version < store.forgotten:
            raise ExpiredPageError(write_token(LATEST, after))
    listing = store.listing(kind_of(resource), options.namespace, version=version, after=after)
    if selects is None:
        page, remaining = _first(listing, options.limit)
    else:
        # As on a real API server, which would have to read all objects to count those that a selector matches.
        page, remaining = await _selected(registry, resource, listing, selects, options.limit), None
        # A shard selector alone does not keep it from counting: it counts what the selector does not match as well.
        if len(page) > options.limit > 0 and not (options.label_selector or options.field_selector):
            remaining = len(listing) - options.limit
    more = options.limit > 0 and (len(page) > options.limit or bool(remaining))
    page = page[: options.limit] if options.limit > 0 else page
    token = write_token(version, place_of(page[-1])) if more else ""
    return ObjectList(tuple(page), str(version), token, remaining or None, str(shards or ""))


def _first(listing: Listing, limit: int) -> tuple[list[Manifest], int]:
    """Return the first objects of a listing, and the number of those after them."""
    page = list(islice(listing, limit) if limit > 0 else listing)
    return page, len(listing) - len(page)


async def _selected(
    registry: Registry, resource: ApiResource, listing: Listing, selects: Predicate, limit: int
) -> list[Manifest]:
    """Return the selected objects of a listing: all, or one more than the limit."""
    found: list[Manifest] = []
    for batch in _batches(list(listing)):
        for manifest in batch:
            if selects(registry.shown(manifest, resource)):
                found.append(manifest)
                # One more than the page, to know whether there is a next one.
                if len(found) > limit > 0:
                    return found
        if len(batch) == BATCH:
            await asyncio.sleep(0)
    return found


def _batches(found: list[Manifest]) -> Iterator[list[Manifest]]:
    return (found[start : start + BATCH] for start in range(0, len(found), BATCH))
