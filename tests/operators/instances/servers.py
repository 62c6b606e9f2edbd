"""Where servers are, and the calls of their API: one client for each kind of thing in them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlsplit

from aiohttp import ClientSession, encode_basic_auth
from pydantic import BaseModel, SecretStr

from ocf.component import ReconcileContext
from ocf.concepts import GuardStatus, StatusReport
from ocf.errors import NotFoundError, ProviderRefusedError, ProviderUnavailableError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import external
from tests.operators.instances.model import API_VERSION, Instance

__all__ = [
    "BoardState",
    "Boards",
    "FolderState",
    "Folders",
    "Health",
    "Nothing",
    "Pages",
    "Server",
    "SourceState",
    "Sources",
    "Things",
    "instance_key",
    "place_of",
    "server_of",
]

DesiredT = TypeVar("DesiredT", bound=BaseModel)
LiveT = TypeVar("LiveT", bound="Live")


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the credentials of its API."""

    url: str
    user: str
    password: str = field(repr=False)


def place_of(instance: Manifest) -> str:
    """Return the name of an instance as a target of external resources."""
    return f"{instance['metadata']['namespace']}/{instance['metadata']['name']}"


def instance_key(place: str) -> ObjectKey:
    """Return the key of the instance with a name as of `place_of`."""
    namespace, _, name = place.partition("/")
    return ObjectKey(API_VERSION, Instance.kind, name, namespace)


async def server_of(instance: Instance, context: ReconcileContext) -> Server | None:
    """Return the server of an instance; None while its place or its credentials are not known."""
    key = ObjectKey("v1", "Secret", instance.login_name, instance.metadata.namespace)
    try:
        stored = (await context.cluster.get(key)).get("data") or {}
    except NotFoundError:
        return None
    entries = {name: b64decode(value).decode() for name, value in stored.items()}
    url = instance.service_url or entries.get("url")
    user, password = entries.get("user"), entries.get("password")
    return Server(url.rstrip("/"), user, password) if url and user and password else None


class Live(BaseModel):
    """What each thing in a server shows.

    Args:
        owner: The key of the object that it was made for.
        place: The target at which it was read; like `server`, not a part of the answer.
        server: The URL of the server at which it was read.
    """

    owner: str = ""
    place: str = ""
    server: str = ""


class FolderState(BaseModel):
    """What a folder should be."""

    title: str


class SourceState(BaseModel):
    """What a source should be."""

    title: str
    url: str
    password: SecretStr | None = None


class BoardState(BaseModel):
    """What a dashboard should be; its content is one text, so that each change of it is seen."""

    folder: str | None
    content: str


class LiveFolder(Live, FolderState):
    """A folder as it is."""


class LiveSource(Live):
    """A source as it is; no server shows its password."""

    title: str
    url: str


class LiveBoard(Live, BoardState):
    """A dashboard as it is."""


class Things(external.Client[DesiredT, LiveT], Generic[DesiredT, LiveT]):
    """Things of one kind in servers, each with a uid that its owner has chosen.

    Args:
        servers: The servers by target. None is one without credentials, and in one that is missing is nothing.
        session: The HTTP session of the process; None in a command, which opens one for each call.
    """

    live: type[LiveT]

    def __init__(
        self, servers: Mapping[str, Server | None], session: ClientSession | None, resync: timedelta | None = None
    ) -> None:
        self.servers = servers
        self.session = session
        self.resync = resync or type(self).resync

    async def read(self, identity: external.Identity) -> LiveT | None:
        return self._observed(identity, await self._call("GET", identity))

    async def apply(self, identity: external.Identity, desired: DesiredT, observed: LiveT | None) -> LiveT:
        if observed is not None and self._has_moved(observed):
            found = await self.read(identity)
            if found is not None and found.owner != identity.key:
                raise ProviderRefusedError("it exists in the server to which the instance has moved")
        # The uid is in the path, so the call that creates may be repeated.
        state = {name: getattr(desired, name) for name in type(desired).model_fields}
        body = {name: one.get_secret_value() if isinstance(one, SecretStr) else one for name, one in state.items()}
        live = self._observed(identity, await self._call("PUT", identity, {**body, "owner": identity.key}))
        if live is None:
            raise ProviderUnavailableError(f"the instance {identity.target} is gone")
        return live

    async def delete(self, identity: external.Identity) -> None:
        await self._call("DELETE", identity)

    def key_of(self, observed: LiveT) -> str:
        return observed.owner

    def differences(self, desired: DesiredT, observed: LiveT) -> list[str]:
        return [*super().differences(desired, observed), *(["server"] if self._has_moved(observed) else [])]

    def ready_at(self, target: str) -> StatusReport[GuardStatus]:
        """Return whether an instance can be called: the guard of what is in it."""
        if self.servers.get(target) is None:
            return StatusReport(GuardStatus.BLOCKED, f"the instance {target} was not ready yet, or has no credentials")
        return StatusReport(GuardStatus.UNBLOCKED)

    def _has_moved(self, observed: LiveT) -> bool:
        """Return whether a thing was read in the former server of an instance."""
        server = self.servers.get(observed.place)
        return server is not None and server.url != observed.server

    def _observed(self, identity: external.Identity, answer: Manifest | None) -> LiveT | None:
        server = self.servers.get(identity.target)
        if answer is None or server is None:
            return None
        return self.live.model_validate({**answer, "place": identity.target, "server": server.url})

    async def _call(self, method: str, identity: external.Identity, body: Manifest | None = None) -> Manifest | None:
        """Return the answer of a server; None if the thing does not exist, or the server itself does not."""
        server = self.servers.get(identity.target)
        if server is None and identity.target in self.servers:
            raise ProviderUnavailableError(f"the instance {identity.target} has no credentials")
        if server is None:
            return None
        path = f"{self.kind.lower()}s/{quote(identity.name)}"
        return await _answer(self.session, method, f"{server.url}/{path}", server, body)


class Folders(Things[FolderState, LiveFolder]):
    """Folders; a server deletes none that has dashboards."""

    kind, live = "Folder", LiveFolder


class Sources(Things[SourceState, LiveSource]):
    """Sources of data."""

    kind, live = "Source", LiveSource


class Boards(Things[BoardState, LiveBoard]):
    """Dashboards; a server accepts none whose folder it does not have."""

    kind, live = "Dashboard", LiveBoard


class Nothing(BaseModel):
    """The desired state of what is only read."""


class _ReadOnly(external.Client[Nothing, Manifest]):
    """What is only read: an answer at a URL.

    Args:
        server: The credentials; None for none.
    """

    def __init__(self, url: str, session: ClientSession | None, server: Server | None, resync: timedelta) -> None:
        self.url = url
        self.session = session
        self.server = server
        self.resync = resync

    async def read(self, identity: external.Identity) -> Manifest | None:
        del identity
        return await _answer(self.session, "GET", self.url, self.server)

    async def apply(self, identity: external.Identity, desired: Nothing, observed: Manifest | None) -> Manifest:
        raise NotImplementedError

    async def delete(self, identity: external.Identity) -> None:
        raise NotImplementedError


class Health(_ReadOnly):
    """Servers: whether they answer."""

    kind = "Server"


class Pages(_ReadOnly):
    """Contents of dashboards at URLs; the target is the host, so that one that hangs holds up no other one."""

    kind = "Page"

    @property
    def host(self) -> str:
        """The host of the URL."""
        return urlsplit(self.url).netloc


_ABSENT: Final = frozenset({404, 410})


async def _answer(
    session: ClientSession | None, method: str, url: str, server: Server | None, body: Manifest | None = None
) -> Manifest | None:
    """Return the answer to a request; None if there is nothing at the URL."""
    login = {"Authorization": encode_basic_auth(server.user, server.password)} if server is not None else None
    opened: Any = ClientSession() if session is None else nullcontext(session)
    async with opened as calling, calling.request(method, url, json=body, headers=login) as answer:
        if answer.status in _ABSENT:
            return None
        answer.raise_for_status()
        found: Manifest = await answer.json()
        return found
