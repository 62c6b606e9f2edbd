"""A kind is watched, or looked for while it is not served, as long as an owner reads or writes its objects.

Public reports of kinds that are asked for without an end, and of watches that outlive their use:
https://github.com/kubernetes/kubernetes/issues/79610, https://github.com/kubernetes/kubernetes/issues/84494,
https://github.com/gardener/gardener/issues/4802, https://github.com/kubernetes/kube-state-metrics/pull/2672,
https://github.com/kubernetes-sigs/controller-runtime/issues/935, https://github.com/crossplane/crossplane/pull/5651,
https://github.com/package-operator/package-operator/pull/16 (watches),
https://github.com/kubernetes-sigs/controller-runtime/issues/1120, https://github.com/gardener/gardener/issues/2675,
https://github.com/kubernetes/kubernetes/pull/42615 (many requests for kinds that are not served),
https://github.com/opendatahub-io/opendatahub-operator/issues/3955, https://github.com/argoproj/argo-cd/issues/627
(a kind that is defined later and not found).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster.client import ApiServerCluster
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.request_log import Request, Verb
from ocf.component import ReconcileContext
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, NotFoundError, ServerError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from tests.reverse_proxy import failure, reverse_proxy
from tests.support import eventually

from .conftest import NAMESPACE, SECOND, Env, RunTest, Shop, key_of, now, shop

if TYPE_CHECKING:
    from ocf.testing.envtest.fixtures import Envtest

HOUR: Final = 3600
# That of `CacheTiming.longest_delay`.
CEILING: Final = 45
# After this, what no owner reads any more is not watched.
RELEASED: Final = 600
MANY: Final = 20
GUIDE: Final = ObjectKey("v1", "Secret", "guide", NAMESPACE)


def thing_of(group: str) -> ObjectKey:
    return ObjectKey(f"{group}.example.org/v1", "Thing", "one", NAMESPACE)


def definition_of(group: str, *, size: str = "string") -> Manifest:
    group = f"{group}.example.org"
    schema = {"type": "object", "properties": {"size": {"type": size}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "plural": "things"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def apply_thing(owner: Shop, context: ReconcileContext) -> None:
    """Apply an object of the kind that the owner names."""
    if owner.spec.guide:
        key = thing_of(owner.spec.guide)
        metadata = {"name": key.name, "namespace": key.namespace}
        await context.cluster.apply(
            {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata}, field_manager="shops"
        )


async def read_thing(owner: Shop, context: ReconcileContext) -> None:
    """Read an object of the kind that the owner names; it is all right if there is none."""
    if owner.spec.guide:
        with suppress(NotFoundError):
            await context.cluster.get(thing_of(owner.spec.guide))


async def list_things(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        await context.cluster.list(thing_of(owner.spec.guide).api_version, "Thing")


USES: Final = [
    pytest.param(apply_thing, id="applied"),
    pytest.param(read_thing, id="read by name"),
    pytest.param(list_things, id="listed"),
]


@pytest.mark.promise("late-kinds", runs="20 kinds without a definition, applied, read or listed by an owner each")
@pytest.mark.parametrize("use", USES)
def test_many_missing_kinds_cost_one_look_per_interval(run_test: RunTest, use: Any) -> None:
    """A look is for all of them; nothing else is requested for them."""

    async def test(env: Env) -> None:
        env.before = use
        for number in range(MANY):
            await env.create(shop(f"s{number}", guide=f"g{number}"))
        async with env.operating(workers=MANY):
            await asyncio.sleep(HOUR)
            env.forget()
            await asyncio.sleep(HOUR)
            assert [one for one in env.gateway.requests if one.kind == "Thing"] == []
            times = sorted({at for at, *_ in env.gateway.looks})
            assert len(env.gateway.looks) == MANY * len(times)
            assert len(times) == HOUR / CEILING
            assert max(later - earlier for earlier, later in pairwise(times)) <= CEILING

    run_test(test)


@pytest.mark.promise("late-kinds", runs="a kind that an owner applies, reads or lists, defined an hour later")
@pytest.mark.parametrize("use", USES)
def test_a_kind_that_is_defined_later_is_used_within_the_interval(run_test: RunTest, use: Any) -> None:
    async def test(env: Env) -> None:
        env.before = use
        await env.create(shop(guide="late"))
        for number in range(5):
            await env.create(shop(f"s{number}", guide=f"never-{number}"))
        async with env.operating():
            await asyncio.sleep(HOUR)
            env.forget()
            began = now()
            await env.create(definition_of("late"))
            await asyncio.sleep(CEILING + 1)
            assert "corner" in [name for name, _ in env.passes]
            found = next(at for name, at in env.passes if name == "corner") - began
            assert found <= CEILING
            if use is apply_thing:
                assert await env.cluster.get(thing_of("late"))
            # From then on its changes are seen.
            env.forget()
            key = thing_of("late")
            labelled = {"metadata": {"labels": {"by": "hand"}}}
            if use is apply_thing:
                await env.edit(key, labelled)
            else:
                metadata = {"name": key.name, "namespace": key.namespace}
                await env.create({"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata})
            await asyncio.sleep(1)
            assert [name for name, _ in env.passes] == ["corner"]

    run_test(test)


def crd_of(group: str) -> ObjectKey:
    return ObjectKey.of(definition_of(group))


@pytest.mark.promise("late-kinds", runs="a kind that is uninstalled for up to two hours, declared or not")
@pytest.mark.parametrize("declared", [pytest.param(False, id="named by an owner"), pytest.param(True, id="in owns")])
@pytest.mark.parametrize("namespaces", [pytest.param((), id="all"), pytest.param((NAMESPACE,), id="one namespace")])
@pytest.mark.parametrize("gap", [1, 20, 300, 2 * HOUR])
def test_a_kind_that_returns_is_used_within_the_interval(
    run_test: RunTest, gap: int, namespaces: tuple[str, ...], *, declared: bool
) -> None:
    """Although its owners have failed so often that they are retried seldom, and nothing but the kind has changed.

    The other owner names the kind while it is away, when the cache still answers for it. Reports of controllers that
    do not notice such a kind: https://github.com/kubernetes-sigs/controller-runtime/issues/2983,
    https://github.com/argoproj/argo-cd/issues/1247.
    """

    async def apply_own_thing(owner: Shop, context: ReconcileContext) -> None:
        if owner.spec.guide:
            key = thing_of(owner.spec.guide)
            metadata = {"name": owner.metadata.name, "namespace": key.namespace}
            manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata}
            await context.cluster.apply(manifest, field_manager="shops")

    async def test(env: Env) -> None:
        env.before = apply_own_thing
        env.settings = {
            "owns": [(thing_of("late").api_version, "Thing")] if declared else [],
            # Longer than any wait of this test.
            "rate_limiter": ExponentialBackoff(SECOND, 10 * HOUR * SECOND, jitter=0),
        }
        await env.create(definition_of("late"))
        await env.create(shop(guide="late"))
        await env.create(shop("uninvolved"))
        async with env.operating(options={"namespaces": namespaces}):
            assert await env.cluster.get(thing_of("late")._replace(name="corner"))
            await env.cluster.delete(crd_of("late"))
            await asyncio.sleep(gap / 2)
            await env.create(shop("other", guide="late"))
            await asyncio.sleep(gap / 2)
            env.forget()
            await env.create(definition_of("late"))
            await asyncio.sleep(CEILING + 1)
            for name in ("corner", "other"):
                assert await env.cluster.get(thing_of("late")._replace(name=name))
            assert "uninvolved" not in [name for name, _ in env.passes]
            # Nothing is repeated once they are there.
            env.forget()
            await asyncio.sleep(HOUR)
            assert env.passes == []

    run_test(test)


@pytest.mark.promise("late-kinds", runs="a kind that is uninstalled and installed again between two requests")
@pytest.mark.parametrize(
    "apart", [pytest.param(False, id="while it is watched"), pytest.param(True, id="while a watch starts")]
)
def test_a_kind_that_returns_before_it_was_missed_is_used(run_test: RunTest, *, apart: bool) -> None:
    """The watch ends, or is lost before; the next one learns only that the version that it had reached is too old.

    The owner failed while the kind was away, and is retried in ten hours. A report of watches of a former definition:
    https://github.com/kubernetes/kubernetes/issues/74105.
    """

    async def test(env: Env) -> None:
        env.before = apply_thing
        env.settings = {"rate_limiter": ExponentialBackoff(10 * HOUR * SECOND, 10 * HOUR * SECOND, jitter=0)}
        await env.create(definition_of("late"))
        await env.create(shop(guide="late"))
        await env.create(shop("uninvolved"))
        async with env.operating():
            assert await env.cluster.get(thing_of("late"))
            env.forget()

            served = asyncio.Event()

            async def away(request: Request) -> None:
                if request.kind == "Thing" and request.verb is Verb.LIST:
                    await served.wait()
                if request.kind == "Thing" and request.verb is Verb.APPLY:
                    raise NotFoundError("the server could not find the requested resource", code=404)

            env.gateway.meddle = away
            if apart:
                env.gateway.cut()
            await env.edit(key_of(), {"spec": {"motto": "reconciled while the kind is away"}})
            await asyncio.sleep(1)
            assert "corner" in [name for name, _ in env.passes]
            env.forget()
            await env.cluster.delete(crd_of("late"))
            await env.create(definition_of("late"))
            env.gateway.meddle = None
            served.set()
            await asyncio.sleep(CEILING + 1)
            assert await env.cluster.get(thing_of("late"))
            assert "uninvolved" not in [name for name, _ in env.passes]
            env.forget()
            await asyncio.sleep(HOUR)
            assert env.passes == []

    run_test(test)


@pytest.mark.promise("late-kinds", runs="a kind that another one replaces during an outage of up to two hours")
@pytest.mark.parametrize("namespaces", [pytest.param((), id="all"), pytest.param((NAMESPACE,), id="one namespace")])
@pytest.mark.parametrize("gap", [10, 300, 2 * HOUR])
def test_a_kind_that_is_replaced_during_an_outage_is_used(
    run_test: RunTest, gap: int, namespaces: tuple[str, ...]
) -> None:
    """The first definition rejects the objects of an owner, which is retried in ten hours.

    The list after the outage shows no change, since there never was an object, and no watch learns that its version is
    lost.
    """

    async def apply_sized_thing(owner: Shop, context: ReconcileContext) -> None:
        if owner.spec.guide:
            key = thing_of(owner.spec.guide)
            size = "big" if owner.metadata.name == "corner" else None
            metadata = {"name": owner.metadata.name, "namespace": key.namespace}
            manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata}
            await context.cluster.apply(manifest | ({"size": size} if size else {}), field_manager="shops")

    async def away(_: Request) -> None:
        raise ServerError("connection refused")

    async def test(env: Env) -> None:
        env.before = apply_sized_thing
        env.settings = {"rate_limiter": ExponentialBackoff(10 * HOUR * SECOND, 10 * HOUR * SECOND, jitter=0)}
        await env.create(definition_of("late", size="integer"))
        await env.create(shop(guide="late"))
        await env.create(shop("healthy", guide="late"))
        async with env.operating(options={"namespaces": namespaces}):
            assert await env.cluster.get(thing_of("late")._replace(name="healthy"))
            assert not await env.is_present(thing_of("late")._replace(name="corner"))
            await asyncio.sleep(300)
            env.gateway.meddle = away
            env.gateway.cut(ServerError("connection lost"))
            await asyncio.sleep(gap / 2)
            await env.cluster.delete(crd_of("late"))
            await env.create(definition_of("late", size="string"))
            await asyncio.sleep(gap / 2)
            env.gateway.meddle = None
            env.forget()
            await asyncio.sleep(CEILING + 1)
            assert (await env.cluster.get(thing_of("late")._replace(name="corner")))["size"] == "big"
            env.forget()
            await asyncio.sleep(HOUR)
            assert env.passes == []

    run_test(test)


def test_an_outage_wakes_no_owner_that_is_in_sync(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = apply_thing
        await env.create(definition_of("late"))
        await env.create(shop(guide="late"))

        async def away(_: Request) -> None:
            raise ServerError("connection refused")

        async with env.operating():
            env.forget()
            env.gateway.meddle = away
            env.gateway.cut(ServerError("connection lost"))
            await asyncio.sleep(HOUR)
            env.gateway.meddle = None
            await asyncio.sleep(HOUR)
            assert env.passes == []

    run_test(test)


@pytest.mark.promise("late-kinds", runs="a kind in `uncached` that comes an hour later, or goes and returns")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("returns", [pytest.param(False, id="comes late"), pytest.param(True, id="returns")])
def test_a_kind_that_is_not_cached_is_used_once_it_is_served(run_test: RunTest, use: Any, *, returns: bool) -> None:
    """Its owner is retried in ten hours; the missing kind is looked for, and its objects are not watched afterwards."""

    async def test(env: Env) -> None:
        env.before = use
        env.settings = {
            "uncached": [(thing_of("late").api_version, "Thing")],
            "rate_limiter": ExponentialBackoff(10 * HOUR * SECOND, 10 * HOUR * SECOND, jitter=0),
        }
        if returns:
            await env.create(definition_of("late"))
        await env.create(shop(guide="late"))
        await env.create(shop("uninvolved"))
        async with env.operating():
            if returns:
                await env.cluster.delete(crd_of("late"))
                await env.edit(key_of(), {"spec": {"motto": "reconciled while the kind is away"}})
            await asyncio.sleep(HOUR)
            env.forget()
            await env.create(definition_of("late"))
            await asyncio.sleep(CEILING + 1)
            assert [name for name, _ in env.passes] == ["corner"]
            if use is apply_thing:
                assert await env.cluster.get(thing_of("late"))
            # Now it is as any other kind that is not cached: nothing is requested at rest.
            env.forget()
            await asyncio.sleep(HOUR)
            assert (env.passes, env.gateway.requests, env.gateway.looks) == ([], [], [])
            assert "Thing" not in env.gateway.watched

    run_test(test)


@pytest.mark.parametrize("uncached", [("late.example.org/v1", "Thing"), ("*", "*")], ids=["named", "all"])
def test_a_kind_that_another_operator_of_the_process_does_not_cache_is_used_once_it_is_served(
    run_test: RunTest, uncached: tuple[str, str]
) -> None:
    async def test(env: Env) -> None:
        env.before = read_thing
        env.settings = {"rate_limiter": ExponentialBackoff(10 * HOUR * SECOND, 10 * HOUR * SECOND, jitter=0)}
        await env.create(shop(guide="late"))
        others = env.operator(name="others", components=lambda _: [], uncached=[uncached])
        async with running(env.gateway, env.operator(), others, options=env.options()):
            await asyncio.sleep(HOUR)
            env.forget()
            await env.create(definition_of("late"))
            await asyncio.sleep(CEILING + 1)
            assert "corner" in [name for name, _ in env.passes]

    run_test(test)


def test_an_object_that_is_missing_is_no_missing_kind(run_test: RunTest) -> None:
    """Nothing is looked for where the API server serves a kind that is not cached, and only the object is not there."""

    async def test(env: Env) -> None:
        env.before = read_thing
        await env.create(definition_of("late"))
        await env.create(shop(guide="late"))
        async with env.operating(uncached=[(thing_of("late").api_version, "Thing")]):
            await asyncio.sleep(HOUR)
            env.forget()
            await asyncio.sleep(HOUR)
            assert (env.passes, env.gateway.looks) == ([], [])

    run_test(test)


def test_a_kind_that_is_not_cached_is_looked_for_only_while_an_owner_names_it(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = apply_thing
        await env.create(shop(guide="never"))
        async with env.operating(uncached=[(thing_of("never").api_version, "Thing")]):
            await asyncio.sleep(HOUR)
            env.forget()
            await asyncio.sleep(HOUR)
            assert len(env.gateway.looks) >= HOUR / CEILING - 1
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(RELEASED)
            env.forget()
            await asyncio.sleep(HOUR)
            assert env.gateway.looks == []

    run_test(test)


def test_a_reconcile_that_runs_when_its_kind_returns_is_repeated(run_test: RunTest) -> None:
    """Its first one: the request failed while the kind was away, and no earlier reconcile has requested the kind."""

    async def apply_and_linger(owner: Shop, context: ReconcileContext) -> None:
        try:
            await apply_thing(owner, context)
        finally:
            if owner.metadata.name == "slow":
                await asyncio.sleep(CEILING + 5)

    async def test(env: Env) -> None:
        env.before = apply_and_linger
        env.settings = {"rate_limiter": ExponentialBackoff(HOUR * SECOND, HOUR * SECOND, jitter=0)}
        await env.create(definition_of("late"))
        await env.create(shop(guide="late"))
        async with env.operating():
            await env.cluster.delete(crd_of("late"))
            await asyncio.sleep(300)
            await env.create(shop("slow", guide="late"))
            await asyncio.sleep(1)
            await env.create(definition_of("late"))
            env.forget()
            await asyncio.sleep(2 * CEILING)
            assert "slow" in [name for name, _ in env.passes]

    run_test(test)


@pytest.mark.promise("late-kinds", runs="a kind that is uninstalled and installed again, on a real API server")
@pytest.mark.parametrize("is_cached", [pytest.param(True, id="cached"), pytest.param(False, id="in uncached")])
async def test_a_kind_that_returns_on_a_real_server(
    envtest: Envtest, envtest_cluster: ApiServerCluster, *, is_cached: bool
) -> None:
    """The only retry of the owner's own is an hour away."""
    admin, group = envtest_cluster, f"{envtest.namespace}-returns"
    late = thing_of(group)._replace(namespace=envtest.namespace)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": envtest.namespace}}
    metadata = {"name": late.name, "namespace": late.namespace}
    failed: list[str] = []

    async def components(_: Manifest, context: ReconcileContext) -> tuple[()]:
        try:
            await context.cluster.apply(
                {"apiVersion": late.api_version, "kind": late.kind, "metadata": metadata}, field_manager="shops"
            )
        except ApiError as error:
            failed.append(error.reason)
            raise
        return ()

    async def there() -> bool:
        return bool(await admin.get(late))

    async def gone() -> bool:
        for read in (lambda: admin.get(crd_of(group)), lambda: admin.list(late.api_version, late.kind)):
            with suppress(NotFoundError):
                await read()
                return False
        return True

    async def missing() -> bool:
        informers = process.controllers[0]._cache.informers
        return bool(failed) and (not is_cached or any(one.missing for one in informers))

    operator: Operator[Manifest] = Operator(
        name="shops",
        owner=OwnerType("v1", "ConfigMap"),
        components=components,
        rate_limiter=ExponentialBackoff(HOUR * SECOND, HOUR * SECOND, jitter=0),
        resync=None,
        uncached=[] if is_cached else [(late.api_version, late.kind)],
    )
    await admin.create(definition_of(group), field_manager="admin")
    await eventually(lambda: admin.is_namespaced(late.api_version, late.kind), ignore=(NotFoundError,))
    options = ManagerOptions(listen=None, events=False, namespaces=[envtest.namespace])
    async with running(admin, operator, options=options) as process:
        await admin.create(owner, field_manager="admin")
        await eventually(there, ignore=(NotFoundError,))
        await admin.delete(crd_of(group))
        await eventually(gone, ignore=(ApiError,))
        # Without a watch nothing shows that the kind is gone, before a reconcile requests it.
        await admin.apply(owner | {"data": {"a": "b"}}, field_manager="admin")
        await eventually(missing)
        await admin.create(definition_of(group), field_manager="admin")
        await eventually(there, ignore=(NotFoundError,))


@pytest.mark.promise("late-kinds", runs="a kind that is replaced during an outage, on a real API server")
async def test_a_kind_that_is_replaced_during_an_outage_on_a_real_server(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    """The first definition rejects the object of the owner, whose only retry of its own is an hour away."""
    admin, group = envtest_cluster, f"{envtest.namespace}-replaced"
    late = thing_of(group)._replace(namespace=envtest.namespace)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": envtest.namespace}}
    metadata = {"name": late.name, "namespace": late.namespace}
    failed: list[str] = []

    async def components(_: Manifest, context: ReconcileContext) -> tuple[()]:
        thing = {"apiVersion": late.api_version, "kind": late.kind, "metadata": metadata, "size": "big"}
        try:
            await context.cluster.apply(thing, field_manager="shops")
        except ApiError as error:
            failed.append(error.reason)
            raise
        return ()

    async def there() -> bool:
        return bool(await admin.get(late))

    async def gone() -> bool:
        with suppress(NotFoundError):
            await admin.get(crd_of(group))
            return False
        return True

    async def followed() -> bool:
        found = [one for one in process.controllers[0]._cache.informers if one.kind == late.kind]
        return bool(failed) and all(one.synced for one in found)

    async def noticed() -> bool:
        return all(one.problem for one in process.controllers[0]._cache.informers)

    async def away(_: object) -> Any:
        return failure(503, "ServiceUnavailable")

    operator: Operator[Manifest] = Operator(
        name="shops",
        owner=OwnerType("v1", "ConfigMap"),
        components=components,
        rate_limiter=ExponentialBackoff(HOUR * SECOND, HOUR * SECOND, jitter=0),
        resync=None,
    )
    await admin.create(definition_of(group, size="integer"), field_manager="admin")
    await eventually(lambda: admin.is_namespaced(late.api_version, late.kind), ignore=(NotFoundError,))
    options = ManagerOptions(listen=None, events=False, namespaces=[envtest.namespace])
    async with (
        reverse_proxy(load_config(envtest.kubeconfig)) as proxy,
        ApiServerCluster(proxy.config) as mine,
        running(mine, operator, options=options) as process,
    ):
        await admin.create(owner, field_manager="admin")
        await eventually(followed)
        proxy.meddle = away
        proxy.cut()
        await eventually(noticed)
        await admin.delete(crd_of(group))
        await eventually(gone)
        await admin.create(definition_of(group), field_manager="admin")
        await eventually(
            lambda: admin.list(late.api_version, late.kind),
            lambda _: True,
            ignore=(NotFoundError, TooManyRequestsError),
        )
        proxy.meddle = None
        await eventually(there, ignore=(NotFoundError,))


def test_a_kind_that_is_just_named_is_looked_for_soon(run_test: RunTest) -> None:
    """Although other kinds have been missing for long, and are looked for seldom."""

    async def test(env: Env) -> None:
        env.before = apply_thing
        await env.create(shop("old", guide="never"))
        async with env.operating():
            await asyncio.sleep(HOUR)
            await env.create(shop(guide="soon"))
            await asyncio.sleep(2)
            await env.create(definition_of("soon"))
            await asyncio.sleep(5)
            assert await env.cluster.get(thing_of("soon"))

    run_test(test)


@pytest.mark.parametrize("use", USES)
def test_nothing_is_looked_for_once_no_owner_names_it(run_test: RunTest, use: Any) -> None:
    async def test(env: Env) -> None:
        env.before = use
        await env.create(shop(guide="gone"))
        await env.create(shop("other", guide="dropped"))
        async with env.operating() as process:
            await asyncio.sleep(HOUR)
            await env.cluster.delete(key_of())
            await env.edit(key_of("other"), {"spec": {"guide": ""}})
            await asyncio.sleep(RELEASED)
            assert "Thing" not in {kind for _, kind in process.controllers[0].following}
            env.forget()
            await asyncio.sleep(HOUR)
            assert (env.gateway.looks, env.gateway.requests) == ([], [])

    run_test(test)


async def read_guide(owner: Shop, context: ReconcileContext) -> None:
    if owner.spec.guide:
        await context.cluster.get(ObjectKey("v1", "Secret", owner.spec.guide, NAMESPACE))


def secret() -> Manifest:
    metadata = {"name": GUIDE.name, "namespace": GUIDE.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def test_a_kind_that_no_owner_reads_any_more_is_not_watched(run_test: RunTest) -> None:
    """Its objects leave the memory; once it is read again, its changes trigger again."""

    async def test(env: Env) -> None:
        env.before = read_guide
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating() as process:
            await asyncio.sleep(HOUR)
            assert "Secret" in env.gateway.watched
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(RELEASED)
            assert env.gateway.watched == {"Shop", "ConfigMap", "Service"}
            assert "Secret" not in {one.kind for one in process.controllers[0]._cache.informers}
            for _ in range(2):
                await env.edit(key_of(), {"spec": {"guide": "guide"}})
                await asyncio.sleep(1)
                assert "Secret" in env.gateway.watched
                env.forget()
                await env.edit(GUIDE, {"metadata": {"labels": {"at": str(int(now()))}}})
                await asyncio.sleep(1)
                assert [name for name, _ in env.passes] == ["corner"]
                await env.edit(key_of(), {"spec": {"guide": ""}})
                await asyncio.sleep(RELEASED)
                assert "Secret" not in env.gateway.watched

    run_test(test)


def test_a_kind_that_is_read_now_and_then_is_listed_once(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        env.before = read_guide
        await env.create(secret())
        await env.create(shop(guide="guide"))
        async with env.operating():
            for number in range(40):
                await env.edit(key_of(), {"spec": {"guide": "guide" if number % 2 else ""}})
                await asyncio.sleep(100)
            lists = [one for one in env.gateway.requests if (one.verb, one.kind) == ("list", "Secret")]
            # That of the object by its name.
            assert len(lists) == 1

    run_test(test)


def test_what_is_declared_or_used_at_rest_stays_watched(run_test: RunTest) -> None:
    """A reconcile at rest reads its objects from memory, which counts; the kind of `owns` has no object at all."""

    async def test(env: Env) -> None:
        await env.create(shop())
        async with env.operating(owns=[("apps/v1", "Deployment")]):
            await asyncio.sleep(10 * HOUR)
            assert env.gateway.watched == {"Shop", "ConfigMap", "Service", "Deployment"}
        env.forget()
        await env.cluster.delete(key_of())
        async with env.operating(owns=[("apps/v1", "Deployment")]):
            await asyncio.sleep(10 * HOUR)
            assert env.gateway.watched == {"Shop", "Deployment"}

    run_test(test)


def test_what_another_operator_of_the_process_reads_stays_watched(run_test: RunTest) -> None:
    """Both read the Secret at first; they share its cache."""

    async def test(env: Env) -> None:
        env.before = read_guide
        await env.create(secret())
        await env.create(shop(guide="guide"))
        read: list[str] = []

        async def components(_: Manifest, context: ReconcileContext) -> tuple[()]:
            read.append((await context.cluster.get(GUIDE))["metadata"].get("labels", {}).get("at", ""))
            return ()

        second: Operator[Manifest] = Operator(
            name="readers", owner=OwnerType("example.com/v1", "Shop"), components=components, resync=None
        )
        async with running(env.gateway, env.operator(), second, options=env.options()):
            await asyncio.sleep(HOUR)
            await env.edit(key_of(), {"spec": {"guide": ""}})
            await asyncio.sleep(HOUR)
            assert "Secret" in env.gateway.watched
            await env.edit(GUIDE, {"metadata": {"labels": {"at": "last"}}})
            await asyncio.sleep(1)
            assert read[-1] == "last"
            await env.cluster.delete(key_of())
            await asyncio.sleep(RELEASED)
            assert env.gateway.watched == {"Shop"}

    run_test(test)
