"""Deletes: preconditions, finalizers, and propagation policies without a garbage collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Propagation, Subresource
from ocf.cluster.protocol import EventType, Preconditions

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

HELD = "metadata: {finalizers: [a.io/x]}"
OTHER_UID = "8a2c7a5e-0000-4000-8000-000000000000"


class TestPreconditions:
    async def test_preconditions_that_are_met_allow_the_delete(self, env: Env) -> None:
        made = (await env.create("ConfigMap"))["metadata"]
        await env.delete("ConfigMap", preconditions=Preconditions(made["uid"], made["resourceVersion"]))

        assert not await env.exists("ConfigMap")

    async def test_another_uid_is_a_conflict(self, env: Env) -> None:
        await env.create("ConfigMap")

        with env.error(
            409,
            "Conflict",
            'Operation cannot be fulfilled on ConfigMap "demo": the UID in the precondition (<uid>) does not match '
            "the UID in record (<uid>). The object might have been deleted and then recreated",
        ):
            await env.delete("ConfigMap", preconditions=Preconditions(uid=OTHER_UID))
        assert await env.exists("ConfigMap")

    @pytest.mark.parametrize(
        ("kind", "subject"), [("Deployment", "Deployment.apps"), ("Widget", "Widget.conformance.example.com")]
    )
    async def test_another_version_is_a_conflict(self, env: Env, kind: str, subject: str) -> None:
        old = (await env.create(kind))["metadata"]["resourceVersion"]
        new = (await env.merge(kind, "metadata: {labels: {a: b}}"))["metadata"]["resourceVersion"]

        with env.error(
            409,
            "Conflict",
            f'Operation cannot be fulfilled on {subject} "demo": the ResourceVersion in the precondition ({old}) '
            f"does not match the ResourceVersion in record ({new}). The object might have been modified",
        ):
            await env.delete(kind, preconditions=Preconditions(resource_version=old))
        assert await env.exists(kind)


class TestFinalizers:
    async def test_finalizers_keep_the_object(self, env: Env) -> None:
        await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")
        metadata = (await env.get("ConfigMap"))["metadata"]

        assert metadata["deletionGracePeriodSeconds"] == 0
        assert metadata["finalizers"] == ["a.io/x"]
        assert "deletionTimestamp" in metadata

    async def test_a_delete_increments_the_generation(self, env: Env) -> None:
        made = await env.create("Deployment", f"{{{HELD}, spec: {env.manifest('Deployment', None)['spec']}}}")
        await env.delete("Deployment")

        assert (await env.get("Deployment"))["metadata"]["generation"] == made["metadata"]["generation"] + 1

    async def test_a_second_delete_changes_nothing(self, env: Env) -> None:
        await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")
        marked = await env.get("ConfigMap")
        await env.delete("ConfigMap")

        assert await env.get("ConfigMap") == marked

    @pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
    async def test_the_object_is_removed_with_the_last_finalizer(self, env: Env, kind: str) -> None:
        await env.create(kind, "{metadata: {finalizers: [a.io/x, b.io/y]}, spec: {}}" if kind == "Widget" else HELD)
        await env.delete(kind)
        await env.merge(kind, "metadata: {finalizers: []}")

        assert not await env.exists(kind)

    async def test_an_apply_may_remove_a_finalizer(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", HELD)
        await env.delete("ConfigMap")
        await env.apply("us", "ConfigMap", "")

        assert not await env.exists("ConfigMap")

    async def test_no_finalizer_is_added_to_a_terminating_object(self, env: Env) -> None:
        await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")
        detail = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"b.io/z"}'
        )

        with env.error(
            422,
            "Invalid",
            f'ConfigMap "demo" is invalid: metadata.finalizers: {detail}',
            f"FieldValueForbidden metadata.finalizers: {detail}",
        ):
            await env.merge("ConfigMap", "metadata: {finalizers: [a.io/x, b.io/z]}")

    async def test_a_terminating_object_can_be_written(self, env: Env) -> None:
        await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")
        live = await env.merge("ConfigMap", "data: {a: '1'}")

        assert live["data"] == {"a": "1"}

    async def test_the_time_of_deletion_stays(self, env: Env) -> None:
        await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")
        marked = await env.get("ConfigMap")
        live = await env.update(
            {**marked, "metadata": {key: value for key, value in marked["metadata"].items() if "deletion" not in key}}
        )

        assert live == marked

    async def test_its_name_is_taken_until_it_is_gone(self, env: Env) -> None:
        await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")

        with env.error(409, "AlreadyExists", 'object is being deleted: configmaps "demo" already exists'):
            await env.create("ConfigMap")

    async def test_a_watch_reports_a_deletion_as_modified_and_deleted(self, env: Env) -> None:
        made = await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap")
        await env.merge("ConfigMap", "metadata: {finalizers: null}")
        events = await env.events("ConfigMap", after=made["metadata"]["resourceVersion"], count=2)

        assert [each.type for each in events] == [EventType.MODIFIED, EventType.DELETED]


class TestPropagation:
    """Without a garbage collector the marks for its work stay visible."""

    @pytest.mark.parametrize(
        ("propagation", "finalizer"),
        [
            pytest.param(Propagation.FOREGROUND, "foregroundDeletion", id="foreground"),
            pytest.param(Propagation.ORPHAN, "orphan", id="orphan"),
        ],
    )
    async def test_a_propagation_policy_is_a_finalizer(
        self, env: Env, propagation: Propagation, finalizer: str
    ) -> None:
        made = await env.create("ConfigMap", HELD)
        await env.delete("ConfigMap", propagation=propagation)
        events = await env.events("ConfigMap", after=made["metadata"]["resourceVersion"], count=1)

        assert set(events[0].object["metadata"]["finalizers"]) == {"a.io/x", finalizer}

    async def test_background_propagation_does_not_wait(self, env: Env) -> None:
        await env.create("ConfigMap")
        await env.delete("ConfigMap", propagation=Propagation.BACKGROUND)

        assert not await env.exists("ConfigMap")

    @pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Widget"])
    async def test_background_propagation_is_the_default(self, env: Env, kind: str) -> None:
        await env.create(kind)
        await env.delete(kind)

        assert not await env.exists(kind)


async def test_a_delete_in_one_version_deletes_the_object_in_all_versions(env: Env) -> None:
    await env.create("Widget")
    await env.cluster.delete(env.key("Widget", api_version="conformance.example.com/v2"))

    assert not await env.exists("Widget")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_cannot_be_deleted(env: Env, name: str) -> None:
    key = env.key("Namespace")

    with env.error(403, "Forbidden", f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
        await env.cluster.delete(type(key)("v1", "Namespace", name))


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
async def test_only_a_delete_sets_the_deletion_fields(env: Env, kind: str, marks: str, causes: list[str]) -> None:
    body = f"metadata: {{{marks}}}"
    await env.create(kind)

    with env.error(422, "Invalid", None, *causes):
        await env.merge(kind, body)


async def test_a_create_drops_the_deletion_fields(env: Env) -> None:
    made = await env.create("ConfigMap", f"metadata: {{{TIME}, {GRACE}}}")

    assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & set(made["metadata"])


async def test_an_apply_does_not_set_the_deletion_fields(env: Env) -> None:
    await env.create("ConfigMap")

    with env.error(422, "Invalid", None, TIME_CAUSE):
        await env.apply("us", "ConfigMap", f"metadata: {{{TIME}}}")


@pytest.mark.parametrize("marks", ["deletionTimestamp: null, deletionGracePeriodSeconds: null", TIME])
async def test_a_terminating_object_stays_terminating(env: Env, marks: str) -> None:
    await env.create("ConfigMap", HELD)
    await env.delete("ConfigMap")
    before = await env.get("ConfigMap")
    live = await env.merge("ConfigMap", f"metadata: {{{marks}, labels: {{a: b}}}}")

    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        assert live["metadata"][name] == before["metadata"][name]


async def test_a_status_write_of_a_custom_resource_ignores_the_deletion_fields(env: Env) -> None:
    await env.create("Widget")
    live = await env.merge("Widget", f"metadata: {{{TIME}}}", part=Subresource.STATUS)

    assert "deletionTimestamp" not in live["metadata"]


async def test_a_status_write_does_not_set_the_deletion_fields(env: Env) -> None:
    await env.create("Deployment")

    with env.error(422, "Invalid", None, TIME_CAUSE):
        await env.merge("Deployment", f"metadata: {{{TIME}}}", part=Subresource.STATUS)
