"""`RESTMapper`: find the resource of a kind, whatever version a reference names.

A reference may name a version that the server does not serve. The built-in controller uses only group and kind, and
takes the version that the server prefers; so does this mapper.
"""

from typing import Final
from urllib.parse import quote

from ocf.cluster.client.discovery import Resources, read_resources
from ocf.cluster.client.paths import DiscoveredResource, group_path
from ocf.controllers.metrics_client.retry import PathReader, RetryingReader
from ocf.errors import ApiError, BadRequestError, NotFoundError
from ocf.objects import Manifest

__all__ = ["RESTMapper", "segment", "versions_of"]

_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400


class RESTMapper:
    """Finds resources by group and kind, and caches them.

    Args:
        reader: The API server.
    """

    def __init__(self, reader: PathReader) -> None:
        self._reader = RetryingReader(reader)
        self._found: dict[tuple[str, str], DiscoveredResource] = {}

    async def find(self, group: str, kind: str) -> DiscoveredResource:
        """Return the resource of a kind, in the version that the server prefers.

        Args:
            group: Its group; empty for the core.
            kind: The kind.

        Returns:
            The resource.

        Raises:
            NotFoundError: If the server has no such kind; with the message of the built-in controller.
            ApiError: If discovery fails.
        """
        known = self._found.get((group, kind))
        if known is not None:
            return known
        for api_version in await self._versions(group):
            found = (await self._resources(api_version)).get(kind)
            if found is not None:
                self._found[group, kind] = found
                return found
        message = f'no matches for kind "{kind}" in group "{group}"'
        raise NotFoundError(message, code=_NOT_FOUND, reason="NotFound")

    def forget(self, group: str, kind: str) -> None:
        """Drop a resource from the cache, because a request for it failed with 404.

        Args:
            group: Its group.
            kind: The kind.
        """
        self._found.pop((group, kind), None)

    async def _versions(self, group: str) -> list[str]:
        if not group:
            return ["v1"]
        try:
            answer = await self._reader.read_path(f"/apis/{segment(group, 'API group')}")
        except NotFoundError:
            return []
        return versions_of(answer)

    async def _resources(self, api_version: str) -> Resources:
        try:
            return read_resources(await self._reader.read_path(group_path(api_version)), api_version)
        except NotFoundError:
            return {}


def versions_of(group: Manifest) -> list[str]:
    """Return the versions of an `APIGroup`.

    Args:
        group: The response of `/apis/GROUP`.
    """
    preferred = group.get("preferredVersion")
    entries = [preferred, *(group.get("versions") or ())]
    found = [entry.get("groupVersion") for entry in entries if isinstance(entry, dict)]
    return list(dict.fromkeys(version for version in found if isinstance(version, str) and version))


def segment(text: str, what: str) -> str:
    """Return a text as one segment of a path."""
    problem = ""
    if not text:
        problem = "may not be empty"
    elif text in {".", ".."}:
        problem = f"may not be '{text}'"
    else:
        problem = next((f"may not contain '{sign}'" for sign in "/%" if sign in text), "")
    if problem:
        error: ApiError = BadRequestError(f"invalid {what} {text!r}: {problem}", code=_BAD_REQUEST, reason="BadRequest")
        raise error
    return quote(text, safe="*")
