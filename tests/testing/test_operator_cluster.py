"""An operator with the rights of its role: what is missing fails, and names the rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from examples.memcached import monitor
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from examples.memcached.samples import EVERYTHING
from ocf import component
from ocf.cluster import Cluster, ServiceAccount
from ocf.cluster.cache import CachedCluster
from ocf.component import Component
from ocf.errors import AlreadyExistsError, ConfigError, ForbiddenError, ReconcileError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey, load_document
from ocf.objects.documents import dump_document, load_documents
from ocf.primitives import configmap, deployment, role, rolebinding
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, running
from ocf.runtime.rbac import PolicyRule, roles
from ocf.testing import (
    OwnerEnv,
    RecordingCluster,
    VirtualClock,
    crash_at_each_write,
    operator_cluster,
    run_in_virtual_time,
)
from ocf_server import EmbeddedCluster

pytest_plugins = ["pytester"]

ACCOUNT: Final = ServiceAccount("shops", "operators")
USER: Final = "system:serviceaccount:operators:shops"
BASE: Final = Path(__file__).parents[2] / "examples" / "memcached" / "deploy" / "base"
GRANTED: Final = [*load_documents((BASE / "roles.yaml").read_text(encoding="utf-8"))]


class ShopSpec(CamelModel):
    open: bool = True


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    """A shop, whose pods may read its settings."""

    spec: ShopSpec = ShopSpec()


def components(shop: Shop) -> Component:
    pod = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    reads = {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "corner"}
    binding = {"roleRef": reference, "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "town"}]}
    return (
        component.Builder("web", owner=shop.key, condition_type="WebReady")
        .with_resource(configmap.Builder({"data": {"a": "b"}}), gated_by=BooleanGate(shop.spec.open))
        .with_resource(role.Builder(reads))
        .with_resource(rolebinding.Builder(binding))
        .with_resource(deployment.Builder({"spec": {"template": pod}}))
        .build()
    )


OPERATOR: Final = Operator(name="shops", owner=OwnerType.of(Shop), components=components)
OPTIONS: Final = ManagerOptions(listen=None, lease=Lease("shops", "operators"))
SHOP: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "town"},
}
RULES: Final = OPERATOR.policy_rules([components(Shop.model_validate(SHOP))])


def granted(rules: frozenset[PolicyRule] = RULES) -> list[Manifest]:
    return roles(rules | OPTIONS.policy_rules(OPERATOR), name="shops", account=ACCOUNT)


async def env_under(given: list[Manifest], operator: Operator[Any] = OPERATOR, owner: Manifest = SHOP) -> OwnerEnv[Any]:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now, authorization=True)
    restricted = await operator_cluster(cluster, given)
    return await OwnerEnv.create(operator, owner, cluster, clock, reconciles_with=restricted)


async def life(env: OwnerEnv[Any]) -> None:
    await env.settle()
    await env.patch({"spec": {"open": False}})
    await env.settle()
    await env.delete()
    await env.settle()


async def test_the_generated_role_suffices_for_a_whole_life() -> None:
    """Found late by operators whose tests run as an administrator: https://github.com/projectcalico/calico/pull/13926.

    Others asked for it: https://github.com/Kong/kubernetes-ingress-controller/issues/2617.
    """
    await life(await env_under(granted()))


NEEDED: Final = sorted(
    one
    for one in RULES
    # One reconcile at a time neither lists and watches nor posts events, and the test finds the owner for it.
    if one.verb not in ("list", "watch")
    and one.group != "events.k8s.io"
    and (one.resource, one.verb) != ("shops", "get")
)


@pytest.mark.parametrize("missing", NEEDED, ids=lambda one: f"{one.verb} {one.resource} {one.name}".strip())
async def test_a_missing_right_fails_the_test_and_is_named(missing: PolicyRule) -> None:
    with pytest.raises(Exception, match=r"[Ff]orbidden|is attempting to grant") as caught:
        await life(await env_under(granted(RULES - {missing})))

    texts = [str(error) for error in chain(caught.value)]
    asked = f'User "{USER}" cannot {missing.verb} resource "{missing.resource}" in API group "{missing.group}"'
    # A role may grant only what the operator may do.
    grants = f'Resources:["{missing.resource}"], Verbs:["{missing.verb}"]'
    assert any(asked in text or grants in text for text in texts), texts


def of_another(shop: Shop) -> Component:
    name = "open" if shop.spec.open else "closed"
    settings = configmap.Builder({"metadata": {"name": name}})
    return component.Builder("web", owner=shop.key).acting_as(DEPLOYER).with_resource(settings).with_prune().build()


DEPLOYER: Final = ServiceAccount("deployer", "town")
ACTING: Final = Operator(name="shops", owner=OwnerType.of(Shop), components=of_another)
WRITES: Final = frozenset({"create", "patch", "delete"})
READS: Final = frozenset({"get", "list"})


async def life_as_another(verbs: frozenset[str], *, cached: bool) -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now, namespaces=["town"], authorization=True)
    rules = ACTING.policy_rules([of_another(Shop.model_validate(SHOP))])
    restricted = await operator_cluster(cluster, roles(rules, name="shops", account=ACCOUNT))
    given = [PolicyRule("", "configmaps", verb) for verb in verbs]
    for manifest in roles(given, name="deployer", account=DEPLOYER, namespaces=["town"]):
        await cluster.create(manifest, field_manager="test")
    async with AsyncExitStack() as stack:
        reads: Cluster = await stack.enter_async_context(CachedCluster(restricted)) if cached else restricted
        await life(await OwnerEnv.create(ACTING, SHOP, cluster, clock, reconciles_with=reads))


@pytest.mark.parametrize(
    ("verbs", "cached"),
    [pytest.param(WRITES, True, id="with a cache"), pytest.param(WRITES | READS, False, id="without")],
)
async def test_another_user_needs_to_read_only_what_is_not_cached(verbs: frozenset[str], *, cached: bool) -> None:
    await life_as_another(verbs, cached=cached)
    for missing in sorted(verbs):
        with pytest.raises(Exception, match="forbidden") as caught:
            await life_as_another(verbs - {missing}, cached=cached)
        asked = f'User "{DEPLOYER.username}" cannot {missing} resource "configmaps"'
        assert any(asked in str(error) for error in chain(caught.value))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                yield from chain(each)
        error = error.__cause__


def test_a_running_operator_has_the_rights_of_its_process() -> None:
    async def run() -> list[Manifest]:
        cluster = EmbeddedCluster(authorization=True, namespaces=["town"])
        restricted = await operator_cluster(cluster, granted())
        await cluster.apply(Shop.definition(), field_manager="test")
        async with running(restricted, OPERATOR, options=OPTIONS):
            await cluster.create(SHOP, field_manager="user")
            await asyncio.sleep(60)
        assert [request for request in cluster.requests if request.code == 403] == []
        return [*(await cluster.list("apps/v1", "Deployment")).items]

    assert len(run_in_virtual_time(run())) == 1


def test_a_running_operator_without_its_lease_is_refused() -> None:
    async def run() -> list[str]:
        cluster = EmbeddedCluster(authorization=True, namespaces=["town"])
        restricted = await operator_cluster(cluster, roles(RULES, name="shops", account=ACCOUNT))
        await cluster.apply(Shop.definition(), field_manager="test")
        async with running(restricted, OPERATOR, options=OPTIONS):
            await asyncio.sleep(60)
        return [request.kind for request in cluster.requests if request.code == 403]

    assert set(run_in_virtual_time(run())) == {"Lease"}


async def begun() -> EmbeddedCluster:
    cluster = EmbeddedCluster(authorization=True, namespaces=["town"])
    for manifest in (Shop.definition(), SHOP):
        await cluster.create(manifest, field_manager="user")
    return cluster


async def test_the_crash_matrix_runs_an_operator_under_its_role() -> None:
    # Without controllers, a Deployment is found as being created by one run and as being updated by another one.
    found = await crash_at_each_write(begun, OPERATOR, roles=granted(), masks=["status.conditions"])
    found.assert_same()
    assert {write.kind for write in found.writes} == {"ConfigMap", "Deployment", "Role", "RoleBinding", "Shop"}


async def test_a_component_of_the_crash_matrix_acts_with_the_rights_of_its_account() -> None:
    async def with_deployer() -> EmbeddedCluster:
        cluster = await begun()
        for manifest in roles(
            [PolicyRule("", "configmaps", verb) for verb in WRITES | READS],
            name="deployer",
            account=DEPLOYER,
            namespaces=["town"],
        ):
            await cluster.create(manifest, field_manager="test")
        return cluster

    rules = ACTING.policy_rules([of_another(Shop.model_validate(SHOP))])
    needed = roles(rules, name="shops", account=ACCOUNT)
    (await crash_at_each_write(with_deployer, ACTING, roles=needed)).assert_same()
    without = roles({one for one in rules if one.verb != "impersonate"}, name="shops", account=ACCOUNT)
    with pytest.raises(Exception, match="impersonate"):
        await crash_at_each_write(with_deployer, ACTING, roles=without)


async def test_a_right_that_the_undisturbed_run_lacks_is_named() -> None:
    lacking = RULES - {PolicyRule("apps", "deployments", "patch")}
    with pytest.raises(ReconcileError, match='cannot patch resource "deployments"'):
        await crash_at_each_write(begun, OPERATOR, roles=granted(lacking))


@pytest.mark.parametrize(("verbs", "different"), [(["create"], True), (["create", "get"], False)])
async def test_a_right_that_only_the_process_after_a_crash_needs_is_missed(
    verbs: list[str], *, different: bool
) -> None:
    log: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "log", "namespace": "town"}}
    made: set[Cluster] = set()

    async def reconcile(cluster: Cluster) -> None:
        if cluster in made:
            return
        try:
            await cluster.create(log, field_manager="shops")
        except AlreadyExistsError:
            await cluster.get(ObjectKey.of(log))
        made.add(cluster)

    needed = roles([PolicyRule("", "configmaps", verb) for verb in verbs], name="shops", account=ACCOUNT)
    found = await crash_at_each_write(begun, reconcile, roles=needed)
    assert bool(found.different) is different
    assert different is any('cannot get resource "configmaps"' in str(row.problems) for row in found.different)


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (EmbeddedCluster, r"EmbeddedCluster\(authorization=True\)"),
        (lambda: RecordingCluster(EmbeddedCluster(authorization=True)), "returned a RecordingCluster"),
    ],
)
async def test_a_crash_matrix_that_cannot_evaluate_roles_is_an_error(
    cluster: Callable[[], Cluster], problem: str
) -> None:
    async def make() -> Cluster:
        return cluster()

    with pytest.raises(ConfigError, match=problem):
        await crash_at_each_write(make, OPERATOR, roles=granted())


async def test_a_cluster_that_authorizes_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"EmbeddedCluster\(authorization=True\)"):
        await operator_cluster(EmbeddedCluster(), granted())


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ([], "none"),
        ([*granted(), *roles(RULES, name="b", account=ServiceAccount("b", "a"))], "a/b, operators/shops"),
    ],
)
async def test_roles_are_those_of_one_account(given: list[Manifest], seen: str) -> None:
    with pytest.raises(ConfigError, match=f"got {seen}$"):
        await operator_cluster(EmbeddedCluster(authorization=True), given)


OFF: Final = {
    "autoscaling": {"enabled": False},
    "monitoring": {"serviceMonitor": None},
    "highAvailability": {"podDisruptionBudget": {"enabled": False}},
    "security": {"networkPolicy": {"enabled": False}},
}


async def life_of_a_cache(given: list[Manifest]) -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now, namespaces=["memcached"], authorization=True)
    for definition in (Memcached.definition(), monitor.DEFINITION):
        await cluster.apply(definition, field_manager="test")
    cache = load_document(EVERYTHING)
    namespace = cache["metadata"].setdefault("namespace", "default")
    for name in ("my-cache-sasl", "my-cache-tls"):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}
        await cluster.create({**secret, "stringData": {"password-file": "a:b"}}, field_manager="test")
    restricted = await operator_cluster(cluster, given)
    env = await OwnerEnv.create(memcached_operator, cache, cluster, clock, reconciles_with=restricted)
    for change in ({}, {"image": "memcached:1.6.30"}, OFF, {"suspended": True}):
        await env.patch({"spec": change})
        await env.settle()
    await env.delete()
    await env.settle()


async def test_the_role_that_memcached_ships_suffices() -> None:
    await life_of_a_cache(GRANTED)


@pytest.mark.parametrize(
    "resource",
    ["deployments", "horizontalpodautoscalers", "networkpolicies", "poddisruptionbudgets", "servicemonitors"],
)
async def test_without_a_rule_that_memcached_ships_its_test_fails(resource: str) -> None:
    given = [
        {**one, "rules": [rule for rule in one["rules"] if resource not in rule["resources"]]}
        if "rules" in one
        else one
        for one in GRANTED
    ]
    with pytest.raises(Exception, match="orbidden") as caught:
        await life_of_a_cache(given)
    assert any(isinstance(error, ForbiddenError) and resource in error.message for error in chain(caught.value))


def test_the_fixtures_run_the_operator_under_the_roles_of_a_project(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        from tests.testing.test_operator_cluster import OPERATOR, RULES, SHOP, granted

        pytest_plugins = ["ocf.testing.plugin"]

        @pytest.fixture
        def operator():
            return OPERATOR

        @pytest.fixture
        def owner():
            return SHOP

        @pytest.fixture
        def operator_roles(request):
            rules = getattr(request, "param", None)
            return granted() if rules is None else granted(frozenset(r for r in RULES if r.resource != rules))
        """
    )
    pytester.makepyfile(
        """
        import pytest
        from ocf.testing.owner_env import OwnerEnv

        async def test_suffices(owner_env):
            await owner_env.settle()
            await owner_env.delete()

        @pytest.mark.parametrize("operator_roles", ["deployments"], indirect=True)
        async def test_fails(owner_env):
            await owner_env.settle()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-o", "asyncio_mode=auto")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f'*User "{USER}" cannot * resource "deployments" in API group "apps"*'])


PROJECT: Final = """
import pytest
from tests.testing.test_operator_cluster import OPERATOR, SHOP

pytest_plugins = ["ocf.testing.plugin"]

@pytest.fixture
def operator():
    return OPERATOR

@pytest.fixture
def owner():
    return SHOP
"""


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param(granted(), "", id="all rights"),
        pytest.param(granted(frozenset()), f'User "{USER}" cannot', id="no rights"),
        pytest.param(
            None, "ocf_operator_roles: *roles.yaml cannot be read: No such file or directory; name", id="none"
        ),
    ],
)
def test_a_setting_names_the_file_of_the_roles(
    pytester: pytest.Pytester, written: list[Manifest] | None, text: str
) -> None:
    pytester.makeconftest(PROJECT)
    pytester.makepyfile("async def test_it(owner_env):\n    await owner_env.settle()\n")
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nasyncio_mode = "auto"\nocf_operator_roles = ["deploy/roles.yaml"]\n'
    )
    if written is not None:
        pytester.mkdir("deploy").joinpath("roles.yaml").write_text("---\n".join(map(dump_document, written)))

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == (1 if text else 0)
    if text:
        result.stdout.fnmatch_lines([f"*{text}*"])
