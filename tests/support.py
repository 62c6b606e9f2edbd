"""Base of the test environments: a cluster, its clock, and the requests that other actors send in tests."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import pytest
from aiohttp import web

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.concepts import Clock
from ocf.errors import NotFoundError
from ocf.http.limits import Limits
from ocf.http.server import serving_app
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.rbac import PolicyRule
from ocf_server import EmbeddedCluster

__all__ = [
    "Env",
    "Forward",
    "defined",
    "definition_of",
    "eventually",
    "is_in",
    "serving_locally",
    "settable_time",
    "until",
    "until_granted",
]

T = TypeVar("T")
ClusterT = TypeVar("ClusterT", bound=Cluster)
ClockT = TypeVar("ClockT", bound=Clock)


def is_in(item: pytest.Item, folder: Path) -> bool:
    """Return whether a test is in a folder; a comparison of paths would take seconds for all tests."""
    return os.fspath(item.path).startswith(f"{folder}{os.sep}")


def definition_of(kind: str, group: str, schema: Manifest, **version: Any) -> Manifest:
    """Return the definition of a namespaced kind with one version, which has a status.

    Args:
        version: Fields of the version that are other ones.
    """
    plural = f"{kind.lower()}s"
    served = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}, **version}],
        },
    }


Forward: TypeAlias = Callable[[float], None]
"""Sets the clock of the event loop forward by a number of seconds."""


def settable_time(monkeypatch: pytest.MonkeyPatch) -> Forward:
    """Return a function that sets the clock of the running event loop forward, for tests with sockets and threads.

    Args:
        monkeypatch: Takes the clock back at the end of the test.
    """
    loop, ahead = asyncio.get_running_loop(), 0.0
    real = loop.time

    def forward(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    return forward


async def defined(first: EmbeddedCluster, *definitions: Manifest) -> EmbeddedCluster:
    """Return a clone of a cluster in which kinds are defined; the first call with a cluster defines them."""
    if not first.requests.writes:
        for one in definitions:
            await first.create(one, field_manager="user")
    return first.clone()


@asynccontextmanager
async def serving_locally(
    app: web.Application, *, port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve an application on this machine; yields its address, `https://127.0.0.1:1234`.

    At the end, requests are cancelled and all connections closed, also those whose handshake has only begun, of which
    aiohttp's own server knows nothing.

    Args:
        port: 0 takes any free port.
    """
    limits = Limits(connections=1000, line_bytes=2**16)
    listening = serving_app(app, limits, name="test", address=("127.0.0.1", port), tls=tls, shutdown_timeout=0.01)
    async with listening as server:
        yield f"{'http' if tls is None else 'https'}://{server.host}:{server.port}"


async def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds that this process brings about without an event.

    Args:
        holds: The condition.
    """
    while not holds():  # noqa: ASYNC110 (there is no event)
        await asyncio.sleep(0)


async def eventually(
    read: Callable[[], Awaitable[T]],
    holds: Callable[[T], Any] = bool,
    *,
    ignore: tuple[type[Exception], ...] = (),
    interval: float = 0.05,
) -> T:
    """Read until a condition holds that another process brings about without an event, and return what was read.

    A real API server, for example, serves a new kind, calls a webhook and grants a role a moment after they are stored.

    Args:
        read: Called again and again.
        holds: The condition of what was read; by default, that it is true.
        ignore: Errors of `read` after which it is called again.
        interval: The seconds between two calls.
    """
    seen: object = "nothing was read"
    try:
        async with asyncio.timeout(600):
            while True:
                try:
                    seen = found = await read()
                    if holds(found):
                        return found
                except ignore as error:
                    seen = error
                await asyncio.sleep(interval)
    except TimeoutError:
        pytest.fail(f"the condition did not hold within ten minutes; last seen: {seen!r}")


async def until_granted(
    admin: Cluster,
    user: str,
    rules: Iterable[PolicyRule],
    *,
    namespace: str = "",
    groups: Sequence[str] = (),
    granted: bool = True,
) -> None:
    """Wait until an API server has read the roles of a user.

    Args:
        admin: The cluster, as a user who may review access.
        user: The user.
        rules: What roles and bindings allow that user now, or do not allow any more.
        namespace: Where namespaced rules hold that do not name a namespace; empty for all namespaces.
        groups: The groups of the user.
        granted: Whether to wait until the rules are allowed, or until they are not.
    """
    for rule in sorted(rules):
        resource, _, subresource = rule.resource.partition("/")
        asked = {
            "verb": rule.verb,
            "group": rule.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": rule.namespace or (namespace if rule.namespaced else ""),
            "name": rule.name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {"user": user, "groups": list(groups), "resourceAttributes": asked},
        }
        await eventually(
            partial(admin.create, review, field_manager="admin"),
            lambda reviewed: reviewed["status"]["allowed"] is granted,
        )


class Env(Generic[ClusterT, ClockT]):
    """A cluster and a clock; subclasses add an owner, an operator and other actors.

    Args:
        cluster: The cluster.
        clock: The clock of the cluster and of the code under test.
    """

    def __init__(self, cluster: ClusterT, clock: ClockT) -> None:
        self.cluster = cluster
        self.clock = clock

    async def merge_patch(
        self, key: ObjectKey, patch: Manifest, *, by: str, subresource: Subresource | None = None
    ) -> Manifest:
        """Patch an object as another field manager."""
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=by, subresource=subresource)
        return await self.cluster.patch(key, patch, options)

    async def patch_status(self, key: ObjectKey, status: Manifest, *, by: str) -> Manifest:
        """Merge a status into that of an object, as its controller does."""
        return await self.merge_patch(key, {"status": status}, by=by, subresource=Subresource.STATUS)

    async def set_scale(self, key: ObjectKey, replicas: int, *, by: str) -> None:
        """Set the replicas of an object through its scale subresource, as an autoscaler does."""
        await self.merge_patch(key, {"spec": {"replicas": replicas}}, by=by, subresource=Subresource.SCALE)

    async def read_replicas(self, key: ObjectKey) -> int:
        """Return the replicas in the spec of an object."""
        return int((await self.cluster.get(key))["spec"]["replicas"])

    async def read_status(self, key: ObjectKey) -> Manifest:
        """Return the status of an object; empty if it has none."""
        found: Manifest = (await self.cluster.get(key)).get("status") or {}
        return found

    async def read_conditions(self, key: ObjectKey) -> dict[str, Any]:
        """Return the conditions of an object by type."""
        return {each["type"]: each for each in (await self.read_status(key)).get("conditions") or ()}

    async def is_present(self, key: ObjectKey) -> bool:
        """Return whether an object exists."""
        try:
            await self.cluster.get(key)
        except NotFoundError:
            return False
        return True
