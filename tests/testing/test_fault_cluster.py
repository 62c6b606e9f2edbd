"""Faults are injected exactly as planned and recorded."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource, Verb, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    OcfError,
    ServerError,
    TooManyRequestsError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, VirtualClock, assert_quiet, faults
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.testing.conftest import Operator

SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")


async def data(cluster: Cluster, key: ObjectKey = SETTINGS) -> Any:
    return (await cluster.get(key))["data"]


async def write(cluster: Cluster, value: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    await cluster.apply({**manifest, "data": {"a": value}}, field_manager="me", force=True)


class TestRefusals:
    async def test_have_no_effect_and_stop_after_their_number_of_times(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.server_error(503, verbs=[Verb.APPLY], times=2)])
        for _ in range(2):
            with pytest.raises(ServerError) as failed:
                await write(faulty, "1")
            assert failed.value.code == 503
        with pytest.raises(NotFoundError):
            await data(cluster)
        await write(faulty, "1")
        assert await data(cluster) == {"a": "1"}

    async def test_carry_retry_after(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.too_many_requests(retry_after=5)])
        with pytest.raises(TooManyRequestsError) as refused:
            await faulty.list("v1", "ConfigMap")
        assert refused.value.retry_after == 5

    async def test_are_new_errors_each_time(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.timeout(times=None)])
        errors = []
        for _ in range(2):
            with pytest.raises(ServerError) as failed:
                await faulty.get(SETTINGS)
            errors.append(failed.value)
        assert errors[0] is not errors[1]

    async def test_the_first_of_several_wins_and_all_count(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.conflict(), faults.timeout(first=2)])
        with pytest.raises(ConflictError):
            await write(faulty, "1")
        with pytest.raises(ServerError):
            await write(faulty, "1")
        await write(faulty, "1")

    async def test_reject_a_watch_when_it_is_opened(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.expired()])
        watch = faulty.watch("v1", "ConfigMap", WatchOptions(resource_version=cluster.resource_version))
        with pytest.raises(ExpiredError):
            await anext(watch)


async def test_a_lost_reply_is_lost_after_the_write(
    cluster: EmbeddedCluster, settings: Callable[..., Manifest]
) -> None:
    faulty = FaultyCluster(cluster, [faults.lost_reply(verbs=[Verb.CREATE])])
    with pytest.raises(ServerError) as failed:
        await faulty.create(settings(a="1"), field_manager="me")
    assert failed.value.code == 0
    assert await data(cluster) == {"a": "1"}
    with pytest.raises(AlreadyExistsError):
        await faulty.create(settings(a="1"), field_manager="me")


class TestStale:
    @pytest.mark.parametrize(("versions", "seen"), [(1, "3"), (2, "2"), (3, "1")])
    async def test_reads_return_an_older_version(self, cluster: EmbeddedCluster, versions: int, seen: str) -> None:
        faulty = FaultyCluster(cluster, [faults.stale(versions=versions)])
        for value in "1234":
            await write(faulty, value)
        assert await data(faulty) == {"a": seen}
        assert await data(faulty) == {"a": "4"}
        assert len(faulty.injected) == 1

    async def test_faults_of_different_age_are_independent(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale(versions=3), faults.stale(versions=1, first=2)])
        for value in "1234":
            await write(faulty, value)
        assert [await data(faulty) for _ in range(3)] == [{"a": "1"}, {"a": "3"}, {"a": "4"}]

    async def test_reads_do_not_return_an_object_that_did_not_exist_then(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale(times=None)])
        await write(faulty, "1")
        with pytest.raises(NotFoundError) as missing:
            await data(faulty)
        assert (missing.value.code, missing.value.reason) == (404, "NotFound")
        assert (await faulty.list("v1", "ConfigMap", ListOptions(namespace="shop"))).items == ()

    async def test_reads_still_return_a_deleted_object(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale()])
        await write(faulty, "1")
        await faulty.delete(SETTINGS)
        assert await data(faulty) == {"a": "1"}
        with pytest.raises(NotFoundError):
            await data(faulty)

    async def test_reads_return_versions_of_other_clients_that_were_seen(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale(first=2)])
        await write(cluster, "1")
        assert await data(faulty) == {"a": "1"}
        await write(cluster, "2")
        assert await data(faulty) == {"a": "1"}
        assert await data(faulty) == {"a": "2"}

    async def test_an_object_without_an_older_version_is_returned_and_not_recorded(
        self, cluster: EmbeddedCluster
    ) -> None:
        await write(cluster, "1")
        faulty = FaultyCluster(cluster, [faults.stale(versions=5)])
        assert await data(faulty) == {"a": "1"}
        assert faulty.injected == []
        with pytest.raises(AssertionError, match="never happened"):
            faulty.assert_all_injected()

    async def test_an_object_that_never_existed_is_not_recorded(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale()])
        with pytest.raises(NotFoundError):
            await data(faulty)
        with pytest.raises(NotFoundError):
            await faulty.list("example.com/v1", "Nothing")
        assert faulty.injected == []

    async def test_lists_return_an_older_version_of_the_named_object(
        self, cluster: EmbeddedCluster, settings: Callable[..., Manifest]
    ) -> None:
        fault = faults.stale(verbs=[Verb.LIST], kind="ConfigMap", name="a", namespace="shop")
        faulty = FaultyCluster(cluster, [fault])
        for name in ("a", "b"):
            for value in ("1", "2"):
                await faulty.apply(settings(name, key=value), field_manager="me")
        found = (await faulty.list("v1", "ConfigMap")).items
        assert [item["data"]["key"] for item in found] == ["1", "2"]

    async def test_a_status_write_creates_a_version(self, cluster: EmbeddedCluster, operator: Operator) -> None:
        faulty = FaultyCluster(cluster, [faults.stale()])
        shop = await cluster.get(operator.shop)
        await faulty.update({**shop, "status": {"a": 1}}, field_manager="me", subresource=Subresource.STATUS)
        assert "status" not in await faulty.get(operator.shop)
        assert "status" in await faulty.get(operator.shop)

    async def test_returned_versions_are_copies(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale(times=None)])
        for value in "12":
            await write(faulty, value)
        (await faulty.get(SETTINGS))["data"]["a"] = "spoilt"
        assert await data(faulty) == {"a": "1"}

    async def test_a_generated_name_is_known(self, cluster: EmbeddedCluster) -> None:
        faulty = FaultyCluster(cluster, [faults.stale()])
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-", "namespace": "shop"}}
        stored = await faulty.create(manifest, field_manager="me")
        patch = {"data": {"a": "2"}}
        key = ObjectKey.of(stored)
        await faulty.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="me"))
        assert "data" not in await faulty.get(key)

    async def test_a_stale_owner_does_not_create_a_second_object(
        self, cluster: EmbeddedCluster, operator: Operator
    ) -> None:
        """Reads may be stale; the writes still converge."""
        stale = faults.stale(verbs=[Verb.GET], first=3, times=20)
        faulty = FaultyCluster(cluster, [stale])
        for _ in range(5):
            with suppress(OcfError):
                await operator.reconcile(faulty)
        faulty.assert_all_injected()
        await operator.reconcile(cluster)
        await assert_quiet(cluster, operator.reconcile)
        assert len((await cluster.list("apps/v1", "Deployment")).items) == 1


class TestMeanwhile:
    async def test_another_client_writes_first(self, cluster: EmbeddedCluster, operator: Operator) -> None:
        """An update of an outdated version is rejected, as on any server."""

        async def rival() -> None:
            patch = {"metadata": {"labels": {"rival": "yes"}}}
            await cluster.patch(operator.shop, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="rival"))

        faulty = FaultyCluster(cluster, [faults.meanwhile(rival, verbs=[Verb.UPDATE])])
        shop = await faulty.get(operator.shop)
        with pytest.raises(ConflictError):
            await faulty.update({**shop, "spec": {"size": 1}}, field_manager="me")

    async def test_time_advances(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        async def wait() -> None:
            clock.advance(timedelta(seconds=30))

        before = clock.now()
        await FaultyCluster(cluster, [faults.meanwhile(wait)]).list("v1", "ConfigMap")
        assert clock.now() - before == timedelta(seconds=30)


class TestDroppedEvents:
    async def test_are_lost_and_the_next_ones_arrive(
        self, cluster: EmbeddedCluster, settings: Callable[..., Manifest]
    ) -> None:
        faulty = FaultyCluster(cluster, [faults.dropped_event(kind="ConfigMap", first=2)])
        watch = faulty.watch("v1", "ConfigMap", WatchOptions(resource_version=cluster.resource_version))
        for name in "abc":
            await cluster.create(settings(name), field_manager="me")
        names = [(await anext(watch)).object["metadata"]["name"] for _ in range(2)]
        await watch.aclose()
        assert names == ["a", "c"]
        assert str(faulty.injected[0]) == "DroppedEvent: watch v1/ConfigMap/shop/b"

    async def test_bookmarks_are_not_dropped(self, operator: Operator, settings: Callable[..., Manifest]) -> None:
        quick = EmbeddedCluster(namespaces=["shop"], now=operator.clock.now, bookmark_every=1)
        faulty = FaultyCluster(quick, [faults.dropped_event(times=None)])
        watch = faulty.watch("v1", "Secret", WatchOptions(resource_version=quick.resource_version))
        await quick.create(settings("a"), field_manager="me")
        assert (await anext(watch)).type is EventType.BOOKMARK
        await watch.aclose()

    async def test_are_not_counted_by_the_opening_of_the_watch(
        self, cluster: EmbeddedCluster, settings: Callable[..., Manifest]
    ) -> None:
        faulty = FaultyCluster(cluster, [faults.dropped_event(), faults.expired(first=2)])
        watch = faulty.watch("v1", "ConfigMap", WatchOptions(resource_version=cluster.resource_version))
        for name in "ab":
            await cluster.create(settings(name), field_manager="me")
        assert (await anext(watch)).object["metadata"]["name"] == "b"
        await watch.aclose()
        assert len(faulty.injected) == 1


class TestRecord:
    async def test_names_fault_and_request(self, cluster: EmbeddedCluster) -> None:
        conflict = faults.conflict()
        faulty = FaultyCluster(cluster, [conflict])
        with pytest.raises(ConflictError):
            await write(faulty, "1")
        (injection,) = faulty.injected
        assert injection.fault is conflict
        assert str(injection) == "Refusal: apply v1/ConfigMap/shop/settings by me"
        faulty.assert_all_injected()

    async def test_a_fault_that_never_happened_proves_nothing(self, cluster: EmbeddedCluster) -> None:
        happened, missed = faults.timeout(kind="ConfigMap"), faults.timeout(kind="Secret")
        faulty = FaultyCluster(cluster, [happened, missed])
        with pytest.raises(ServerError):
            await faulty.get(SETTINGS)
        assert faulty.not_injected == (missed,)
        with pytest.raises(AssertionError, match="kind='Secret'"):
            faulty.assert_all_injected()

    async def test_two_equal_faults_are_two(self, cluster: EmbeddedCluster) -> None:
        first, second = faults.lost_reply(), faults.lost_reply()
        faulty = FaultyCluster(cluster, [first, second])
        with pytest.raises(ServerError):
            await write(faulty, "1")
        assert faulty.not_injected == (second,)


async def test_without_faults_it_is_the_cluster(operator: Operator, cluster: EmbeddedCluster) -> None:
    faulty = FaultyCluster(cluster, [])
    for _ in range(2):
        await operator.reconcile(faulty)
    await assert_quiet(faulty, operator.reconcile)
    faulty.assert_all_injected()
