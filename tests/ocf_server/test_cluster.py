"""Verbs of the embedded cluster: copies, determinism, lists, the request log, and rejected requests."""

from collections.abc import Callable
from typing import Any

import pytest

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Propagation, Subresource, Verb, WatchOptions
from ocf.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
)
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.http.status import status_of
from ocf_server.registry.registry import Registry

Build = Callable[..., Manifest]
WEB = ObjectKey("apps/v1", "Deployment", "web", "shop")
SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")


def test_an_embedded_cluster_is_a_cluster() -> None:
    cluster: Cluster = EmbeddedCluster()

    assert cluster.apply_cache.rewrites("uid", "manager") == {}


class TestCopies:
    async def test_changing_a_returned_object_does_not_change_the_stored_one(
        self, cluster: EmbeddedCluster, deployment: Build
    ) -> None:
        for response in (
            await cluster.apply(deployment(), field_manager="ours"),
            await cluster.apply(deployment(), field_manager="ours"),
            await cluster.get(WEB),
            (await cluster.list("apps/v1", "Deployment")).items[0],
        ):
            response["spec"]["template"]["spec"]["containers"].clear()
            response["metadata"]["managedFields"][0]["fieldsV1"].clear()

        stored = await cluster.get(WEB)
        assert len(stored["spec"]["template"]["spec"]["containers"]) == 1
        assert stored["metadata"]["managedFields"][0]["fieldsV1"]

    async def test_a_reader_sees_every_change(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        for value in ("1", "2"):
            await cluster.apply(config_map(data={"a": value}), field_manager="ours")
            assert (await cluster.get(SETTINGS))["data"] == {"a": value}

    async def test_a_string_enum_is_stored_as_text(self, cluster: EmbeddedCluster) -> None:
        """A custom resource can contain a member of a string enum; reading it returns an equal text."""
        manifest: Manifest = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "shop"},
            "spec": {"type": Propagation.ORPHAN},
        }
        await cluster.create(manifest, field_manager="ours")

        assert (await cluster.get(ObjectKey.of(manifest)))["spec"] == {"type": "Orphan"}

    async def test_a_write_does_not_change_its_manifest(self, cluster: EmbeddedCluster, deployment: Build) -> None:
        manifest = deployment()
        before = copy_json(manifest)
        await cluster.apply(manifest, field_manager="ours")
        await cluster.update(manifest, field_manager="ours")
        await cluster.apply(manifest, field_manager="theirs", force=True)

        assert manifest == before

    async def test_changing_a_written_manifest_does_not_change_the_stored_object(
        self, cluster: EmbeddedCluster
    ) -> None:
        manifest: Manifest = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "shop"},
            "spec": {"a": {"b": [1]}},
        }
        await cluster.apply(manifest, field_manager="ours")
        manifest["spec"]["a"]["b"].append(2)

        stored = await cluster.get(ObjectKey.of(manifest))
        assert stored["spec"] == {"a": {"b": [1]}}

    async def test_two_clusters_share_nothing(self, config_map: Build) -> None:
        first, second = EmbeddedCluster(namespaces=("shop",)), EmbeddedCluster(namespaces=("shop",))
        await first.create(config_map(), field_manager="test")

        with pytest.raises(NotFoundError):
            await second.get(SETTINGS)


class TestDeterminism:
    async def test_the_same_requests_give_the_same_objects(self, deployment: Build, clock: Any) -> None:
        responses = []
        for _ in range(2):
            cluster = EmbeddedCluster(namespaces=("shop",), now=clock)
            responses.append(await cluster.apply(deployment(), field_manager="ours"))

        assert responses[0] == responses[1]

    async def test_different_seeds_give_different_uids(self, deployment: Build) -> None:
        uids = set()
        for seed in (1, 2):
            cluster = EmbeddedCluster(namespaces=("shop",), seed=seed)
            uids.add((await cluster.apply(deployment(), field_manager="ours"))["metadata"]["uid"])

        assert len(uids) == 2

    async def test_the_clock_sets_the_times_of_objects_and_managed_fields(
        self, cluster: EmbeddedCluster, deployment: Build, clock: Any
    ) -> None:
        clock.advance(90)
        metadata = (await cluster.apply(deployment(), field_manager="ours"))["metadata"]

        assert metadata["creationTimestamp"] == "2026-01-01T00:01:30Z"
        assert metadata["managedFields"][0]["time"] == "2026-01-01T00:01:30Z"

    async def test_resource_versions_increase_across_all_kinds(
        self, cluster: EmbeddedCluster, deployment: Build, config_map: Build
    ) -> None:
        first = await cluster.apply(deployment(), field_manager="ours")
        second = await cluster.apply(config_map(data={"a": "b"}), field_manager="ours")

        versions = [int(manifest["metadata"]["resourceVersion"]) for manifest in (first, second)]
        assert versions[1] == versions[0] + 1
        assert cluster.resource_version == str(versions[1])


class TestGeneratedNames:
    async def test_a_name_is_generated_from_the_prefix(self, cluster: EmbeddedCluster) -> None:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "job-", "namespace": "shop"}}
        names = set()
        for _ in range(3):
            stored = await cluster.create(manifest, field_manager="test")
            assert stored["metadata"]["generateName"] == "job-"
            names.add(stored["metadata"]["name"])

        assert len(names) == 3
        assert all(name.startswith("job-") and len(name) == 9 for name in names)

    async def test_a_generated_name_is_at_most_63_characters_long(self, cluster: EmbeddedCluster) -> None:
        metadata = {"generateName": "x" * 80, "namespace": "shop"}
        stored = await cluster.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="test"
        )

        assert len(stored["metadata"]["name"]) == 63

    @pytest.mark.parametrize("used", [pytest.param(number, id=f"{number} names used") for number in (1, 7, 8)])
    async def test_a_used_name_is_generated_again(
        self, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, used: int
    ) -> None:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job-used", "namespace": "shop"}}
        await cluster.create(manifest, field_manager="test")
        suffixes = iter(["used"] * used + ["free"])
        monkeypatch.setattr(Registry, "generate_name", lambda _, prefix: prefix + next(suffixes))
        manifest["metadata"] = {"generateName": "job-", "namespace": "shop"}

        if used < 8:
            assert (await cluster.create(manifest, field_manager="test"))["metadata"]["name"] == "job-free"
            return
        with pytest.raises(AlreadyExistsError) as caught:
            await cluster.create(manifest, field_manager="test")
        assert caught.value.message == (
            'configmaps "job-used" already exists, the server was not able to generate a unique name for the object'
        )
        assert caught.value.retry_after == 1


class TestLists:
    async def fill(self, cluster: EmbeddedCluster, build: Build) -> None:
        for namespace, name in (("shop", "b"), ("other", "c"), ("shop", "a"), ("shop", "c")):
            labels = {"name": name}
            await cluster.create(build(name, namespace=namespace, labels=labels), field_manager="test")

    async def names(self, cluster: EmbeddedCluster, **options: Any) -> list[str]:
        page = await cluster.list("v1", "ConfigMap", ListOptions(**options))
        return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in page.items]

    async def test_objects_are_sorted_by_namespace_and_name(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        await self.fill(cluster, config_map)

        assert await self.names(cluster) == ["other/c", "shop/a", "shop/b", "shop/c"]
        assert await self.names(cluster, namespace="shop") == ["shop/a", "shop/b", "shop/c"]
        assert await self.names(cluster, namespace="nowhere") == []

    async def test_items_have_api_version_and_kind(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        await self.fill(cluster, config_map)
        page = await cluster.list("v1", "ConfigMap")

        assert {(item["apiVersion"], item["kind"]) for item in page.items} == {("v1", "ConfigMap")}
        assert page.resource_version == cluster.resource_version

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            pytest.param({"label_selector": "name=a"}, ["shop/a"], id="label"),
            pytest.param({"label_selector": "name in (a,b),name!=b"}, ["shop/a"], id="two terms"),
            pytest.param({"field_selector": "metadata.name=c"}, ["other/c", "shop/c"], id="name"),
            pytest.param({"field_selector": "metadata.name=c,metadata.namespace=shop"}, ["shop/c"], id="both"),
            pytest.param({"field_selector": "metadata.name!=c"}, ["shop/a", "shop/b"], id="not"),
            pytest.param({"field_selector": "metadata.name==a", "label_selector": "name"}, ["shop/a"], id="together"),
        ],
    )
    async def test_selectors_filter_a_list(
        self, cluster: EmbeddedCluster, config_map: Build, options: dict[str, str], names: list[str]
    ) -> None:
        await self.fill(cluster, config_map)

        assert await self.names(cluster, **options) == names

    @pytest.mark.parametrize(
        ("selector", "message"),
        [
            pytest.param("data.a=b", '"data.a" is not a known field selector: only "metadata.name"', id="other field"),
            pytest.param("name", "invalid field selector: ", id="no operator"),
        ],
    )
    async def test_unsupported_field_selectors_are_rejected(
        self, cluster: EmbeddedCluster, selector: str, message: str
    ) -> None:
        with pytest.raises(BadRequestError) as caught:
            await cluster.list("v1", "ConfigMap", ListOptions(field_selector=selector))

        assert caught.value.message.startswith(message)

    async def test_all_pages_have_the_same_resource_version(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        """Changes between two pages are not visible in the later page."""
        await self.fill(cluster, config_map)
        first = await cluster.list("v1", "ConfigMap", ListOptions(namespace="shop", limit=1))
        await cluster.delete(ObjectKey("v1", "ConfigMap", "b", "shop"))
        await cluster.create(config_map("bb"), field_manager="test")
        second = await cluster.list(
            "v1", "ConfigMap", ListOptions(namespace="shop", limit=2, continue_token=first.continue_token)
        )

        names = [item["metadata"]["name"] for item in (*first.items, *second.items)]
        assert names == ["a", "b", "c"]
        assert second.resource_version == first.resource_version
        assert second.continue_token == ""

    async def test_a_continue_token_expires_with_the_history(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        await self.fill(cluster, config_map)
        first = await cluster.list("v1", "ConfigMap", ListOptions(limit=1))
        await cluster.create(config_map("z"), field_manager="test")
        cluster.compact()

        with pytest.raises(ExpiredError, match="use the continue token in this response") as caught:
            await cluster.list("v1", "ConfigMap", ListOptions(limit=1, continue_token=first.continue_token))
        token = status_of(caught.value)["metadata"]["continue"]
        second = await cluster.list("v1", "ConfigMap", ListOptions(limit=1, continue_token=token))
        assert second.remaining_item_count == first.remaining_item_count  # "z" is new, and the second page is read
        assert second.resource_version == cluster.resource_version
        rest = await cluster.list("v1", "ConfigMap", ListOptions(continue_token=second.continue_token))
        names = [item["metadata"]["name"] for item in (*first.items, *second.items, *rest.items)]
        assert names == [item["metadata"]["name"] for item in (await cluster.list("v1", "ConfigMap")).items]

    async def test_an_invalid_continue_token_is_rejected(self, cluster: EmbeddedCluster) -> None:
        with pytest.raises(BadRequestError, match="invalid continue token"):
            await cluster.list("v1", "ConfigMap", ListOptions(continue_token="abc"))


class TestRequests:
    async def test_every_request_is_logged_with_its_outcome(self, cluster: EmbeddedCluster, deployment: Build) -> None:
        await cluster.apply(deployment(), field_manager="ours")
        await cluster.apply(deployment(), field_manager="ours")
        await cluster.apply(deployment(5), field_manager="ours", dry_run=True)
        with pytest.raises(ConflictError):
            await cluster.apply(deployment(4), field_manager="theirs")
        await cluster.get(WEB, subresource=Subresource.SCALE)
        await cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))

        rows = [(r.verb, r.name, r.field_manager, r.dry_run, r.changed, r.code) for r in cluster.requests]
        assert rows == [
            (Verb.APPLY, "web", "ours", False, True, 200),
            (Verb.APPLY, "web", "ours", False, False, 200),
            (Verb.APPLY, "web", "ours", True, False, 200),
            (Verb.APPLY, "web", "theirs", False, False, 409),
            (Verb.GET, "web", "", False, False, 200),
            (Verb.LIST, "", "", False, False, 200),
        ]
        log = cluster.requests
        assert (log.reads, log.writes, log.changes, len(log)) == (2, 4, 1, 6)
        assert log.of(Verb.GET)[0].subresource is Subresource.SCALE

    async def test_the_request_log_can_be_cleared(self, cluster: EmbeddedCluster, deployment: Build) -> None:
        await cluster.apply(deployment(), field_manager="ours")
        cluster.requests.clear()

        assert (list(cluster.requests), cluster.requests.reads, cluster.requests.writes) == ([], 0, 0)

    async def test_the_log_is_bounded_and_the_counts_are_not(self, cluster: EmbeddedCluster) -> None:
        cluster.requests.limit = 2
        for _ in range(5):
            await cluster.list("v1", "ConfigMap")

        assert (len(list(cluster.requests)), cluster.requests.reads) == (2, 5)

    async def test_a_watch_counts_as_one_read(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        await cluster.create(config_map(), field_manager="test")
        cluster.requests.clear()
        watch = cluster.watch("v1", "ConfigMap", WatchOptions(resource_version="0"))
        await anext(watch)
        await watch.aclose()

        assert [request.verb for request in cluster.requests] == [Verb.WATCH]


class TestRejections:
    async def test_a_strategic_merge_patch_of_a_custom_kind_is_rejected(self, cluster: EmbeddedCluster) -> None:
        """Such a patch needs Go types, which a custom kind does not have."""
        manifest: Manifest = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "shop"},
        }
        await cluster.create(manifest, field_manager="test")
        key = ObjectKey.of(manifest)
        with pytest.raises(BadRequestError, match="unknown format") as caught:
            await cluster.patch(key, {}, PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="test"))

        assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")

    @pytest.mark.parametrize("kind", ["Nothing", "TokenReview", "Binding"])
    async def test_a_kind_that_is_not_served_is_not_found(self, cluster: EmbeddedCluster, kind: str) -> None:
        with pytest.raises(NotFoundError, match="could not find the requested resource"):
            await cluster.get(ObjectKey("v1", kind, "x", "shop"))

    async def test_a_namespaced_kind_needs_a_namespace(self, cluster: EmbeddedCluster, deployment: Build) -> None:
        manifest = deployment()
        del manifest["metadata"]["namespace"]
        for request in (
            cluster.create(manifest, field_manager="test"),
            cluster.apply(manifest, field_manager="test"),
            cluster.get(ObjectKey("apps/v1", "Deployment", "web")),
        ):
            with pytest.raises(BadRequestError, match="namespaced"):
                await request

    async def test_a_cluster_scoped_kind_rejects_a_namespace(self, cluster: EmbeddedCluster) -> None:
        with pytest.raises(BadRequestError, match='cluster-scoped: no namespace may be given, got "shop"'):
            await cluster.get(ObjectKey("v1", "Namespace", "shop", "shop"))

    async def test_a_scale_without_its_target_kind_is_rejected(self, cluster: EmbeddedCluster) -> None:
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "shop"}}
        for request in (
            cluster.update(scale, field_manager="test", subresource=Subresource.SCALE),
            cluster.apply(scale, field_manager="test", subresource=Subresource.SCALE),
        ):
            with pytest.raises(BadRequestError, match="does not identify the scaled object"):
                await request

    async def test_an_item_without_its_merge_key_drops_the_managed_fields(self, cluster: EmbeddedCluster) -> None:
        """Such an item cannot be owned: the object is stored without managed fields, and an apply fails."""
        account: Manifest = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "a", "namespace": "shop"},
            "secrets": [{}],
        }
        stored = await cluster.create(account, field_manager="test")
        assert "managedFields" not in stored["metadata"]

        with pytest.raises(ApiError, match="failed to create typed live object") as caught:
            await cluster.apply({**account, "secrets": [{"name": "x"}]}, field_manager="test")
        assert caught.value.code == 500

    async def test_a_namespace_in_a_cluster_scoped_manifest_is_dropped(self, cluster: EmbeddedCluster) -> None:
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g", "namespace": "shop"}}
        for stored in (
            await cluster.create(gadget, field_manager="test"),
            await cluster.apply({**gadget, "spec": {"a": 1}}, field_manager="test"),
        ):
            assert "namespace" not in stored["metadata"]

        await cluster.delete(ObjectKey("example.com/v1", "Gadget", "g"))

    async def test_an_error_names_a_core_kind_without_a_group(
        self, cluster: EmbeddedCluster, config_map: Build
    ) -> None:
        with pytest.raises(ApiError) as caught:
            await cluster.apply(config_map(colour="red"), field_manager="test")

        expected = "(shop/settings; /v1, Kind=ConfigMap): .metadata.colour: field not declared in schema"
        assert caught.value.message == f"failed to create typed patch object {expected}"

    async def test_errors_have_code_and_reason(self, cluster: EmbeddedCluster) -> None:
        with pytest.raises(ApiError) as caught:
            await cluster.get(WEB)

        assert (caught.value.code, caught.value.reason) == (404, "NotFound")
        assert caught.value.message == 'deployments.apps "web" not found'


class TestNamespaces:
    async def test_the_system_namespaces_exist(self) -> None:
        page = await EmbeddedCluster(namespaces=("shop",)).list("v1", "Namespace")

        names = [item["metadata"]["name"] for item in page.items]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system", "shop"]

    async def test_a_new_namespace_is_active(self, cluster: EmbeddedCluster) -> None:
        stored = await cluster.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}, field_manager="test"
        )

        assert stored["status"] == {"phase": "Active"}
        assert stored["spec"] == {"finalizers": ["kubernetes"]}
        assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "new"}

    async def test_deleting_a_namespace_deletes_its_objects(self, cluster: EmbeddedCluster, config_map: Build) -> None:
        await cluster.create(config_map(), field_manager="test")
        await cluster.delete(ObjectKey("v1", "Namespace", "shop"))

        for key in (SETTINGS, ObjectKey("v1", "Namespace", "shop")):
            with pytest.raises(NotFoundError):
                await cluster.get(key)
        with pytest.raises(NotFoundError, match='namespaces "shop" not found'):
            await cluster.create(config_map(), field_manager="test")

    async def test_a_namespace_with_blocked_objects_stays_and_rejects_new_objects(
        self, cluster: EmbeddedCluster, config_map: Build
    ) -> None:
        await cluster.create(config_map(finalizers=["example.com/wait"]), field_manager="test")
        await cluster.delete(ObjectKey("v1", "Namespace", "shop"))

        namespace = await cluster.get(ObjectKey("v1", "Namespace", "shop"))
        assert namespace["status"] == {"phase": "Terminating"}
        assert "deletionTimestamp" in (await cluster.get(SETTINGS))["metadata"]
        with pytest.raises(ForbiddenError) as caught:
            await cluster.create(config_map("new"), field_manager="test")
        assert caught.value.causes[0].reason == "NamespaceTerminating"

        patch = {"metadata": {"finalizers": None}}
        await cluster.patch(SETTINGS, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
        with pytest.raises(NotFoundError):
            await cluster.get(ObjectKey("v1", "Namespace", "shop"))


def test_the_plural_of_a_custom_kind_is_derived_or_given() -> None:
    assert CustomKind("example.com", "v1", "Memcached").resource_name == "memcacheds"
    assert CustomKind("example.com", "v1", "Proxy", plural="proxies").resource_name == "proxies"
