"""Kinds that may be missing: left out and named while they are not served, applied once they are.

Reports of operators that fail, or do not start, without an optional kind:
https://github.com/open-telemetry/opentelemetry-operator/issues/2810,
https://github.com/opensearch-project/opensearch-k8s-operator/pull/1493,
https://github.com/open-telemetry/opentelemetry-operator/pull/2964 (another kind of the same group is served),
https://github.com/che-incubator/kubernetes-image-puller-operator/pull/74,
https://github.com/kubernetes-sigs/security-profiles-operator/pull/458.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_asyncio

from ocf import component
from ocf.cluster.cache import CachedCluster
from ocf.component import Component, diff, reconciling
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.errors import BuildError, ForbiddenError, NoKindMatchError, NotFoundError, ReconcileError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import configmap, deployment, scaledobject, unstructured
from ocf.runtime.rbac import policy_rules
from ocf.testing import InterceptingCluster
from tests.component.reconcile.test_scalers import KEDA
from tests.support import definition_of, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ocf.cluster import Request
    from tests.component.conftest import Env

GROUP: Final = "optional.example.org"
ANY: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MONITORS: Final = definition_of("Monitor", GROUP, ANY)
OTHERS: Final = definition_of("Probe", GROUP, ANY)
MONITOR: Final = ObjectKey(f"{GROUP}/v1", "Monitor", "web", "shop")
SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
LEFT_OUT: Final = f"Left out, because the API server does not serve the kind: {MONITOR}"


def manifest(key: ObjectKey, **content: Any) -> Manifest:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, **content}


def monitor(port: str = "metrics") -> unstructured.StaticBuilder:
    return unstructured.StaticBuilder(manifest(MONITOR, spec={"port": port}))


def settings() -> configmap.Builder:
    return configmap.Builder(manifest(SETTINGS, data={"a": "1"}))


def subject(port: str = "metrics", **options: Any) -> Component:
    """Return a component of an optional object, and of one after it."""
    options = {"only_if_served": True, **options}
    builder = component.Builder("web", condition_type="WebReady").with_resource(monitor(port), **options)
    return builder.with_resource(settings()).build()


async def install(env: Env, definition: Manifest = MONITORS) -> None:
    await env.cluster.create(definition, field_manager="admin")
    kind = definition["spec"]["names"]["kind"]
    not_yet = (NotFoundError, TooManyRequestsError)
    await eventually(lambda: env.cluster.list(f"{GROUP}/v1", kind), lambda _: True, ignore=not_yet)


async def uninstall(env: Env, definition: Manifest = MONITORS) -> None:
    with suppress(NotFoundError):
        await env.cluster.delete(ObjectKey.of(definition))
    spec = definition["spec"]

    async def is_gone() -> bool:
        try:
            await env.cluster.list(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])
        except NoKindMatchError:
            return True
        return False

    await eventually(is_gone)


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def without_definitions(env: Env) -> AsyncIterator[None]:
    yield
    for definition in (MONITORS, OTHERS):
        await uninstall(env, definition)


async def seen(env: Env, built: Component) -> tuple[str, list[str], str]:
    result = await env.reconcile(built)
    return str(result.condition.reason), [str(one.action) for one in result.outcomes], result.condition.message


async def test_an_object_of_a_missing_kind_is_left_out_and_named(env: Env) -> None:
    result = await env.reconcile(subject())
    assert [(one.resource, str(one.action), one.detail) for one in result.outcomes] == [
        (str(MONITOR), "Absent", f"the API server does not serve {GROUP}/v1 Monitor"),
        (str(SETTINGS), "Created", ""),
    ]
    condition = await env.condition()
    assert (condition["status"], condition["reason"]) == ("True", "Healthy")
    assert condition["message"] == f"Component is healthy. {LEFT_OUT}"
    assert (await env.reconcile(subject())).writes == 0


async def test_it_is_created_once_its_kind_is_served(env: Env) -> None:
    await env.reconcile(subject())
    await install(env)
    assert await seen(env, subject()) == ("Healthy", ["Created", "Unchanged"], "Component is healthy.")
    assert (await env.owners(MONITOR)) == ["demo"]


async def test_another_kind_of_the_same_group_does_not_count(env: Env) -> None:
    await install(env, OTHERS)
    assert (await seen(env, subject()))[1] == ["Absent", "Created"]


async def test_without_the_option_a_missing_kind_is_an_error(env: Env) -> None:
    with pytest.raises(ReconcileError, match=r"Monitor") as raised:
        await env.reconcile(subject(only_if_served=False))
    assert isinstance(raised.value.__cause__, NoKindMatchError)
    assert (await env.condition())["reason"] == "Error"


async def test_a_definition_that_goes_and_comes_back_is_followed_without_a_delay(env: Env) -> None:
    """What another client would have deleted as often would be created later and later."""
    process = env.process()
    for _ in range(5):
        await install(env)
        (result,) = await process.reconcile(subject())
        assert not isinstance(result, Exception)
        assert str(result.outcomes[0].action) == "Created"
        assert result.condition.message == "Component is healthy."
        await uninstall(env)
        (result,) = await process.reconcile(subject())
        assert not isinstance(result, Exception)
        assert result.condition.message == f"Component is healthy. {LEFT_OUT}"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"delete_when": True}, id="deleted"),
        pytest.param({"orphan_when": True}, id="orphaned"),
        pytest.param({"read_only": True}, id="read"),
        pytest.param({"read_only": True, "block_on_absence": True}, id="read, and an absent object blocks"),
        pytest.param({"independent": True}, id="independent"),
        pytest.param({"held_for_cleanup": True}, id="held"),
        pytest.param({"adopt": "never"}, id="never adopted"),
    ],
)
async def test_other_options_do_not_need_the_kind(env: Env, options: Any) -> None:
    reason, _, _ = await seen(env, subject(**options))
    assert reason == "Healthy"
    assert await env.exists(SETTINGS)


async def test_an_absent_object_of_a_served_kind_still_blocks(env: Env) -> None:
    await install(env)
    assert (await seen(env, subject(read_only=True, block_on_absence=True)))[0] == "Blocked"


async def test_its_guard_and_its_data_block_nothing(env: Env) -> None:
    cell = Data[str]("never")
    closed = StatusReport(GuardStatus.BLOCKED, "not yet")
    for optional in (monitor().with_guard(lambda _: closed), monitor().with_data_guard(cell)):
        builder = component.Builder("web", condition_type="WebReady")
        first = configmap.Builder(manifest(SETTINGS)).extract_into(cell, lambda _: "")
        builder.with_resource(first)
        built = builder.with_resource(optional, only_if_served=True).build()
        assert (await seen(env, built))[0] == "Healthy"


async def test_pruning_and_a_closed_gate_need_no_kind(env: Env) -> None:
    builder = component.Builder("web", condition_type="WebReady").with_prune()
    built = builder.with_resource(monitor(), only_if_served=True).with_resource(settings()).build()
    assert (await seen(env, built))[0] == "Healthy"


class TestAnAutoscalerOfAMissingKind:
    """Without KEDA, no other client sets the replica count."""

    @pytest_asyncio.fixture(loop_scope="session", autouse=True)
    async def without_keda(self, env: Env) -> None:
        """Remove the definition that other tests have installed on the same real server."""
        await uninstall(env, KEDA)

    def scaled(self, web_base: Manifest, *, suspended: bool = False) -> Component:
        base = copy_json(web_base)
        base["spec"]["replicas"] = 4
        target = {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "cpu", "metadata": {"value": "60"}}]}
        key = ObjectKey("keda.sh/v1alpha1", "ScaledObject", "web", "shop")
        builder = component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(base))
        builder.with_resource(scaledobject.Builder(manifest(key, spec=target)), only_if_served=True)
        return builder.suspend(suspended).build()

    async def test_leaves_the_declared_count_in_place(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(self.scaled(web_base))
        assert await env.replicas() == 4

    async def test_does_not_hold_up_a_suspension(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(self.scaled(web_base))
        for _ in range(2):
            result = await env.reconcile(self.scaled(web_base, suspended=True))
            await env.run(0)
        result = await env.reconcile(self.scaled(web_base, suspended=True))
        assert result.condition.reason == "Suspended"
        assert result.condition.message.startswith("All resources are suspended. Left out, ")
        await env.reconcile(self.scaled(web_base))
        assert await env.replicas() == 4

    async def test_is_no_ignored_field_in_a_diff(self, env: Env, web_base: Manifest) -> None:
        await env.reconcile(self.scaled(web_base))
        (found,) = await diff([self.scaled(web_base)], await env.owner_manifest(), env.cluster, clock=env.clock)
        assert (found.objects, found.ignored) == ((), ())


async def test_the_diff_shows_no_object_and_no_problem(env: Env) -> None:
    await env.reconcile(subject())
    (found,) = await diff([subject()], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert (found.is_empty, found.problem) == (True, "")
    await install(env)
    (found,) = await diff([subject()], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert [(str(one.verb), one.resource) for one in found.objects] == [("create", str(MONITOR))]


class Answering(InterceptingCluster):
    """A cluster that answers some requests with an error."""

    def __init__(self, env: Env, error: Exception, verb: str) -> None:
        super().__init__(env.cluster)
        self._error, self._verb = error, verb

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind == "Monitor" and request.verb == self._verb:
            raise self._error
        return await send()


async def test_another_error_about_the_kind_is_reported(env: Env) -> None:
    refusing = Answering(env, ForbiddenError("monitors is forbidden", code=403), "get")
    with pytest.raises(ReconcileError, match="monitors is forbidden"):
        async with reconciling(await env.owner_manifest(), refusing, clock=env.clock) as context:
            await subject().reconcile(context)
    assert (await env.condition())["reason"] == "Error"


ENDING: Final = 'monitors "web" is forbidden: create not allowed while custom resource definition is terminating'


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NoKindMatchError("no kind", code=404), id="gone"),
        pytest.param(ForbiddenError(ENDING, code=403), id="being deleted, after its objects"),
    ],
)
async def test_a_kind_that_goes_between_the_read_and_the_apply_is_left_out(env: Env, error: Exception) -> None:
    await install(env)
    gone = Answering(env, error, "apply")
    async with reconciling(await env.owner_manifest(), gone, clock=env.clock) as context:
        result = await subject().reconcile(context)
    assert (str(result.condition.reason), result.condition.message) == ("Healthy", f"Component is healthy. {LEFT_OUT}")


async def test_with_a_cache_a_missing_kind_costs_no_request_and_is_found(env: Env) -> None:
    async with CachedCluster(env.cluster) as cached:
        for _ in range(2):
            async with reconciling(await cached.get(env.owner), cached, clock=env.clock) as context:
                await subject().reconcile(context)
        env.cluster.requests.clear()
        messages = set()
        for _ in range(5):
            async with reconciling(await cached.get(env.owner), cached, clock=env.clock) as context:
                messages.add((await subject().reconcile(context)).condition.message)
        assert messages == {f"Component is healthy. {LEFT_OUT}"}
        assert [str(one) for one in env.cluster.requests if one.kind != "Monitor" or one.verb != "list"] == []


def test_the_role_is_the_same_with_and_without_the_option() -> None:
    def rules(**options: Any) -> Any:
        owner = ObjectKey("v1", "ConfigMap", "owner", "shop")
        return policy_rules([subject(**options)], owner=owner, definitions=[MONITORS], cached=True)

    assert rules() == rules(only_if_served=False)
    assert {one.verb for one in rules() if one.resource == "monitors"} >= {"get", "create", "patch", "list", "watch"}


def test_a_preview_shows_the_object() -> None:
    assert [one["kind"] for one in subject().render()] == ["Monitor", "ConfigMap"]


def test_the_option_is_a_switch() -> None:
    with pytest.raises(BuildError, match="only_if_served must be True or False, got 'yes'"):
        subject(only_if_served="yes")
