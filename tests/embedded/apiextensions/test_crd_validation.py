"""Kinds that objects define: how long they are served, in which versions, and what changes them."""

from collections.abc import Callable
from typing import Any

import pytest

from ocf.cluster import EventType, ListOptions, PatchOptions, PatchType, Subresource, WatchOptions
from ocf.embedded import EmbeddedCluster
from ocf.errors import BadRequestError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey

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
    async def test_a_definition_is_established_with_the_request(self, cluster: EmbeddedCluster, define: Define) -> None:
        await cluster.create(define(), field_manager="author")
        live = await cluster.get(DEFINITION)

        conditions = {item["type"]: item["status"] for item in live["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert live["status"]["acceptedNames"] == live["spec"]["names"]
        assert live["status"]["acceptedNames"]["listKind"] == "ThingList"
        assert live["status"]["storedVersions"] == ["v1"]
        assert (await cluster.create(thing(), field_manager="user"))["metadata"]["generation"] == 1

    async def test_a_kind_is_not_served_before_and_after(self, cluster: EmbeddedCluster, define: Define) -> None:
        with pytest.raises(NotFoundError, match="could not find the requested resource"):
            await cluster.list("example.com/v1", "Thing")
        await cluster.create(define(), field_manager="author")
        assert (await cluster.list("example.com/v1", "Thing")).items == ()
        await cluster.delete(DEFINITION)

        with pytest.raises(NotFoundError, match="could not find the requested resource"):
            await cluster.list("example.com/v1", "Thing")

    async def test_a_dry_run_defines_nothing(self, cluster: EmbeddedCluster, define: Define) -> None:
        await cluster.create(define(), field_manager="author", dry_run=True)

        with pytest.raises(NotFoundError):
            await cluster.list("example.com/v1", "Thing")

    async def test_deleting_a_definition_deletes_its_objects(self, cluster: EmbeddedCluster, define: Define) -> None:
        """A definition waits for the last object of its kind, as a namespace does for what is in it."""
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

    async def test_names_that_are_taken_are_not_accepted(self, cluster: EmbeddedCluster, define: Define) -> None:
        await cluster.create(define(), field_manager="author")
        other = define(names={"plural": "others", "singular": "other", "kind": "Thing"})
        other["metadata"]["name"] = "others.example.com"
        await cluster.create(other, field_manager="author")
        live = await cluster.get(ObjectKey(DEFINITION.api_version, DEFINITION.kind, "others.example.com"))

        accepted, established = live["status"]["conditions"]
        assert (accepted["status"], accepted["reason"]) == ("False", "KindConflict")
        assert accepted["message"] == '"Thing" is already in use'
        assert (established["status"], established["reason"]) == ("False", "NotAccepted")

    async def test_a_definition_changes_what_is_declared(self, cluster: EmbeddedCluster, define: Define) -> None:
        await cluster.create(define(), field_manager="author")
        assert (await cluster.create(thing(colour="red"), field_manager="user"))["spec"] == {}
        more = version("v1", storage=True, colour={"type": "string"}, size={"type": "integer", "default": 3})
        await cluster.apply(define(more), field_manager="author", force=True)

        stored = await cluster.create(thing(name="u", colour="red"), field_manager="user")
        assert stored["spec"] == {"colour": "red", "size": 3}

    async def test_stored_objects_are_shown_as_the_schema_is_now(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        """A new default appears in them and a field that is declared no more disappears, without a write."""
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
        """Nothing but the version's name is converted, and what the other version does not declare is dropped."""
        await two.create(thing("example.com/v1", size=1, old="x"), field_manager="user")
        second = await two.get(ObjectKey("example.com/v2", "Thing", "t", "shop"))

        assert (second["apiVersion"], second["spec"]) == ("example.com/v2", {"size": 1})
        assert [item["apiVersion"] for item in (await two.list("example.com/v2", "Thing")).items] == ["example.com/v2"]
        assert (await two.get(THING))["spec"] == {"size": 1, "old": "x"}

    async def test_what_is_written_in_one_version_is_stored_in_the_other(self, two: EmbeddedCluster) -> None:
        stored = await two.create(thing("example.com/v2", size=2, new="y"), field_manager="user")

        assert (stored["apiVersion"], stored["spec"]) == ("example.com/v2", {"size": 2})
        assert (await two.get(THING))["spec"] == {"size": 2}

    async def test_a_watch_shows_the_version_it_asked_for(self, two: EmbeddedCluster) -> None:
        watch = two.watch("example.com/v2", "Thing", WatchOptions(resource_version=two.resource_version))
        await two.create(thing("example.com/v1", size=1, old="x"), field_manager="user")
        event = await anext(watch)
        await watch.aclose()

        assert (event.type, event.object["apiVersion"]) == (EventType.ADDED, "example.com/v2")
        assert event.object["spec"] == {"size": 1}

    async def test_managers_of_different_versions_know_of_each_other(self, two: EmbeddedCluster) -> None:
        await two.apply(thing("example.com/v1", size=1), field_manager="first")
        forced = await two.apply(thing("example.com/v2", size=2), field_manager="second", force=True)

        entries = {entry["manager"]: entry for entry in forced["metadata"]["managedFields"]}
        assert set(entries) == {"second"}
        assert entries["second"]["apiVersion"] == "example.com/v2"

    async def test_a_new_storage_version_is_remembered(self, two: EmbeddedCluster) -> None:
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

    async def test_a_version_that_is_not_served_cannot_be_asked_for(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        versions = version("v1", storage=True, served=False), version("v2")
        await cluster.create(define(*versions), field_manager="author")
        await cluster.create(thing("example.com/v2"), field_manager="user")

        with pytest.raises(NotFoundError):
            await cluster.get(THING)
        with pytest.raises(NotFoundError):
            await cluster.list("example.com/v1", "Thing")


class TestScale:
    async def test_the_scale_reads_and_writes_the_paths_of_the_definition(
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
    async def test_a_kind_is_selected_by_the_fields_of_its_definition(
        self, cluster: EmbeddedCluster, define: Define
    ) -> None:
        given = {**version("v1", storage=True), "selectableFields": [{"jsonPath": ".spec.size"}]}
        await cluster.create(define(given), field_manager="author")
        await cluster.create(thing(name="a", size=1), field_manager="user")
        await cluster.create(thing(name="b", size=2), field_manager="user")
        found = await cluster.list("example.com/v1", "Thing", ListOptions(field_selector="spec.size=2"))

        assert [item["metadata"]["name"] for item in found.items] == ["b"]


class TestRefusals:
    async def test_what_was_wrong_before_may_stay(self, cluster: EmbeddedCluster, define: Define) -> None:
        """A stricter definition does not lock the objects that are there: only what changes must fit."""
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
    async def test_what_cannot_change(
        self, cluster: EmbeddedCluster, define: Define, change: dict[str, Any], field: str
    ) -> None:
        await cluster.create(define(), field_manager="author")
        with pytest.raises(InvalidError) as caught:
            await cluster.patch(
                DEFINITION, {"spec": change}, PatchOptions(patch_type=PatchType.MERGE, field_manager="author")
            )

        assert [cause.field for cause in caught.value.causes] == [field]
        assert caught.value.causes[0].message.endswith("field is immutable")

    async def test_a_conversion_webhook_is_refused(self, cluster: EmbeddedCluster, define: Define) -> None:
        webhook = {"clientConfig": {"url": "https://127.0.0.1"}, "conversionReviewVersions": ["v1"]}
        with pytest.raises(BadRequestError, match="the embedded cluster cannot convert custom resources by a webhook"):
            await cluster.create(define(conversion={"strategy": "Webhook", "webhook": webhook}), field_manager="author")
