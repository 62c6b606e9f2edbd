"""A real API server asks: what it makes of the answers, with the rights the certificates need, while they change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import ServiceAccount
from ocf.errors import ConfigError, ForbiddenError, InvalidError, ServerError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey, dump_document
from ocf.runtime.admission import Renewal, SecretCertificates, Url, Webhook, Webhooks, configurations, serving
from ocf.runtime.admission.key_pairs import KeyPair
from ocf.runtime.admission.server import WebhookServer
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.rbac import roles
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

GROUP: Final = "admission.example.com"
HOST: Final = "127.0.0.1"
QUICK: Final = Renewal(propagation=timedelta(seconds=3), interval=timedelta(milliseconds=50))


@pytest.fixture
def definition(shops: Webhook[Any]) -> Manifest:
    assert shops.model is not None
    return crd(GROUP, CRDVersion("v1", shops.model))


@pytest.fixture
def webhooks(shops: Webhook[Any], definition: Manifest, envtest: Envtest) -> Webhooks:
    assert shops.model is not None
    one = Webhook.of(shops.model, definition, defaulters=shops.defaulters, validators=shops.validators)
    return Webhooks(envtest.namespace, [one])


@asynccontextmanager
async def admitting(
    cluster: ApiServerCluster,
    webhooks: Webhooks,
    definition: Manifest,
    certificates: SecretCertificates,
    *,
    seconds: int = 10,
) -> AsyncIterator[WebhookServer]:
    await cluster.apply(definition, field_manager="t")
    async with serving(webhooks, certificates=certificates, host=HOST, port=0) as server:
        made = configurations(webhooks, Url(server.url))
        try:
            for manifest in made:
                called = [{**each, "timeoutSeconds": seconds} for each in manifest["webhooks"]]
                await cluster.create({**manifest, "webhooks": called}, field_manager="t")
            await server.refresh()
            assert server.problem() == ""
            await until_asked(cluster, webhooks.name)
            yield server
        finally:
            for manifest in made:
                await cluster.delete(ObjectKey.of(manifest))


async def until_asked(cluster: ApiServerCluster, namespace: str) -> None:
    """Wait until the kind is served, and its webhooks are called."""
    await eventually(
        lambda: cluster.create(shop(namespace), field_manager="t", dry_run=True),
        lambda created: created["spec"].get("replicas"),
        ignore=(TooManyRequestsError, ServerError, ForbiddenError),
    )

    async def is_refused() -> bool:
        wrong = shop(namespace, replicas=2, autoscaling={"enabled": True})
        try:
            await cluster.create(wrong, field_manager="t", dry_run=True)
        except InvalidError:
            return True
        return False

    # A real API server reads defaulters and validators from two configurations.
    await eventually(is_refused, ignore=(TooManyRequestsError, ServerError, ForbiddenError))


def shop(namespace: str, name: str = "corner", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


async def test_defaults_are_filled_in_and_all_errors_arrive(
    envtest: Envtest, envtest_cluster: ApiServerCluster, webhooks: Webhooks, definition: Manifest
) -> None:
    certificates = SecretCertificates(envtest_cluster, webhooks, Url(f"https://{HOST}"), namespace=envtest.namespace)
    async with admitting(envtest_cluster, webhooks, definition, certificates):
        given = shop(envtest.namespace, resources={"limits": {"cpu": "1"}}, settings={"a": [None, {"b": 1}]})
        stored = await envtest_cluster.create(given, field_manager="t")
        assert stored["spec"] == {**given["spec"], "replicas": 1, "listeners": []}

        wrong = {**stored, "spec": {"replicas": 2, "autoscaling": {"enabled": True}}}
        with pytest.raises(InvalidError) as refused:
            await envtest_cluster.update(wrong, field_manager="t")
        assert [(cause.reason, cause.field) for cause in refused.value.causes] == [
            ("FieldValueForbidden", "spec.replicas"),
            ("FieldValueRequired", "spec.autoscaling.maxReplicas"),
        ]
        assert (refused.value.code, refused.value.reason) == (422, "Invalid")
        assert refused.value.message.startswith(
            f'admission webhook "validate.shops.{GROUP}" denied the request: Shop.{GROUP} "corner" is invalid: ['
        )
        text = dump_document({**wrong, "metadata": shop(envtest.namespace)["metadata"]})
        with pytest.raises(ConfigError) as raised:
            await asyncio.to_thread(envtest.kubectl, "replace", "--filename=-", stdin=text)
        for cause in refused.value.causes:
            assert f"{cause.field}: {cause.message}" in str(raised.value)


async def test_what_the_schema_refuses_is_told_by_the_schema(
    envtest: Envtest, envtest_cluster: ApiServerCluster, webhooks: Webhooks, definition: Manifest
) -> None:
    certificates = SecretCertificates(envtest_cluster, webhooks, Url(f"https://{HOST}"), namespace=envtest.namespace)
    async with admitting(envtest_cluster, webhooks, definition, certificates):
        with pytest.raises(InvalidError) as refused:
            await envtest_cluster.create(shop(envtest.namespace, replicas="many", image=1), field_manager="t")
    assert "spec.replicas in body must be of type integer" in refused.value.message
    assert "spec.image in body must be of type string" in refused.value.message


@pytest.mark.parametrize("kind", ["validators", "defaulters"])
async def test_a_function_that_hangs_is_named_and_others_go_on(
    envtest: Envtest, envtest_cluster: ApiServerCluster, shops: Webhook[Any], definition: Manifest, kind: str
) -> None:
    """The API server says how long it waits: five seconds, and not the ten of the settings of the webhooks."""
    released = threading.Event()

    def hang(shop: Any, *_: Any) -> Any:
        if shop.metadata.name == "stuck":
            released.wait()
        return [] if kind == "validators" else None

    assert shops.model is not None
    defaulters = [*shops.defaulters, *([hang] if kind == "defaulters" else [])]
    validators = [*shops.validators, *([hang] if kind == "validators" else [])]
    one = Webhook.of(shops.model, definition, defaulters=defaulters, validators=validators)
    webhooks = Webhooks(envtest.namespace, [one])
    certificates = SecretCertificates(envtest_cluster, webhooks, Url(f"https://{HOST}"), namespace=envtest.namespace)
    try:
        async with admitting(envtest_cluster, webhooks, definition, certificates, seconds=5) as server:
            for _ in range(2):
                tasks = [
                    asyncio.create_task(envtest_cluster.create(shop(envtest.namespace, "stuck"), field_manager="t"))
                    for _ in range(4)
                ]
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                assert {type(each) for each in answers} == {ServerError}
                assert all("did not return within 4.5 seconds" in str(each) for each in answers), answers
                assert all(f"{hang.__qualname__} did" in str(each) for each in answers), answers
                stored = await envtest_cluster.create(shop(envtest.namespace, "other"), field_manager="t", dry_run=True)
                assert stored["spec"]["replicas"] == 1
            assert (server.problem(), server.live()) == ("", "")
            released.set()
    finally:
        released.set()


@pytest.mark.promise(
    "webhook-certificate", runs="three renewals of two replicas' certificate under load, on a real API server"
)
async def test_renewals(
    envtest: Envtest,
    envtest_plane: ControlPlane,
    envtest_cluster: ApiServerCluster,
    webhooks: Webhooks,
    definition: Manifest,
) -> None:
    """With the least rights, three renewals of two replicas' certificate, and not one request that fails."""
    place = Url(f"https://{HOST}")
    rights = SecretCertificates(envtest_cluster, webhooks, place, namespace=envtest.namespace).policy_rules
    account = ServiceAccount("operator", envtest.namespace)
    for manifest in roles(rights, name=envtest.namespace, account=account):
        await envtest_cluster.create(manifest, field_manager="t")
    user = f"system:serviceaccount:{envtest.namespace}:operator"
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    async with await envtest_plane.cluster(kubeconfig) as operator:
        await until_granted(operator, envtest.namespace, webhooks)
        ours, other = (
            SecretCertificates(operator, webhooks, place, namespace=envtest.namespace, renewal=QUICK) for _ in range(2)
        )
        async with admitting(envtest_cluster, webhooks, definition, ours), asyncio.TaskGroup() as group:
            renewed = asyncio.Event()
            asking = [group.create_task(ask(envtest_cluster, envtest.namespace, number, renewed)) for number in (1, 2)]
            secret = ObjectKey("v1", "Secret", f"{webhooks.name}-webhook-certificates", envtest.namespace)
            for _ in range(3):
                before = (await other.refresh()).pair
                await envtest_cluster.delete(secret)
                await until_replaced(other, before)
            renewed.set()
            assert sum([await one for one in asking]) > 20


async def until_replaced(certificates: SecretCertificates, pair: KeyPair) -> None:
    await eventually(certificates.refresh, lambda current: current.pair != pair)


async def until_granted(operator: ApiServerCluster, namespace: str, webhooks: Webhooks) -> None:
    """Wait until the API server has heard of the rights."""
    certificates = SecretCertificates(operator, webhooks, Url(f"https://{HOST}"), namespace=namespace, renewal=QUICK)
    await eventually(certificates.refresh, ignore=(ForbiddenError,))


async def ask(cluster: ApiServerCluster, namespace: str, number: int, until: asyncio.Event) -> int:
    count = 0
    while not until.is_set():
        made = await cluster.create(shop(namespace, f"s-{number}"), field_manager="t", dry_run=True)
        assert made["spec"]["replicas"] == 1
        count += 1
    return count
