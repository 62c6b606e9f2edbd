"""Webhooks that an embedded cluster calls in this process, as it would call those of a running operator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
from kubernetes.client import V1ConfigMap, V1Deployment

from ocf import component
from ocf.cluster import Cluster, ListOptions, Verb
from ocf.component import Component
from ocf.errors import ApiError, BuildError, ConfigError, ForbiddenError, InvalidError, ReconcileError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.admission import (
    AdmissionRequest,
    Deny,
    FieldError,
    Match,
    Operation,
    Policy,
    Validation,
    Webhook,
    invalid,
)
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import (
    FaultyCluster,
    LocalWebhooks,
    LoopClock,
    OwnerEnv,
    VirtualClock,
    crash_at_each_write,
    faults,
    roll_out,
    run_in_virtual_time,
)
from ocf.testing.faults import Fault
from ocf_server import EmbeddedCluster
from ocf_server.api.webhook_client import HttpAdmissionClient
from tests.runtime.crds.shop_versions import SHOPS, ShopV3


class ShopSpec(CamelModel):
    replicas: int | None = None
    image: str = "web:1"


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


def default(shop: Shop) -> Shop:
    spec = shop.spec.model_copy(update={"replicas": shop.spec.replicas or 2})
    return shop.model_copy(update={"spec": spec})


def validate(new: Shop, _old: Shop | None, _operation: Operation) -> Iterator[FieldError]:
    if (new.spec.replicas or 0) > 9:
        yield invalid("spec.replicas", new.spec.replicas, "must be at most 9")


def components(shop: Shop) -> Sequence[Component]:
    pod = {"spec": {"containers": [{"name": "web", "image": shop.spec.image}]}}
    web = deployment.Builder({"spec": {"replicas": shop.spec.replicas, "template": pod}})
    return [component.Builder("web", owner=shop.key, condition_type="WebReady").with_resource(web).build()]


def private(request: AdmissionRequest[V1Deployment]) -> Deny | None:
    pod = request.new.spec.template.spec
    images = [one.image or "" for one in (pod.containers if pod is not None else [])]
    return Deny("images must not be of evil.example.com") if any("evil" in image for image in images) else None


OWN: Final = Webhook.of(Shop, defaulters=[default], validators=[validate])
IMAGES: Final = Webhook.of(V1Deployment, validating=[private], name="images")
OPERATOR: Final = Operator(name="shops", owner=OwnerType.of(Shop), components=components, webhooks=[OWN, IMAGES])


def shop(name: str = "corner", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "town"}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


def config(name: str = "one", namespace: str = "default") -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


async def environment(operator: Operator[Shop] = OPERATOR, **spec: Any) -> OwnerEnv[Shop]:
    clock = VirtualClock()
    return await OwnerEnv.create(operator, shop(**spec), EmbeddedCluster(now=clock.now), clock)


def guarding(webhook: Webhook[Any]) -> Operator[Manifest]:
    return Operator(name="guard", owner=OwnerType("v1", "ConfigMap"), components=lambda _: (), webhooks=[webhook])


async def guarded(handler: Any, **settings: Any) -> tuple[EmbeddedCluster, LocalWebhooks]:
    cluster = EmbeddedCluster(namespaces=["guard"])
    webhook = Webhook.of(V1ConfigMap, validating=[handler], **settings)
    return cluster, await LocalWebhooks.install(cluster, guarding(webhook))


def deny(_request: AdmissionRequest[V1ConfigMap]) -> Deny:
    return Deny("no")


async def test_an_owner_env_defaults_and_validates_as_in_a_cluster() -> None:
    """From the first write on: https://github.com/kubernetes-sigs/controller-runtime/issues/1020."""
    env = await environment()

    assert (await env.read())["spec"] == {"replicas": 2, "image": "web:1"}
    with pytest.raises(InvalidError, match=r"spec\.replicas: Invalid value: 10: must be at most 9"):
        await env.patch({"spec": {"replicas": 10}})
    await env.settle()
    assert (await env.conditions())["WebReady"]["status"] == "True"


async def test_the_operators_own_writes_are_guarded_too() -> None:
    env = await environment(image="evil.example.com/web")

    with pytest.raises(ReconcileError, match=r"images must not be of evil\.example\.com"):
        await env.settle()


async def test_an_owner_env_without_webhooks_calls_none() -> None:
    clock = VirtualClock()
    env = await OwnerEnv.create(OPERATOR, shop(replicas=20), EmbeddedCluster(), clock, webhooks=False)

    assert env.webhooks is None
    assert (await env.read())["spec"]["replicas"] == 20


@pytest.mark.parametrize("namespace", ["default", "kube-system", "guard"])
async def test_configurations_are_those_of_the_manifests(namespace: str) -> None:
    """So that namespaces are left out in the same way."""
    cluster, local = await guarded(deny)

    if namespace == "default":
        with pytest.raises(ForbiddenError, match="no"):
            await cluster.create(config(namespace=namespace), field_manager="user")
    else:
        await cluster.create(config(namespace=namespace), field_manager="user")
    assert len(local.calls) == (namespace == "default")


async def test_conditions_and_selectors_are_evaluated() -> None:
    match = Match(conditions={"not-free": 'request.name != "free"'}, objects={"matchLabels": {"guarded": "yes"}})
    cluster, local = await guarded(deny, match=match)

    await cluster.create(config("one"), field_manager="user")
    free, other = config("free"), config("two")
    for each in (free, other):
        each["metadata"]["labels"] = {"guarded": "yes"}
    await cluster.create(free, field_manager="user")
    with pytest.raises(ForbiddenError):
        await cluster.create(other, field_manager="user")
    assert [call.name for call in local.calls] == ["two"]


def test_a_coroutine_that_is_too_slow_is_cancelled_without_waiting() -> None:
    ended: list[float] = []

    async def slow(_request: AdmissionRequest[V1ConfigMap]) -> None:
        try:
            await asyncio.sleep(20)
        finally:
            ended.append(asyncio.get_running_loop().time())

    async def create(seconds: int) -> str:
        cluster, _ = await guarded(slow, timeout=timedelta(seconds=seconds))
        try:
            await cluster.create(config(), field_manager="user")
        except ApiError as error:
            return f"{error.code} {error}"
        return "admitted"

    outcome = run_in_virtual_time(create(10))
    assert outcome.startswith("504 ")
    assert "slow did not return within 9 seconds" in outcome
    assert run_in_virtual_time(create(30)) == "admitted"
    assert ended == [9, 20]


async def test_functions_of_the_cluster_read_the_cluster() -> None:
    async def few(request: AdmissionRequest[V1ConfigMap], cluster: Cluster) -> Deny | None:
        found = await cluster.list("v1", "ConfigMap", ListOptions(namespace=request.namespace))
        return Deny("enough") if found.items else None

    cluster, _ = await guarded(few)
    await cluster.create(config("one"), field_manager="user")
    with pytest.raises(ForbiddenError, match="enough"):
        await cluster.create(config("two"), field_manager="user")


async def test_versions_are_converted() -> None:
    cluster = EmbeddedCluster()
    operator = Operator(name="versioned", owner=OwnerType.of(ShopV3, SHOPS), components=lambda _: ())
    old = {"apiVersion": f"{SHOPS.group}/v1", "kind": "Shop", "metadata": {"name": "one", "namespace": "town"}}
    clock = VirtualClock()

    env = await OwnerEnv.create(operator, {**old, "spec": {"address": "a, b"}}, cluster, clock)

    stored = await cluster.get(ObjectKey(f"{SHOPS.group}/v3", "Shop", "one", "town"))
    assert stored["spec"]["place"] == {"street": "a", "city": "b", "floor": 0}
    assert env.webhooks is not None


DOWN: Final = 'failed to call webhook: Post "https://guard.guard.svc:443/validate/core/configmaps?timeout=10s": '


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        pytest.param(faults.webhook_down(), f"{DOWN}dial tcp: connect: connection refused", id="down"),
        pytest.param(
            faults.webhook_untrusted(),
            f"{DOWN}tls: failed to verify certificate: x509: certificate signed by unknown authority",
            id="wrong certificate",
        ),
        pytest.param(faults.webhook_slow(timedelta(seconds=10)), f"{DOWN}context deadline exceeded", id="slow"),
        pytest.param(faults.webhook_responds(), "couldn't get version/kind; json parse error", id="nonsense"),
        pytest.param(faults.webhook_responds("{}"), "received invalid webhook response: ", id="not a review"),
        pytest.param(
            faults.webhook_responds("busy", status=503),
            "the server is currently unable to handle the request",
            id="a proxy",
        ),
    ],
)
@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
async def test_faults_of_webhooks_follow_the_failure_policy(fault: Fault, problem: str, failure_policy: Any) -> None:
    def allow(_request: AdmissionRequest[V1ConfigMap]) -> None:
        pass

    cluster, local = await guarded(allow, failure_policy=failure_policy)
    local.inject(fault)

    if failure_policy == "Fail":
        with pytest.raises(ServerError) as caught:
            await cluster.create(config(), field_manager="user")
        assert problem in str(caught.value)
    # With Ignore it is created, and with Fail the second attempt is: the fault is over.
    await cluster.create(config(), field_manager="user")
    assert [str(each) for each in local.injected] == [f"{type(fault.effect).__name__}: create v1/ConfigMap/default/one"]


async def test_a_webhook_that_is_a_little_slow_is_only_slow() -> None:
    cluster, local = await guarded(deny)
    local.inject(faults.webhook_slow(timedelta(seconds=9)))

    with pytest.raises(ForbiddenError, match="no"):
        await cluster.create(config(), field_manager="user")


@pytest.mark.parametrize(
    ("when", "failing"),
    [
        pytest.param({"first": 2}, [2], id="the second call"),
        pytest.param({"first": 2, "times": None}, [2, 3], id="from the second on"),
        pytest.param({"name": "c3"}, [3], id="by name"),
        pytest.param({"verbs": {Verb.DELETE}, "times": None}, [], id="deletes"),
        pytest.param({"kind": "Pod", "times": None}, [], id="another kind"),
    ],
)
async def test_a_webhook_may_be_down_at_some_writes_only(when: Any, failing: list[int]) -> None:
    def allow(_request: AdmissionRequest[V1ConfigMap]) -> None:
        pass

    cluster, local = await guarded(allow)
    local.inject(faults.webhook_down(**when))
    failed = []
    for number in (1, 2, 3):
        try:
            await cluster.create(config(f"c{number}"), field_manager="user")
        except ServerError:
            failed.append(number)

    assert failed == failing


async def test_an_operator_goes_on_once_the_webhook_of_another_kind_is_up() -> None:
    env = await environment()
    assert env.webhooks is not None
    env.webhooks.inject(faults.webhook_down(kind="Deployment"))

    with pytest.raises(ReconcileError, match="connection refused"):
        await env.reconcile()
    assert (await env.conditions())["WebReady"]["status"] != "True"
    await env.settle()

    assert (await env.conditions())["WebReady"]["status"] == "True"


async def test_users_are_kept_from_writing_while_a_webhook_is_down_and_policies_hold() -> None:
    most = Policy.of(Shop, "most", validations=[Validation("object.spec.replicas <= 5", "at most 5")])
    env = await environment(replace(OPERATOR, policies=[most], webhooks=[replace(OWN, failure_policy="Ignore")]))
    assert env.webhooks is not None
    env.webhooks.inject(faults.webhook_down(times=None))

    with pytest.raises(InvalidError, match="at most 5"):
        await env.patch({"spec": {"replicas": 10}})
    assert (await env.patch({"spec": {"replicas": 4}}))["spec"]["replicas"] == 4


async def test_a_crash_matrix_with_webhooks() -> None:
    async def new_cluster() -> EmbeddedCluster:
        return (await environment()).cluster

    report = await crash_at_each_write(new_cluster, OPERATOR, others=roll_out)
    report.assert_same()
    assert len(report.rows) > 1


def test_a_running_operator_is_guarded_in_virtual_time() -> None:
    async def run() -> str:
        cluster = EmbeddedCluster(namespaces=["town"])
        for definition in OPERATOR.all_definitions:
            await cluster.create(definition, field_manager="user")
        local = await LocalWebhooks.install(cluster, OPERATOR)
        local.inject(faults.webhook_down(kind="Deployment", times=3))
        options = ManagerOptions(listen=None, clock=LoopClock())
        async with running(cluster, OPERATOR, options=options) as manager:
            await manager.started()
            await cluster.create(shop(), field_manager="user")
            await asyncio.sleep(60)
        assert len(local.injected) == 3
        made = await cluster.get(ObjectKey("apps/v1", "Deployment", "corner", "town"))
        return str(made["spec"]["replicas"])

    assert run_in_virtual_time(run()) == "2"


@pytest.mark.parametrize("webhooks", [OPERATOR.webhooks, ()], ids=["with webhooks", "alone"])
async def test_policies_are_installed(webhooks: Sequence[Webhook[Any]]) -> None:
    most = Policy.of(V1ConfigMap, "most", validations=[Validation("has(object.data)", "no data")])
    cluster = EmbeddedCluster(namespaces=["ops"])
    await LocalWebhooks.install(cluster, replace(OPERATOR, policies=[most], webhooks=webhooks), namespace="ops")
    settings: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    with pytest.raises(InvalidError, match="no data"):
        await cluster.create(settings, field_manager="user")
    settings["metadata"]["namespace"] = "ops"  # that of the operator is left out
    await cluster.create(settings, field_manager="user")


async def test_what_cannot_be_is_said_at_once() -> None:
    cluster = EmbeddedCluster(namespaces=["guard"])
    local = await LocalWebhooks.install(
        FaultyCluster(cluster, []), guarding(Webhook.of(V1ConfigMap, validating=[deny]))
    )

    with pytest.raises(BuildError, match="Refusal is for FaultyCluster"):
        local.inject(faults.conflict())
    with pytest.raises(BuildError, match="faults of webhooks are for LocalWebhooks"):
        FaultyCluster(cluster, [faults.webhook_down()])
    with pytest.raises(ConfigError, match="shops has no webhooks and no admission policies"):
        await LocalWebhooks.install(cluster, replace(OPERATOR, webhooks=()))

    class Own(HttpAdmissionClient):
        pass

    class Client:
        async def ask(self, webhook: Any, review: Manifest, *, seconds: float) -> Any:
            raise NotImplementedError

    await LocalWebhooks.install(EmbeddedCluster(admission=Own()), OPERATOR)
    with pytest.raises(ConfigError, match="without an admission client of its own"):
        await LocalWebhooks.install(EmbeddedCluster(admission=Client()), OPERATOR)
