"""`ApiServerCluster`: each verb finds the path of the kind, sends the request and reads the answer."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Final, Self

from ocf.cluster.apply_cache import ApplyCache
from ocf.cluster.client import requests
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.discovery import Discovery
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.client.paths import DiscoveredResource, type_of
from ocf.cluster.client.requests import HttpRequest
from ocf.cluster.client.responses import LineBuffer, UnknownPathError, read_event, read_list
from ocf.cluster.client.rest_config import RestConfig
from ocf.cluster.impersonation import NO_EXTRA, Impersonation, ServiceAccount
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
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.errors import ServerError
from ocf.objects import Manifest, ObjectKey

__all__ = ["ApiServerCluster"]

_MAX_EVENT_BYTES: Final = 2**24  # of one event of a watch, as in client-go; kube-apiserver stores objects up to 1.5 MiB


class ApiServerCluster:
    """A cluster behind a real API server.

    Manifests are sent and returned as plain dicts, with all their fields. No request is retried, see
    `ocf.cluster.client.connection`.

    Args:
        config: Address, TLS and credentials of the server.
        request_timeout: The maximum duration of a request in seconds, including the time that it waits while 100 others
            are unanswered; after that it fails with a `ServerError` with code 0.
        watch_timeout: Seconds after which the server is asked to end a watch. A watch without data for
            `request_timeout` seconds longer than this has lost its connection.
        apply_cache: The results of the operator's writes; None starts with an empty cache.

    Raises:
        ConfigError: If a time is not positive, or certificates or the proxy cannot be used.

    Example:
        >>> async def main() -> None:
        ...     async with await ApiServerCluster.connect() as cluster:
        ...         page = await cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))
        ...         print([item["metadata"]["name"] for item in page.items])
    """

    # Only the user differs between a cluster and one that acts as another user.
    __slots__ = ("__dict__", "__weakref__", "_user")

    def __init__(
        self,
        config: RestConfig,
        *,
        request_timeout: float = 30.0,
        watch_timeout: float = 300.0,
        apply_cache: ApplyCache | None = None,
    ) -> None:
        self._user: Impersonation | None = None
        self._connection = Connection(config, timeout=request_timeout, idle_timeout=watch_timeout + request_timeout)
        self._discovery = Discovery(self._discovered)
        self._watch_timeout = watch_timeout
        self._apply_cache = apply_cache if apply_cache is not None else ApplyCache()

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        request_timeout: float = 30.0,
        watch_timeout: float = 300.0,
        apply_cache: ApplyCache | None = None,
    ) -> Self:
        """Open a cluster by kubeconfig, or by the service account of the pod.

        No request is sent yet, but credentials are read. Rotated token files and certificates are used within a
        minute; a credential plugin is run again when its credentials expire, or the server answers 401.

        Args:
            kubeconfig: A kubeconfig; None takes `$KUBECONFIG`, else the pod's service account, else `~/.kube/config`.
            context: The context of the kubeconfig to use; None takes the current one.
            request_timeout: As of the class.
            watch_timeout: As of the class.
            apply_cache: As of the class.

        Returns:
            The cluster; the caller closes it, or uses it in `async with`.

        Raises:
            ConfigError: If no configuration is found, or the configuration cannot be used.
        """
        cluster = cls(
            load_config(kubeconfig, context),
            request_timeout=request_timeout,
            watch_timeout=watch_timeout,
            apply_cache=apply_cache,
        )
        await cluster._connection.prepare()
        return cluster

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all watches and requests in flight, also those as other users, and reject new requests."""
        await self._discovery.close()
        await self._connection.close()

    @property
    def apply_cache(self) -> ApplyCache:
        """Results of writes, shared by all reconciles; losing it costs one write for each affected object."""
        return self._apply_cache if self._user is None else self._apply_cache.acting_as(self._user.key)

    @property
    def server_time(self) -> datetime | None:
        """The time of the API server at its last answer, to the second; None before one, and if it did not send it.

        Durations since a time that the cluster has written are right with it, whatever the clock of this machine is.
        """
        try:
            found = parsedate_to_datetime(self._connection.date)
            # The time of an HTTP message is in UTC, also without a zone.
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def acting_as(
        self,
        user: str | ServiceAccount,
        *,
        groups: Sequence[str] = (),
        uid: str = "",
        extra: Mapping[str, Sequence[str]] = NO_EXTRA,
    ) -> Self:
        """Return this cluster with another user, on the same connections; see `Cluster.acting_as`.

        What the API server serves is looked up as the user of this cluster, once for all.

        Example:
            >>> cluster = ApiServerCluster(RestConfig(host="http://127.0.0.1:8001"))
            >>> deployer = cluster.acting_as(ServiceAccount("deployer", "town"))
        """
        view = object.__new__(type(self))
        view.__dict__ = self.__dict__
        view._user = Impersonation.of(user, groups, uid, extra)
        return view

    async def _discovered(self, path: str) -> Manifest:
        # Not as another user: the answers are for the requests of all users.
        with requests_for(Purpose.DISCOVERY):
            return await self._connection.send(HttpRequest("GET", path))

    async def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether the objects of a kind are in namespaces."""
        return (await self._discovery.find(api_version, kind)).namespaced

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read one object, or its Scale."""
        return await self._send_about(key, subresource, lambda resource: requests.get(resource, key, subresource))

    async def read_path(
        self,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        *,
        most_bytes: int | None = None,
        accept: str = "",
    ) -> Manifest:
        """Read a path, for APIs that do not store objects: discovery, and the aggregated metrics APIs.

        Args:
            path: The path on the server, with each segment escaped.
            query: Query parameters, not escaped.
            most_bytes: The maximum length of the answer, uncompressed; None for no limit.
            accept: The media types of the answer, in order of preference, such as that of `PartialObjectMetadataList`;
                empty for JSON.

        Returns:
            The JSON object that the server sent.

        Raises:
            ApiError: By class. If the answer is not a Status, its `reason` is empty.
            ServerError: Also if the answer is longer than `most_bytes`.

        Example:
            >>> async def versions(cluster: ApiServerCluster, group: str) -> list[str]:
            ...     answer = await cluster.read_path(f"/apis/{group}")
            ...     return [version["groupVersion"] for version in answer["versions"]]
        """
        return await self._connection.send(
            HttpRequest("GET", path, tuple(query), user=self._user, accept=accept), most_bytes=most_bytes
        )

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """Read one page of the objects of a kind."""
        answer = await self._send(api_version, kind, None, lambda resource: requests.listing(resource, options))
        return read_list(answer, api_version, kind).selected_by(options)

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects of a kind.

        The iteration ends when the server ends the watch, after `watch_timeout` seconds at the latest; continue from
        the last resource version seen. It raises `ServerError` when the connection breaks. To stop earlier, leave the
        loop: `contextlib.aclosing` closes the connection at once, otherwise it closes with the iterator.
        """
        resource = await self._discovery.find(api_version, kind)
        request = requests.watching(resource, options, seconds=options.timeout or self._watch_timeout)
        try:
            stream = await self._connection.stream(request._replace(user=self._user))
        except UnknownPathError:
            self._discovery.forget(api_version)
            raise
        lines = LineBuffer()
        try:
            while chunk := await stream.read():
                for line in lines.feed(chunk):
                    yield read_event(line, request_line=str(request))
                if lines.pending > _MAX_EVENT_BYTES:
                    raise ServerError(f"{request}: an event of the watch has more than {_MAX_EVENT_BYTES} bytes")
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

        return await self._send(*type_of(manifest, subresource), subresource, build)

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create an object, evict a pod, or bind a pod to a node."""

        def build(resource: DiscoveredResource) -> HttpRequest:
            return requests.create(
                resource, manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run, strict=strict
            )

        return await self._send(*type_of(manifest, subresource), subresource, build)

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object, its status, or its Scale."""

        def build(resource: DiscoveredResource) -> HttpRequest:
            return requests.update(
                resource, manifest, field_manager=field_manager, subresource=subresource, dry_run=dry_run
            )

        return await self._send(*type_of(manifest, subresource), subresource, build)

    async def patch(self, key: ObjectKey, patch: Any, options: PatchOptions) -> Manifest:
        """Change parts of an object, of its status, or of its Scale."""
        return await self._send_about(
            key, options.subresource, lambda resource: requests.patch(resource, key, patch, options)
        )

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete an object."""
        await self._send_about(key, None, lambda resource: requests.delete(resource, key, options))

    async def _send_about(
        self, key: ObjectKey, subresource: Subresource | None, build: Callable[[DiscoveredResource], HttpRequest]
    ) -> Manifest:
        return await self._send(key.api_version, key.kind, subresource, build)

    async def _send(
        self,
        api_version: str,
        kind: str,
        subresource: Subresource | None,
        build: Callable[[DiscoveredResource], HttpRequest],
    ) -> Manifest:
        request = build(await self._discovery.find(api_version, kind, subresource))
        try:
            return await self._connection.send(request._replace(user=self._user))
        except UnknownPathError:
            # The discovered resources are out of date: a CRD has changed.
            self._discovery.forget(api_version)
            raise
