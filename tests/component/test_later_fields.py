"""Fields of a later release in what an owner's user wrote, on servers that know them, and on servers that do not.

Elsewhere: https://github.com/kubernetes-sigs/kueue/issues/2948 (an older operator drops a field, and the API server
rejects what is left), https://github.com/argoproj/argo-cd/pull/18924 (what an apply with such a field answers).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest
from kubernetes.client import V1PodTemplateSpec
from pydantic import BaseModel

from ocf import component
from ocf.cluster.interceptor import is_write
from ocf.component import Adoption, Component, Writes, diff
from ocf.errors import NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey, read_live
from ocf.primitives import custom_kind, deployment
from tests.component.conftest import Env

LATER: Final = {"mode": "fast"}


class Spec(BaseModel):
    template: V1PodTemplateSpec


class Shop(BaseModel):
    spec: Spec


SHOPS: Final = custom_kind(Shop, "example.com/v1")
CHILD: Final = ObjectKey("example.com/v1", "Shop", "child", "shop")


def template(**later: Any) -> V1PodTemplateSpec:
    """Return a template as the model of an owner has it."""
    pod = {"containers": [{"name": "web", "image": "web:1"}], **later}
    return read_live({"metadata": {"labels": {"app": "web"}}, "spec": pod}, V1PodTemplateSpec)


def deployments(*, options: Manifest, **later: Any) -> Component:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template(**later)}
    base = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    resource = deployment.Builder({"apiVersion": "apps/v1", "kind": "Deployment", **base}).build()
    return component.Builder("web", condition_type="WebReady").with_resource(resource, **options).build()


def shops(**later: Any) -> Component:
    base = {"metadata": {"name": CHILD.name, "namespace": CHILD.namespace}, "spec": {"template": template(**later)}}
    resource = SHOPS.static(base).build()
    return component.Builder("web", condition_type="WebReady").with_resource(resource).build()


@pytest.mark.promise("later-fields", runs="three ways to create an object, on a real API server, too")
@pytest.mark.parametrize(
    "options",
    [{}, {"adopt": Adoption.NEVER}, {"writes": Writes.CREATE_ONLY}],
    ids=["applied", "created", "only created"],
)
async def test_a_server_that_does_not_know_a_field_rejects_the_object(env: Env, options: Manifest) -> None:
    """It would create the object without the field, and the user would look for it for a long time."""
    for _ in range(4):
        with pytest.raises(ReconcileError):
            await env.reconcile(deployments(options=options, laterField=LATER))
        env.clock.advance(timedelta(minutes=10))
    found = await env.condition()
    assert (found["status"], found["reason"]) == ("False", "Error")
    assert "spec.template.spec.laterField" in found["message"]
    written = [one for one in env.cluster.requests if one.kind == "Shop" and is_write(one)]
    assert len(written) == 1, written
    with pytest.raises(NotFoundError):
        await env.cluster.get(env.web)

    await env.reconcile(deployments(options=options))
    assert (await env.cluster.get(env.web))["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"


@pytest.mark.promise("later-fields", runs="drift, difference, adoption and rest on a server that knows them")
async def test_a_server_that_knows_a_field_stores_it(env: Env) -> None:
    async def stored() -> Any:
        pod = (await env.cluster.get(CHILD))["spec"]["template"]["spec"]
        return pod.get("laterField")

    wanted = shops(laterField=LATER)
    await env.create(CHILD, spec={"template": {"spec": {"containers": [], "laterField": 1}}})
    await env.reconcile(wanted)
    assert await stored() == LATER
    await env.reconcile(wanted)
    env.cluster.requests.clear()
    for _ in range(3):
        assert (await env.reconcile(wanted)).writes == 0

    await env.change(CHILD, spec={"template": {"spec": {"laterField": {"mode": "slow"}}}})
    (found,) = await diff([wanted], await env.owner_manifest(), env.cluster)
    assert "spec.template.spec.laterField.mode" in str(found)
    await env.reconcile(wanted)
    assert await stored() == LATER

    await env.reconcile(shops())
    assert await stored() is None
