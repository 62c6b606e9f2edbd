"""Discovery of the resources of a group version: the path and the subresources of each kind.

A manifest has `apps/v1` and `Deployment`; the path has `deployments`, with or without a namespace. Only the server
knows the mapping (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api). Each group version is
requested separately when it is first needed, so a broken aggregated API does not affect callers that do not use it.

Concurrent callers share one request. A kind that is not found may have been created a moment ago (a CRD), so discovery
sends one more request before it raises `NotFoundError`; that request must have started after the call. Callers that
look at the same time for kinds of several group versions that the server did not have share a request for the list of
all group versions: fifty kinds without a definition cost one request, not fifty.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from ocf.cluster.client.paths import DiscoveredResource, group_path
from ocf.cluster.protocol import Subresource
from ocf.errors import NoKindMatchError, NotFoundError, ServerError
from ocf.objects import Manifest

__all__ = ["Discovery", "read_resources"]

T = TypeVar("T")

Resources: TypeAlias = Mapping[str, DiscoveredResource]
"""The resources of one group version, by kind."""

_NOT_FOUND = 404
_GROUPS: Final = "/apis"


def read_resources(answer: Manifest, api_version: str) -> Resources:
    """Read an `APIResourceList`.

    Returns:
        The resources by kind; of two resources of the same kind, the first.

    Example:
        >>> entries = [
        ...     {"name": "deployments", "namespaced": True, "kind": "Deployment"},
        ...     {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"},
        ... ]
        >>> read_resources({"resources": entries}, "apps/v1")["Deployment"].subresources
        {'scale': ('autoscaling/v1', 'Scale')}
    """
    entries = [entry for entry in answer.get("resources") or () if entry.get("name") and entry.get("kind")]
    resources: dict[str, DiscoveredResource] = {}
    for entry in entries:
        if "/" not in entry["name"] and entry["kind"] not in resources:
            resources[entry["kind"]] = DiscoveredResource(
                api_version=api_version,
                kind=entry["kind"],
                plural=entry["name"],
                namespaced=bool(entry.get("namespaced")),
                subresources={
                    part["name"].partition("/")[2]: (_api_version(part, api_version), part["kind"])
                    for part in entries
                    if part["name"].startswith(entry["name"] + "/")
                },
            )
    return resources


def _api_version(entry: Manifest, default: str) -> str:
    """Return the group version of an entry; it states group and version only if they differ from those of the list."""
    if not entry.get("version"):
        return default
    return f"{entry['group']}/{entry['version']}" if entry.get("group") else str(entry["version"])


@dataclass(slots=True)
class Discovery:
    """Finds the resource of a kind, and caches the answers of the server.

    Args:
        fetch: Reads the object at a path; raises `ApiError`.
    """

    fetch: Callable[[str], Awaitable[Manifest]]
    _resources: dict[str, Resources] = field(default_factory=dict, init=False, repr=False)
    _in_flight: dict[str, asyncio.Task[Resources]] = field(default_factory=dict, init=False, repr=False)
    _groups: asyncio.Task[Container[str]] | None = field(default=None, init=False, repr=False)
    """The request for all group versions that is about to be sent; None once it is."""
    _looked_for: set[str] = field(default_factory=set, init=False, repr=False)
    """The group versions whose callers wait for it."""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set, init=False, repr=False)

    async def find(self, api_version: str, kind: str, subresource: Subresource | None = None) -> DiscoveredResource:
        """Return the resource of a kind.

        Args:
            subresource: A subresource that the kind must have.
        """
        resources = self._resources.get(api_version, {})
        if _has(resources, kind, subresource):
            return resources[kind]
        if api_version in self._in_flight:
            resources = await _result_of(self._in_flight[api_version])
        if not _has(resources, kind, subresource):
            resources = await _result_of(self._request(api_version))
        if _has(resources, kind, subresource):
            return resources[kind]
        error = NotFoundError if kind in resources else NoKindMatchError
        raise error(_missing(resources, api_version, kind, subresource), code=_NOT_FOUND, reason="NotFound")

    def forget(self, api_version: str) -> None:
        """Drop the cached resources of a group version; the next call requests them again."""
        self._resources.pop(api_version, None)

    async def close(self) -> None:
        """Cancel the requests in flight; callers that wait for them get `ServerError`."""
        for request in self._tasks:
            request.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _request(self, api_version: str) -> asyncio.Task[Resources]:
        """Return the request in flight, or start one.

        It is a separate task, so the cancellation of one caller does not affect the others.
        """
        request = self._in_flight.get(api_version)
        if request is None:
            request = self._in_flight[api_version] = self._started(self._fetch_resources(api_version))
            request.add_done_callback(lambda request: self._store_result(api_version, request))
        return request

    def _started(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fetch_resources(self, api_version: str) -> Resources:
        was_absent = self._resources.get(api_version) == {}
        # The core group is not in the list, and always served.
        if was_absent and "/" in api_version and api_version not in await self._group_versions(api_version):
            return {}
        try:
            return read_resources(await self.fetch(group_path(api_version)), api_version)
        except NotFoundError:
            return {}

    async def _group_versions(self, looked_for: str) -> Container[str]:
        """Return the group versions that the server has now; callers before the request is sent share it."""
        self._looked_for.add(looked_for)
        if self._groups is None:
            self._groups = self._started(self._fetch_group_versions())
        return await _result_of(self._groups)

    async def _fetch_group_versions(self) -> Container[str]:
        looked_for, self._looked_for, self._groups = self._looked_for, set(), None
        if len(looked_for) == 1:
            # Its own request costs the same, and the list of kube-apiserver shows a new group a moment later.
            return looked_for
        groups = (await self.fetch(_GROUPS)).get("groups") or ()
        return {version["groupVersion"] for group in groups for version in group.get("versions") or ()}

    def _store_result(self, api_version: str, request: asyncio.Task[Resources]) -> None:
        self._in_flight.pop(api_version, None)
        # Reading the exception also keeps asyncio from reporting it as never retrieved if every caller was cancelled.
        if not request.cancelled() and request.exception() is None:
            self._resources[api_version] = request.result()


async def _result_of(request: asyncio.Task[T]) -> T:
    """Wait for a request that other callers may also wait for."""
    await asyncio.wait([request])  # unlike `await request`, does not propagate a cancellation in either direction
    if request.cancelled():
        raise ServerError("discovery did not finish: the connection to the cluster was closed")
    return request.result()


def _has(resources: Resources, kind: str, subresource: Subresource | None) -> bool:
    return kind in resources and (subresource is None or subresource in resources[kind].subresources)


def _missing(resources: Resources, api_version: str, kind: str, subresource: Subresource | None) -> str:
    if kind in resources:
        return f'{kind} of {api_version} has no subresource "{subresource}" on this server'
    return f'the server has no kind "{kind}" in {api_version}; its CRD or its API server may be missing'
