"""Which path a kind has, and which subresources: asked of the server, once per group version.

A manifest says `apps/v1` and `Deployment`; a path says `deployments`, with or without a namespace. Only the server
knows (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api). Group versions are asked for one
by one and when first needed, so that a broken aggregated API hurts nobody who does not use it.

Concurrent callers share one request. A kind that is not found may have been created a moment ago (a CRD), so the
server is asked once more before we say that there is none; an answer counts for that only if it was asked for after
the caller came.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ocf.cluster.client.paths import DiscoveredResource, group_path
from ocf.cluster.protocol import Subresource
from ocf.errors import NotFoundError, ServerError
from ocf.objects import Manifest

__all__ = ["Discovery", "read_resources"]

Resources: TypeAlias = Mapping[str, DiscoveredResource]
"""The resources of one group version, by kind."""

_NOT_FOUND = 404


def read_resources(answer: Manifest, api_version: str) -> Resources:
    """Read an `APIResourceList`.

    Args:
        answer: The list.
        api_version: The group version it was asked for.

    Returns:
        The resources by kind; where two have the same kind, the first.

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
    """Return the group version of an entry; group and version are there only where they differ from the list's."""
    if not entry.get("version"):
        return default
    return f"{entry['group']}/{entry['version']}" if entry.get("group") else str(entry["version"])


@dataclass(slots=True)
class Discovery:
    """Finds the resource of a kind.

    Args:
        fetch: Reads the object at a path; raises `ApiError`.
    """

    fetch: Callable[[str], Awaitable[Manifest]]
    _known: dict[str, Resources] = field(default_factory=dict, init=False, repr=False)
    _flights: dict[str, asyncio.Task[Resources]] = field(default_factory=dict, init=False, repr=False)

    async def find(self, api_version: str, kind: str, subresource: Subresource | None = None) -> DiscoveredResource:
        """Return the resource of a kind.

        Args:
            api_version: Group and version.
            kind: Kind.
            subresource: A subresource it must have.

        Returns:
            The resource.

        Raises:
            NotFoundError: If the server has no such group version, kind or subresource.
            ApiError: If the server could not be asked.
        """
        resources = self._known.get(api_version, {})
        if not _has(resources, kind, subresource) and api_version in self._flights:
            resources = await _landed(self._flights[api_version])
        if not _has(resources, kind, subresource):
            resources = await _landed(self._asked(api_version))
        if _has(resources, kind, subresource):
            return resources[kind]
        raise NotFoundError(_missing(resources, api_version, kind, subresource), code=_NOT_FOUND, reason="NotFound")

    def forget(self, api_version: str) -> None:
        """Ask anew when the group version is needed next.

        Args:
            api_version: Group and version.
        """
        self._known.pop(api_version, None)

    async def close(self) -> None:
        """Give up what is being asked; whoever waits for it gets `ServerError`."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _asked(self, api_version: str) -> asyncio.Task[Resources]:
        """Return the request that is under way, or start one.

        It is a task of its own: a caller that is cancelled takes nothing from the others.
        """
        flight = self._flights.get(api_version)
        if flight is None:
            flight = self._flights[api_version] = asyncio.create_task(self._ask(api_version))
            flight.add_done_callback(lambda landed: self._note(api_version, landed))
        return flight

    async def _ask(self, api_version: str) -> Resources:
        try:
            return read_resources(await self.fetch(group_path(api_version)), api_version)
        except NotFoundError:
            return {}

    def _note(self, api_version: str, flight: asyncio.Task[Resources]) -> None:
        self._flights.pop(api_version, None)
        # Asking for the exception also keeps asyncio from reporting it as lost when every caller was cancelled.
        if not flight.cancelled() and flight.exception() is None:
            self._known[api_version] = flight.result()


async def _landed(flight: asyncio.Task[Resources]) -> Resources:
    """Wait for a request that others may wait for, too."""
    await asyncio.wait([flight])  # unlike `await flight`, passes no cancellation on in either direction
    if flight.cancelled():
        raise ServerError("the kinds of the server were being asked for when the connection to the cluster was closed")
    return flight.result()


def _has(resources: Resources, kind: str, subresource: Subresource | None) -> bool:
    return kind in resources and (subresource is None or subresource in resources[kind].subresources)


def _missing(resources: Resources, api_version: str, kind: str, subresource: Subresource | None) -> str:
    if kind in resources:
        return f'{kind} of {api_version} has no subresource "{subresource}" on this server'
    return f'the server has no kind "{kind}" in {api_version}; its CRD or its API server may be missing'
