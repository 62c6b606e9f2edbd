"""Resuming restores every value that the suspension replaced, for any writer of it and any change of the component."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Verb, WatchOptions
from ocf.component import BEFORE_SUSPENSION, Component, reconciling
from ocf.component.model.resource_options import ResourceOptions
from ocf.concepts.recorder import Why
from ocf.errors import ReconcileError, api_error
from ocf.feature import BooleanGate
from ocf.objects import Manifest, copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.paths import get_field
from ocf.primitives import deployment, hpa
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from tests.component.conftest import Env

COUNT: Final = 6


def of(*resources: Any, suspended: bool = False, **scaler: Any) -> Component:
    """Build the component; the options are those of the autoscaler."""
    builder = component.Builder("web", condition_type="WebReady").suspend(suspended)
    options: ResourceOptions = scaler  # type: ignore[assignment]  # the rows of a table
    for resource in resources:
        builder.with_resource(resource, **(options if resource.key.kind == "HorizontalPodAutoscaler" else {}))
    return builder.build()


async def counts(env: Env, since: str) -> list[int]:
    """Return the replica counts that every watcher has seen since a version."""
    last = (await env.cluster.get(env.web))["metadata"]["resourceVersion"]
    watch = env.cluster.watch("apps/v1", "Deployment", WatchOptions(resource_version=since, namespace="shop"))
    seen = []
    async for event in watch:
        seen.append(event.object["spec"]["replicas"])
        if event.object["metadata"]["resourceVersion"] == last:
            break
    await watch.aclose()
    return seen


async def version(env: Env) -> str:
    return str((await env.cluster.get(env.web))["metadata"]["resourceVersion"])


async def assert_in_sync(env: Env, subject: Component) -> None:
    env.cluster.requests.clear()
    await env.reconcile(subject)
    assert [request.verb for request in env.cluster.requests.of(Verb.APPLY, Verb.PATCH, Verb.DELETE)] == []


WITHOUT_SCALER: Final = [
    pytest.param({"gated_by": BooleanGate(False)}, id="with the autoscaler gated off"),
    pytest.param({"delete_when": True}, id="with the autoscaler deleted"),
    pytest.param(None, id="with the autoscaler not registered"),
]


class TestCount:
    """A Deployment without `replicas`."""

    @pytest.mark.promise("count-survives", runs="3 ways of resuming without the autoscaler, and 3 of suspending")
    @pytest.mark.parametrize("resumed", WITHOUT_SCALER)
    @pytest.mark.parametrize("suspended", [*WITHOUT_SCALER, pytest.param({}, id="with the autoscaler")])
    async def test_the_count_of_the_autoscaler_survives_its_end(
        self,
        env: Env,
        web: deployment.Resource,
        web_hpa: hpa.Resource,
        suspended: dict[str, Any] | None,
        resumed: dict[str, Any] | None,
    ) -> None:
        def build(options: dict[str, Any] | None, *, suspended: bool) -> Component:
            resources = [web] if options is None else [web, web_hpa]
            return of(*resources, suspended=suspended, **(options or {}))

        await env.reconcile(build({}, suspended=False))
        await env.scale(COUNT)
        await env.reconcile(build(suspended, suspended=True))
        assert await env.replicas() == 0
        before, subject = await version(env), build(resumed, suspended=False)
        await env.reconcile(subject)
        assert set(await counts(env, before)) == {COUNT}
        assert BEFORE_SUSPENSION not in ((await env.cluster.get(env.web))["metadata"].get("annotations") or {})
        await assert_in_sync(env, subject)
        assert await env.replicas() == COUNT

    @pytest.mark.promise("count-survives", runs="a count that kubectl and KEDA have set")
    @pytest.mark.parametrize("manager", ["kubectl", "keda"])
    async def test_the_count_of_another_writer_survives(self, env: Env, web: deployment.Resource, manager: str) -> None:
        """The component has no autoscaler, now or ever."""
        await env.reconcile(of(web))
        await env.set_scale(env.web, COUNT, by=manager)
        await env.reconcile(of(web, suspended=True))
        await assert_in_sync(env, of(web, suspended=True))
        before = await version(env)
        outcome = (await env.reconcile(of(web))).outcomes[0]
        assert outcome.why is Why.HANDED_OVER
        assert set(await counts(env, before)) == {COUNT}
        await assert_in_sync(env, of(web))

    async def test_the_count_that_is_set_during_the_suspension_survives(
        self, env: Env, web: deployment.Resource
    ) -> None:
        await env.reconcile(of(web))
        await env.scale(COUNT)
        await env.reconcile(of(web, suspended=True))
        await env.scale(3)
        await env.reconcile(of(web, suspended=True))
        assert await env.replicas() == 0
        await env.reconcile(of(web))
        assert await env.replicas() == 3

    async def test_a_count_that_the_running_form_declares_is_not_saved(
        self, env: Env, fixed_web: deployment.Resource
    ) -> None:
        await env.reconcile(of(fixed_web))
        await env.reconcile(of(fixed_web, suspended=True))
        assert "annotations" not in (await env.cluster.get(env.web))["metadata"]

    async def test_a_count_that_is_declared_meanwhile_wins(
        self, env: Env, web: deployment.Resource, fixed_web: deployment.Resource
    ) -> None:
        await env.reconcile(of(web))
        await env.scale(COUNT)
        await env.reconcile(of(web, suspended=True))
        await env.reconcile(of(fixed_web))
        assert await env.replicas() == 4
        await assert_in_sync(env, of(fixed_web))


class TestOtherFields:
    """The suspension of a user's own sets a label, a field of a container, and an atomic map."""

    @pytest.fixture
    def labelled(self, web_base: Manifest) -> deployment.Resource:
        def suspend(m: deployment.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_label("example.com/mode", "suspended"))

            @m.edit_deployment_spec
            def _(spec: Any) -> None:
                pod = spec.raw.template.spec
                pod.node_selector = {"pool": "spare"}
                pod.containers[0].termination_message_path = "/suspended"

        return deployment.Builder(web_base).with_custom_suspend_mutation(suspend).build()

    CONTAINER: Final = ("spec", "template", "spec", "containers", 0, "terminationMessagePath")
    NODES: Final = ("spec", "template", "spec", "nodeSelector")
    MODE: Final = ("metadata", "labels", "example.com/mode")

    @pytest.mark.promise("count-survives", runs="a label, a field of a container, and a map that merges as a whole")
    async def test_every_field_that_only_the_suspension_sets_is_restored(
        self, env: Env, labelled: deployment.Resource
    ) -> None:
        await env.reconcile(of(labelled))
        path = {"containers": [{"name": "web", "terminationMessagePath": "/logs"}], "nodeSelector": {"pool": "a"}}
        await self._edit(env, {"metadata": {"labels": {"example.com/mode": "blue"}}})
        await self._edit(env, {"spec": {"template": {"spec": path}}})
        await env.reconcile(of(labelled, suspended=True))
        assert await self._values(env) == ["suspended", "/suspended", {"pool": "spare"}]
        await env.reconcile(of(labelled))
        assert await self._values(env) == ["blue", "/logs", {"pool": "a"}]
        await assert_in_sync(env, of(labelled))

    async def test_fields_that_were_not_set_are_removed_and_need_no_annotation(
        self, env: Env, labelled: deployment.Resource
    ) -> None:
        await env.reconcile(of(labelled))
        await env.reconcile(of(labelled, suspended=True))
        live = await env.cluster.get(env.web)
        saved = json.loads(live["metadata"]["annotations"][BEFORE_SUSPENSION])
        assert saved == {"spec.template.spec.containers[name=web].terminationMessagePath": "/dev/termination-log"}
        await env.reconcile(of(labelled))
        assert await self._values(env) == [None, "/dev/termination-log", None]

    async def _edit(self, env: Env, patch: Manifest) -> None:
        """Apply fields as another user, with a field manager for each part of the object."""
        (part,) = patch
        named = {"name": "web", "namespace": "shop", **patch.get("metadata", {})}
        manifest = {"apiVersion": "apps/v1", "kind": "Deployment", **patch, "metadata": named}
        await env.cluster.apply(manifest, field_manager=f"user-of-{part}", force=True)

    async def _values(self, env: Env) -> list[Any]:
        live = await env.cluster.get(env.web)
        return [get_field(live, path) for path in (self.MODE, self.CONTAINER, self.NODES)]


SPOILT: Final = [
    pytest.param(text, id=text[:20])
    for text in (
        "",
        "{nonsense",
        "null",
        "[]",
        "6",
        '"6"',
        "[" * 100_000,
        '{"spec.replicas":"six"}',
        '{"spec.replicas":{"a":1}}',
        '{"spec.replicas":[6]}',
        '{"spec.replicas":true}',
        '{"spec.replicas":6.5}',
        '{"spec.replicas":-6}',
        '{"spec.replicas":NaN}',
        '{"spec.replicas":null}',
        '{"spec":6}',
        '{"spec":{"replicas":6}}',
        '{"metadata.name":"other"}',
        '{"spec.paused":true}',
        '{"":6}',
    )
]


class TestSpoiltAnnotation:
    """It counts as absent: the fields are as if they had never been set."""

    @pytest.mark.promise("count-survives", runs="20 invalid annotations")
    @pytest.mark.parametrize("text", SPOILT)
    async def test_an_invalid_annotation_counts_as_absent(self, env: Env, web: deployment.Resource, text: str) -> None:
        """The annotation itself belongs to the user who has edited it, and stays."""
        await self._suspend_and_spoil(env, web, text)
        await env.reconcile(of(web))
        live = await env.cluster.get(env.web)
        assert live["spec"]["replicas"] == 1
        assert "paused" not in live["spec"]
        await assert_in_sync(env, of(web))

    @pytest.mark.parametrize("text", ["[]", '{"spec.replicas":"six"}'])
    async def test_the_other_handovers_take_place(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource, text: str
    ) -> None:
        """The count was ours before it was ignored, so its value is known without the annotation."""
        await env.reconcile(of(fixed_web))
        await env.reconcile(of(fixed_web, suspended=True))
        await env.reconcile(of(fixed_web, web_hpa, suspended=True))
        await env.change(env.web, metadata={"annotations": {BEFORE_SUSPENSION: text}})
        await env.reconcile(of(fixed_web, web_hpa))
        assert await env.replicas() == 4

    @pytest.mark.parametrize("text", ["[]", '{"spec.replicas":"six","extra":1}'])
    async def test_it_is_written_anew_while_suspended(self, env: Env, web: deployment.Resource, text: str) -> None:
        await self._suspend_and_spoil(env, web, text)
        await env.reconcile(of(web, suspended=True))
        await assert_in_sync(env, of(web, suspended=True))

    async def test_a_policy_that_denies_the_value_fails_the_reconcile_and_keeps_it(
        self, env: Env, web: deployment.Resource
    ) -> None:
        """A ValidatingAdmissionPolicy answers as validation does, but names no field."""
        await env.reconcile(of(web))
        await env.scale(COUNT)
        await env.reconcile(of(web, suspended=True))
        denied = api_error("ValidatingAdmissionPolicy 'small' denied request: at most 5", code=422, reason="Invalid")
        cluster = FaultyCluster(env.cluster, [faults.rejected(denied, kind="Deployment", verbs=[Verb.APPLY])])
        with pytest.raises(ReconcileError, match="at most 5"):
            async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
                await of(web).reconcile(context)
        await env.reconcile(of(web))
        assert await env.replicas() == COUNT

    async def _suspend_and_spoil(self, env: Env, web: deployment.Resource, text: str) -> None:
        await env.reconcile(of(web))
        await env.scale(COUNT)
        await env.reconcile(of(web, suspended=True))
        await env.change(env.web, metadata={"annotations": {BEFORE_SUSPENSION: text}})


async def test_a_second_handover_keeps_the_fields_of_the_first(
    env: Env, web_base: Manifest, web: deployment.Resource
) -> None:
    """The second manager applies all that it owns: what it leaves out, the API server would remove."""
    base = copy_json(web_base)
    base["spec"]["revisionHistoryLimit"] = 3

    def ignoring(*fields: str, base: Manifest) -> Component:
        builder = component.Builder("web", condition_type="WebReady")
        return builder.with_resource(deployment.Builder(base).build(), ignore_fields=fields).build()

    await env.reconcile(ignoring(base=base))
    await env.reconcile(ignoring("spec.revisionHistoryLimit", base=base))
    await env.scale(COUNT)
    await env.reconcile(of(web, suspended=True))
    await env.reconcile(of(web))
    live = await env.cluster.get(env.web)
    assert (live["spec"]["revisionHistoryLimit"], live["spec"]["replicas"]) == (3, COUNT)
    (left,) = [entry for entry in ManagedFields.of(live).entries if entry.manager.name.endswith("/left")]
    assert left.fields == {"f:spec": {"f:revisionHistoryLimit": {}, "f:replicas": {}}}
