"""The verbs of the cache: which reads it answers, and the effect of our own writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import (
    Cluster,
    DeleteOptions,
    ListOptions,
    ObjectList,
    PatchOptions,
    PatchType,
    Subresource,
    Verb,
    WatchOptions,
)
from ocf.cluster.protocol import Preconditions
from ocf.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConfigError,
    ConflictError,
    NotFoundError,
    ServerError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.selectors import LabelSelector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cluster.cache.conftest import Env

FINALIZER = "example.com/hold"


def reads(env: Env) -> list[Verb]:
    """The reads of the cluster since the last `sync`."""
    return [request.verb for request in env.server.requests if request.verb.is_read]


@pytest.fixture
async def lagging(env: Env) -> Env:
    """A synced cache with one object, `web`, whose watch delivers no further events."""
    await env.theirs()
    await env.sync()
    env.connection.held = True
    await env.settle()
    return env


def test_it_is_a_cluster(env: Env) -> None:
    cluster: Cluster = env.cached

    assert cluster.apply_cache is env.server.apply_cache


class TestGet:
    async def test_reads_are_answered_from_the_cache(self, env: Env) -> None:
        stored = await env.theirs()
        await env.sync()

        assert await env.cached.get(env.key()) == stored
        assert reads(env) == []

    async def test_what_is_returned_belongs_to_the_caller(self, env: Env) -> None:
        stored = await env.theirs()
        await env.sync()
        taken = await env.cached.get(env.key())
        taken["metadata"]["labels"] = {"changed": "yes"}
        taken["spec"]["template"]["spec"]["containers"].clear()
        (listed,) = (await env.cached.list("apps/v1", "Deployment")).items
        listed["spec"].clear()

        assert await env.cached.get(env.key()) == stored

    async def test_an_answer_belongs_to_the_caller(self, env: Env) -> None:
        await env.sync()
        answer = await env.ours()
        answer["spec"].clear()

        assert (await env.cached.get(env.key()))["spec"]["replicas"] == 1

    @pytest.mark.parametrize("subresource", [Subresource.SCALE, Subresource.STATUS])
    async def test_subresources_are_read_from_the_cluster(self, env: Env, subresource: Subresource) -> None:
        await env.theirs()
        await env.sync()
        direct = await env.server.get(env.key(), subresource=subresource)
        env.server.requests.clear()

        assert await env.cached.get(env.key(), subresource=subresource) == direct
        assert reads(env) == [Verb.GET]

    async def test_kinds_can_be_uncached(self, new_env: Callable[..., Env]) -> None:
        env = new_env(uncached=[("apps/v1", "Deployment")])
        await env.theirs()
        env.server.requests.clear()

        assert await env.note() == "theirs"
        assert await env.names() == ["web"]
        assert reads(env) == [Verb.GET, Verb.LIST]
        assert env.cached.informers == ()
        await env.cached.cache("apps/v1", "Deployment")
        assert env.cached.informers == ()

    async def test_namespaces_can_be_cached_separately(self, new_env: Callable[..., Env]) -> None:
        env = new_env(per_namespace=True)
        await env.theirs()
        await env.note()
        await env.names(namespace="other")

        assert [state.namespace for state in env.cached.informers] == ["shop", "other"]
        assert env.cached.informers_of("apps/v1", "Deployment") == env.cached.informers
        assert env.cached.informers_of("apps/v1beta1", "Deployment") == ()
        assert env.cached.informers_of("apps/v1", "StatefulSet") == ()
        assert {request.namespace for request in env.server.requests.of(Verb.LIST, Verb.WATCH)} == {"shop", "other"}
        await env.ours(note="ours")
        assert await env.note() == "ours"

    async def test_a_namespace_is_answered_by_its_own_informer(self, env: Env) -> None:
        await env.cached.cache("apps/v1", "Deployment", namespace="shop")
        await env.sync()
        env.connection.held = True
        await env.ours()

        assert await env.names(namespace="shop") == ["web"]
        assert await env.names() == ["web"], "our write is in both"

    async def test_an_informer_of_all_namespaces_answers_for_each(self, new_env: Callable[..., Env]) -> None:
        env = new_env(per_namespace=True)
        await env.theirs()
        await env.sync()

        assert await env.note() == "theirs"
        assert reads(env) == []


class TestList:
    @pytest.fixture
    async def filled(self, env: Env) -> Env:
        await env.theirs("b", app="x")
        await env.theirs("a", app="y")
        elsewhere = env.web("a", "other", app="x")
        await env.server.create(elsewhere, field_manager="them")
        await env.sync()
        return env

    @pytest.mark.parametrize(
        "options",
        [
            pytest.param(ListOptions(), id="all, by namespace and name"),
            pytest.param(ListOptions(namespace="shop"), id="one namespace"),
            pytest.param(ListOptions(label_selector="app=x"), id="labels"),
            pytest.param(ListOptions(label_selector="app in (x,y),!canary", namespace="shop"), id="label sets"),
            pytest.param(ListOptions(label_selector="app=z"), id="nothing"),
            pytest.param(ListOptions(field_selector="metadata.name=a"), id="name"),
            pytest.param(ListOptions(field_selector="metadata.name!=a,metadata.namespace=shop"), id="not a name"),
        ],
    )
    async def test_the_cache_lists_what_the_cluster_lists(self, filled: Env, options: ListOptions) -> None:
        found = await filled.cached.list("apps/v1", "Deployment", options)
        assert reads(filled) == []

        assert found == await filled.server.list("apps/v1", "Deployment", options)

    @pytest.mark.parametrize(
        "selector",
        ["app=", "app=x", "app==app", "app in (tier)", "tier=x,app=x", "app!=x", "tier in (x,y)", "!app", "tier"],
    )
    async def test_labels_are_found_however_they_are_packed(self, env: Env, selector: str) -> None:
        """Empty and equal values, and values that are keys."""
        values = ["", "x", "app", "tier", "y"]
        for number, (app, tier) in enumerate(product(values, values)):
            await env.server.apply(env.web(f"w{number}", app=app, tier=tier), field_manager="them")
        await env.server.apply(env.web("unlabelled"), field_manager="them")
        await env.sync()
        found = await env.names(label_selector=selector)

        assert found
        page = await env.server.list("apps/v1", "Deployment", ListOptions(label_selector=selector))
        assert found == [item["metadata"]["name"] for item in page.items]

    async def test_the_labels_of_what_is_not_selected_are_not_unpacked(
        self, env: Env, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Operators list the children of each of many owners."""
        for number in range(100):
            await env.server.apply(env.web(f"w{number}", owner=f"o{number:03}"), field_manager="them")
        await env.sync()
        compared: list[object] = []
        matches = LabelSelector.matches

        def counting(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
            compared.append(labels)
            return matches(selector, labels)

        monkeypatch.setattr(LabelSelector, "matches", counting)
        assert await env.names(label_selector="owner=o042") == ["w42"]
        assert compared == [{"owner": "o042"}]

    async def test_a_page_watches_nothing(self, env: Env) -> None:
        await env.cached.list("v1", "Pod", ListOptions(limit=2))
        assert env.cached.informers_of("v1", "Pod") == ()

    async def test_pages_come_from_the_cluster(self, filled: Env) -> None:
        first = await filled.cached.list("apps/v1", "Deployment", ListOptions(limit=2))
        second = await filled.cached.list("apps/v1", "Deployment", ListOptions(continue_token=first.continue_token))

        assert (len(first.items), len(second.items)) == (2, 1)
        assert reads(filled) == [Verb.LIST, Verb.LIST]

    @pytest.mark.parametrize(
        "options",
        [
            ListOptions(field_selector="status.replicas=1"),
            ListOptions(field_selector="nonsense"),
            ListOptions(label_selector="a in ("),
        ],
        ids=["another field", "invalid field selector", "invalid label selector"],
    )
    async def test_selectors_that_only_the_cluster_evaluates_go_to_it(self, filled: Env, options: ListOptions) -> None:
        with pytest.raises(BadRequestError):
            await filled.cached.list("apps/v1", "Deployment", options)

    async def test_a_watch_from_the_version_of_a_list_misses_no_event(self, lagging: Env) -> None:
        await lagging.ours("new")
        page = await lagging.cached.list("apps/v1", "Deployment")
        await lagging.server.delete(lagging.key("new"))
        lagging.connection.deliver_all()
        events = lagging.cached.watch("apps/v1", "Deployment", WatchOptions(resource_version=page.resource_version))
        assert isinstance(events, AsyncGenerator)
        async with aclosing(events):
            seen = [await anext(events) for _ in range(2)]

        assert [event.type for event in seen] == ["ADDED", "DELETED"]


class TestOwnWrites:
    """The effect of writes while the watch lags behind forever."""

    async def test_apply(self, lagging: Env) -> None:
        await lagging.ours(note="ours")
        await lagging.ours("new")

        assert await lagging.note() == "ours"
        assert await lagging.names() == ["new", "web"]
        assert reads(lagging) == []

    async def test_create(self, lagging: Env) -> None:
        await lagging.cached.create(lagging.web("new", note="made"), field_manager="us")

        assert await lagging.note("new") == "made"
        assert reads(lagging) == []

    async def test_create_with_a_generated_name(self, lagging: Env) -> None:
        manifest = lagging.web(note="made")
        manifest["metadata"] = {"generateName": "web-", "namespace": "shop", "annotations": {"note": "made"}}
        name = (await lagging.cached.create(manifest, field_manager="us"))["metadata"]["name"]

        assert await lagging.note(name) == "made"
        assert reads(lagging) == []

    async def test_update(self, lagging: Env) -> None:
        live = await lagging.cached.get(lagging.key())
        live["metadata"]["annotations"] = {"note": "updated"}
        await lagging.cached.update(live, field_manager="us")

        assert await lagging.note() == "updated"
        assert reads(lagging) == []

    async def test_update_of_the_status(self, lagging: Env) -> None:
        live = await lagging.cached.get(lagging.key())
        live["status"] = {"replicas": 3}
        await lagging.cached.update(live, field_manager="us", subresource=Subresource.STATUS)

        assert (await lagging.cached.get(lagging.key()))["status"] == {"replicas": 3}
        assert reads(lagging) == []

    async def test_patch(self, lagging: Env) -> None:
        patch = {"metadata": {"annotations": {"note": "patched"}}}
        await lagging.cached.patch(lagging.key(), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="us"))

        assert await lagging.note() == "patched"
        assert reads(lagging) == []

    async def test_patch_of_a_scale(self, lagging: Env) -> None:
        """The answer is a Scale; the scaled object is read once."""
        patch = {"spec": {"replicas": 7}}
        await lagging.cached.patch(
            lagging.key(),
            patch,
            PatchOptions(patch_type=PatchType.MERGE, field_manager="us", subresource=Subresource.SCALE),
        )
        for _ in range(2):
            assert (await lagging.cached.get(lagging.key()))["spec"]["replicas"] == 7

        assert reads(lagging) == [Verb.LIST]

    async def test_eviction_of_a_pod(self, lagging: Env) -> None:
        """The answer is a Status; the pod is read once."""
        key = ObjectKey("v1", "Pod", "web", "shop")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
        spec = {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]}
        await lagging.cached.create({**pod, "spec": spec}, field_manager="us")
        await lagging.cached.get(key)
        lagging.server.requests.clear()
        answer = await lagging.cached.create(pod, field_manager="us", subresource=Subresource.EVICTION)
        assert answer["status"] == "Success"
        for _ in range(2):
            assert "deletionTimestamp" in (await lagging.cached.get(key))["metadata"]

        assert reads(lagging) == [Verb.LIST]

    async def test_a_dry_run_of_an_eviction_reads_nothing(self, lagging: Env) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
        spec = {"nodeName": "n1", "containers": [{"name": "web", "image": "web:1"}]}
        await lagging.cached.create({**pod, "spec": spec}, field_manager="us")
        await lagging.cached.get(ObjectKey.of(pod))
        lagging.server.requests.clear()
        await lagging.cached.create(pod, field_manager="us", subresource=Subresource.EVICTION, dry_run=True)
        assert "deletionTimestamp" not in (await lagging.cached.get(ObjectKey.of(pod)))["metadata"]
        assert reads(lagging) == []

    async def test_delete(self, lagging: Env) -> None:
        await lagging.cached.delete(lagging.key())
        for _ in range(2):
            with pytest.raises(NotFoundError):
                await lagging.note()
            assert await lagging.names() == []
        assert reads(lagging) == [Verb.LIST]

        lagging.connection.deliver_all()
        await lagging.settle()
        assert await lagging.names() == []

    async def test_delete_of_an_object_with_a_finalizer(self, lagging: Env) -> None:
        patch = {"metadata": {"finalizers": [FINALIZER]}}
        await lagging.cached.patch(lagging.key(), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="us"))
        await lagging.cached.delete(lagging.key())
        assert "deletionTimestamp" in (await lagging.cached.get(lagging.key()))["metadata"]
        (listed,) = (await lagging.cached.list("apps/v1", "Deployment")).items
        assert "deletionTimestamp" in listed["metadata"]

        patch = {"metadata": {"finalizers": []}}
        await lagging.cached.patch(lagging.key(), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="us"))
        with pytest.raises(NotFoundError):
            await lagging.note()

    async def test_a_list_reads_stale_objects_and_applies_its_selector(self, lagging: Env) -> None:
        await lagging.ours("held", app="x")
        patch = {"metadata": {"finalizers": [FINALIZER]}}
        await lagging.cached.patch(
            lagging.key("held"), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="us")
        )
        await lagging.cached.delete(lagging.key("held"))

        assert await lagging.names(label_selector="app=y") == []
        assert await lagging.names(label_selector="app=x") == ["held"]

    async def test_delete_and_create_again(self, lagging: Env) -> None:
        await lagging.cached.delete(lagging.key())
        made = await lagging.cached.create(lagging.web(note="again"), field_manager="us")
        assert await lagging.note() == "again"
        lagging.connection.deliver_all()
        await lagging.settle()

        assert (await lagging.cached.get(lagging.key()))["metadata"]["uid"] == made["metadata"]["uid"]
        assert reads(lagging) == []

    async def test_a_delete_whose_event_arrived_costs_no_read(self, env: Env) -> None:
        uid = (await env.theirs())["metadata"]["uid"]
        await env.sync()
        await env.cached.delete(env.key(), DeleteOptions(preconditions=Preconditions(uid=uid)))
        await env.settle()

        assert await env.names() == []
        assert reads(env) == []

    async def test_another_version_of_the_kind(self, env: Env) -> None:
        """An object that is written in one version is read once in the other."""
        stale: Manifest = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1000", "labels": {}},
        }
        await env.theirs()
        await env.sync()
        write = env.cached._informers.in_flight_write(ObjectKey("apps/v1beta1", "Deployment", "web", "shop"))
        with write:
            write.completed({**stale, "apiVersion": "apps/v1beta1"}, whole=True)
        await env.note()

        assert reads(env) == [Verb.LIST]

    async def test_the_name_of_an_answer_is_used(self, lagging: Env) -> None:
        """Also if the cluster stored it under another name than that of the manifest."""
        stored = await lagging.server.create(lagging.web("elsewhere", note="moved"), field_manager="us")
        with lagging.cached._informers.in_flight_write(lagging.key()) as write:
            write.completed(stored, whole=True)

        assert await lagging.note("elsewhere") == "moved"
        assert await lagging.note() == "theirs"

    async def test_a_dry_run_does_not_change_the_cache(self, env: Env) -> None:
        await env.theirs()
        await env.sync()
        changed = env.web(note="dry")
        await env.cached.apply(changed, field_manager="us", force=True, dry_run=True)
        await env.cached.delete(env.key(), DeleteOptions(dry_run=True))

        assert await env.note() == "theirs"
        assert reads(env) == []

    async def test_a_write_before_any_read(self, env: Env) -> None:
        """Writes do not start an informer."""
        await env.ours()
        assert env.cached.informers == ()

        assert await env.note() == "ours"

    async def test_a_write_during_the_first_list(self, env: Env) -> None:
        """The list is from before the write and arrives after it."""
        await env.theirs()
        env.connection.hold_lists = True
        reader = asyncio.create_task(env.note())
        await env.settle()
        await env.ours(note="ours")
        env.connection.release_lists()

        assert await reader == "ours"


class TestFailedWrites:
    @pytest.mark.parametrize(
        "error",
        [ServerError("gateway timeout", code=504), ConflictError("conflict", code=409)],
        ids=["lost answer", "conflict"],
    )
    async def test_a_write_with_an_unknown_outcome_is_read_back(self, lagging: Env, error: ApiError) -> None:
        lagging.connection.reply_lost = error
        with pytest.raises(type(error)):
            await lagging.ours(note="lost")
        with pytest.raises(type(error)):
            await lagging.ours(note="lost too")

        assert await lagging.note() == "lost too"
        assert reads(lagging) == [Verb.LIST]

    async def test_a_cancelled_write_is_read_back(self, lagging: Env) -> None:
        lagging.connection.hold_answers = True
        task = asyncio.create_task(lagging.ours(note="cancelled"))
        await lagging.settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await lagging.note() == "cancelled"

    async def test_a_write_before_the_first_list_is_read_back_too(self, env: Env) -> None:
        """The list is from between the two, and no event has arrived yet."""
        env.connection.held = env.connection.hold_answers = True
        writing = asyncio.create_task(env.ours(note="ours"))
        await env.names()
        env.connection.reply_lost = ServerError("reset")
        await env.server.apply(env.web(note="later"), field_manager="them", force=True)
        env.connection.release_answers()
        with pytest.raises(ServerError):
            await writing

        assert await env.note() == "later"

    async def test_after_a_conflict_the_next_read_goes_to_the_cluster(self, lagging: Env) -> None:
        """So a retry after reading again does not cause the same conflict."""
        live = await lagging.cached.get(lagging.key())
        await lagging.theirs(note="faster")
        with pytest.raises(ConflictError):
            await lagging.cached.update(live, field_manager="us")

        assert await lagging.note() == "faster"

    async def test_an_object_that_already_exists_is_read(self, lagging: Env) -> None:
        await lagging.theirs("new", note="faster")
        with pytest.raises(AlreadyExistsError):
            await lagging.cached.create(lagging.web("new"), field_manager="us")

        assert await lagging.note("new") == "faster"

    async def test_an_object_that_is_not_found_is_gone(self, lagging: Env) -> None:
        await lagging.server.delete(lagging.key())
        with pytest.raises(NotFoundError):
            await lagging.cached.delete(lagging.key())

        assert await lagging.names() == []

    async def test_a_rejected_write_does_not_change_the_cache(self, lagging: Env) -> None:
        with pytest.raises(ApiError):
            await lagging.cached.update({**lagging.web(), "spec": {"replicas": -1}}, field_manager="us")
        await lagging.note()

        assert reads(lagging) == []

    async def test_a_manifest_without_a_name_is_rejected_by_the_cluster(self, env: Env) -> None:
        with pytest.raises(ApiError):
            await env.cached.create({"apiVersion": "apps/v1", "kind": "Deployment"}, field_manager="us")

    async def test_an_object_stays_stale_when_its_read_fails(self, lagging: Env) -> None:
        await lagging.cached.delete(lagging.key())
        lagging.connection.list_errors = [ServerError("down")]
        with pytest.raises(ServerError, match="down"):
            await lagging.note()
        with pytest.raises(NotFoundError):
            await lagging.note()


class TestManagers:
    @pytest.fixture
    async def reducing(self, new_env: Callable[..., Env]) -> Env:
        env = new_env(keeps_manager=lambda manager: manager == "us", ignored_fields=["spec.replicas"])
        await env.theirs()
        await env.ours(note="ours")
        await env.sync()
        return env

    def managers(self, manifest: Manifest) -> list[str]:
        return [entry["manager"] for entry in manifest["metadata"]["managedFields"]]

    async def test_only_the_entries_of_our_managers_are_kept(self, reducing: Env) -> None:
        assert self.managers(await reducing.cached.get(reducing.key())) == ["us"]

    async def test_answers_of_our_writes_are_reduced_too(self, reducing: Env) -> None:
        await reducing.ours(note="again")

        assert self.managers(await reducing.cached.get(reducing.key())) == ["us"]

    async def test_owners_of_ignored_fields_are_kept(self, reducing: Env) -> None:
        patch = {"spec": {"replicas": 5}}
        await reducing.server.patch(
            reducing.key(), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="hpa")
        )
        await reducing.settle()
        entries = (await reducing.cached.get(reducing.key()))["metadata"]["managedFields"]

        assert {entry["manager"]: entry["fieldsV1"] for entry in entries}["hpa"] == {"f:spec": {"f:replicas": {}}}

    async def test_an_update_keeps_the_entries_that_are_not_cached(self, reducing: Env) -> None:
        live = await reducing.cached.get(reducing.key())
        live["metadata"]["annotations"]["note"] = "updated"
        await reducing.cached.update(live, field_manager="us")

        assert "them" in self.managers(await reducing.server.get(reducing.key()))
        assert "managedFields" not in reducing.connection.sent[-1]["metadata"]
        assert "managedFields" in live["metadata"], "what was given is left as it is"

    async def test_a_reset_of_the_managers_is_sent(self, reducing: Env) -> None:
        live = await reducing.cached.get(reducing.key())
        live["metadata"]["managedFields"] = [{}]
        await reducing.cached.update(live, field_manager="us")

        assert reducing.connection.sent[-1]["metadata"]["managedFields"] == [{}]

    async def test_without_a_predicate_all_entries_are_kept_and_sent(self, env: Env) -> None:
        stored = await env.theirs()
        await env.sync()
        live = await env.cached.get(env.key())
        await env.cached.update(live, field_manager="us")

        assert live == stored
        assert "managedFields" in env.connection.sent[-1]["metadata"]

    async def test_with_a_status_they_are_not_sent(self, env: Env) -> None:
        before = await env.theirs()
        await env.sync()
        live = await env.cached.get(env.key())
        await env.cached.update({**live, "status": {"replicas": 1}}, field_manager="us", subresource=Subresource.STATUS)
        stored = await env.server.get(env.key())

        assert "managedFields" not in env.connection.sent[-1]["metadata"]
        assert stored["status"]["replicas"] == 1
        assert stored["metadata"]["managedFields"][:-1] == before["metadata"]["managedFields"]


class TestSubscribe:
    async def test_present_objects_and_later_changes_are_reported(self, env: Env) -> None:
        await env.theirs("a")
        async with aclosing(env.cached.subscribe("apps/v1", "Deployment")) as events:
            seen = [await anext(events)]
            await env.ours("b")
            seen.append(await anext(events))
            await env.theirs("a", note="changed")
            seen.append(await anext(events))
            await env.server.delete(env.key("b"))
            seen.append(await anext(events))

        assert [(event.type, event.object["metadata"]["name"]) for event in seen] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
        ]

    async def test_our_own_write_is_reported_once(self, env: Env) -> None:
        await env.sync()
        seen: list[str] = []

        async def listen() -> None:
            async for event in env.cached.subscribe("apps/v1", "Deployment"):
                seen.append(event.type)  # noqa: PERF401 (it never ends on its own)

        task = asyncio.create_task(listen())
        await env.settle()
        await env.ours()
        await env.settle()
        await env.cached.close()
        await task

        assert seen == ["ADDED"], "and closing ends it"

    async def test_a_subscription_survives_errors(self, env: Env) -> None:
        await env.sync()
        async with aclosing(env.cached.subscribe("apps/v1", "Deployment", namespace="shop")) as events:
            waiting = asyncio.create_task(_next(events))
            await env.settle()
            env.connection.disconnect(RuntimeError("broken"))
            await env.theirs()
            await env.time.advance(5)

            assert (await waiting).type == "ADDED"

    async def test_a_subscription_that_ends_is_removed(self, env: Env) -> None:
        await env.theirs()
        async with aclosing(env.cached.subscribe("apps/v1", "Deployment")) as events:
            await anext(events)
        (informer,) = env.cached._informers

        assert not informer._subscriptions

    async def test_an_uncached_kind_cannot_be_subscribed_to(self, new_env: Callable[..., Env]) -> None:
        env = new_env(uncached=[("apps/v1", "Deployment")])
        with pytest.raises(ConfigError, match="uncached"):
            await anext(env.cached.subscribe("apps/v1", "Deployment"))


async def _next(events: Any) -> Any:
    return await anext(events)


async def test_lists_are_complete(env: Env) -> None:
    await env.theirs()
    page = await env.cached.list("apps/v1", "Deployment")

    assert isinstance(page, ObjectList)
    assert page.continue_token == ""
