"""`ApiServerCluster`: the verbs, each in three steps: find the path, send the request, read the answer."""

import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from kubernetes.aio.client import ApiClient

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.client import requests
from ocf.cluster.client.config import open_client
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.discovery import Discovery
from ocf.cluster.client.paths import DiscoveredResource, type_of
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.responses import UnknownPathError, read_event, read_list
from ocf.cluster.client.watch_stream import Lines
from ocf.cluster.protocol import (
    DEFAULT_DELETE_OPTIONS,
    DEFAULT_LIST_OPTIONS,
    DeleteOptions,
    ListOptions,
    ObjectList,
    PatchOptions,
    Subresource,
    WatchEvent,
    WatchOptions,
)
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey

__all__ = ["ApiServerCluster"]


class ApiServerCluster:
    """A cluster behind a real API server.

    Manifests go out and come back as plain dicts; no field is dropped on the way. Nothing is retried, see
    `ocf.cluster.client.connection`.

    Args:
        client: A client of `kubernetes.aio` that does not retry.
        close_client: Whether `close` closes the client, too.
        request_timeout: Seconds a request may take; afterwards it is a `ServerError` with code 0.
        watch_timeout: Seconds after which the server is asked to end a watch. A watch that is silent for
            `request_timeout` seconds longer than this has lost its connection.
        memory: What the operator remembers of its writes; None starts with nothing.

    Raises:
        ConfigError: If a time is not positive, or the client retries.

    Example:
        >>> async def main() -> None:
        ...     async with await ApiServerCluster.connect() as cluster:
        ...         page = await cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))
        ...         print([item["metadata"]["name"] for item in page.items])
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        close_client: bool = False,
        request_timeout: float = 30.0,
        watch_timeout: float = 300.0,
        memory: ApplyCache | None = None,
    ) -> None:
        self._connection = Connection(
            client, owned=close_client, timeout=request_timeout, silence=watch_timeout + request_timeout
        )
        self._discovery = Discovery(lambda path: self._connection.send(HttpRequest("GET", path)))
        self._watch_timeout = watch_timeout
        self._memory = memory if memory is not None else ApplyCache()

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        request_timeout: float = 30.0,
        watch_timeout: float = 300.0,
        memory: ApplyCache | None = None,
    ) -> Self:
        """Open a cluster by kubeconfig, or by the service account of the pod we run in.

        Nothing is sent yet. Tokens of plugins, identity providers and service accounts are renewed in time; a client
        certificate is read once.

        Args:
            kubeconfig: A kubeconfig; None takes `$KUBECONFIG`, else the pod's service account, else `~/.kube/config`.
            context: The context of the kubeconfig to use; None takes the current one.
            request_timeout: As of the class.
            watch_timeout: As of the class.
            memory: As of the class.

        Returns:
            The cluster; to be closed, which `async with` does.

        Raises:
            ConfigError: If no configuration is found, or it cannot be used.
        """
        client = await open_client(kubeconfig, context)
        return cls(
            client, close_client=True, request_timeout=request_timeout, watch_timeout=watch_timeout, memory=memory
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send nothing more, end watches, and close the client if that is ours, which ends what is under way."""
        await self._discovery.close()
        await self._connection.close()

    @property
    def apply_cache(self) -> ApplyCache:
        """What must outlive a pass; losing it costs one write per affected object."""
        return self._memory

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        return await self._about(key, subresource, lambda resource: requests.get(resource, key, subresource))

    async def read_path(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, most_bytes: int | None = None
    ) -> Manifest:
        """Read what is at a path, for the APIs that hold no objects: discovery, and measurements served by aggregation.

        Args:
            path: The path below the server's address, each segment escaped.
            query: Query parameters, not escaped.
            most_bytes: How long the answer may be, uncompressed; None for any length.

        Returns:
            The JSON object that the server sent.

        Raises:
            ApiError: By class. Where the answer is no Status, its `reason` is empty.
            ServerError: Also if the answer is longer.

        Example:
            >>> async def versions(cluster: ApiServerCluster, group: str) -> list[str]:
            ...     answer = await cluster.read_path(f"/apis/{group}")
            ...     return [version["groupVersion"] for version in answer["versions"]]
        """
        return await self._connection.send(HttpRequest("GET", path, tuple(query)), most_bytes=most_bytes)

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read one page of the objects of a kind."""
        answer = await self._ask(api_version, kind, None, lambda resource: requests.listing(resource, options))
        return read_list(answer, api_version, kind)

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects of a kind.

        The iteration ends when the server ends the watch, after `watch_timeout` seconds at the latest; continue from
        the last resource version seen. It raises `ServerError` when the connection breaks. To stop earlier, leave the
        loop: `contextlib.aclosing` closes the connection at once, otherwise it closes with the iterator.
        """
        resource = await self._discovery.find(api_version, kind)
        request = requests.watching(resource, options, seconds=self._watch_timeout)
        with self._forgetting(api_version):
            stream = await self._connection.stream(request)
        lines = Lines()
        try:
            while piece := await stream.read():
                for line in lines.feed(piece):
                    yield read_event(line, asked=str(request))
        finally:
            stream.close()
        if lines.unfinished:
            raise ServerError(f"{request}: the watch ended in the middle of an event")

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Create or change an object by server-side apply."""

        def build(resource: DiscoveredResource) -> HttpRequest:
            return requests.apply(
                resource, manifest, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
            )

        return await self._ask(*type_of(manifest, subresource), subresource, build)

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Create an object."""

        def build(resource: DiscoveredResource) -> HttpRequest:
            return requests.create(resource, manifest, field_manager=field_manager, dry_run=dry_run)

        return await self._ask(*type_of(manifest), None, build)

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale."""

        def build(resource: DiscoveredResource) -> HttpRequest:
            return requests.update(
                resource, manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run
            )

        return await self._ask(*type_of(manifest, subresource), subresource, build)

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale."""
        return await self._about(
            key, options.subresource, lambda resource: requests.patch(resource, key, patch, options)
        )

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object."""
        await self._about(key, None, lambda resource: requests.delete(resource, key, options))

    async def _about(
        self, key: ObjectKey, subresource: Subresource | None, build: Callable[[DiscoveredResource], HttpRequest]
    ) -> Manifest:
        return await self._ask(key.api_version, key.kind, subresource, build)

    async def _ask(
        self,
        api_version: str,
        kind: str,
        subresource: Subresource | None,
        build: Callable[[DiscoveredResource], HttpRequest],
    ) -> Manifest:
        request = build(await self._discovery.find(api_version, kind, subresource))
        with self._forgetting(api_version):
            return await self._connection.send(request)

    @contextmanager
    def _forgetting(self, api_version: str) -> Iterator[None]:
        """Drop what is known of a group version when a path of it turns out not to exist: its CRD has changed."""
        try:
            yield
        except UnknownPathError:
            self._discovery.forget(api_version)
            raise
