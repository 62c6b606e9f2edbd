"""A process that serves its operators' webhooks: API servers ask it, and it says whether they can."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from ocf.cluster import WatchOptions
from ocf.component import ReconcileContext
from ocf.errors import BuildError, ConfigError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import field_manager
from ocf.runtime.admission import FieldError, FileCertificates, Operation, Service, Url, Webhook, invalid
from ocf.runtime.admission.certificate_source import ServingCertificate
from ocf.runtime.admission.key_pairs import issue
from ocf.runtime.admission.server import WebhookServer
from ocf.runtime.admission.webhook_configurations import definition_key
from ocf.runtime.operator import Lease, Listen, ManagerOptions, Operator, OwnerType, WebhookOptions, running
from ocf.runtime.operator.manager import Manager
from ocf.runtime.rbac import PolicyRule
from ocf_server import EmbeddedCluster
from tests.runtime.crds.shop_versions import GROUP, ShopV1, ShopV2, ShopV3
from tests.runtime.crds.shop_versions import SHOPS as VERSIONED_SHOPS
from tests.support import eventually

from .conftest import DEFINITION, NAMESPACE, SHOPS, Shop, shop

HOST = "127.0.0.1"
LOCAL = WebhookOptions(address=Url(f"https://{HOST}"), namespace="default", host=HOST, port=0)
REGISTERED = replace(LOCAL, register=True)
IN_CLUSTER = WebhookOptions(address=Service("shops-webhook", "ops"))
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def default(owner: Shop) -> Shop:
    guide = owner.spec.guide or "baedeker"
    return owner.model_copy(update={"spec": owner.spec.model_copy(update={"guide": guide})})


def judge(new: Shop, _old: Shop | None, _operation: Operation) -> Iterable[FieldError]:
    return [invalid("spec.motto", new.spec.motto, "is no motto")] if new.spec.motto == "loud" else []


def ignored(_owner: Any) -> tuple[()]:
    return ()


WEBHOOK = Webhook.of(Shop, DEFINITION, defaulters=[default], validators=[judge])
OPERATOR = Operator(name="shops", owner=SHOPS, components=ignored, webhooks=[WEBHOOK])
NAMESPACES: Operator[Manifest] = Operator(
    name="namespaces",
    owner=OwnerType("v1", "Namespace"),
    components=ignored,
    webhooks=[
        Webhook("", "v1", "ConfigMap", "configmaps", validators=[lambda *_: [invalid("data", "", "is refused")]])
    ],
)


@asynccontextmanager
async def operating(*operators: Operator[Any], **options: Any) -> AsyncIterator[tuple[EmbeddedCluster, Manager]]:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(DEFINITION, field_manager="setup")
    given = ManagerOptions(**{"listen": None, "admission": REGISTERED, **options})
    async with running(cluster, *(operators or [OPERATOR]), options=given) as process:
        await process.started()
        yield cluster, process


async def configured(cluster: EmbeddedCluster) -> list[str]:
    found = [await cluster.list("admissionregistration.k8s.io/v1", kind) for kind in KINDS]
    return [item["metadata"]["name"] for each in found for item in each.items]


async def test_they_are_asked_while_the_process_runs() -> None:
    async with operating() as (cluster, process):
        assert await configured(cluster) == ["shops", "shops"]
        stored = await cluster.create(shop(), field_manager="me")
        assert stored["spec"]["guide"] == "baedeker"
        with pytest.raises(InvalidError, match=r'spec.motto: Invalid value: "loud": is no motto'):
            await cluster.create(shop("other", motto="loud"), field_manager="me")
        assert process.health.ready["webhooks"]() == ""
    assert await configured(cluster) == []
    assert (await cluster.create(shop("late", motto="loud"), field_manager="me"))["spec"] == {
        "motto": "loud",
        "guide": "",
    }


async def test_what_a_process_before_left_behind_is_taken_over() -> None:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(DEFINITION, field_manager="setup")
    for stale in replace(LOCAL, address=Url("https://127.0.0.1:1")).configurations(OPERATOR):
        await cluster.apply(stale, field_manager=field_manager("shops-webhooks"))
    async with running(cluster, OPERATOR, options=ManagerOptions(listen=None, admission=REGISTERED)) as process:
        await process.started()
        assert (await cluster.create(shop(), field_manager="me"))["spec"]["guide"] == "baedeker"
    assert await configured(cluster) == []


async def test_what_another_client_has_installed_is_refused_and_stays() -> None:
    """The end of the process would leave nothing that guards the cluster."""
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(DEFINITION, field_manager="setup")
    for installed in replace(LOCAL, address=Url("https://127.0.0.1:1")).configurations(OPERATOR):
        await cluster.create(installed, field_manager="helm")
    with pytest.raises(ConfigError, match="helm has installed it, and a process with `register=True` deletes it"):
        async with running(cluster, OPERATOR, options=ManagerOptions(listen=None, admission=REGISTERED)) as process:
            await process.started()
    assert await configured(cluster) == ["shops", "shops"]


async def test_a_configuration_that_another_process_has_replaced_stays() -> None:
    async with operating(admission=REGISTERED) as (cluster, _):
        for stale in replace(LOCAL, address=Url("https://127.0.0.1:1")).configurations(OPERATOR):
            await cluster.delete(ObjectKey.of(stale))
            await cluster.create(stale, field_manager="another")
    assert await configured(cluster) == ["shops", "shops"]


async def test_configurations_of_a_cluster_stay_and_are_told_whom_to_trust() -> None:
    async with operating(admission=LOCAL) as (cluster, process):
        assert await configured(cluster) == []
        server = process.webhooks
        assert server is not None
        for manifest in replace(LOCAL, address=Url(server.url)).configurations(OPERATOR):
            await cluster.create(manifest, field_manager="admin")
        await server.refresh()
        assert process.health.ready["webhooks"]() == ""
        assert (await cluster.create(shop(), field_manager="me"))["spec"]["guide"] == "baedeker"
    assert await configured(cluster) == ["shops", "shops"]


class Untrusted:
    """Certificates that are not trusted yet."""

    interval = timedelta(hours=1)

    async def refresh(self) -> ServingCertificate:
        return ServingCertificate(issue([HOST], datetime.now(UTC), timedelta(days=1)), "it is not trusted yet")


async def test_readiness_names_what_is_wrong_with_them() -> None:
    given, listen = replace(LOCAL, certificates=Untrusted()), Listen(port=0, host=HOST)
    async with operating(admission=given, listen=listen) as (_, process), ClientSession() as session:
        assert process.endpoints is not None
        async with session.get(f"{process.endpoints.url}/readyz/webhooks") as answer:
            assert answer.status == 500
            assert "it is not trusted yet" in await answer.text()
        async with session.get(f"{process.endpoints.url}/healthz?verbose") as answer:
            assert (answer.status, "[+]webhooks ok" in await answer.text()) == (200, True)


async def test_liveness_names_what_only_a_restart_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WebhookServer, "live", lambda _: "the functions hang")
    async with operating(listen=Listen(port=0, host=HOST)) as (_, process), ClientSession() as session:
        assert process.endpoints is not None
        async with session.get(f"{process.endpoints.url}/healthz") as answer:
            assert answer.status == 500
            assert "[-]webhooks failed: the functions hang" in await answer.text()


async def test_those_of_several_operators_share_a_server_and_a_name() -> None:
    async with operating(OPERATOR, NAMESPACES) as (cluster, _):
        assert await configured(cluster) == ["shops", "shops"]
        with pytest.raises(InvalidError, match="data: Invalid value"):
            await cluster.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": NAMESPACE}},
                field_manager="me",
            )
        assert (await cluster.create(shop(), field_manager="me"))["spec"]["guide"] == "baedeker"


async def test_who_does_not_lead_serves_them_too() -> None:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(DEFINITION, field_manager="setup")
    first = ManagerOptions(listen=None, lease=Lease("shops", "default", "one"))
    second = ManagerOptions(listen=None, lease=Lease("shops", "default", "two"), admission=REGISTERED)
    async with running(cluster, OPERATOR, options=first) as leader:
        await leader.started()
        async with running(cluster, OPERATOR, options=second) as follower:
            await eventually(lambda: configured(cluster))
            assert (await cluster.create(shop(), field_manager="me"))["spec"]["guide"] == "baedeker"
            assert not follower.controllers


async def test_a_certificate_may_come_from_files(tmp_path: Path) -> None:
    pair = issue([HOST], datetime.now(UTC), timedelta(days=1))
    (tmp_path / "tls.crt").write_bytes(pair.chain)
    (tmp_path / "tls.key").write_bytes(pair.key)
    files = FileCertificates(tmp_path / "tls.crt", tmp_path / "tls.key")
    given = WebhookOptions(address=Url(f"https://{HOST}"), certificates=files, host=HOST, port=0)
    async with operating(admission=given) as (cluster, process):
        assert process.webhooks is not None
        manifests = replace(given, address=Url(process.webhooks.url)).configurations(OPERATOR, ca_bundle=pair.authority)
        for manifest in manifests:
            await cluster.create(manifest, field_manager="admin")
        assert (await cluster.create(shop(), field_manager="me"))["spec"]["guide"] == "baedeker"
        assert not (await cluster.list("v1", "Secret")).items


async def test_nothing_is_served_for_operators_without_any() -> None:
    async with operating(replace(OPERATOR, webhooks=())) as (cluster, process):
        assert process.webhooks is None
        assert "webhooks" not in {**process.health.ready, **process.health.live}
        assert await configured(cluster) == []


async def test_a_process_that_serves_no_webhooks_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with operating(admission=None):
        pass
    assert "the webhooks of shops are not served here: `admission` is not set" in caplog.messages


async def test_a_port_that_is_taken_ends_the_process() -> None:
    async with operating() as (_, process):
        assert process.webhooks is not None
        port = int(process.webhooks.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"webhooks: cannot listen on {HOST}:{port}"):
            async with operating(admission=replace(LOCAL, port=port)):
                pytest.fail("it is not at work")


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        pytest.param(
            lambda: WebhookOptions(address=Url("https://x")), "need a namespace for the Secret", id="no namespace"
        ),
        pytest.param(
            lambda: Manager(
                EmbeddedCluster(), [OPERATOR, replace(OPERATOR, name="again")], ManagerOptions(admission=IN_CLUSTER)
            ),
            "webhooks shops: shops.example.com has two webhooks",
            id="a kind twice",
        ),
        pytest.param(
            lambda: Manager(
                EmbeddedCluster(),
                [OPERATOR],
                ManagerOptions(admission=replace(IN_CLUSTER, timeout=timedelta(minutes=1))),
            ),
            "the timeout must be between 1 and 30 seconds, got 60",
            id="too patient",
        ),
    ],
)
def test_what_cannot_be_is_said_at_once(made: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        made()


class TestPrivileges:
    def test_those_of_a_secret_are_for_the_objects_that_are_named(self) -> None:
        needed = ManagerOptions(admission=IN_CLUSTER).policy_rules(OPERATOR)
        secrets = {(one.verb, one.name, one.namespace) for one in needed if one.resource == "secrets"}
        name = "shops-webhook-certificates"
        assert secrets == {("create", "", "ops"), ("get", name, "ops"), ("update", name, "ops")}
        rest = {(one.resource, one.verb, one.name) for one in needed if one.resource != "secrets"}
        assert rest == {
            (f"{which}webhookconfigurations", verb, "shops")
            for which in ("mutating", "validating")
            for verb in ("get", "patch")
        }

    def test_files_need_none_and_neither_do_operators_without_webhooks(self) -> None:
        files = FileCertificates(Path("tls.crt"), Path("tls.key"))
        assert ManagerOptions(admission=replace(IN_CLUSTER, certificates=files)).policy_rules(OPERATOR) == frozenset()
        assert ManagerOptions(admission=IN_CLUSTER).policy_rules(replace(OPERATOR, webhooks=())) == frozenset()

    def test_registering_needs_more(self) -> None:
        more = ManagerOptions(admission=REGISTERED).policy_rules(OPERATOR) - ManagerOptions(
            admission=LOCAL
        ).policy_rules(OPERATOR)
        verbs = {(one.verb, one.name) for one in more}
        assert verbs == {("create", ""), ("delete", "shops")}

    def test_a_lease_is_among_them(self) -> None:
        needed = ManagerOptions(lease=Lease("shops", "ops")).policy_rules(OPERATOR)
        assert PolicyRule("coordination.k8s.io", "leases", "update", "shops", namespace="ops") in needed


def test_the_configurations_are_called_as_the_operator_or_as_the_options_name_them() -> None:
    key = ObjectKey.of(IN_CLUSTER.configurations(OPERATOR)[0])
    assert (key.kind, key.name) == ("MutatingWebhookConfiguration", "shops")
    assert ObjectKey.of(replace(IN_CLUSTER, name="town").configurations(OPERATOR)[0]).name == "town"
    assert IN_CLUSTER.configurations(replace(OPERATOR, webhooks=())) == []


class TestConversion:
    """Owners with several versions: the process converts them."""

    VERSIONED = Operator(name="versioned", owner=OwnerType.of(ShopV3, VERSIONED_SHOPS), components=ignored)

    def test_the_operator_reads_the_version_of_its_model(self) -> None:
        assert self.VERSIONED.owner_kind == (f"{GROUP}/v3", "Shop")
        assert OwnerType.of(ShopV1, VERSIONED_SHOPS).api_version == f"{GROUP}/v1"
        assert Webhook.of(ShopV2, VERSIONED_SHOPS).version == "v2"

    def test_a_model_of_no_version_is_rejected_with_the_known_ones(self) -> None:
        known = r"v1 \(ShopV1\), v2 \(ShopV2\), v3 \(ShopV3\)"
        with pytest.raises(BuildError, match=f"has no version with the model Shop, expected one of {known}"):
            OwnerType.of(Shop, VERSIONED_SHOPS)
        with pytest.raises(BuildError, match="has no version v1 with the model ShopV3, expected one of"):
            OwnerType.of(ShopV3, VERSIONED_SHOPS, version="v1")

    def test_the_definition_has_the_address_of_the_server(self) -> None:
        (definition,) = IN_CLUSTER.definitions(self.VERSIONED)
        config = definition["spec"]["conversion"]["webhook"]["clientConfig"]
        assert config["service"]["path"] == f"/convert/{GROUP}/shops"
        assert IN_CLUSTER.configurations(self.VERSIONED) == []
        assert IN_CLUSTER.definitions(OPERATOR) == []

    def test_operators_of_the_same_owners_share_the_webhook(self) -> None:
        found = IN_CLUSTER.webhooks([self.VERSIONED, replace(self.VERSIONED, name="other")])
        assert found is not None
        assert [one.name for one in found.conversions] == [f"shops.{GROUP}"]

    def test_the_privileges_are_for_its_definition(self) -> None:
        def granted(options: WebhookOptions) -> set[tuple[str, str]]:
            rules = ManagerOptions(admission=options).policy_rules(self.VERSIONED)
            return {(one.verb, one.name) for one in rules if one.resource == "customresourcedefinitions"}

        name = f"shops.{GROUP}"
        assert granted(IN_CLUSTER) == {("get", name), ("patch", name)}
        files = FileCertificates(Path("tls.crt"), Path("tls.key"))
        assert granted(replace(IN_CLUSTER, certificates=files)) == set()
        assert granted(replace(IN_CLUSTER, certificates=files, register=True)) == {("patch", name)}

    async def test_a_process_registers_and_converts(self) -> None:
        seen: list[str] = []

        def components(owner: ShopV3) -> tuple[()]:
            seen.append(f"{owner.spec.place.street} in {owner.spec.place.city}")
            return ()

        cluster = EmbeddedCluster(namespaces=[NAMESPACE])
        await cluster.apply(VERSIONED_SHOPS.definition(), field_manager="setup")
        operator = replace(self.VERSIONED, components=components, report=counted)
        options = ManagerOptions(listen=None, admission=REGISTERED)
        old = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "spec": {"address": "a, b"}}
        async with running(cluster, operator, options=options) as process:
            await process.started()
            made = await cluster.create(
                {**old, "metadata": {"name": "corner", "namespace": NAMESPACE}}, field_manager="me"
            )
            live = made
            watch = cluster.watch(f"{GROUP}/v1", "Shop", WatchOptions(namespace=NAMESPACE, resource_version="0"))
            async for event in watch:
                live = event.object
                if live.get("status"):
                    break
            await watch.aclose()
            registry = process.registry
        assert seen[0] == "a in b"
        assert (live["status"], live["spec"]) == ({"count": 1}, {"address": "a, b", "memoryGi": 1})
        assert registry is not None
        counted_requests = registry.get_sample_value(
            "controller_runtime_webhook_requests_total", {"webhook": f"/convert/{GROUP}/shops", "code": "200"}
        )
        assert counted_requests is not None
        assert counted_requests >= 2

    async def test_the_webhook_stays_in_the_definition_when_the_process_ends(self) -> None:
        """Otherwise the API server would drop the fields that another version does not have."""
        cluster = EmbeddedCluster(namespaces=[NAMESPACE])
        await cluster.apply(VERSIONED_SHOPS.definition(), field_manager="setup")
        async with running(
            cluster, self.VERSIONED, options=ManagerOptions(listen=None, admission=REGISTERED)
        ) as process:
            await process.started()
        live = await cluster.get(definition_key(VERSIONED_SHOPS))
        assert live["spec"]["conversion"]["strategy"] == "Webhook"

    async def test_that_no_process_converts_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        cluster = EmbeddedCluster(namespaces=[NAMESPACE])
        await cluster.apply(VERSIONED_SHOPS.definition(), field_manager="setup")
        with caplog.at_level(logging.INFO):
            async with running(cluster, self.VERSIONED, options=ManagerOptions(listen=None)) as process:
                await process.started()
        assert "the webhooks of versioned are not served here: `admission` is not set" in caplog.messages


def counted(context: ReconcileContext, _owner: Any, _outcome: object) -> None:
    context.status["count"] = 1
