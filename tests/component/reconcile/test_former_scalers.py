"""A scaler that is not managed any more goes before its target gets another one, or none.

With two autoscalers of one target, the HPA controller scales by neither (https://github.com/kubernetes/kubernetes/pull/112011,
https://github.com/kedacore/keda/issues/5825), which a rename or a versioned name makes:
https://github.com/spinnaker/spinnaker/issues/2791, https://github.com/divviup/prio-server/pull/1634.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, Verb
from ocf.component import Component, Reason, diff
from ocf.component.diff import DiffVerb
from ocf.component.status.results import Action
from ocf.concepts import ScaleTarget
from ocf.errors import ReconcileError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, hpa

if TYPE_CHECKING:
    from tests.component.conftest import Env

NEW: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "new", "shop")
WRITES: Final = (Verb.APPLY, Verb.CREATE, Verb.DELETE, Verb.PATCH, Verb.UPDATE)


def renamed(base: Manifest, name: str = "new", **spec: Any) -> Manifest:
    return {**base, "metadata": {**base["metadata"], "name": name}, "spec": {**base["spec"], **spec}}


def of(*resources: Any, prune: bool = True, suspended: bool = False, **options: dict[str, Any]) -> Component:
    """Build the component; options are given by name of a resource."""
    builder = component.Builder("web", condition_type="WebReady").suspend(suspended)
    if prune:
        builder.with_prune()
    for resource in resources:
        chosen: Any = options.get(resource.key.name, {}) if resource.key.kind != "Deployment" else {}
        builder.with_resource(resource, **chosen)
    return builder.build()


def written(env: Env) -> list[str]:
    """Return the writes so far, without dry runs, as verb, kind and name."""
    return [
        f"{request.verb} {request.kind.replace('HorizontalPodAutoscaler', 'HPA')} {request.name}"
        for request in env.cluster.requests.of(*WRITES)
        if not request.dry_run and request.kind != "Shop"
    ]


class Custom(hpa.Resource):
    """A scaler of the user's own, which says in its own way what it scales."""

    def scale_target(self, rendered: Manifest | None = None) -> ScaleTarget:
        return ScaleTarget(super().scale_target(rendered).key)


WAYS: Final = [
    pytest.param({"prune": True}, id="pruned"),
    pytest.param({"web": {"delete_when": True}}, id="deleted by a flag"),
    pytest.param({"web": {"gated_by": BooleanGate(False)}}, id="deleted by a gate"),
]


@pytest.mark.promise("one-scaler", runs="a rename by pruning, by a flag and by a gate, on both servers")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [hpa.Resource, Custom], ids=["HPA", "custom scaler"])
async def test_a_renamed_autoscaler_goes_before_the_new_one(
    env: Env, web: deployment.Resource, hpa_base: Manifest, way: dict[str, Any], kind: type[hpa.Resource]
) -> None:
    old, new = (kind(hpa.Builder(base).build()._definition) for base in (hpa_base, renamed(hpa_base)))
    options = {"prune": False, **way}
    before = of(web, old, prune=options["prune"])
    after = of(web, *([old] if "web" in options else []), new, **options)
    await env.reconcile(before)
    await env.scale(7)
    env.cluster.requests.clear()
    result = await env.reconcile(after)
    assert written(env) == ["delete HPA web", "apply HPA new"]
    assert (await env.replicas(), await env.exists(env.hpa), await env.exists(NEW)) == (7, False, True)
    outcomes = [outcome for outcome in result.outcomes if outcome.resource == str(env.hpa)]
    assert [outcome.action for outcome in outcomes] == [Action.DELETED]
    env.cluster.requests.clear()
    await env.reconcile(after)
    assert written(env) == []


async def test_a_held_one_is_waited_for(env: Env, web: deployment.Resource, hpa_base: Manifest) -> None:
    """KEDA's finalizer holds a ScaledObject until it has deleted its HPA."""
    await env.reconcile(of(web, hpa.Builder(hpa_base).build()))
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    await env.cluster.patch(env.hpa, hold, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
    after = of(web, hpa.Builder(renamed(hpa_base)).build())
    for _ in range(2):
        result = await env.reconcile(after)
        assert (result.condition.reason, result.requeue_after) == (Reason.BLOCKED, after.poll_interval)
        assert result.condition.message.startswith(
            f"HorizontalPodAutoscaler new: waiting for {env.hpa}, which scales {env.web}, to be deleted"
        )
        assert not await env.exists(NEW)
    release: Manifest = {"metadata": {"finalizers": None}}
    await env.cluster.patch(env.hpa, release, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
    await env.reconcile(after)
    assert await env.exists(NEW)


async def test_a_new_one_that_is_invalid_leaves_the_old_one(
    env: Env, web: deployment.Resource, hpa_base: Manifest
) -> None:
    await env.reconcile(of(web, hpa.Builder(hpa_base).build()))
    invalid = hpa.Builder(renamed(hpa_base, minReplicas=99)).build()
    with pytest.raises(ReconcileError, match=r"failed to apply resource .*/new.*minReplicas"):
        await env.reconcile(of(web, invalid))
    assert (await env.exists(env.hpa), await env.exists(NEW)) == (True, False)


async def test_one_of_another_target_is_pruned_after_the_others(
    env: Env, web_base: Manifest, web: deployment.Resource, hpa_base: Manifest
) -> None:
    await env.reconcile(of(web, hpa.Builder(hpa_base).build()))
    reference = {**hpa_base["spec"]["scaleTargetRef"], "name": "new"}
    new = hpa.Builder(renamed(hpa_base, scaleTargetRef=reference)).build()
    env.cluster.requests.clear()
    await env.reconcile(of(web, deployment.Builder(renamed(web_base)).build(), new))
    assert written(env) == ["apply Deployment new", "apply HPA new", "delete HPA web"]


async def test_one_that_is_pointed_at_the_target_of_another_one(
    env: Env, web_base: Manifest, web: deployment.Resource, hpa_base: Manifest
) -> None:
    """The other one goes before, although nothing is renamed."""
    reference = {**hpa_base["spec"]["scaleTargetRef"], "name": "new"}
    api = deployment.Builder(renamed(web_base)).build()
    old, other = hpa.Builder(hpa_base).build(), hpa.Builder(renamed(hpa_base, scaleTargetRef=reference)).build()
    await env.reconcile(of(web, api, old, other))
    env.cluster.requests.clear()
    await env.reconcile(of(web, api, hpa.Builder(renamed(hpa_base, "web", scaleTargetRef=reference)).build()))
    deleted, moved = "delete HPA new", "apply HPA web"
    assert [each for each in written(env) if "HPA" in each] == [deleted, moved]


async def test_one_without_a_successor_goes_before_its_target_takes_the_count_back(
    env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
) -> None:
    await env.reconcile(of(fixed_web, web_hpa))
    await env.scale(7)
    env.cluster.requests.clear()
    await env.reconcile(of(fixed_web, web_hpa, web={"gated_by": BooleanGate(False)}))
    assert written(env) == ["delete HPA web", "apply Deployment web"]
    assert await env.replicas() == 4


async def test_one_that_is_gone_is_read_once_per_reconcile(
    env: Env, web: deployment.Resource, hpa_base: Manifest
) -> None:
    old, new = hpa.Builder(hpa_base).build(), hpa.Builder(renamed(hpa_base)).build()
    subject = of(web, old, new, prune=False, web={"delete_when": True})
    await env.reconcile(subject)
    env.cluster.requests.clear()
    result = await env.reconcile(subject)
    reads = [request.name for request in env.cluster.requests.of(Verb.GET) if request.kind != "Shop"]
    assert sorted(reads) == ["new", "web", "web"]  # the autoscalers, and the Deployment
    assert [outcome.action for outcome in result.outcomes] == [Action.UNCHANGED, Action.UNCHANGED, Action.ABSENT]


@pytest.mark.parametrize("way", WAYS)
async def test_a_suspension_deletes_it_before_the_target_is_scaled_to_zero(
    env: Env, web: deployment.Resource, hpa_base: Manifest, way: dict[str, Any]
) -> None:
    """A former ScaledObject would scale its target up again as soon as a trigger is active."""
    options = {"prune": False, **way}
    old, new = hpa.Builder(hpa_base).build(), hpa.Builder(renamed(hpa_base)).build()
    await env.reconcile(of(web, old, prune=options["prune"]))
    env.cluster.requests.clear()
    after = of(web, *([old] if "web" in options else []), new, suspended=True, **options)
    await env.reconcile(after)
    assert written(env) == ["delete HPA web", "apply Deployment web"]
    assert (await env.exists(env.hpa), await env.exists(NEW)) == (False, False)


async def test_one_that_another_owner_controls_stays_and_blocks_nothing(
    env: Env, web: deployment.Resource, hpa_base: Manifest
) -> None:
    old = hpa.Builder(hpa_base).build()
    await env.reconcile(of(web, old))
    ours = (await env.cluster.get(env.hpa))["metadata"]["ownerReferences"][0] | {"controller": False}
    await env.change(env.hpa, metadata={"ownerReferences": [ours, await env.other_owner()]})
    await env.reconcile(of(web, old, hpa.Builder(renamed(hpa_base)).build(), prune=False, web={"delete_when": True}))
    assert (await env.exists(env.hpa), await env.exists(NEW)) == (True, True)


async def test_a_diff_shows_both(env: Env, web: deployment.Resource, hpa_base: Manifest) -> None:
    await env.reconcile(of(web, hpa.Builder(hpa_base).build()))
    after = of(web, hpa.Builder(renamed(hpa_base)).build())
    (found,) = await diff([after], await env.owner_manifest(), env.cluster)
    assert [(each.resource, each.verb) for each in found.objects] == [
        (str(env.hpa), DiffVerb.DELETE),
        (str(NEW), DiffVerb.CREATE),
    ]
    assert await env.exists(env.hpa)


class TestStraightToTheDeletion:
    """A suspension that comes with a change of a scaler that it deletes."""

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"maxReplicas": 40}, id="another bound"),
            pytest.param({"minReplicas": 99}, id="one that the API server would reject"),
            pytest.param(
                {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}}, id="target"
            ),
        ],
    )
    async def test_does_not_apply_the_change_first(
        self, env: Env, web: deployment.Resource, hpa_base: Manifest, change: Manifest
    ) -> None:
        await env.reconcile(of(web, hpa.Builder(hpa_base).build()))
        env.cluster.requests.clear()
        result = await env.reconcile(of(web, hpa.Builder(renamed(hpa_base, "web", **change)).build(), suspended=True))
        assert sorted(written(env)) == ["apply Deployment web", "delete HPA web"]
        (gone,) = (each for each in result.outcomes if each.resource == str(env.hpa))
        assert (gone.action, gone.writes) == (Action.DELETED, 1)

    async def test_what_the_suspension_changes_is_applied_first(
        self, env: Env, web: deployment.Resource, hpa_base: Manifest
    ) -> None:
        """An edit may set how the deletion ends, such as a policy that keeps something."""

        def keep(m: hpa.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("example.com/keep", "yes"))

        await env.reconcile(of(web, hpa.Builder(hpa_base).build()))
        env.cluster.requests.clear()
        await env.reconcile(of(web, hpa.Builder(hpa_base).with_custom_suspend_mutation(keep).build(), suspended=True))
        assert written(env) == ["apply HPA web", "delete HPA web", "apply Deployment web"]

    @pytest.mark.parametrize("policy", ["never", "labelled"])
    async def test_one_that_must_not_be_adopted_stays(
        self, env: Env, web: deployment.Resource, hpa_base: Manifest, policy: str
    ) -> None:
        live = await env.cluster.create(hpa_base, field_manager="kubectl-create")
        await env.reconcile(of(web, hpa.Builder(hpa_base).build(), suspended=True, web={"adopt": policy}))
        assert await env.cluster.get(env.hpa) == live
