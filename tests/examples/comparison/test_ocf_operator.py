"""The operator with ocf, as its author tests it: the whole operator in virtual time, and the rendered objects."""

from typing import Any

import pytest

from examples.comparison.ocf_operator.model import Site
from examples.comparison.ocf_operator.operator import components
from examples.comparison.ocf_operator.operator import operator as declared
from ocf.cluster import PatchOptions, PatchType
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Operator
from ocf.testing import OwnerEnv

METADATA = {"name": "sample", "namespace": "default"}
PAGE = ObjectKey("v1", "ConfigMap", **METADATA)
SERVER = ObjectKey("apps/v1", "Deployment", **METADATA)
AUTOSCALER = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", **METADATA)
BY_ANOTHER = PatchOptions(patch_type=PatchType.MERGE, field_manager="another-user")


@pytest.fixture
def operator() -> Operator[Site]:
    return declared


@pytest.fixture
def owner() -> Manifest:
    return {"apiVersion": Site.api_version, "kind": Site.kind, "metadata": METADATA, "spec": {"greeting": "Hello!"}}


async def reason(env: OwnerEnv[Site]) -> str:
    return str((await env.conditions())["Ready"]["reason"])


async def replicas(env: OwnerEnv[Site]) -> Any:
    return (await env.cluster.get(SERVER))["spec"]["replicas"]


async def test_it_becomes_ready(owner_env: OwnerEnv[Site]) -> None:
    await owner_env.settle()
    assert await reason(owner_env) == "Healthy"
    assert (await owner_env.cluster.get(PAGE))["data"] == {"index.html": "Hello!\n"}


@pytest.mark.parametrize(("version", "graceful"), [("1.0.9", False), ("1.1.0", True), ("2.0.0", True)])
def test_the_version_decides_about_the_shutdown(version: str, graceful: bool) -> None:
    site = Site.model_validate({"metadata": METADATA, "spec": {"version": version}})
    _, server, *_ = components(site).render()
    container = server["spec"]["template"]["spec"]["containers"][0]
    assert ("lifecycle" in container) is graceful


async def test_a_change_of_an_object_is_reverted(owner_env: OwnerEnv[Site]) -> None:
    await owner_env.settle()
    await owner_env.cluster.patch(PAGE, {"data": {"index.html": "Go away."}}, BY_ANOTHER)
    await owner_env.settle()
    assert (await owner_env.cluster.get(PAGE))["data"] == {"index.html": "Hello!\n"}


async def test_suspending_stops_the_pods(owner_env: OwnerEnv[Site]) -> None:
    await owner_env.settle()
    await owner_env.patch({"spec": {"suspended": True}})
    await owner_env.settle()
    assert (await replicas(owner_env), await reason(owner_env)) == (0, "Suspended")
    await owner_env.patch({"spec": {"suspended": False}})
    await owner_env.settle()
    assert (await replicas(owner_env), await reason(owner_env)) == (2, "Healthy")


async def test_the_autoscaler_owns_the_count(owner_env: OwnerEnv[Site]) -> None:
    await owner_env.settle()
    await owner_env.patch({"spec": {"maxReplicas": 5}})
    await owner_env.settle()
    await owner_env.cluster.patch(SERVER, {"spec": {"replicas": 4}}, BY_ANOTHER)
    await owner_env.settle()
    assert await replicas(owner_env) == 4

    await owner_env.patch({"spec": {"maxReplicas": None}})
    await owner_env.settle()
    assert await replicas(owner_env) == 2
    with pytest.raises(NotFoundError):
        await owner_env.cluster.get(AUTOSCALER)
