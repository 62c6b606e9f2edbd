"""Aggregated API servers: the versions that APIServices register, and whether their servers can be reached.

A server is checked by a request for the resources of its version, as by the aggregator of a real API server: when an
APIService, a Service or an EndpointSlice changes, and every thirty seconds; every second while one cannot be reached.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from ocf.cluster.protocol import Subresource
from ocf.errors import ApiError
from ocf.objects import Manifest, copy_json
from ocf_server.api.users import User
from ocf_server.api.webhook_call_errors import call_problem
from ocf_server.api.webhook_client import tls_context
from ocf_server.api.write_options import WriteOptions
from ocf_server.http.backend import Backend
from ocf_server.http.resource_catalog import RemoteVersion, ServedResource, SubresourceInfo
from ocf_server.registry import verbs
from ocf_server.registry.api_services import API_SERVICE, UnavailableError, address
from ocf_server.registry.pending_write import run_without_admission

__all__ = ["AggregatedServer", "Aggregation", "user_headers"]

_KINDS: Final = (API_SERVICE, ("", "Service"), ("discovery.k8s.io", "EndpointSlice"))
_CHECKER: Final = User("system:kube-aggregator", ("system:masters",))
# Timeout and period of `remote_available_controller.go` of kube-aggregator 1.36. It retries after 5 ms to 30 s; a test
# waits for less than that here.
_CHECK_SECONDS: Final = 5.0
_PERIOD_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 1.0
_OK: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class AggregatedServer:
    """An aggregated server.

    Args:
        url: Its URL, without a path.
        server_name: The name that its certificate has to have.
        context: How its certificate is verified; False for not at all.
    """

    url: str
    server_name: str
    context: ssl.SSLContext | bool


def user_headers(user: User) -> list[tuple[str, str]]:
    """Return the headers in which an aggregated server gets the user of a request.

    Example:
        >>> user_headers(User("jane", ("a", "b")))
        [('X-Remote-User', 'jane'), ('X-Remote-Group', 'a'), ('X-Remote-Group', 'b')]
    """
    headers = [("X-Remote-User", user.username), *(("X-Remote-Group", group) for group in user.groups)]
    if user.uid:
        headers.append(("X-Remote-Uid", user.uid))
    for name, values in user.extra.items():
        # The name of a header may not contain a slash.
        key = name.lower().replace("%", "%25").replace("/", "%2F")
        headers += [(f"X-Remote-Extra-{key}", value) for value in values]
    return headers


class Aggregation:
    """The aggregated servers of a cluster."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._seen = 0
        self._services: dict[tuple[str, str], Manifest] = {}
        self._checked: dict[tuple[str, str], RemoteVersion] = {}
        self._task: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None

    def observe(self) -> None:
        """Follow changes of APIServices; called around each request, so it costs nothing where there are none."""
        # The version of the last change, so that a request compares one number and reads no object.
        changed = self._backend.registry.store.changed_at(API_SERVICE)
        if changed == self._seen:
            return
        self._seen = changed
        stored = [manifest for _, manifest in self._backend.registry.store.objects(API_SERVICE)]
        self._services = {
            (spec.get("group", ""), spec["version"]): manifest
            for manifest in stored
            if (spec := manifest["spec"]).get("service")
        }
        self._publish()
        for manifest in stored:
            if not manifest["spec"].get("service"):
                self._set_condition(manifest, "True", "Local", "Local APIServices are always available")
        if self._services and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._follow())

    def find(self, group: str, version: str) -> Manifest | None:
        """Return the APIService with a service that registers a version; None if there is none."""
        return self._services.get((group, version))

    def target(self, manifest: Manifest) -> AggregatedServer:
        """Return the server of an APIService.

        Raises:
            UnavailableError: If its service has no address.
        """
        spec = manifest["spec"]
        host, port = address(self._backend.registry.store, spec["service"])
        name = f"{spec['service']['name']}.{spec['service']['namespace']}.svc"
        context = False if spec.get("insecureSkipTLSVerify") else tls_context(spec)
        return AggregatedServer(f"https://{f'[{host}]' if ':' in host else host}:{port}", name, context)

    def session(self) -> aiohttp.ClientSession:
        """Return the session for requests to aggregated servers; it decodes nothing, and follows no redirects."""
        if self._session is None:
            # Each watch keeps a connection, and the default limit of 100 would let them block all requests.
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session

    async def close(self) -> None:
        """Stop the checks, and close all connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _follow(self) -> None:
        while self._services:
            before = self._marks()
            await asyncio.gather(*(self._check(*item) for item in list(self._services.items())))
            reached = all(version.available for version in self._checked.values())
            with suppress(TimeoutError):
                async with asyncio.timeout(_PERIOD_SECONDS if reached else _RETRY_SECONDS):
                    while self._marks() == before:
                        await self._backend.registry.store.changed()
            self.observe()

    def _marks(self) -> tuple[int, ...]:
        return tuple(self._backend.registry.store.changed_at(kind) for kind in _KINDS)

    async def _check(self, key: tuple[str, str], manifest: Manifest) -> None:
        try:
            resources = await self._discovered(key, self.target(manifest))
        except UnavailableError as error:
            known = self._checked.get(key)
            # Discovery goes on to list what the server had, as stale: clients with a cache need not forget the kinds.
            self._checked[key] = _remote(manifest, known.resources if known else (), available=False)
            self._set_condition(manifest, "False", error.reason, str(error))
        else:
            self._checked[key] = _remote(manifest, resources, available=True)
            self._set_condition(manifest, "True", "Passed", "all checks passed")
        self._publish()

    async def _discovered(self, key: tuple[str, str], target: AggregatedServer) -> tuple[ServedResource, ...]:
        url = f"{target.url}/apis/{key[0]}/{key[1]}"
        headers = [*user_headers(_CHECKER), ("Accept", "application/json")]
        try:
            async with (
                asyncio.timeout(_CHECK_SECONDS),
                self.session().get(
                    url,
                    headers=headers,
                    ssl=target.context,
                    server_hostname=target.server_name,
                    allow_redirects=False,
                ) as answer,
            ):
                if answer.status not in _OK:
                    raise _failed(url, f"bad status from {url}: {answer.status}")
                return tuple(_resources(*key, await answer.json(content_type=None)))
        except (aiohttp.ClientError, OSError) as error:
            raise _failed(url, call_problem(error)) from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise _failed(url, "the response is not an APIResourceList") from error

    def _publish(self) -> None:
        versions = [
            self._checked.get(key) or _remote(each, (), available=False) for key, each in self._services.items()
        ]
        # A check may end after its APIService was deleted.
        self._checked = {key: value for key, value in self._checked.items() if key in self._services}
        self._backend.set_remote(tuple(versions))

    def _set_condition(self, manifest: Manifest, status: str, reason: str, message: str) -> None:
        registry = self._backend.registry
        live = registry.store.get(API_SERVICE, ("", manifest["metadata"]["name"]))
        if live is None:
            return
        known: Manifest = next(
            (one for one in live["status"].get("conditions") or () if one["type"] == "Available"), {}
        )
        if (known.get("status"), known.get("reason"), known.get("message")) == (status, reason, message):
            return
        since = known.get("lastTransitionTime") if known.get("status") == status else None
        condition = {"type": "Available", "status": status, "reason": reason, "message": message}
        new: Manifest = copy_json(live)
        new["status"] = {"conditions": [{**condition, "lastTransitionTime": since or registry.timestamp()}]}
        options = WriteOptions(field_manager="kube-apiserver", subresource=Subresource.STATUS)
        with suppress(ApiError):  # a client has deleted or changed it meanwhile
            run_without_admission(verbs.update(registry, new, options))


def _failed(url: str, problem: str) -> UnavailableError:
    return UnavailableError("FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}")


def _remote(manifest: Manifest, resources: tuple[ServedResource, ...], *, available: bool) -> RemoteVersion:
    spec = manifest["spec"]
    priorities = (spec["groupPriorityMinimum"], spec["versionPriority"])
    return RemoteVersion(spec["group"], spec["version"], resources, available, priorities)


def _resources(group: str, version: str, document: Mapping[str, Any]) -> list[ServedResource]:
    """Return the resources of an APIResourceList."""
    entries: list[dict[str, Any]] = document.get("resources") or []
    parts = [(entry["name"].partition("/"), entry) for entry in entries]
    return [
        ServedResource(
            group,
            version,
            entry["kind"],
            entry["name"],
            entry.get("singularName", ""),
            bool(entry["namespaced"]),
            tuple(entry.get("verbs") or ()),
            short_names=tuple(entry.get("shortNames") or ()),
            categories=tuple(entry.get("categories") or ()),
            subresources=tuple(
                SubresourceInfo(
                    part[2],
                    tuple(other.get("verbs") or ()),
                    other.get("group", ""),
                    other.get("version", ""),
                    other["kind"],
                )
                for part, other in parts
                if part[2] and part[0] == entry["name"]
            ),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
