"""Timeouts: a handler that hangs is an error that names its resource, and does not delay others."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from ocf import component
from ocf.component import reconcile_all, reconciling
from ocf.component.author_code import call_with_timeout
from ocf.component.reconcile.prerequisites import PrerequisiteStatus
from ocf.concepts import AliveStatus, Data, GraceStatus, GuardStatus, StatusReport
from ocf.errors import BuildError, HandlerError, ReconcileError
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ocf.component import ReconcileContext
    from ocf.objects import Manifest
    from tests.component.conftest import Env, StaticKind

LIMIT = timedelta(minutes=10)  # longer than any handler takes that does answer; it passes only where one is stuck
WEB = "apps/v1/Deployment/shop/web"


@pytest_asyncio.fixture(loop_scope="session")
async def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that lets the limit pass, on the clock of the event loop, as soon as all tasks wait."""
    loop, passed = asyncio.get_running_loop(), 0.0
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + passed)

    def advance() -> None:
        nonlocal passed
        passed += LIMIT.total_seconds()

    def pass_by() -> None:
        # In the loop, and not before it waits.
        loop.call_soon_threadsafe(advance)

    return pass_by


@pytest.fixture
def stuck(later: Callable[[], None]) -> Iterator[Callable[..., Any]]:
    """A function that returns only after the test; meanwhile the limit passes."""
    over = Event()

    def wait(*_args: Any) -> None:
        later()
        over.wait()

    yield wait
    over.set()


def of(resource: Any) -> component.Builder:
    return component.Builder("web", condition_type="WebReady").with_resource(resource).with_handler_timeout(LIMIT)


def hanging(web_base: Manifest, where: str, stuck: Callable[..., Any]) -> component.Builder:
    builder = deployment.Builder(web_base)
    match where:
        case "evaluate guard for":
            builder.with_guard(stuck)
        case "mutate":
            builder.with_mutation(deployment.Mutation("slow", stuck))
        case "determine converging status of":
            builder.with_custom_converge_status(stuck)
        case "extract data from":
            builder.extract_into(Data[str]("host"), stuck)
        case "determine suspension status of":
            return of(builder.with_custom_suspend_status(stuck).build()).suspend()
    return of(builder.build())


@pytest.mark.parametrize(
    "step",
    [
        "evaluate guard for",
        "mutate",
        "determine converging status of",
        "extract data from",
        "determine suspension status of",
    ],
)
@pytest.mark.promise("hangs")
async def test_a_step_that_hangs_is_named(env: Env, web_base: Manifest, stuck: Callable[..., Any], step: str) -> None:
    with pytest.raises(ReconcileError) as caught:
        await env.reconcile(hanging(web_base, step, stuck).build())
    assert caught.value.problem == f"failed to {step} resource {WEB}: no answer within 600 s"
    condition = await env.condition()
    assert (condition["reason"], condition["message"]) == ("Error", caught.value.problem)


async def test_a_grace_handler_that_hangs_is_named(env: Env, web_base: Manifest, stuck: Callable[..., Any]) -> None:
    web = deployment.Builder(web_base).with_custom_grace_status(stuck).build()
    subject = of(web).with_grace_period(timedelta(minutes=1)).build()
    await env.reconcile(subject)
    env.clock.advance(timedelta(minutes=2))
    with pytest.raises(ReconcileError, match=rf"failed to evaluate grace status for resource {WEB}: no answer"):
        await env.reconcile(subject)


class Slow:
    """A prerequisite that never returns."""

    def __init__(self, later: Callable[[], None]) -> None:
        self._later = later

    async def check(self, context: ReconcileContext) -> StatusReport[PrerequisiteStatus]:
        self._later()
        await asyncio.Event().wait()
        return StatusReport(PrerequisiteStatus.MET, str(context.now))


async def test_a_prerequisite_that_hangs_is_named(
    env: Env, web: deployment.Resource, later: Callable[[], None]
) -> None:
    with pytest.raises(ReconcileError, match="prerequisite failed: no answer within 600 s"):
        await env.reconcile(of(web).with_prerequisite(Slow(later)).build())
    assert (await env.condition())["reason"] == "PrerequisiteNotMet"


@pytest.mark.promise("hangs")
async def test_other_components_are_not_delayed(
    env: Env, web_base: Manifest, config_map: Callable[..., StaticKind], stuck: Callable[..., Any]
) -> None:
    # The clock also limits requests, so it moves when the other component has no request under way.
    applied = Event()
    settings = config_map(a="1").extract_into(Data[None]("applied"), lambda _live: applied.set())
    other = component.Builder("settings", condition_type="SettingsReady").with_resource(settings.build()).build()

    def wait(*args: Any) -> None:
        applied.wait()
        stuck(*args)

    slow = hanging(web_base, "determine converging status of", wait).build()
    with pytest.raises(ExceptionGroup):
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await reconcile_all(context, slow, other)
    assert (await env.condition("SettingsReady"))["status"] == "True"
    assert (await env.condition("WebReady"))["reason"] == "Error"


async def test_a_timeout_does_not_change_the_result(
    env: Env, web_base: Manifest, config_map: Callable[..., StaticKind]
) -> None:
    """Data flows between handlers that run in different threads."""
    cell = Data[str]("a")
    seen: list[str] = []

    def note(_mutator: deployment.Mutator) -> None:
        seen.append(cell.require())

    source = config_map(a="1").extract_into(cell, lambda live: str(live.data["a"])).build()
    web = (
        deployment.Builder(web_base)
        .with_data_guard(cell)
        .with_mutation(deployment.Mutation("note", note))
        .with_guard(lambda _base: StatusReport(GuardStatus.UNBLOCKED))
        .with_custom_converge_status(lambda *_: StatusReport(AliveStatus.HEALTHY))
        .with_custom_grace_status(lambda _live: StatusReport(GraceStatus.HEALTHY))
        .build()
    )
    generous = timedelta(minutes=10)
    builder = component.Builder("web", condition_type="WebReady").with_resource(source).with_resource(web)
    result = await env.reconcile(builder.with_handler_timeout(generous).build())
    assert (result.condition.reason, seen) == ("Healthy", ["1"])


async def test_errors_of_a_thread_are_raised_in_the_caller() -> None:
    def broken() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        await call_with_timeout(timedelta(minutes=10), broken)


async def test_an_error_of_the_handler_is_not_a_timeout() -> None:
    def broken() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await call_with_timeout(timedelta(minutes=10), broken)


async def test_a_late_result_is_ignored(stuck: Callable[..., Any]) -> None:
    with pytest.raises(HandlerError, match="no answer within 0 s"):
        await call_with_timeout(timedelta(0), stuck)


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(BuildError, match="handler timeout must be positive"):
        component.Builder("web", condition_type="WebReady").with_handler_timeout(timedelta(0)).build()
