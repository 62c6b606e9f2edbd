"""An edit that sets a field to None clears it in the live object, whichever client set it.

A field that a former writer has set outlives every apply that does not declare it:
https://github.com/kubernetes/kubernetes/issues/99003, https://github.com/kubernetes/kubernetes/pull/112905.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V2HorizontalPodAutoscalerBehavior, V2HPAScalingRules

from ocf import component
from ocf.cluster import Verb
from ocf.cluster.cache import CachedCluster
from ocf.component import Component, diff, reconciling
from ocf.component.apply.cleared_fields import with_fields_moved
from ocf.component.status.results import Action
from ocf.concepts.recorder import NullRecorder
from ocf.editors import container_named
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.owned_paths import is_below, owned_fields
from ocf.objects.paths import get_field
from ocf.primitives import cronjob, deployment, hpa, networkpolicy, pvc, role
from ocf.testing import FaultyCluster, faults
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.concepts.recorder import Event
    from ocf.editors import HPASpecEditor
    from ocf.testing.faults import Fault
    from tests.component.conftest import Env

UP: Final = {"scaleUp": {"stabilizationWindowSeconds": 30}}
DOWN: Final = {"scaleDown": {"selectPolicy": "Disabled"}}
FORMER: Final = "kube-state"
Edit = Callable[["HPASpecEditor"], None]


class Events(NullRecorder):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def happened(self, event: Event) -> None:
        self.notes.append(f"{event.reason}: {event.note}")


@pytest.fixture
def plain(hpa_base: Manifest) -> Manifest:
    """The autoscaler without a behavior."""
    base: Manifest = copy_json(hpa_base)
    del base["spec"]["behavior"]
    return base


def scaling(base: Manifest, *edits: Edit) -> hpa.Resource:
    def mutate(m: hpa.Mutator) -> None:
        for edit in edits:
            m.edit_hpa_spec(edit)

    return hpa.Builder(base).with_mutation(hpa.Mutation("edited", mutate)).build()


def of(*resources: Any, **options: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady")
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


async def made_by_others(env: Env, base: Manifest, *, operation: str = "Update", **spec: Any) -> Manifest:
    """Create the autoscaler as another client does, with an update or an apply."""
    manifest = {**base, "spec": {**base["spec"], **spec}}
    if operation == "Apply":
        return await env.cluster.apply(manifest, field_manager=FORMER)
    return await env.cluster.create(manifest, field_manager=FORMER)


async def spec_of(env: Env) -> Manifest:
    spec: Manifest = (await env.cluster.get(env.hpa))["spec"]
    return spec


async def assert_in_sync(env: Env, subject: Component) -> None:
    env.cluster.requests.clear()
    assert (await env.reconcile(subject)).writes == 0
    assert env.cluster.requests.of(Verb.APPLY, Verb.PATCH, Verb.UPDATE, Verb.DELETE) == ()


def no_behavior(spec: HPASpecEditor) -> None:
    spec.set_behavior(None)


def no_minimum(spec: HPASpecEditor) -> None:
    spec.set_min_replicas(None)


def nothing_down(spec: HPASpecEditor) -> None:
    spec.set_scale_down(None)


def no_metric(spec: HPASpecEditor) -> None:
    spec.remove_metric("Pods", "rps")


def by_raw(spec: HPASpecEditor) -> None:
    spec.raw.behavior = None


class TestWhoeverHasSetIt:
    @pytest.mark.promise("cleared", runs="a behavior of an update and of an apply, on both servers")
    @pytest.mark.parametrize("operation", ["Update", "Apply"])
    @pytest.mark.parametrize("edit", [no_behavior, by_raw], ids=["by its method", "by the raw spec"])
    async def test_the_behavior_of_an_adopted_autoscaler_is_cleared(
        self, env: Env, plain: Manifest, operation: str, edit: Edit
    ) -> None:
        await made_by_others(env, plain, operation=operation, behavior={**UP, **DOWN})
        subject = of(scaling(plain, edit))
        result = await env.reconcile(subject)
        assert "behavior" not in await spec_of(env)
        (outcome,) = result.outcomes
        assert (outcome.action, outcome.writes) == (Action.UPDATED, 2)
        assert "spec.behavior: cleared" in outcome.reason_texts
        await assert_in_sync(env, subject)

    async def test_a_field_that_is_only_not_declared_stays(self, env: Env, plain: Manifest) -> None:
        await made_by_others(env, plain, behavior=DOWN)
        await env.reconcile(of(scaling(plain)))
        assert (await spec_of(env))["behavior"]["scaleDown"]["selectPolicy"] == "Disabled"

    @pytest.mark.promise("cleared", runs="a bound, one direction, the last metric, and a CronJob's time zone")
    async def test_the_default_of_the_server_takes_the_place_of_a_value(self, env: Env, plain: Manifest) -> None:
        base = copy_json(plain)
        del base["spec"]["minReplicas"]
        await made_by_others(env, base, minReplicas=4)
        subject = of(scaling(base, no_minimum))
        await env.reconcile(subject)
        live = await env.cluster.get(env.hpa)
        assert live["spec"]["minReplicas"] == 1
        assert list(ManagedFields.of(live).owners_of(("spec", "minReplicas"))) == []
        await assert_in_sync(env, subject)

    async def test_a_default_is_asked_for_once_by_a_new_process(self, env: Env, plain: Manifest) -> None:
        """Its cache may have only our own entry of `managedFields`, so it cannot know who has set the value."""
        base = copy_json(plain)
        del base["spec"]["minReplicas"]
        subject = of(scaling(base, no_minimum))
        await env.reconcile(subject)
        process = env.process()
        await process.reconcile(subject)
        assert [each.verb for each in process.cluster.requests.of(Verb.PATCH)] == [Verb.PATCH]
        await env.report(env.hpa, {"currentReplicas": 1, "desiredReplicas": 1})
        process.cluster.requests.clear()
        await process.reconcile(subject)
        assert process.cluster.requests.of(Verb.PATCH, Verb.APPLY) == ()

    async def test_one_direction_is_cleared_alone(self, env: Env, plain: Manifest) -> None:
        await made_by_others(env, plain, behavior={**UP, **DOWN})
        subject = of(scaling(plain, nothing_down))
        await env.reconcile(subject)
        behavior = (await spec_of(env))["behavior"]
        assert behavior["scaleDown"]["selectPolicy"] == "Max"
        assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 30
        await assert_in_sync(env, subject)

    async def test_the_removal_of_the_last_metric_clears_all(self, env: Env, plain: Manifest) -> None:
        """The API server stores the list as a whole, so it has no metrics of other writers."""
        await made_by_others(env, plain)
        await env.reconcile(of(scaling(plain, no_metric)))
        assert [each["type"] for each in (await spec_of(env))["metrics"]] == ["Resource"]

    async def test_a_field_that_the_component_had_declared_together_with_others(
        self, env: Env, hpa_base: Manifest
    ) -> None:
        """It goes at once, and no event reports that it stays."""
        await made_by_others(env, hpa_base)
        await env.reconcile(of(hpa.Builder(hpa_base).build()))
        events = Events()
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock, recorder=events) as context:
            await of(scaling(hpa_base, no_behavior)).reconcile(context)
        assert "behavior" not in await spec_of(env)
        assert events.notes[0] == (
            f"FieldsTakenOver: Fields of HorizontalPodAutoscaler 'web' taken over from {FORMER}, removed as not "
            "declared: spec.behavior"
        )
        assert not any(note.startswith("FieldsKept") for note in events.notes)

    async def test_a_later_mutation_that_sets_it_wins(self, env: Env, plain: Manifest) -> None:
        await made_by_others(env, plain, behavior=UP)
        subject = of(
            scaling(plain, no_behavior, lambda spec: spec.set_scale_down(V2HPAScalingRules(select_policy="Min")))
        )
        await env.reconcile(subject)
        behavior = (await spec_of(env))["behavior"]
        assert behavior["scaleDown"]["selectPolicy"] == "Min"
        assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0

    @pytest.mark.promise("cleared", runs="what a behavior and the rules of a direction leave out")
    async def test_a_behavior_replaces_that_of_another_writer_as_a_whole(self, env: Env, plain: Manifest) -> None:
        theirs = {"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 600}, **UP}
        await made_by_others(env, plain, behavior=theirs)
        rules = V2HPAScalingRules(select_policy="Min")
        subject = of(
            scaling(plain, lambda spec: spec.set_behavior(V2HorizontalPodAutoscalerBehavior(scale_down=rules)))
        )
        await env.reconcile(subject)
        behavior = (await spec_of(env))["behavior"]
        assert behavior["scaleDown"]["selectPolicy"] == "Min"
        assert "stabilizationWindowSeconds" not in behavior["scaleDown"]
        assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
        await assert_in_sync(env, subject)

    async def test_other_kinds(self, env: Env) -> None:
        base: Manifest = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "backup", "namespace": "shop"},
            "spec": {
                "schedule": "0 3 * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x:1"}]}}
                    }
                },
            },
        }
        theirs = {**base, "spec": {**base["spec"], "timeZone": "Asia/Tokyo", "successfulJobsHistoryLimit": 9}}
        await env.cluster.create(theirs, field_manager=FORMER)

        def mutate(m: cronjob.Mutator) -> None:
            m.edit_cronjob_spec(lambda spec: spec.set_time_zone(None))
            m.edit_cronjob_spec(lambda spec: spec.set_successful_jobs_history_limit(None))

        subject = of(cronjob.Builder(base).with_mutation(cronjob.Mutation("plain", mutate)).build())
        await env.reconcile(subject)
        spec = (await env.cluster.get(subject.entries[0].key))["spec"]
        assert ("timeZone" in spec, spec["successfulJobsHistoryLimit"]) == (False, 3)
        await assert_in_sync(env, subject)

    async def test_rules_that_allow_something(self, env: Env) -> None:
        """A policy without rules allows nothing, and a role without rules grants nothing, also one that was adopted."""
        metadata = {"name": "closed", "namespace": "shop"}
        policy: Manifest = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata,
            "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        }
        granted: Manifest = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata,
        }
        everything: Manifest = {"ingress": [{}], "egress": [{}]}
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
        await env.cluster.create({**policy, "spec": {**policy["spec"], **everything}}, field_manager=FORMER)
        await env.cluster.create({**granted, "rules": rules}, field_manager=FORMER)

        def close(m: networkpolicy.Mutator) -> None:
            m.edit_network_policy_spec(lambda spec: spec.remove_ingress_rules())
            m.edit_network_policy_spec(lambda spec: spec.remove_egress_rules())

        def revoke(m: role.Mutator) -> None:
            m.edit_rules(lambda edited: edited.remove_rules())

        subject = of(
            networkpolicy.Builder(policy).with_mutation(networkpolicy.Mutation("closed", close)).build(),
            role.Builder(granted).with_mutation(role.Mutation("none", revoke)).build(),
        )
        await env.reconcile(subject)
        live = [await env.cluster.get(entry.key) for entry in subject.entries]
        assert live[0]["spec"].keys() == {"podSelector", "policyTypes"}
        assert not live[1].get("rules")
        await assert_in_sync(env, subject)
        for entry in subject.entries:
            await env.cluster.delete(entry.key)

    async def test_a_field_of_a_container(self, env: Env, web_base: Manifest) -> None:
        """That of another container of the same writer stays."""
        theirs = copy_json(web_base)
        probe = {"httpGet": {"path": "/", "port": 80}}
        (container,) = theirs["spec"]["template"]["spec"]["containers"]
        container["readinessProbe"] = probe
        side = {"name": "side", "image": "side:1", "readinessProbe": probe}
        theirs["spec"]["template"]["spec"]["containers"].append(side)
        await env.cluster.create(theirs, field_manager=FORMER)

        def mutate(m: deployment.Mutator) -> None:
            m.edit_containers(container_named("web"))(lambda edited: edited.set_readiness_probe(None))

        subject = of(deployment.Builder(web_base).with_mutation(deployment.Mutation("bare", mutate)).build())
        await env.reconcile(subject)
        containers = (await env.cluster.get(env.web))["spec"]["template"]["spec"]["containers"]
        assert {each["name"]: "readinessProbe" in each for each in containers} == {"web": False, "side": True}
        await assert_in_sync(env, subject)


async def caught_up(env: Env, cached: CachedCluster) -> None:
    """Wait until the cache has the autoscaler as it is now."""
    version = (await env.cluster.get(env.hpa))["metadata"]["resourceVersion"]

    async def is_seen() -> bool:
        return bool((await cached.get(env.hpa))["metadata"]["resourceVersion"] == version)

    await eventually(is_seen)


class TestWithACache:
    """It keeps only our own entries of `managedFields`, as that of an operator does."""

    async def test_the_field_is_cleared_and_no_default_is_asked_for_twice(self, env: Env, plain: Manifest) -> None:
        base = copy_json(plain)
        del base["spec"]["minReplicas"]
        await made_by_others(env, base, minReplicas=4, behavior=DOWN)
        subject = of(scaling(base, no_behavior, no_minimum))
        async with CachedCluster(env.cluster, keeps_manager=lambda name: name.startswith("ocf/Shop/")) as cached:
            await cached.get(env.hpa)
            async with reconciling(await env.owner_manifest(), cached, clock=env.clock) as context:
                await subject.reconcile(context)
            spec = await spec_of(env)
            assert ("behavior" in spec, spec["minReplicas"]) == (False, 1)
            for count in range(3):
                await env.report(env.hpa, {"currentReplicas": count, "desiredReplicas": count})
                await caught_up(env, cached)
                env.cluster.requests.clear()
                async with reconciling(await env.owner_manifest(), cached, clock=env.clock) as context:
                    await subject.reconcile(context)
                assert env.cluster.requests.of(Verb.PATCH, Verb.APPLY) == ()

    async def test_a_value_that_comes_later_is_cleared_too(self, env: Env, plain: Manifest) -> None:
        subject = of(scaling(plain, no_behavior))
        async with CachedCluster(env.cluster, keeps_manager=lambda name: name.startswith("ocf/Shop/")) as cached:
            async with reconciling(await env.owner_manifest(), cached, clock=env.clock) as context:
                await subject.reconcile(context)
            await env.change(env.hpa, spec={"behavior": DOWN})
            await caught_up(env, cached)
            async with reconciling(await env.owner_manifest(), cached, clock=env.clock) as context:
                await subject.reconcile(context)
        assert "behavior" not in await spec_of(env)


class TestWhatStays:
    async def test_what_was_written_through_a_subresource(self, env: Env, web_base: Manifest) -> None:
        def mutate(m: deployment.Mutator) -> None:
            @m.edit_deployment_spec
            def _(spec: Any) -> None:
                spec.raw.replicas = None

        subject = of(deployment.Builder(web_base).with_mutation(deployment.Mutation("left", mutate)).build())
        await env.reconcile(subject)
        await env.scale(6)
        await env.reconcile(subject)
        assert await env.replicas() == 6

    async def test_labels_of_others_when_the_last_one_of_ours_is_removed(self, env: Env, plain: Manifest) -> None:
        base = {**plain, "metadata": {**plain["metadata"], "labels": {"ours": "1"}}}
        live = {**plain, "metadata": {**plain["metadata"], "labels": {"theirs": "1"}}}
        await env.cluster.create(live, field_manager=FORMER)

        def mutate(m: hpa.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.remove_label("ours"))

        await env.reconcile(of(hpa.Builder(base).with_mutation(hpa.Mutation("bare", mutate)).build()))
        assert (await env.cluster.get(env.hpa))["metadata"]["labels"]["theirs"] == "1"

    async def test_an_ignored_field(self, env: Env, plain: Manifest) -> None:
        await made_by_others(env, plain, behavior=DOWN)
        await env.reconcile(of(scaling(plain, no_behavior), ignore_fields=["spec.behavior"]))
        assert (await spec_of(env))["behavior"]["scaleDown"]["selectPolicy"] == "Disabled"

    async def test_a_field_that_must_not_be_taken_is_an_error_that_names_its_manager(
        self, env: Env, plain: Manifest
    ) -> None:
        await made_by_others(env, plain, behavior=DOWN)
        before = await env.cluster.get(env.hpa)
        subject = of(scaling(plain, no_behavior), on_conflict="fail")
        with pytest.raises(ReconcileError, match=rf'conflict with "{FORMER}": \.spec\.behavior'):
            await env.reconcile(subject)
        assert await env.cluster.get(env.hpa) == before

    async def test_everything_if_the_apply_would_stay_rejected(self, env: Env, web_base: Manifest) -> None:
        """Nothing is taken for an apply that changes what cannot be changed."""
        theirs = copy_json(web_base)
        theirs["spec"]["paused"] = True
        await env.cluster.create(theirs, field_manager=FORMER)
        before = await env.cluster.get(env.web)
        changed = copy_json(web_base)
        changed["spec"]["selector"] = {"matchLabels": {"app": "other"}}
        changed["spec"]["template"]["metadata"]["labels"] = {"app": "other"}

        def mutate(m: deployment.Mutator) -> None:
            m.edit_deployment_spec(lambda spec: spec.set_paused(None))

        subject = of(deployment.Builder(changed).with_mutation(deployment.Mutation("running", mutate)).build())
        with pytest.raises(ReconcileError, match=r"spec\.selector"):
            await env.reconcile(subject)
        assert await env.cluster.get(env.web) == before

    async def test_a_field_that_cannot_be_changed(self, env: Env) -> None:
        """The error names it, and nothing is taken."""
        base: Manifest = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "files", "namespace": "shop"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        theirs = {**base, "spec": {**base["spec"], "volumeName": "disk"}}
        before = await env.cluster.create(theirs, field_manager=FORMER)

        def mutate(m: pvc.Mutator) -> None:
            @m.edit_pvc_spec
            def _(spec: Any) -> None:
                spec.raw.volume_name = None

        subject = of(pvc.Builder(base).with_mutation(pvc.Mutation("any", mutate)).build())
        try:
            with pytest.raises(ReconcileError, match=r"cannot be changed in the existing object"):
                await env.reconcile(subject)
            assert (await env.cluster.get(ObjectKey.of(base)))["metadata"]["managedFields"] == (
                before["metadata"]["managedFields"]
            )
        finally:
            released: Manifest = {"metadata": {"finalizers": None}}
            await env.merge_patch(ObjectKey.of(base), released, by="cleaner")
            await env.cluster.delete(ObjectKey.of(base))


class TestFights:
    async def test_a_writer_that_sets_it_again_and_again_is_named(self, env: Env, plain: Manifest) -> None:
        subject = of(scaling(plain, no_behavior))
        await env.reconcile(subject)
        writes = 0
        for _ in range(60):
            await env.change(env.hpa, spec={"behavior": DOWN})
            writes += (await env.reconcile(subject)).writes
            env.clock.advance(timedelta(seconds=1))
        assert writes < 30
        assert (await env.condition())["reason"] == "Blocked"
        assert "kubectl-edit" in (await env.condition())["message"]


async def test_a_diff_shows_it_beforehand(env: Env, plain: Manifest) -> None:
    await made_by_others(env, plain, behavior=DOWN)
    before = await env.cluster.get(env.hpa)
    (found,) = await diff([of(scaling(plain, no_behavior))], await env.owner_manifest(), env.cluster)
    (planned,) = found.objects
    removed = [each for each in planned.fields if each.path.startswith("spec.behavior")]
    assert removed
    assert all(each.after is None for each in removed)
    assert "spec.behavior: cleared" in planned.reasons
    assert {each.manager for each in planned.taken} == {FORMER}
    assert await env.cluster.get(env.hpa) == before


@pytest.mark.promise("cleared", runs="an interruption of each of the two writes, before and after it")
@pytest.mark.parametrize("verb", [Verb.PATCH, Verb.APPLY])
@pytest.mark.parametrize("fault", [faults.server_error, faults.lost_reply], ids=["rejected", "reply lost"])
async def test_an_interruption_is_repaired_by_the_next_reconcile(
    env: Env, plain: Manifest, verb: Verb, fault: Callable[..., Fault]
) -> None:
    await made_by_others(env, plain, behavior=DOWN)
    subject = of(scaling(plain, no_behavior))
    # Before each of the two writes, dry runs ask.
    hit = fault(kind="HorizontalPodAutoscaler", verbs=[verb], first=3 if verb is Verb.PATCH else 2, times=1)
    faulty: Any = FaultyCluster(env.cluster, [hit])
    with pytest.raises(ReconcileError):
        async with reconciling(await env.owner_manifest(), faulty, clock=env.clock) as context:
            await subject.reconcile(context)
    await env.reconcile(subject)
    assert "behavior" not in await spec_of(env)
    await assert_in_sync(env, subject)


async def test_a_change_in_between_is_not_lost(env: Env, plain: Manifest) -> None:
    """The ownership is changed in the version that was read."""
    await made_by_others(env, plain, behavior=DOWN)

    async def change() -> None:
        await env.change(env.hpa, metadata={"labels": {"meanwhile": "yes"}})

    hit = faults.meanwhile(change, kind="HorizontalPodAutoscaler", verbs=[Verb.PATCH, Verb.APPLY])
    faulty: Any = FaultyCluster(env.cluster, [hit])
    subject = of(scaling(plain, no_behavior))
    async with reconciling(await env.owner_manifest(), faulty, clock=env.clock) as context:
        await subject.reconcile(context)
    live = await env.cluster.get(env.hpa)
    assert ("behavior" in live["spec"], live["metadata"]["labels"]) == (False, {"meanwhile": "yes"})


NAMES: Final = st.sampled_from(["f:a", "f:b", "f:c"])
FIELDS: Final[st.SearchStrategy[Manifest]] = st.dictionaries(NAMES, st.dictionaries(NAMES, st.just({})), min_size=1)
ENTRIES: Final = st.lists(
    st.tuples(
        st.sampled_from(["x", "y"]), st.sampled_from(["Apply", "Update"]), st.sampled_from(["", "scale"]), FIELDS
    ),
    max_size=4,
    unique_by=lambda entry: entry[:3],
)


@given(entries=ENTRIES, ours=st.none() | FIELDS, path=st.tuples(NAMES) | st.tuples(NAMES, NAMES))
def test_moving_a_field_loses_no_ownership(
    entries: list[tuple[str, str, str, Manifest]], ours: Manifest | None, path: tuple[str, ...]
) -> None:
    """Each place has an owner exactly if it had one, and of those that were moved we are the only one."""
    manifests = [
        {"manager": name, "operation": operation, "subresource": part, "fieldsV1": fields}
        for name, operation, part, fields in entries
    ]
    if ours is not None:
        manifests.append({"manager": "us", "operation": "Apply", "fieldsV1": ours})
    live: Manifest = {"apiVersion": "v1", "metadata": {"managedFields": manifests}}
    after = ManagedFields(with_fields_moved(live, "us", [path]))

    def owned(managed: ManagedFields) -> set[tuple[str, ...]]:
        return {place for entry in managed.entries for place in owned_fields(entry.fields)}

    gone = owned(ManagedFields.of(live)) - owned(after)
    # A parent that listed nothing of its own goes with the last of its children.
    assert all(any(place[: len(one)] == one for place in owned(after)) or is_below(one, [path]) for one in gone)
    for entry in after.entries:
        if entry.manager.name != "us" and not entry.manager.subresource:
            assert get_field(entry.fields, path) is None
    held = any(get_field(entry["fieldsV1"], path) is not None for entry in manifests if not entry.get("subresource"))
    assert (get_field(after.owned_by("us") or {}, path) is not None) == held
