"""CustomResourceDefinitions: served kinds and versions, names, scale, selectable fields, and immutable fields."""

from collections.abc import Callable
from typing import Any

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource, WatchOptions
from ocf.cluster.protocol import EventType
from ocf.errors import InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

Define = Callable[..., Manifest]
DEFINITION = ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.example.com")
THING = ObjectKey("example.com/v1", "Thing", "t", "shop")


def schema(**spec: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }


def version(name: str, *, storage: bool = False, served: bool = True, **spec: Any) -> dict[str, Any]:
    given = schema(**(spec or {"size": {"type": "integer"}}))
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": given}}


@pytest.fixture
def define() -> Define:
    def build(*versions: dict[str, Any], **spec: Any) -> Manifest:
        return {
            "apiVersion": DEFINITION.api_version,
            "kind": DEFINITION.kind,
            "metadata": {"name": DEFINITION.name},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": list(versions) or [version("v1", storage=True)],
                **spec,
            },
        }

    return build


def thing(api_version: str = "example.com/v1", name: str = "t", **spec: Any) -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": "Thing",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec or {"size": 1},
    }


class TestServing:
    async def test_a_definition_is_established_by_the_create_request(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        await cluster.create(define(), field_manager="author")
        live = await cluster.get(DEFINITION)

        conditions = {item["type"]: item["status"] for item in live["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert live["status"]["acceptedNames"] == live["spec"]["names"]
        assert live["status"]["acceptedNames"]["listKind"] == "ThingList"
        assert live["status"]["storedVersions"] == ["v1"]
        assert (await cluster.create(thing(), field_manager="user"))["metadata"]["generation"] == 1

    async def test_a_kind_is_served_only_while_its_definition_exists(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        with pytest.raises(NotFoundError, match="could not find the requested resource"):
            await cluster.list("example.com/v1", "Thing")
        await cluster.create(define(), field_manager="author")
        assert (await cluster.list("example.com/v1", "Thing")).items == ()
        await cluster.delete(DEFINITION)

        with pytest.raises(NotFoundError, match="could not find the requested resource"):
            await cluster.list("example.com/v1", "Thing")

    async def test_a_dry_run_does_not_define_a_kind(self, cluster: EmbeddedCluster, define: Define) -> None:
        await cluster.create(define(), field_manager="author", dry_run=True)

        with pytest.raises(NotFoundError):
            await cluster.list("example.com/v1", "Thing")

    async def test_deleting_a_definition_deletes_its_objects(self, cluster: EmbeddedCluster, define: Define) -> None:
        """A definition is removed after the last object of its kind, as a namespace after its last object."""
        await cluster.create(define(), field_manager="author")
        held = thing()
        held["metadata"]["finalizers"] = ["example.com/wait"]
        await cluster.create(held, field_manager="user")
        await cluster.create(thing(name="free"), field_manager="user")
        await cluster.delete(DEFINITION)

        live = await cluster.get(DEFINITION)
        assert live["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        (left,) = (await cluster.list("example.com/v1", "Thing")).items
        assert (left["metadata"]["name"], "deletionTimestamp" in left["metadata"]) == ("t", True)

        release = {"metadata": {"finalizers": None}}
        await cluster.patch(THING, release, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        with pytest.raises(NotFoundError):
            await cluster.get(DEFINITION)

    async def test_names_of_another_definition_are_not_accepted(self, cluster: EmbeddedCluster, define: Define) -> None:
        await cluster.create(define(), field_manager="author")
        other = define(names={"plural": "others", "singular": "other", "kind": "Thing"})
        other["metadata"]["name"] = "others.example.com"
        await cluster.create(other, field_manager="author")
        live = await cluster.get(ObjectKey(DEFINITION.api_version, DEFINITION.kind, "others.example.com"))

        accepted, established = live["status"]["conditions"]
        assert (accepted["status"], accepted["reason"]) == ("False", "ListKindConflict")
        assert accepted["message"] == '"ThingList" is already in use'
        assert (established["status"], established["reason"]) == ("False", "NotAccepted")

    async def test_an_updated_definition_changes_the_declared_fields(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        await cluster.create(define(), field_manager="author")
        assert (await cluster.create(thing(colour="red"), field_manager="user"))["spec"] == {}
        more = version("v1", storage=True, colour={"type": "string"}, size={"type": "integer", "default": 3})
        await cluster.apply(define(more), field_manager="author", force=True)

        stored = await cluster.create(thing(name="u", colour="red"), field_manager="user")
        assert stored["spec"] == {"colour": "red", "size": 3}

    async def test_stored_objects_are_read_with_the_present_schema(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        """Without a write, a new default is set and a field that is no longer declared is pruned."""
        before = version("v1", storage=True, size={"type": "integer"}, old={"type": "string"})
        await cluster.create(define(before), field_manager="author")
        stored = await cluster.create(thing(size=1, old="x"), field_manager="user")
        after = version("v1", storage=True, size={"type": "integer"}, new={"type": "string", "default": "y"})
        await cluster.apply(define(after), field_manager="author", force=True)
        live = await cluster.get(THING)

        assert live["spec"] == {"size": 1, "new": "y"}
        assert live["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
        assert (await cluster.list("example.com/v1", "Thing")).items == (live,)


class TestVersions:
    @pytest.fixture
    async def two(self, cluster: EmbeddedCluster, define: Define) -> EmbeddedCluster:
        first = version("v1", storage=True, size={"type": "integer"}, old={"type": "string"})
        second = version("v2", size={"type": "integer"}, new={"type": "string"})
        await cluster.create(define(first, second), field_manager="author")
        return cluster

    async def test_an_object_is_served_in_every_version(self, two: EmbeddedCluster) -> None:
        """Only the version changes, and fields that the other version does not declare are pruned."""
        await two.create(thing("example.com/v1", size=1, old="x"), field_manager="user")
        second = await two.get(ObjectKey("example.com/v2", "Thing", "t", "shop"))

        assert (second["apiVersion"], second["spec"]) == ("example.com/v2", {"size": 1})
        assert [item["apiVersion"] for item in (await two.list("example.com/v2", "Thing")).items] == ["example.com/v2"]
        assert (await two.get(THING))["spec"] == {"size": 1, "old": "x"}

    async def test_an_object_is_stored_in_the_storage_version(self, two: EmbeddedCluster) -> None:
        stored = await two.create(thing("example.com/v2", size=2, new="y"), field_manager="user")

        assert (stored["apiVersion"], stored["spec"]) == ("example.com/v2", {"size": 2})
        assert (await two.get(THING))["spec"] == {"size": 2}

    async def test_a_watch_returns_the_requested_version(self, two: EmbeddedCluster) -> None:
        watch = two.watch("example.com/v2", "Thing", WatchOptions(resource_version=two.resource_version))
        await two.create(thing("example.com/v1", size=1, old="x"), field_manager="user")
        event = await anext(watch)
        await watch.aclose()

        assert (event.type, event.object["apiVersion"]) == (EventType.ADDED, "example.com/v2")
        assert event.object["spec"] == {"size": 1}

    async def test_managers_of_different_versions_conflict(self, two: EmbeddedCluster) -> None:
        await two.apply(thing("example.com/v1", size=1), field_manager="first")
        forced = await two.apply(thing("example.com/v2", size=2), field_manager="second", force=True)

        entries = {entry["manager"]: entry for entry in forced["metadata"]["managedFields"]}
        assert set(entries) == {"second"}
        assert entries["second"]["apiVersion"] == "example.com/v2"

    async def test_a_new_storage_version_is_added_to_the_stored_versions(self, two: EmbeddedCluster) -> None:
        change = [
            {"op": "replace", "path": "/spec/versions/0/storage", "value": False},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": True},
        ]
        await two.create(thing(size=1), field_manager="user")
        changed = await two.patch(DEFINITION, change, PatchOptions(patch_type=PatchType.JSON, field_manager="author"))

        assert changed["status"]["storedVersions"] == ["v1", "v2"]
        assert (await two.get(THING))["spec"] == {"size": 1}
        drop = [{"op": "remove", "path": "/spec/versions/0"}]
        with pytest.raises(InvalidError, match="v1 was previously a storage version"):
            await two.patch(DEFINITION, drop, PatchOptions(patch_type=PatchType.JSON, field_manager="author"))

    async def test_a_version_that_is_not_served_is_not_found(self, cluster: EmbeddedCluster, define: Define) -> None:
        versions = version("v1", storage=True, served=False), version("v2")
        await cluster.create(define(*versions), field_manager="author")
        await cluster.create(thing("example.com/v2"), field_manager="user")

        with pytest.raises(NotFoundError):
            await cluster.get(THING)
        with pytest.raises(NotFoundError):
            await cluster.list("example.com/v1", "Thing")


class TestScale:
    async def test_a_scale_reads_and_writes_the_paths_of_the_definition(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
        given = {**version("v1", storage=True), "subresources": {"status": {}, "scale": paths}}
        await cluster.create(define(given), field_manager="author")
        await cluster.create(thing(size=2), field_manager="user")
        status = {"status": {"replicas": 1}}
        await cluster.patch(
            THING, status, PatchOptions(patch_type=PatchType.MERGE, field_manager="ctl", subresource=Subresource.STATUS)
        )
        scale = {"spec": {"replicas": 5}}
        shown = await cluster.patch(
            THING, scale, PatchOptions(patch_type=PatchType.MERGE, field_manager="hpa", subresource=Subresource.SCALE)
        )

        assert (shown["spec"], shown["status"]) == ({"replicas": 5}, {"replicas": 1})
        live = await cluster.get(THING)
        assert live["spec"] == {"size": 5}
        owners = {
            entry["manager"]: entry["fieldsV1"]
            for entry in live["metadata"]["managedFields"]
            if entry.get("subresource") == "scale"
        }
        assert owners == {"hpa": {"f:spec": {"f:size": {}}}}


class TestSelection:
    async def test_a_kind_supports_the_selectable_fields_of_its_definition(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        given = {**version("v1", storage=True), "selectableFields": [{"jsonPath": ".spec.size"}]}
        await cluster.create(define(given), field_manager="author")
        await cluster.create(thing(name="a", size=1), field_manager="user")
        await cluster.create(thing(name="b", size=2), field_manager="user")
        found = await cluster.list("example.com/v1", "Thing", ListOptions(field_selector="spec.size=2"))

        assert [item["metadata"]["name"] for item in found.items] == ["b"]


class TestRefusals:
    async def test_an_update_may_keep_an_invalid_value(self, cluster: EmbeddedCluster, define: Define) -> None:
        """After a stricter definition, existing objects can still be updated: only changed values must be valid."""
        await cluster.create(define(), field_manager="author")
        await cluster.create(thing(size=1), field_manager="user")
        stricter = version("v1", storage=True, size={"type": "integer", "minimum": 5}, note={"type": "string"})
        await cluster.apply(define(stricter), field_manager="author", force=True)

        note = {"spec": {"note": "x"}}
        stored = await cluster.patch(THING, note, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        assert stored["spec"] == {"size": 1, "note": "x"}
        with pytest.raises(InvalidError, match="should be greater than or equal to 5"):
            await cluster.patch(
                THING, {"spec": {"size": 2}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
            )

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            pytest.param({"scope": "Cluster"}, "spec.scope", id="scope"),
            pytest.param({"names": {"kind": "Other", "listKind": "OtherList"}}, "spec.names.kind", id="kind"),
            pytest.param({"group": "example.org"}, "spec.group", id="group"),
        ],
    )
    async def test_immutable_fields_of_a_definition_cannot_change(
        self, cluster: EmbeddedCluster, define: Define, change: dict[str, Any], field: str
    ) -> None:
        await cluster.create(define(), field_manager="author")
        with pytest.raises(InvalidError) as caught:
            await cluster.patch(
                DEFINITION, {"spec": change}, PatchOptions(patch_type=PatchType.MERGE, field_manager="author")
            )

        assert [cause.field for cause in caught.value.causes] == [field]
        assert caught.value.causes[0].message.endswith("field is immutable")
