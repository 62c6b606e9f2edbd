"""What the server calls the objects of a kind, whatever version somebody wrote.

A reference names a kind with a version that may be long gone. The controller looks at group and kind only, and takes
the version that the server prefers; so do we.
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
    """Finds the resource of a kind by its group, and remembers what it found.

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
            NotFoundError: If there is none; in the controller's words.
            ApiError: If the server could not be asked.
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
        """Look anew the next time, because what was found turned out not to be there.

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
    """Read an `APIGroup`.

    Args:
        group: The answer of `/apis/GROUP`.

    Returns:
        Its group versions, the preferred one first.
    """
    preferred = group.get("preferredVersion")
    entries = [preferred, *(group.get("versions") or ())]
    told = [entry.get("groupVersion") for entry in entries if isinstance(entry, dict)]
    return list(dict.fromkeys(version for version in told if isinstance(version, str) and version))


def segment(text: str, what: str) -> str:
    """Return a text as one segment of a path.

    Args:
        text: The text.
        what: What it is, for the message.

    Raises:
        BadRequestError: If it would be something else than one segment.
    """
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
