"""Every cluster acts as another user, in each request and with nothing of one user in the requests of another one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from ocf.cluster import (
    ApplyCache,
    Cluster,
    DeleteOptions,
    InterceptingCluster,
    ListOptions,
    PatchOptions,
    PatchType,
    Request,
    ServiceAccount,
    Subresource,
    Verb,
)
from ocf.cluster.apply_cache import LastWrite
from ocf.cluster.cache import CachedCluster, Selection
from ocf.cluster.cache.projection import Projection
from ocf.cluster.impersonation import Impersonation
from ocf.cluster.interceptor import describe
from ocf.component.dry_run_cluster import DryRunCluster
from ocf.component.pause_guard import PauseGuard
from ocf.concepts import SystemClock
from ocf.errors import ApiError, ConfigError, ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission.asked_on_miss import AskedOnMiss
from ocf.runtime.leader import election
from ocf.runtime.operator import owners
from ocf.runtime.operator.observed_versions import ObservedVersions
from ocf.runtime.operator.recording_reads import RecordingReads
from ocf.runtime.page import timeline
from ocf.runtime.page.view import RequestCounter
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.sharded_children import ShardedChildren
from ocf.runtime.sharding.sharded_objects import ShardedObjects
from ocf.runtime.sharding.slots import Slots
from ocf.testing import FaultyCluster, MutatingCluster, RecordingCluster, faults
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess
from ocf_server import EmbeddedCluster

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "shop")
DEPLOYER: Final = ServiceAccount("deployer", "shop")


def settings(name: str = "a", **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": data}


def embedded() -> EmbeddedCluster:
    return EmbeddedCluster(namespaces=("shop",))


async def every_write(cluster: Cluster) -> None:
    """Send each verb that writes, with a dry run and a part of an object."""
    key = ObjectKey.of(settings())
    merge = PatchOptions(patch_type=PatchType.MERGE, field_manager="us")
    await cluster.create(settings(), field_manager="us")
    await cluster.apply(settings("b"), field_manager="us")
    await cluster.apply(settings("b", x="1"), field_manager="us", dry_run=True)
    await cluster.update(settings(), field_manager="us")
    await cluster.patch(key, {"data": {"x": "1"}}, merge)
    with suppress(ApiError):
        await cluster.update(settings(), field_manager="us", subresource=Subresource.STATUS)
    await cluster.delete(key, DeleteOptions())


def nothing(*_: object) -> None:
    """Do nothing."""


def routed(cluster: Cluster) -> Cluster:
    return owners._Routed(cluster, cluster, ObjectKey.of(settings()))


def apart(cluster: Cluster) -> Cluster:
    return owners._OwnersApart(cluster, cluster, ("v1", "ConfigMap"))


def sharded(cluster: Cluster) -> Cluster:
    slots = Slots(Sharding(), ObjectKey("coordination.k8s.io/v1", "Lease", "ours", "ops"), "one", SystemClock())
    return ShardedObjects(cluster, ("v1", "Secret"), slots)


def sharded_children(cluster: Cluster) -> Cluster:
    slots = Slots(Sharding(), ObjectKey("coordination.k8s.io/v1", "Lease", "ours", "ops"), "one", SystemClock())
    return ShardedChildren(cluster, [("v1", "Secret")], slots)


def fenced(cluster: Cluster, *, leads: bool = True) -> Cluster:
    return election.FencedCluster(cluster, lambda: leads, OWNER)


WRAPPERS: Final[dict[str, Callable[[Cluster], Cluster]]] = {
    "RecordingCluster": RecordingCluster,
    "FaultyCluster": lambda cluster: FaultyCluster(cluster, []),
    "MutatingCluster": lambda cluster: MutatingCluster(cluster, nothing),
    "SimulatedProcess": lambda cluster: SimulatedProcess(SimulatedCluster(cluster)),
    "AskedOnMiss": lambda cluster: AskedOnMiss(cluster, cluster),
    "PauseGuard": lambda cluster: PauseGuard(cluster, lambda: None),
    "DryRunCluster": DryRunCluster,
    "RecordingReads": lambda cluster: RecordingReads(cluster, ObservedVersions(OWNER)),
    "SelectedObjects": lambda cluster: owners.SelectedObjects(cluster, ("v1", "ConfigMap"), Selection()),
    "ShardedObjects": sharded,
    "ShardedChildren": sharded_children,
    "_Routed": routed,
    "_OwnersApart": apart,
    "FencedCluster": fenced,
    "_RecordedCluster": lambda cluster: timeline._RecordedCluster(cluster, timeline._Running(), []),
    "_CountedCluster": lambda cluster: RequestCounter().counting(cluster),
}
_ABSTRACT: Final = {"_OwnersElsewhere"}
# Of a command that reads files, with a cluster in which everything is allowed.
_OF_FILES: Final = {"_Reads"}
WRAPPED: Final = [pytest.param(make, id=name) for name, make in WRAPPERS.items()]
CACHED: Final = pytest.param(CachedCluster, id="CachedCluster")
BOTH_CACHED: Final = pytest.param(lambda cluster: routed(CachedCluster(cluster)), id="a wrapper of a cache")


def wrappers_of(kind: type) -> set[str]:
    """Return the classes of our modules; that of an example in a docstring stays in memory, and is in no module."""
    found: set[str] = set()
    one: type
    for one in kind.__subclasses__():
        ours = one.__module__.startswith(("ocf.", "ocf_server."))
        is_there = ours and getattr(sys.modules[one.__module__], one.__name__, None) is one
        found |= wrappers_of(one) | ({one.__name__} if is_there else set())
    return found


def test_each_wrapper_is_in_the_table() -> None:
    assert wrappers_of(InterceptingCluster) - _ABSTRACT - _OF_FILES == set(WRAPPERS)


@pytest.mark.parametrize("make", [*WRAPPED, CACHED, BOTH_CACHED])
async def test_every_write_is_sent_as_the_other_user(make: Callable[[Cluster], Cluster]) -> None:
    server = RecordingCluster(embedded())
    cluster = make(server)
    # A dry run does not write what a later one changes.
    await server.create(settings(), field_manager="setup") if isinstance(cluster, DryRunCluster) else None
    server.requests.clear()
    with suppress(ApiError):
        await every_write(cluster.acting_as("jane"))
    writes = [request for request in server.requests if not request.verb.is_read]
    assert writes
    assert {request.user for request in writes} == {"jane"}


@pytest.mark.parametrize("make", [*WRAPPED, CACHED, BOTH_CACHED])
async def test_the_cluster_itself_keeps_its_own_user(make: Callable[[Cluster], Cluster]) -> None:
    server = RecordingCluster(embedded())
    cluster = make(server)
    cluster.acting_as("jane")
    await cluster.apply(settings("c"), field_manager="us")
    assert {request.user for request in server.requests} == {""}


@pytest.mark.parametrize("make", [*WRAPPED, CACHED, BOTH_CACHED])
async def test_another_user_replaces_the_first_one(make: Callable[[Cluster], Cluster]) -> None:
    server = RecordingCluster(embedded())
    cluster = make(server).acting_as("jane", groups=["dev"]).acting_as(DEPLOYER)
    await cluster.apply(settings("c"), field_manager="us")
    writes = [request for request in server.requests if not request.verb.is_read]
    assert {request.user for request in writes} == {"system:serviceaccount:shop:deployer"}


class TestWrappers:
    async def test_a_log_has_the_requests_of_all_users_and_names_them(self) -> None:
        cluster = RecordingCluster(embedded())
        await cluster.acting_as("jane").create(settings(), field_manager="us")
        await cluster.create(settings("b"), field_manager="us")
        assert [request.user for request in cluster.writes] == ["jane", ""]
        assert describe(cluster.writes[0]) == "create v1/ConfigMap/shop/a by us as jane"

    async def test_a_fault_counts_the_requests_of_all_users(self) -> None:
        cluster = FaultyCluster(embedded(), [faults.server_error(503, verbs=[Verb.CREATE], first=2)])
        await cluster.create(settings(), field_manager="us")
        with pytest.raises(ApiError):
            await cluster.acting_as("jane").create(settings("b"), field_manager="us")
        cluster.assert_all_injected()

    async def test_a_crash_ends_the_requests_of_all_users(self) -> None:
        """The state of a wrapper that is rebound, and not changed in place, is that of all users, too."""
        process = SimulatedProcess(SimulatedCluster(embedded()), Disturbance.CRASH_BEFORE, 1)
        with pytest.raises(SimulatedCrash):
            await process.acting_as("jane").create(settings(), field_manager="us")
        assert process.dead
        with pytest.raises(SimulatedCrash):
            await process.get(ObjectKey.of(settings()))

    async def test_a_counter_of_a_test_counts_the_requests_of_all_users(self) -> None:
        class Counting(InterceptingCluster):
            count = 0

            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                self.count += 1
                return await super().intercept(request, send)

        cluster = Counting(embedded())
        await cluster.acting_as("jane").create(settings(), field_manager="us")
        await cluster.create(settings("b"), field_manager="us")
        assert cluster.count == 2

    async def test_a_lost_lease_stops_the_writes_as_every_user(self) -> None:
        cluster = fenced(embedded(), leads=False).acting_as("jane")
        with pytest.raises(ForbiddenError, match="is lost, so this process must not write"):
            await cluster.create(settings(), field_manager="us")

    async def test_a_paused_owner_stops_the_writes_as_every_user(self) -> None:
        def reject() -> None:
            raise ConfigError("paused")

        cluster = PauseGuard(embedded(), reject).acting_as("jane")
        with pytest.raises(ConfigError, match="paused"):
            await cluster.create(settings(), field_manager="us")

    async def test_a_dry_run_sees_what_it_would_write_as_every_user(self) -> None:
        server = embedded()
        cluster = DryRunCluster(server)
        await cluster.acting_as("jane").apply(settings(x="1"), field_manager="us")
        assert (await cluster.get(ObjectKey.of(settings())))["data"] == {"x": "1"}
        assert list(cluster.written) == [ObjectKey.of(settings())]
        assert server.requests.changes == 0


class TestCache:
    @pytest.fixture
    async def server(self) -> RecordingCluster:
        server = RecordingCluster(embedded())
        await server.create(settings(x="1"), field_manager="setup")
        return server

    @pytest.fixture
    async def cached(self, server: RecordingCluster) -> AsyncIterator[CachedCluster]:
        async with CachedCluster(server, uncached={("v1", "Secret")}) as cached:
            yield cached

    async def test_informers_list_and_watch_as_the_user_of_the_process(
        self, server: RecordingCluster, cached: CachedCluster
    ) -> None:
        """As one of the users, they would show the objects that this one may read to all others."""
        jane = cached.acting_as("jane")
        await jane.get(ObjectKey.of(settings()))
        await jane.list("v1", "Service", ListOptions(namespace="shop"))
        sent = [(request.kind, request.user) for request in server.requests if request.verb.is_read]
        assert {kind for kind, _ in sent} == {"ConfigMap", "Service"}
        assert {user for _, user in sent} == {""}

    async def test_a_page_of_a_cached_kind_is_read_as_the_user_of_the_process(
        self, server: RecordingCluster, cached: CachedCluster
    ) -> None:
        """Otherwise it would depend on the question, and on the state of the watch, who has to be allowed to read."""
        await cached.acting_as("jane").list("v1", "ConfigMap", ListOptions(limit=1))
        assert {request.user for request in server.requests if request.verb is Verb.LIST} == {""}

    @pytest.mark.parametrize("verb", ["get", "list"])
    async def test_an_uncached_kind_is_read_as_the_other_user(
        self, server: RecordingCluster, cached: CachedCluster, verb: str
    ) -> None:
        """Such as Secrets: no informer has read them, so the rights of the other user decide."""
        server.requests.clear()
        with suppress(ApiError):
            if verb == "get":
                await cached.acting_as("jane").get(ObjectKey("v1", "Secret", "a", "shop"))
            else:
                await cached.acting_as("jane").list("v1", "Secret")
        assert [(request.verb, request.user) for request in server.requests] == [(verb, "jane")]

    async def test_a_write_as_another_user_is_visible_at_once_to_all(
        self, server: RecordingCluster, cached: CachedCluster
    ) -> None:
        key = ObjectKey.of(settings())
        await cached.get(key)
        await cached.acting_as("jane").apply(settings(x="2"), field_manager="us", force=True)
        server.requests.clear()
        assert (await cached.get(key))["data"] == {"x": "2"}
        assert (await cached.acting_as("joe").get(key))["data"] == {"x": "2"}
        assert server.requests.reads == 0

    async def test_a_refused_write_leaves_the_cache_as_it_is(self) -> None:
        server = FaultyCluster(
            embedded(), [faults.rejected(ForbiddenError("no", code=403), verbs=frozenset({Verb.APPLY}))]
        )
        await server.create(settings(x="1"), field_manager="setup")
        async with CachedCluster(server) as cached:
            key = ObjectKey.of(settings())
            await cached.get(key)
            with pytest.raises(ForbiddenError):
                await cached.acting_as("jane").apply(settings(x="2"), field_manager="us", force=True)
            assert (await cached.get(key))["data"] == {"x": "1"}

    async def test_projected_values_are_computed_once_for_all_users(self, cached: CachedCluster) -> None:
        names: list[str] = []
        projection = Projection("v1", "ConfigMap", lambda live: names.append(live["metadata"]["name"]))
        for user in ("jane", "joe"):
            await projection.read(PauseGuard(cached, lambda: None).acting_as(user))
        await projection.read(cached)
        assert names.count("a") == 1


# kwok keyed its clients by the name of the user alone: https://github.com/kubernetes-sigs/kwok/pull/1629
IDENTITIES: Final = [
    pytest.param(Impersonation("jane"), id="another user"),
    pytest.param(Impersonation("joe", groups=("dev",)), id="other groups"),
    pytest.param(Impersonation("joe", uid="1"), id="another uid"),
    pytest.param(Impersonation("joe", extra={"scopes": ("view",)}), id="other attributes"),
]


@pytest.mark.parametrize("other", IDENTITIES)
class TestApplyCache:
    """What one user has written says nothing about what the API server would answer to another one."""

    def test_an_object_in_sync_for_one_is_compared_again_for_the_other(self, other: Impersonation) -> None:
        cache = ApplyCache()
        cache.acting_as(Impersonation("joe").key).mark_in_sync("uid", "us", "1", b"x")
        assert cache.acting_as(Impersonation("joe").key).is_in_sync("uid", "us", "1", b"x")
        assert not cache.acting_as(other.key).is_in_sync("uid", "us", "1", b"x")
        assert not cache.is_in_sync("uid", "us", "1", b"x")

    def test_rewritten_values_are_those_of_one(self, other: Impersonation) -> None:
        cache = ApplyCache()
        joe = cache.acting_as(Impersonation("joe").key)
        joe.remember("uid", "us", {"data.x": ("1", "2")})
        for one in (cache, cache.acting_as(other.key)):
            assert dict(one.rewrites("uid", "us")) == {}
        assert joe.rewrites("uid", "us")

    def test_the_last_write_is_that_of_all(self, other: Impersonation) -> None:
        """The fields belong to the field manager, whoever has written them."""
        cache, key = ApplyCache(), ObjectKey.of(settings())
        write = LastWrite(b"x", SystemClock().elapsed())
        cache.acting_as(Impersonation("joe").key).note_write(key, "us", write)
        assert cache.last_write(key, "us") == cache.acting_as(other.key).last_write(key, "us") == write

    def test_one_limit_holds_for_all(self, other: Impersonation) -> None:
        cache = ApplyCache(limit=1)
        cache.acting_as(Impersonation("joe").key).remember("uid", "us", {"data.x": ("1", "2")})
        cache.acting_as(other.key).remember("uid", "us", {"data.x": ("1", "2")})
        assert not cache.acting_as(Impersonation("joe").key).rewrites("uid", "us")

    def test_what_belongs_to_the_process_is_shared(self, other: Impersonation) -> None:
        cache = ApplyCache()
        assert cache.shared(list) is cache.acting_as(other.key).shared(list)


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        pytest.param("", "without a user", id="no user"),
        pytest.param(None, "must be a name or a ServiceAccount, got None", id="a field of a spec that is not set"),
        pytest.param(ServiceAccount("", "shop"), 'name of a service account: ""', id="an account without a name"),
        pytest.param(ServiceAccount("a", ""), 'namespace of a service account: ""', id="without a namespace"),
        pytest.param(
            ServiceAccount("kube-system:admin", "shop"), 'name of a service account: "kube-system:admin"', id="a colon"
        ),
        pytest.param(ServiceAccount("a", "shop:kube"), 'namespace of a service account: "shop:kube"', id="two parts"),
        pytest.param(" jane ", "without spaces around it", id="spaces, which the API server drops"),
        pytest.param("jane\r\nImpersonate-Group: system:masters", "control characters", id="a second header"),
    ],
)
@pytest.mark.parametrize("make", [*WRAPPED, CACHED])
def test_an_invalid_user_never_becomes_the_own_user(
    make: Callable[[Cluster], Cluster], user: Any, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        make(embedded()).acting_as(user)


@pytest.mark.parametrize("more", [{"groups": [""]}, {"groups": ["dev", " ops"]}, {"extra": {"scopes": [""]}}])
def test_an_empty_group_is_an_error(more: dict[str, Any]) -> None:
    """A role for an empty name would be one for each group, `system:masters` included."""
    with pytest.raises(ConfigError, match="must be a name without spaces around it"):
        embedded().acting_as("jane", **more)


def test_a_text_in_place_of_groups_is_an_error() -> None:
    """Its letters would be groups."""
    with pytest.raises(ConfigError, match="groups must be a list of texts, got 'dev'"):
        embedded().acting_as("jane", groups="dev")


@pytest.mark.parametrize(
    ("user", "account"),
    [
        pytest.param("system:serviceaccount:shop:web", ServiceAccount("web", "shop"), id="a service account"),
        pytest.param("system:serviceaccount:shop:web:x", None, id="three parts"),
        pytest.param("system:serviceaccount:shop", None, id="one part"),
        pytest.param("system:serviceaccounts:shop:web", None, id="the group"),
        pytest.param("jane", None, id="another user"),
    ],
)
def test_the_name_of_a_user_is_read_as_by_the_api_server(user: str, account: ServiceAccount | None) -> None:
    """It decides whether the right to impersonate is one on service accounts or on users."""
    assert Impersonation(user).account == account
