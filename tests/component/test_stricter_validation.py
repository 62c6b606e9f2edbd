"""Owners that were stored before the validation of their kind became stricter: what is still accepted, on both servers.

The API server does not validate again what an update leaves as it is (validation ratcheting), so finalizers and the
status are written. A rule about the whole object, and a transition rule that an unchanged value breaks, are evaluated
again. Rebuilt from public reports: https://github.com/kubernetes/kubernetes/issues/94060 (finalizers of invalid objects
stay), https://github.com/kedacore/keda/pull/4397 (an invalid owner cannot be deleted),
https://github.com/Azure/fleet/pull/878 (the same for a placement).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType
from ocf.component import Finalizer, finalize, reconciling
from ocf.component.owner_deletion import external_finalizer
from ocf.errors import InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey, load_document
from ocf_server import EmbeddedCluster
from tests import support

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import CleanupPending, ReconcileContext
    from tests.component.conftest import Env, StaticKind

SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
OWNER: Final = ObjectKey("strict.example.com/v1", "Plan", "old", "shop")
PLAN: Final = {"apiVersion": OWNER.api_version, "kind": "Plan"}
DRY: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="user", dry_run=True)
BEFORE: Final = "{type: object, properties: {size: {type: integer}, other: {type: string}}}"


def definition(spec: str = BEFORE, root: str = "") -> Manifest:
    found: Manifest = load_document(f"""
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {{name: plans.strict.example.com}}
        spec:
          group: strict.example.com
          names: {{kind: Plan, plural: plans}}
          scope: Namespaced
          versions:
          - name: v1
            served: true
            storage: true
            subresources: {{status: {{}}}}
            schema:
              openAPIV3Schema:
                type: object
                {root}
                properties:
                  spec: {spec}
                  status: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
        """)
    return found


def of_size(schema: str, *, spec: str = "") -> str:
    return f"{{type: object, {spec}properties: {{size: {schema}, other: {{type: string}}}}}}"


def rule(text: str) -> str:
    return f"x-kubernetes-validations: [{{rule: {text}}}]"


RATCHETED: Final = [
    pytest.param(definition(of_size("{type: integer, maximum: 3}")), id="a maximum"),
    pytest.param(definition(of_size("{type: integer}", spec="required: [other], ")), id="a required field"),
    pytest.param(definition(of_size("{type: string}")), id="another type"),
    pytest.param(definition(of_size(f"{{type: integer, {rule('self < 3')}}}")), id="a rule about a field"),
    pytest.param(definition(of_size("{type: integer}", spec=f"{rule('self.size < 3')}, ")), id="a rule about the spec"),
]
EVALUATED: Final = [
    pytest.param(definition(root=rule("self.spec.size < 3")), id="a rule about the whole object"),
    pytest.param(definition(of_size(f"{{type: integer, {rule('self < oldSelf')}}}")), id="a transition rule"),
    pytest.param(definition(root=rule("self.spec.size < oldSelf.spec.size")), id="a transition rule about the whole"),
]


@pytest.fixture
def plane(request: pytest.FixtureRequest) -> Any:
    """The real API server with the kind, as it was before; None for the embedded one."""
    if "envtest" not in request.node.callspec.params.values():
        return None
    found = request.getfixturevalue("shop_plane")
    found.install_crds(definition())
    return found


async def store(env: Env, **metadata: Any) -> None:
    """Create an owner that the stricter validation rejects."""
    if isinstance(env.cluster, EmbeddedCluster):
        await env.cluster.create(definition(), field_manager="user")
    old: Manifest = {**PLAN, "metadata": {"name": OWNER.name, "namespace": "shop", **metadata}, "spec": {"size": 10}}
    await env.cluster.create(old, field_manager="user")


async def validate_by(env: Env, plane: Any, changed: Manifest, *, accepts: bool) -> None:
    """Replace the definition, and wait until the API server accepts the owner by it, or rejects it."""
    if plane is None:
        live = await env.cluster.get(ObjectKey.of(changed))
        await env.cluster.update({**changed, "metadata": live["metadata"]}, field_manager="user")
        return
    plane.install_crds(changed)
    new: Manifest = {**PLAN, "metadata": {"name": "new", "namespace": "shop"}, "spec": {"size": 10}}

    async def accepted() -> bool:
        try:
            await env.cluster.create(new, field_manager="user", dry_run=True)
            await env.cluster.patch(OWNER, {"metadata": {"labels": {"a": "b"}}}, DRY)
        except InvalidError:
            return False
        return True

    await support.eventually(accepted, lambda found: found is accepts)


async def reconcile(env: Env, resource: StaticKind) -> None:
    made = component.Builder("web", condition_type="WebReady").with_resource(resource).build()

    async def on_delete(_: ReconcileContext) -> CleanupPending | None:
        return None

    async with reconciling(await env.cluster.get(OWNER), env.cluster, clock=env.clock) as context:
        if await finalize(context, made, finalizer=Finalizer(on_delete=on_delete)) is None:
            await made.reconcile(context)


@pytest.mark.promise("stricter-validation", runs="5 kinds of stricter validation, on both servers")
@pytest.mark.parametrize("stricter", RATCHETED)
async def test_an_owner_that_is_invalid_by_now_is_reconciled_and_deleted(
    env: Env, plane: Any, config_map: Callable[..., StaticKind], stricter: Manifest
) -> None:
    await store(env)
    await validate_by(env, plane, stricter, accepts=False)
    await reconcile(env, config_map())
    live = await env.cluster.get(OWNER)
    assert live["metadata"]["finalizers"] == [external_finalizer("ocf")]
    assert live["status"]["conditions"][0]["reason"] == "Healthy"
    assert await env.exists(SETTINGS)
    await env.cluster.delete(OWNER)
    await reconcile(env, config_map())
    with pytest.raises(NotFoundError):
        await env.cluster.get(OWNER)


@pytest.mark.promise("stricter-validation", runs="3 rules that are evaluated again, on both servers")
@pytest.mark.parametrize("stricter", EVALUATED)
async def test_a_rule_that_is_evaluated_again_stops_every_write_of_the_owner(
    env: Env, plane: Any, config_map: Callable[..., StaticKind], stricter: Manifest
) -> None:
    """Nothing is made for an owner that cannot get its finalizer, and the error has the rule."""
    await store(env)
    await validate_by(env, plane, stricter, accepts=False)
    with pytest.raises(InvalidError, match="failed rule"):
        await reconcile(env, config_map())
    assert not await env.exists(SETTINGS)
    await env.cluster.delete(OWNER)


@pytest.mark.promise("stricter-validation", runs="3 rules that are evaluated again, for an owner that is being deleted")
@pytest.mark.parametrize("stricter", EVALUATED)
async def test_it_keeps_an_owner_that_is_being_deleted_until_the_rule_is_relaxed(
    env: Env, plane: Any, config_map: Callable[..., StaticKind], stricter: Manifest
) -> None:
    await store(env, finalizers=[external_finalizer("ocf")])
    await env.cluster.delete(OWNER)
    await validate_by(env, plane, stricter, accepts=False)
    with pytest.raises(InvalidError, match="failed rule"):
        await reconcile(env, config_map())
    await validate_by(env, plane, definition(), accepts=True)
    await reconcile(env, config_map())
    with pytest.raises(NotFoundError):
        await env.cluster.get(OWNER)
