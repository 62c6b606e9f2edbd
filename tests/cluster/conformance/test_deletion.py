"""Deletes: preconditions, finalizers, and what a propagation policy leaves behind before anybody collects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import EventType, Preconditions, Propagation, Subresource

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Place

HELD = "metadata: {finalizers: [a.io/x]}"
OTHER_UID = "8a2c7a5e-0000-4000-8000-000000000000"


class TestPreconditions:
    async def test_those_that_hold_let_it_go(self, place: Place) -> None:
        made = (await place.create("ConfigMap"))["metadata"]
        await place.delete("ConfigMap", preconditions=Preconditions(made["uid"], made["resourceVersion"]))

        assert not await place.exists("ConfigMap")

    async def test_another_uid_is_a_conflict(self, place: Place) -> None:
        await place.create("ConfigMap")

        with place.error(
            409,
            "Conflict",
            'Operation cannot be fulfilled on ConfigMap "demo": the UID in the precondition (<uid>) does not match '
            "the UID in record (<uid>). The object might have been deleted and then recreated",
        ):
            await place.delete("ConfigMap", preconditions=Preconditions(uid=OTHER_UID))
        assert await place.exists("ConfigMap")

    @pytest.mark.parametrize(
        ("kind", "subject"), [("Deployment", "Deployment.apps"), ("Widget", "Widget.conformance.example.com")]
    )
    async def test_another_version_is_a_conflict(self, place: Place, kind: str, subject: str) -> None:
        old = (await place.create(kind))["metadata"]["resourceVersion"]
        new = (await place.merge(kind, "metadata: {labels: {a: b}}"))["metadata"]["resourceVersion"]

        with place.error(
            409,
            "Conflict",
            f'Operation cannot be fulfilled on {subject} "demo": the ResourceVersion in the precondition ({old}) '
            f"does not match the ResourceVersion in record ({new}). The object might have been modified",
        ):
            await place.delete(kind, preconditions=Preconditions(resource_version=old))
        assert await place.exists(kind)


class TestFinalizers:
    async def test_they_hold_the_object(self, place: Place) -> None:
        await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")
        metadata = (await place.get("ConfigMap"))["metadata"]

        assert metadata["deletionGracePeriodSeconds"] == 0
        assert metadata["finalizers"] == ["a.io/x"]
        assert "deletionTimestamp" in metadata

    async def test_a_delete_counts_as_a_generation(self, place: Place) -> None:
        made = await place.create("Deployment", f"{{{HELD}, spec: {place.manifest('Deployment', None)['spec']}}}")
        await place.delete("Deployment")

        assert (await place.get("Deployment"))["metadata"]["generation"] == made["metadata"]["generation"] + 1

    async def test_a_second_delete_changes_nothing(self, place: Place) -> None:
        await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")
        marked = await place.get("ConfigMap")
        await place.delete("ConfigMap")

        assert await place.get("ConfigMap") == marked

    @pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
    async def test_the_object_goes_with_the_last_one(self, place: Place, kind: str) -> None:
        await place.create(kind, "{metadata: {finalizers: [a.io/x, b.io/y]}, spec: {}}" if kind == "Widget" else HELD)
        await place.delete(kind)
        await place.merge(kind, "metadata: {finalizers: []}")

        assert not await place.exists(kind)

    async def test_an_apply_may_take_it_off(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", HELD)
        await place.delete("ConfigMap")
        await place.apply("us", "ConfigMap", "")

        assert not await place.exists("ConfigMap")

    async def test_none_is_added_to_what_is_being_deleted(self, place: Place) -> None:
        await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")
        detail = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"b.io/z"}'
        )

        with place.error(
            422,
            "Invalid",
            f'ConfigMap "demo" is invalid: metadata.finalizers: {detail}',
            f"FieldValueForbidden metadata.finalizers: {detail}",
        ):
            await place.merge("ConfigMap", "metadata: {finalizers: [a.io/x, b.io/z]}")

    async def test_what_is_being_deleted_is_written_still(self, place: Place) -> None:
        await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")
        live = await place.merge("ConfigMap", "data: {a: '1'}")

        assert live["data"] == {"a": "1"}

    async def test_the_time_of_deletion_stays(self, place: Place) -> None:
        await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")
        marked = await place.get("ConfigMap")
        live = await place.update(
            {**marked, "metadata": {key: value for key, value in marked["metadata"].items() if "deletion" not in key}}
        )

        assert live == marked

    async def test_its_name_is_taken_until_it_is_gone(self, place: Place) -> None:
        await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")

        with place.error(409, "AlreadyExists", 'object is being deleted: configmaps "demo" already exists'):
            await place.create("ConfigMap")

    async def test_its_end_is_told_by_modified_and_deleted(self, place: Place) -> None:
        made = await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap")
        await place.merge("ConfigMap", "metadata: {finalizers: null}")
        events = await place.events("ConfigMap", after=made["metadata"]["resourceVersion"], count=2)

        assert [each.type for each in events] == [EventType.MODIFIED, EventType.DELETED]


class TestPropagation:
    """Without a garbage collector what it would do is left to be seen."""

    @pytest.mark.parametrize(
        ("propagation", "finalizer"),
        [
            pytest.param(Propagation.FOREGROUND, "foregroundDeletion", id="foreground"),
            pytest.param(Propagation.ORPHAN, "orphan", id="orphan"),
        ],
    )
    async def test_it_is_a_finalizer(self, place: Place, propagation: Propagation, finalizer: str) -> None:
        made = await place.create("ConfigMap", HELD)
        await place.delete("ConfigMap", propagation=propagation)
        events = await place.events("ConfigMap", after=made["metadata"]["resourceVersion"], count=1)

        assert set(events[0].object["metadata"]["finalizers"]) == {"a.io/x", finalizer}

    async def test_in_the_background_nothing_is_waited_for(self, place: Place) -> None:
        await place.create("ConfigMap")
        await place.delete("ConfigMap", propagation=Propagation.BACKGROUND)

        assert not await place.exists("ConfigMap")

    @pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Widget"])
    async def test_the_background_is_the_default(self, place: Place, kind: str) -> None:
        await place.create(kind)
        await place.delete(kind)

        assert not await place.exists(kind)


async def test_a_delete_in_a_version_deletes_the_object_in_all(place: Place) -> None:
    await place.create("Widget")
    await place.cluster.delete(place.key("Widget", api_version="conformance.example.com/v2"))

    assert not await place.exists("Widget")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_stay(place: Place, name: str) -> None:
    key = place.key("Namespace")

    with place.error(403, "Forbidden", f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
        await place.cluster.delete(type(key)("v1", "Namespace", name))


TIME = "deletionTimestamp: '2026-01-31T12:00:00Z'"
TIME_CAUSE = 'FieldValueInvalid metadata.deletionTimestamp: Invalid value: "2026-01-31T12:00:00Z": field is immutable'
GRACE = "deletionGracePeriodSeconds: 5"
GRACE_CAUSE = "FieldValueInvalid metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Widget", "Namespace"])
@pytest.mark.parametrize(
    ("marks", "causes"),
    [
        pytest.param(TIME, [TIME_CAUSE], id="time"),
        pytest.param(GRACE, [GRACE_CAUSE], id="grace period"),
        pytest.param(f"{TIME}, {GRACE}", [TIME_CAUSE, GRACE_CAUSE], id="both"),
    ],
)
async def test_nobody_else_marks_an_object_as_being_deleted(
    place: Place, kind: str, marks: str, causes: list[str]
) -> None:
    body = f"metadata: {{{marks}}}"
    await place.create(kind)

    with place.error(422, "Invalid", None, *causes):
        await place.merge(kind, body)


async def test_the_marks_of_what_is_created_are_dropped(place: Place) -> None:
    made = await place.create("ConfigMap", f"metadata: {{{TIME}, {GRACE}}}")

    assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & set(made["metadata"])


async def test_an_apply_does_not_mark_an_object_as_being_deleted(place: Place) -> None:
    await place.create("ConfigMap")

    with place.error(422, "Invalid", None, TIME_CAUSE):
        await place.apply("us", "ConfigMap", f"metadata: {{{TIME}}}")


@pytest.mark.parametrize("marks", ["deletionTimestamp: null, deletionGracePeriodSeconds: null", TIME])
async def test_an_object_that_is_being_deleted_stays_so(place: Place, marks: str) -> None:
    await place.create("ConfigMap", HELD)
    await place.delete("ConfigMap")
    before = await place.get("ConfigMap")
    live = await place.merge("ConfigMap", f"metadata: {{{marks}, labels: {{a: b}}}}")

    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        assert live["metadata"][name] == before["metadata"][name]


async def test_the_marks_in_a_status_of_a_custom_resource_are_not_looked_at(place: Place) -> None:
    await place.create("Widget")
    live = await place.merge("Widget", f"metadata: {{{TIME}}}", part=Subresource.STATUS)

    assert "deletionTimestamp" not in live["metadata"]


async def test_a_status_does_not_mark_an_object_as_being_deleted(place: Place) -> None:
    await place.create("Deployment")

    with place.error(422, "Invalid", None, TIME_CAUSE):
        await place.merge("Deployment", f"metadata: {{{TIME}}}", part=Subresource.STATUS)
