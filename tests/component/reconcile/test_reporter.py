"""Reports of a reconcile: every attempt once, every real change once, and no value of a field."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component, Result, reconciling
from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, GuardStatus, StatusReport
from ocf.concepts.recorder import Why
from ocf.errors import ReconcileError, ServerError
from ocf.feature import BooleanGate
from ocf.objects import ObjectKey
from ocf.primitives import configmap, deployment
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ocf.concepts import Attempt, Event
    from ocf.objects import Manifest
    from tests.component.conftest import Env, StaticKind

CONFIG = ObjectKey("v1", "ConfigMap", "settings", "shop")


class Notes:
    """A recorder that keeps what it receives."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.events: list[Event] = []
        self.conditions: list[list[Manifest]] = []

    def attempted(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def happened(self, event: Event) -> None:
        self.events.append(event)

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        assert owner.name == "demo"
        self.conditions.append(list(conditions))

    @property
    def tried(self) -> list[tuple[str, ApplyOperation | None, Why]]:
        return [(attempt.label, attempt.operation, attempt.why) for attempt in self.attempts]

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return [(event.reason, event.action, event.note) for event in self.events]


@pytest.fixture
def notes() -> Notes:
    return Notes()


def of(*resources: Any, **options: Any) -> component.Builder:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder


async def run(env: Env, notes: Notes, subject: Component, cluster: Any = None) -> Result:
    owner = await env.owner_manifest()
    async with reconciling(owner, cluster or env.cluster, clock=env.clock, recorder=notes) as context:
        return await subject.reconcile(context)


class TestAttempts:
    async def test_every_attempt_is_recorded_once_with_its_reason(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        await run(env, notes, of(config_map().build()).build())
        await run(env, notes, of(config_map().build()).build())
        await run(env, notes, of(config_map().build()).build())
        await run(env, notes, of(config_map(a="2").build()).build())
        assert notes.tried == [
            ("configmap", ApplyOperation.CREATED, Why.ABSENT),
            ("configmap", ApplyOperation.NONE, Why.EQUAL),
            ("configmap", ApplyOperation.NONE, Why.IN_SYNC),
            ("configmap", ApplyOperation.UPDATED, Why.CHANGED),
        ]
        assert (notes.attempts[0].component, notes.attempts[0].resource) == ("web", CONFIG)

    async def test_the_label_is_the_authors(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        await run(env, notes, of(config_map().with_metrics_identifier("settings").build()).build())
        assert [attempt.label for attempt in notes.attempts] == ["settings"]

    async def test_a_read_is_not_an_attempt(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.create(CONFIG, data={"a": "1"})
        await run(env, notes, of(config_map().build(), read_only=True).build())
        assert (notes.tried, notes.changes) == ([], [])

    async def test_a_blocked_resource_is_not_an_attempt(self, env: Env, notes: Notes, web_base: Manifest) -> None:
        blocked = StatusReport(GuardStatus.BLOCKED, "not yet")
        await run(env, notes, of(deployment.Builder(web_base).with_guard(lambda _base: blocked).build()).build())
        assert notes.tried == []

    @pytest.mark.parametrize("verb", ["get", "apply"])
    async def test_a_failed_attempt_is_recorded_once(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind], verb: Any
    ) -> None:
        broken = FaultyCluster(env.cluster, [faults.server_error(verbs=[verb], kind="ConfigMap", times=None)])
        with pytest.raises(ReconcileError):
            await run(env, notes, of(config_map().build()).build(), broken)
        assert notes.tried == [("configmap", None, Why.FAILED)]
        assert [reason for reason, _, _ in notes.changes] == ["ReconcileFailed"]

    async def test_a_failing_status_handler_fails_the_attempt_but_not_the_event(
        self, env: Env, notes: Notes, web_base: Manifest
    ) -> None:
        def broken(_operation: ApplyOperation, _live: Any) -> StatusReport[AliveStatus]:
            raise RuntimeError("no idea")

        with pytest.raises(ReconcileError):
            await run(env, notes, of(deployment.Builder(web_base).with_custom_converge_status(broken).build()).build())
        assert notes.tried == [("deployment", None, Why.FAILED)]
        assert [reason for reason, _, _ in notes.changes] == ["CreatedDeployment", "ReconcileFailed"]

    async def test_a_suspension_attempts_too(self, env: Env, notes: Notes, web: deployment.Resource) -> None:
        await run(env, notes, of(web).suspend().build())
        assert notes.tried == [("deployment", ApplyOperation.CREATED, Why.ABSENT)]


class TestEvents:
    async def test_real_changes_are_recorded_once(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        for value in "1122":
            await run(env, notes, of(config_map(a=value).build()).build())
        assert notes.changes == [
            ("CreatedConfigMap", "Create", "Created ConfigMap 'settings'"),
            ("UpdatedConfigMap", "Update", "Updated ConfigMap 'settings'"),
        ]
        owner = await env.owner_manifest()
        assert (notes.events[0].owner, notes.events[0].owner_uid) == (env.owner, owner["metadata"]["uid"])
        assert notes.events[0].resource == CONFIG

    @pytest.mark.parametrize("adopted", [False, True], ids=["created", "adopted"])
    async def test_an_object_in_another_namespace_is_named_with_it(
        self, env: Env, notes: Notes, *, adopted: bool
    ) -> None:
        key = ObjectKey("v1", "ConfigMap", f"named-{adopted}".lower(), "default")
        if adopted:
            await env.create(key)
        body = {"metadata": {"name": key.name, "namespace": "default"}, "data": {"a": "b"}}
        copies = component.Builder("web", condition_type="WebReady")
        await run(env, notes, copies.with_resource(configmap.Builder(body), unowned=True).build())
        assert all(f"ConfigMap 'default/{key.name}'" in event.note for event in notes.events)
        assert [event.reason for event in notes.events] == (
            ["ResourceAdopted", "UpdatedConfigMap"] if adopted else ["CreatedConfigMap"]
        )

    async def test_a_new_failure_is_recorded_once_and_not_per_retry(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        for problem in ("first", "first", "second", ""):
            errors = [faults.rejected(ServerError(problem), verbs=[Verb.APPLY], times=None)] if problem else []
            with pytest.raises(ReconcileError) if problem else nullcontext():
                await run(env, notes, of(config_map().build()).build(), FaultyCluster(env.cluster, errors))
        failed = [event for event in notes.events if event.type == "Warning"]
        assert [event.note.rpartition(": ")[2] for event in failed] == ["first", "second"]
        assert {(event.reason, event.action, event.resource) for event in failed} == {
            ("ReconcileFailed", "Reconcile", env.owner)
        }

    async def test_a_real_delete_is_recorded_and_an_absent_object_is_not(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()).build())
        for _ in range(2):
            await run(env, notes, of(config_map().build(), delete_when=True).build())
        assert notes.changes == [
            ("ResourceDeleted", "Delete", f"Resource {CONFIG} deleted due to resource deletion flag"),
        ]

    @pytest.mark.parametrize(
        ("options", "detail"),
        [
            pytest.param({"gated_by": BooleanGate(False)}, "gate closed", id="closed gate"),
            pytest.param(
                {"gated_by": BooleanGate(False), "delete_when": True}, "not wanted", id="closed gate and flag"
            ),
            pytest.param({"gated_by": BooleanGate(True), "delete_when": True}, "not wanted", id="open gate and flag"),
        ],
    )
    async def test_a_delete_names_what_caused_it(
        self, env: Env, notes: Notes, options: Any, detail: str, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()).build())
        result = await run(env, notes, of(config_map().build(), **options).build())
        event = {"gate closed": "due to closed resource gate", "not wanted": "due to resource deletion flag"}[detail]
        assert notes.changes == [("ResourceDeleted", "Delete", f"Resource {CONFIG} deleted {event}")]
        assert [outcome.detail for outcome in result.outcomes] == [detail]

    async def test_a_disabled_component_records_its_deletes(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()).build())
        await run(env, notes, of(config_map().build()).with_feature_gate(BooleanGate(False)).build())
        assert notes.changes == [
            ("ResourceDeleted", "Delete", f"Resource {CONFIG} deleted due to disabled feature gate")
        ]

    async def test_orphaning_is_recorded_once(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        await env.reconcile(of(config_map().build()).build())
        for _ in range(2):
            await run(env, notes, of(config_map().build(), orphan_when=True).build())
        assert notes.changes == [
            ("ResourceOrphaned", "Orphan", f"Resource {CONFIG} orphaned: owner reference removed"),
        ]

    async def test_a_delete_on_suspension_is_recorded(
        self, env: Env, notes: Notes, scaled: Callable[..., Component]
    ) -> None:
        await env.reconcile(scaled())
        await run(env, notes, scaled(suspended=True))
        assert ("ResourceDeleted", "Delete", f"Resource {env.hpa} deleted on suspension") in notes.changes


class TestConditions:
    async def test_all_conditions_are_recorded_once_they_are_stored(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        foreign = {"type": "Foreign", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "t"}
        owner = await env.owner_manifest()
        await env.report(ObjectKey.of(owner), {"conditions": [foreign]})
        subject = of(config_map().build()).build()
        await run(env, notes, subject)
        await run(env, notes, subject)
        assert [[one["type"] for one in stored] for stored in notes.conditions] == [["Foreign", "WebReady"]] * 2

    async def test_conditions_that_were_not_stored_are_not_recorded(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind]
    ) -> None:
        broken = FaultyCluster(env.cluster, [faults.server_error(kind="Shop", subresource="status", times=None)])
        with pytest.raises(Exception, match="unable to handle"):
            await run(env, notes, of(config_map().build()).build(), broken)
        assert notes.conditions == []


class TestLog:
    async def test_a_write_is_logged_with_fields_and_without_values(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind], caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, logger="ocf"):
            for value in ("hidden-1", "hidden-2", "hidden-2"):
                await run(env, notes, of(config_map(a=value).build()).build())
        assert [record.getMessage() for record in caplog.records] == [
            f"created {CONFIG}: absent",
            f"updated {CONFIG}: data.a: changed",
        ]
        fields = vars(caplog.records[0])
        assert (fields["component"], fields["condition"], fields["resource"]) == ("web", "WebReady", str(CONFIG))
        assert "hidden" not in caplog.text + repr(notes.attempts) + repr(notes.events)

    async def test_an_object_without_owner_reference_is_logged(
        self, env: Env, notes: Notes, cluster_role: StaticKind, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, logger="ocf"):
            for _ in range(2):
                await run(env, notes, of(cluster_role.build()).build())
        lines = [record.getMessage() for record in caplog.records if "owner reference" in record.getMessage()]
        role = "rbac.authorization.k8s.io/v1/ClusterRole/viewer"
        why = "it has no namespace, so it is not collected when example.com/v1/Shop/shop/demo is deleted"
        assert lines == [f"no owner reference on {role}: {why}"]

    async def test_a_foreign_object_that_is_not_deleted_is_logged(
        self, env: Env, notes: Notes, config_map: Callable[..., StaticKind], caplog: pytest.LogCaptureFixture
    ) -> None:
        reference = await env.other_owner()
        await env.create(CONFIG, metadata={"ownerReferences": [reference]}, data={"a": "1"})
        with caplog.at_level(logging.INFO, logger="ocf"):
            await run(env, notes, of(config_map().build(), delete_when=True).build())
        assert [record.getMessage() for record in caplog.records] == [
            f"{CONFIG} is not deleted: controlled by Shop other"
        ]
        assert vars(caplog.records[0])["controller"] == "controlled by Shop other"

    @pytest.mark.parametrize("suppressed", [False, True])
    async def test_a_contradicting_grace_status_is_logged_unless_suppressed(
        self,
        env: Env,
        notes: Notes,
        web_base: Manifest,
        caplog: pytest.LogCaptureFixture,
        *,
        suppressed: bool,
    ) -> None:
        fine = StatusReport(GraceStatus.HEALTHY)
        web = deployment.Builder(web_base).with_custom_grace_status(lambda _live: fine).build()
        subject = of(web, suppress_grace_warning=suppressed).with_grace_period(timedelta(minutes=1)).build()
        with caplog.at_level(logging.INFO, logger="ocf"):
            await run(env, notes, subject)
            env.clock.advance(timedelta(minutes=2))
            caplog.clear()
            await run(env, notes, subject)
        lines = [vars(record) for record in caplog.records]
        assert [(line["resource"], line["graceStatus"]) for line in lines] == (
            [] if suppressed else [("apps/v1/Deployment/shop/web", "Healthy")]
        )

    async def test_a_failing_grace_handler_is_logged_as_an_error(
        self,
        env: Env,
        notes: Notes,
        web_base: Manifest,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        def broken(_live: Any) -> StatusReport[GraceStatus]:
            raise RuntimeError("no idea")

        web = deployment.Builder(web_base).with_custom_grace_status(broken).build()
        subject = of(web).with_grace_period(timedelta(minutes=1)).build()
        await run(env, notes, subject)
        env.clock.advance(timedelta(minutes=2))
        with caplog.at_level(logging.ERROR, logger="ocf"), pytest.raises(ReconcileError):
            await run(env, notes, subject)
        assert [record.levelname for record in caplog.records] == ["ERROR"]
