"""An owner that depends on objects without a watch is healthy, and its condition says that their changes are not seen.

Public reports of operators with a right to get objects, and none to list and watch them:
https://github.com/kubernetes-sigs/controller-runtime/issues/1220, https://github.com/kubernetes-sigs/controller-runtime/issues/1222
(the read fails), https://github.com/openshift/lightspeed-operator/pull/1954,
https://github.com/wso2/labs-agentic-engineer/pull/534 (the process ends),
https://github.com/operator-framework/ansible-operator-plugins/issues/185,
https://github.com/multigres/multigres-operator/pull/281, https://github.com/migtools/mig-operator/issues/407 (only the
log shows it).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import pytest

from ocf import component
from ocf.cluster import ListOptions, PatchOptions, PatchType, Request, ServiceAccount, Verb
from ocf.cluster.cache import Selection
from ocf.errors import (
    BadRequestError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import find_condition
from ocf.runtime.admission import FieldError, Operation, Url, Webhook, invalid
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import Listen, ManagerOptions, Operator, OwnerType, WebhookOptions, running
from ocf.runtime.operator.unwatched_objects import UNWATCHED
from ocf.runtime.operator.watches import Watch
from ocf.runtime.rbac import PolicyRule, roles
from tests.support import eventually, until_granted

from .conftest import NAMESPACE, Env, RunTest, Shop, key_of, settings_of, shop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.component import Component, ReconcileContext
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

GUIDE: Final = ObjectKey("v1", "Secret", "guide", NAMESPACE)
RECONCILED: Final = "shops/Reconciled"
HOUR: Final = 3600
FORBIDDEN: Final = ForbiddenError("secrets is forbidden", code=403, reason="Forbidden")


def secret(key: ObjectKey = GUIDE) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": key.name, "namespace": key.namespace}}


class Rights:
    """What the operator may do with a kind: everything while `cause` is None."""

    def __init__(self, kind: str, cause: Exception | None, *, of: tuple[Verb, ...] = (Verb.LIST, Verb.WATCH)) -> None:
        self.kind, self.cause, self.of = kind, cause, of

    async def check(self, request: Request) -> None:
        if self.cause is not None and request.kind == self.kind and request.verb in self.of:
            raise copy(self.cause)


async def condition(env: Env, name: str = "corner") -> Manifest | None:
    return find_condition(await conditions(env, name), RECONCILED)


async def conditions(env: Env, name: str = "corner") -> list[Manifest]:
    found: list[Manifest] = (await env.cluster.get(key_of(name)))["status"]["conditions"]
    return found


async def events(env: Env, reason: str = UNWATCHED) -> list[Manifest]:
    found = (await env.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace=NAMESPACE))).items
    return [one for one in found if one["reason"] == reason]


async def read(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        with suppress(NotFoundError):
            await context.cluster.get(GUIDE._replace(name=owner.spec.guide))


async def list_them(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        with suppress(ForbiddenError):
            await context.cluster.list("v1", "Secret", ListOptions(namespace=NAMESPACE, label_selector="a=b"))


async def apply(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        await context.cluster.apply(secret(), field_manager="shops")


@pytest.mark.promise(
    "unwatched-shown", runs="an object that is read, listed, applied or absent, of a kind without a watch"
)
@pytest.mark.parametrize(
    ("use", "guide", "named"),
    [
        pytest.param(read, "guide", f"{NAMESPACE}/guide", id="read by name"),
        pytest.param(read, "none", f"{NAMESPACE}/none", id="read by name and absent"),
        pytest.param(list_them, "guide", f"those that are listed in {NAMESPACE}", id="listed"),
        pytest.param(apply, "guide", f"{NAMESPACE}/guide", id="applied"),
    ],
)
def test_the_condition_names_the_objects_until_they_are_watched(
    run_test: RunTest, use: Any, guide: str, named: str
) -> None:
    """Beside a healthy component, with one event, and without a write at rest; other owners show nothing."""

    async def test(env: Env) -> None:
        rights = Rights("Secret", FORBIDDEN)
        env.before, env.gateway.meddle = use, rights.check
        await env.create(secret())
        await env.create(shop(guide=guide))
        await env.create(shop("other"))
        async with env.operating(options={"events": True}) as process:
            await asyncio.sleep(HOUR)
            assert [one["status"] for one in await conditions(env)] == ["True", "True"]
            found = await condition(env)
            assert found is not None
            assert found["reason"] == UNWATCHED
            assert f"Secret (v1) {named}: HTTP 403 Forbidden" in found["message"]
            assert await condition(env, "other") is None
            assert [(one["regarding"]["name"], one["type"]) for one in await events(env)] == [("corner", "Warning")]
            assert [check() for check in process.health.ready.values()] == ["", "", ""]
            # The second reconcile of the same generation, and all later ones, write no status.
            env.forget()
            await env.edit(key_of(), {"metadata": {"labels": {"touched": "yes"}}})
            await asyncio.sleep(HOUR)
            assert env.passes
            assert ("update", "Shop") not in env.gateway.writes
            assert len(await events(env)) == 1
            # With the right, the owner is reconciled without an event of its own, and its objects are watched.
            rights.cause = None
            env.forget()
            await asyncio.sleep(60)
            assert [name for name, _ in env.passes] == ["corner"]
            assert await condition(env) is None
            env.forget()
            if guide == "none":
                await env.create(secret(GUIDE._replace(name="none")))
            else:
                await env.edit(GUIDE, {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(1)
            assert [name for name, _ in env.passes] == ["corner"]

    run_test(test)


@pytest.mark.parametrize(
    ("cause", "shown"),
    [
        pytest.param(
            BadRequestError("cannot list", code=405, reason="MethodNotAllowed"),
            "HTTP 405 MethodNotAllowed",
            id="not served",
        ),
        pytest.param(ServerError("conversion of one failed", code=500), "HTTP 500", id="not converted"),
        pytest.param(ServerError("no answer"), "ServerError", id="no answer"),
        pytest.param(ValueError("the password is 1234"), "ValueError", id="not decoded"),
    ],
)
def test_a_list_that_fails_for_another_reason_is_shown_without_its_text(
    run_test: RunTest, cause: Exception, shown: str
) -> None:
    """The text may differ in each attempt, and contain anything."""

    async def test(env: Env) -> None:
        env.before, env.gateway.meddle = read, Rights("Secret", cause).check
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating():
            await asyncio.sleep(HOUR)
            found = await condition(env)
            assert found is not None
            assert f"Secret (v1) {NAMESPACE}/guide: {shown}. Give" in found["message"]
            assert str(cause) not in found["message"]

    run_test(test)


@pytest.mark.parametrize("of", [(Verb.LIST, Verb.WATCH), (Verb.LIST, Verb.WATCH, Verb.GET)], ids=["get", "nothing"])
@pytest.mark.parametrize("declared", [False, True], ids=["not declared", "declared"])
def test_what_one_owner_names_and_may_not_be_watched_concerns_no_other_owner(
    run_test: RunTest, of: tuple[Verb, ...], *, declared: bool
) -> None:
    """Neither its condition nor its reconciles, and not whether the process is ready."""

    async def test(env: Env) -> None:
        async def refuse(request: Request) -> None:
            if (request.kind, request.namespace) == ("Secret", "vault") and request.verb in of:
                raise copy(FORBIDDEN)

        async def read_it(owner: Shop, context: ReconcileContext) -> None:
            home = "vault" if owner.metadata.name == "bad" else NAMESPACE
            await context.cluster.get(GUIDE._replace(namespace=home))

        env.before, env.gateway.meddle = read_it, refuse
        await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}})
        await env.create(secret())
        await env.create(secret(GUIDE._replace(namespace="vault")))
        for name in ("corner", "bad"):
            await env.create(shop(name))
        watches = [Watch("v1", "Secret", lambda _: ())] if declared else []
        chosen = {("v1", "Secret"): Selection(by_name=True)} if declared else {}
        async with env.operating(watches=watches, selections=chosen) as process:
            await asyncio.sleep(HOUR)
            await env.edit(key_of(), {"metadata": {"labels": {"touched": "yes"}}})
            await asyncio.sleep(HOUR)
            assert sum(name == "corner" for name, _ in env.passes) == 2
            assert await condition(env) is None
            found = await condition(env, "bad")
            assert found is not None
            assert (found["reason"] == UNWATCHED) is (Verb.GET not in of)
            checks = {**process.health.ready, **process.health.live}
            assert [check() for check in checks.values() if check()] == []

    run_test(test)


def test_a_list_that_fails_after_the_reconcile_is_shown_by_one_more(run_test: RunTest) -> None:
    """An owner that only writes an object does not wait for the list of its kind."""

    async def test(env: Env) -> None:
        async def refuse_late(request: Request) -> None:
            if request.kind == "Secret" and request.verb is Verb.LIST:
                await asyncio.sleep(5)
                raise copy(FORBIDDEN)

        env.before, env.gateway.meddle = apply, refuse_late
        await env.create(shop(guide="guide"))
        await env.create(shop("other"))
        async with env.operating():
            await asyncio.sleep(HOUR)
            assert await condition(env) is not None
            assert sorted(name for name, _ in env.passes) == ["corner", "corner", "other"]

    run_test(test)


def test_a_right_that_is_taken_is_shown_by_one_reconcile(run_test: RunTest) -> None:
    """And that it is given back starts a reconcile of the owners that need it, and of no others."""

    async def test(env: Env) -> None:
        rights = Rights("Secret", None)
        env.before, env.gateway.meddle = read, rights.check
        await env.create(secret())
        await env.create(shop(guide="guide"))
        await env.create(shop("other"))
        async with env.operating():
            assert await condition(env) is None
            env.forget()
            rights.cause = FORBIDDEN
            env.gateway.cut()
            await asyncio.sleep(HOUR)
            assert [name for name, _ in env.passes] == ["corner"]
            assert await condition(env) is not None
            rights.cause = None
            env.forget()
            await asyncio.sleep(60)
            assert [name for name, _ in env.passes] == ["corner"]
            assert await condition(env) is None

    run_test(test)


def test_a_kind_that_may_be_listed_is_followed_without_the_right_to_watch(run_test: RunTest) -> None:
    """By lists; so nothing is shown, and nothing is reconciled at rest."""

    async def test(env: Env) -> None:
        env.before = read
        env.gateway.meddle = Rights("Secret", FORBIDDEN, of=(Verb.WATCH,)).check
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating():
            await asyncio.sleep(HOUR)
            env.forget()
            await asyncio.sleep(HOUR)
            assert env.passes == []
            await env.edit(GUIDE, {"metadata": {"labels": {"a": "b"}}})
            await asyncio.sleep(60)
            assert [name for name, _ in env.passes] == ["corner"]
            assert await condition(env) is None

    run_test(test)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"uncached": [("v1", "Secret")]}, id="a kind that the author does not cache"),
        pytest.param({}, id="a kind that comes later"),
    ],
)
def test_what_is_expected_is_not_shown(run_test: RunTest, changed: dict[str, Any]) -> None:
    async def read_late(_: Shop, context: ReconcileContext) -> None:
        with suppress(NotFoundError):
            await context.cluster.get(ObjectKey("late.example.org/v1", "Thing", "one", NAMESPACE))

    async def test(env: Env) -> None:
        env.before = read if changed else read_late
        env.gateway.meddle = Rights("Secret", FORBIDDEN).check
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating(**changed):
            await asyncio.sleep(HOUR)
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(1)
            assert await condition(env) is None

    run_test(test)


def test_a_failure_replaces_it_and_it_returns_afterwards(run_test: RunTest) -> None:
    """A reconcile that fails is retried, and sees the changes then."""

    async def test(env: Env) -> None:
        broken = True

        async def sometimes(owner: Shop, context: ReconcileContext) -> None:
            await read(owner, context)
            if broken:
                raise ValueError

        env.before, env.gateway.meddle = sometimes, Rights("Secret", FORBIDDEN).check
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating():
            failed = await condition(env)
            assert failed is not None
            assert (failed["status"], failed["reason"]) == ("False", "Error")
            broken = False
            await asyncio.sleep(HOUR)
            found = await condition(env)
            assert found is not None
            assert (found["status"], found["reason"]) == ("True", UNWATCHED)

    run_test(test)


def test_the_author_s_failure_condition_is_left_alone(run_test: RunTest) -> None:
    """With a condition of another name for failures, which the author may set, this one keeps its own name."""

    async def test(env: Env) -> None:
        env.before, env.gateway.meddle = read, Rights("Secret", FORBIDDEN).check
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating(failure_condition="Ready"):
            assert {one["type"] for one in await conditions(env)} == {"WebReady", RECONCILED}
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(1)
            assert {one["type"] for one in await conditions(env)} == {"WebReady"}
            assert (await env.cluster.get(settings_of()))["data"] == {"motto": "open"}

    run_test(test)


def judge(new: Shop, _old: Shop | None, _operation: Operation) -> Iterator[FieldError]:
    if new.spec.motto == "loud":
        yield invalid("spec.motto", new.spec.motto, "must not be loud")


GROUP: Final = "unwatched.example.com"
# Other tests see all objects of theirs.
DEFINITION: Final = crd(GROUP, CRDVersion("v1", Shop))
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")


class RealShops:
    """Owners on a real API server, and an operator that may do what its declaration asks for, and get Secrets.

    Args:
        admin: The cluster, with all rights.
    """

    def __init__(self, admin: Cluster, namespace: str) -> None:
        self.admin, self.namespace = admin, namespace
        self.user = f"system:serviceaccount:{namespace}:shops"
        self.guide = GUIDE._replace(namespace=namespace)
        self.named, self.plain = self.owner("named", guide="guide"), self.owner("plain")
        self.passes: list[str] = []
        self.operator: Operator[Shop] = Operator(
            name="shops",
            owner=OwnerType.of(Shop, DEFINITION),
            components=self.components,
            resync=None,
            webhooks=[Webhook.of(Shop, DEFINITION, validators=[judge])],
        )
        local = Url("https://127.0.0.1")
        admission = WebhookOptions(
            address=local, namespace=namespace, name=namespace, host="127.0.0.1", port=0, register=True
        )
        self.options = ManagerOptions(
            listen=Listen(host="127.0.0.1", port=0), namespaces=[namespace], admission=admission
        )

    def owner(self, name: str, **spec: Any) -> Manifest:
        made = shop(name, **spec)
        made["apiVersion"], made["metadata"]["namespace"] = f"{GROUP}/v1", self.namespace
        return made

    async def components(self, owner: Shop, context: ReconcileContext) -> Component:
        self.passes.append(owner.metadata.name)
        if owner.spec.guide:
            await context.cluster.get(self.guide)
        return component.Builder("web", condition_type="WebReady").build()

    async def begin(self) -> None:
        """Define the kind, and grant the rights."""
        empty = component.Builder("web", condition_type="WebReady").build()
        declared = self.operator.policy_rules([empty]) | self.options.policy_rules(self.operator)
        await self.admin.apply(DEFINITION, field_manager="admin")
        await self.grant("shops", declared | {PolicyRule("", "secrets", "get")})
        await self.admin.create(secret(self.guide), field_manager="admin")

    async def grant(self, name: str, rules: Collection[PolicyRule]) -> None:
        account = ServiceAccount("shops", self.namespace)
        for one in roles(rules, name=f"{name}-{self.namespace}", account=account):
            await self.admin.apply(one, field_manager="admin")
        await until_granted(self.admin, self.user, rules, namespace=self.namespace)

    async def created(self) -> bool:
        for one in (self.named, self.plain):
            await self.admin.apply(one, field_manager="admin")
        return True

    async def shown(self, one: Manifest) -> dict[str, Manifest]:
        status: Manifest = (await self.admin.get(ObjectKey.of(one))).get("status") or {}
        return {each["type"]: each for each in status.get("conditions", [])}

    async def noted(self) -> bool:
        return RECONCILED in await self.shown(self.named) and "WebReady" in await self.shown(self.plain)

    async def reconciled_after(self, key: ObjectKey) -> None:
        """Label an object, and wait for a reconcile of the owner that depends on it."""

        async def reconciled() -> bool:
            return "named" in self.passes

        self.passes.clear()
        await self.admin.patch(key, {"metadata": {"labels": {"touched": "yes"}}}, MERGE)
        await eventually(reconciled)

    async def validates(self) -> bool:
        options = replace(MERGE, dry_run=True)
        try:
            await self.admin.patch(ObjectKey.of(self.plain), {"spec": {"motto": "loud"}}, options)
        except InvalidError as error:
            return "must not be loud" in str(error)
        return False


@pytest.mark.promise(
    "unwatched-shown", runs="a role on a real API server that allows to get Secrets and not to list them"
)
async def test_on_a_real_server(
    envtest: Envtest, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    """The probe answers 200 and the webhooks of the process validate, while one owner names such an object."""
    shops = RealShops(envtest_cluster, envtest.namespace)
    await shops.begin()
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, shops.user)
    async with (
        await envtest_plane.cluster(kubeconfig) as mine,
        running(mine, shops.operator, options=shops.options) as process,
    ):
        await eventually(shops.created, ignore=(NotFoundError, TooManyRequestsError, ServerError))
        await eventually(shops.noted)
        found = await shops.shown(shops.named)
        assert {one["status"] for one in found.values()} == {"True"}
        assert f"Secret (v1) {shops.namespace}/guide: HTTP 403 Forbidden" in found[RECONCILED]["message"]
        assert set(await shops.shown(shops.plain)) == {"WebReady"}
        await eventually(shops.validates)
        assert process.endpoints is not None
        async with aiohttp.ClientSession() as session, session.get(f"{process.endpoints.url}/readyz") as answer:
            assert answer.status == 200, await answer.text()
        await shops.reconciled_after(ObjectKey.of(shops.named))
        assert (await shops.shown(shops.named))[RECONCILED] == found[RECONCILED]
        # With the right, the note goes, and a change of the Secret starts a reconcile.
        await shops.grant("lists", {PolicyRule("", "secrets", verb) for verb in ("list", "watch")})
        await eventually(lambda: shops.shown(shops.named), lambda shown: RECONCILED not in shown)
        await shops.reconciled_after(shops.guide)
