"""Lifespans and background tasks: what a process opens, runs beside its reconciles, and closes.

What others met: https://github.com/kubernetes-sigs/controller-runtime/issues/2719 (a standby that stops starts what
only the leader runs), https://github.com/kubernetes-sigs/controller-runtime/issues/677 (the cache can be read only by
the leader), https://github.com/operator-framework/java-operator-sdk/issues/3099 (threads stay after a failed start),
https://github.com/Kludex/starlette/issues/939 (what was opened before a failure stays open),
https://github.com/ogema/ogema/issues/54 and https://github.com/chuckremes/zmqmachine/issues/5 (a timer that has raised
an error never fires again).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from ocf.cluster import ListOptions
from ocf.component import ContextKey, ReconcileContext
from ocf.errors import BuildError, ConfigError, OcfError
from ocf.objects import ObjectKey
from ocf.runtime.operator import (
    BackgroundTask,
    Lease,
    Listen,
    ManagerOptions,
    Operator,
    OwnerType,
    Process,
    running,
)
from ocf.testing import OwnerEnv, VirtualClock
from ocf_server import EmbeddedCluster

from .conftest import DEFINITION, NAMESPACE, Env, RunTest, Shop, key_of, now, shop

SESSION = ContextKey[str]("session")
SECOND = timedelta(seconds=1)
LEASE = Lease("shops", NAMESPACE, "one")


class Log:
    """What happens, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def lifespan(
        self, name: str = "lifespan", *, value: str = "open", opening: float = 0, closing: float = 0
    ) -> Callable[[Process], Any]:
        @asynccontextmanager
        async def lifespan(process: Process) -> AsyncIterator[None]:
            await asyncio.sleep(opening)
            process.values[SESSION] = value
            self(f"{name} opened")
            try:
                yield
            finally:
                await asyncio.sleep(closing)
                self(f"{name} closed")

        return lifespan

    def task(self, name: str = "task", **more: Any) -> BackgroundTask:
        async def run(process: Process) -> None:
            self(f"{name} runs with {process.values.get(SESSION, 'nothing')}")
            try:
                await asyncio.sleep(1e9)
            finally:
                self(f"{name} ended")

        return BackgroundTask(name=name, run=run, **more)


async def lease_events(env: Env) -> list[tuple[str, str]]:
    events = (await env.cluster.list("events.k8s.io/v1", "Event")).items
    return [(one["reason"], one["note"]) for one in events if one["regarding"]["kind"] == "Lease"]


@pytest.mark.promise(
    "beside-reconciles", runs="a lifespan of each replica and one of the leader, with and without a lease"
)
@pytest.mark.parametrize("field", ["lifespan", "leader_lifespan"])
@pytest.mark.parametrize("lease", [None, LEASE], ids=["no lease", "a lease"])
def test_it_is_open_before_the_first_reconcile_and_closed_after_the_last(
    run_test: RunTest, field: str, lease: Lease | None
) -> None:
    async def test(env: Env) -> None:
        log = Log()

        async def before(_: Shop, context: ReconcileContext) -> None:
            log(f"reconcile with {context.values[SESSION]}")
            await asyncio.sleep(8)
            log("reconciled")

        env.before = before
        await env.create(shop())
        given: dict[str, Any] = {field: log.lifespan(opening=1), "tasks": [log.task()]}
        async with env.operating(options={"lease": lease}, **given):
            pass
        assert log.lines == [
            "lifespan opened",
            "task runs with open",
            "reconcile with open",
            "reconciled",
            "task ended",
            "lifespan closed",
        ]

    run_test(test)


def test_a_value_of_a_reconcile_hides_that_of_the_lifespan_for_this_reconcile_only(run_test: RunTest) -> None:
    async def test(env: Env) -> None:
        seen: list[str] = []

        async def before(_: Shop, context: ReconcileContext) -> None:
            seen.append(context.values[SESSION])
            context.values[SESSION] = "own"
            seen.append(context.values[SESSION])

        env.before = before
        await env.create(shop())
        async with env.operating(lifespan=Log().lifespan()):
            await env.edit(key_of(), {"spec": {"motto": "closed"}})
            await asyncio.sleep(5)
        assert seen == ["open", "own"] * 2

    run_test(test)


class TestReplicas:
    """Two processes of an operator, of which one leads."""

    def test_the_standby_runs_what_each_replica_runs_and_nothing_of_the_leader(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            log = Log()
            await env.create(shop())

            async def serve(process: Process) -> None:
                found = await process.cluster.list("example.com/v1", "Shop", ListOptions(namespace=NAMESPACE))
                log(f"serves {len(found.items)}")
                await asyncio.sleep(1e9)

            standby: dict[str, Any] = {
                "lifespan": log.lifespan("each"),
                "leader_lifespan": log.lifespan("leader"),
                "tasks": [log.task("leading"), BackgroundTask(name="api", run=serve, on_leader=False)],
            }
            async with (
                env.operating(options={"lease": LEASE}),
                env.operating(options={"lease": Lease("shops", NAMESPACE, "two")}, **standby),
            ):
                await asyncio.sleep(30)
            assert log.lines == ["each opened", "serves 1", "each closed"]

        run_test(test)

    def test_a_new_leader_opens_its_own(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            log = Log()
            given: dict[str, Any] = {"lifespan": log.lifespan("each"), "leader_lifespan": log.lifespan("leader")}
            async with AsyncExitStack() as stack:
                first = await stack.enter_async_context(env.operating(options={"lease": LEASE}))
                await stack.enter_async_context(
                    env.operating(options={"lease": Lease("shops", NAMESPACE, "two")}, **given)
                )
                first.stop()
                await asyncio.sleep(60)
                assert log.lines == ["each opened", "leader opened"]
            assert log.lines == ["each opened", "leader opened", "leader closed", "each closed"]

        run_test(test)

    def test_reads_of_a_task_come_from_a_cache(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            counts: list[int] = []

            async def read(process: Process) -> None:
                counts.append(len((await process.cluster.list("v1", "ConfigMap")).items))

            tasks = [
                BackgroundTask(name=name, run=read, every=SECOND, on_leader=name == "leader")
                for name in ("leader", "each")
            ]
            async with env.operating(tasks=tasks):
                env.forget()
                await asyncio.sleep(20)
                assert len(counts) > 40
                assert env.gateway.requests == []

        run_test(test)


class TestFailures:
    @pytest.mark.promise("beside-reconciles", runs="five ways in which a lifespan does not open")
    @pytest.mark.parametrize("field", ["lifespan", "leader_lifespan"])
    @pytest.mark.parametrize("cause", ["error", "secret", "cancelled", "hangs", "no context manager"])
    def test_one_that_does_not_open_ends_the_process_with_an_event(
        self, run_test: RunTest, field: str, cause: str
    ) -> None:
        notes = {
            "error": f"`{field}` of operator shops could not be opened: no API key",
            "secret": f"`{field}` of operator shops could not be opened: unexpected LookupError",
            "cancelled": f"`{field}` of operator shops could not be opened: unexpected CancelledError",
            "hangs": f"`{field}` of operator shops could not be opened: `{field}` of operator shops has not opened "
            "within 0:02:00",
            "no context manager": f"`{field}` of operator shops could not be opened: `{field}` of operator shops must "
            "return an asynchronous context manager, got coroutine: use contextlib.asynccontextmanager",
        }

        async def test(env: Env) -> None:
            log = Log()

            @asynccontextmanager
            async def failing(_: Process) -> AsyncIterator[None]:
                if cause == "hangs":
                    await asyncio.sleep(1e9)
                if cause == "cancelled":
                    raise asyncio.CancelledError
                raise ConfigError("no API key") if cause == "error" else LookupError("hunter2")
                yield

            coroutines = []

            def wrong(_: Process) -> Any:
                coroutines.append(asyncio.sleep(0))
                return coroutines[0]

            await env.create(shop())
            given: dict[str, Any] = {field: wrong if cause == "no context manager" else failing}
            if field == "leader_lifespan":
                given["lifespan"] = log.lifespan("each")
            with pytest.raises((OcfError, LookupError)):
                async with env.operating(options={"lease": LEASE}, **given):
                    await asyncio.sleep(1000)
            for each in coroutines:
                each.close()
            assert await lease_events(env) == [("OperatorEnded", f"shops: {notes[cause]}")]
            assert env.passes == []
            assert log.lines in ([], ["each opened", "each closed"])

        run_test(test)

    @pytest.mark.parametrize("field", ["lifespan", "leader_lifespan"])
    def test_a_stop_while_it_opens_ends_at_once_without_an_error(self, run_test: RunTest, field: str) -> None:
        async def test(env: Env) -> None:
            log = Log()
            given: dict[str, Any] = {field: log.lifespan(opening=100)}
            async with env.operating(**given):
                began = now()
            assert now() - began < 1
            assert log.lines == []

        run_test(test)

    def test_a_close_that_hangs_is_cancelled_and_logged(
        self, run_test: RunTest, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def test(env: Env) -> None:
            began = 0.0
            async with env.operating(options={"lease": LEASE}, leader_lifespan=Log().lifespan(closing=1e6)):
                began = now()
            assert now() - began < 25
            lease = await env.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "shops", NAMESPACE))
            assert not lease["spec"].get("holderIdentity")

        run_test(test)
        assert "`leader_lifespan` of operator shops has not closed within 0:00:20" in caplog.text

    @pytest.mark.parametrize("field", ["lifespan", "leader_lifespan"])
    def test_one_that_raises_a_cancellation_while_it_closes_has_failed(self, run_test: RunTest, field: str) -> None:
        async def test(env: Env) -> None:
            @asynccontextmanager
            async def failing(_: Process) -> AsyncIterator[None]:
                yield
                raise asyncio.CancelledError

            given: dict[str, Any] = {field: failing}
            with pytest.raises(OcfError, match="unexpected CancelledError"):
                async with env.operating(**given):
                    pass

        run_test(test)

    def test_what_is_open_is_closed_when_another_one_fails(self, run_test: RunTest) -> None:
        async def test(env: Env) -> None:
            log = Log()

            @asynccontextmanager
            async def failing(_: Process) -> AsyncIterator[None]:
                raise ConfigError("no API key")
                yield

            first, second = env.operator(lifespan=log.lifespan()), env.operator(name="others", lifespan=failing)
            with pytest.raises(ConfigError, match="no API key"):
                async with running(env.gateway, first, second, options=env.options()):
                    await asyncio.sleep(1000)
            assert log.lines == ["lifespan opened", "lifespan closed"]

        run_test(test)

    @pytest.mark.parametrize("on_leader", [True, False])
    @pytest.mark.parametrize("error", [LookupError, asyncio.CancelledError], ids=["error", "cancelled"])
    def test_a_task_that_fails_ends_the_process(
        self, run_test: RunTest, on_leader: bool, error: type[BaseException]
    ) -> None:
        async def test(env: Env) -> None:
            log = Log()

            async def serve(_: Process) -> None:
                await asyncio.sleep(30)
                raise error("hunter2")

            tasks = [BackgroundTask(name="api", run=serve, on_leader=on_leader), log.task()]
            with pytest.raises((LookupError, OcfError)) as raised:
                async with env.operating(options={"lease": LEASE}, tasks=tasks, lifespan=log.lifespan()):
                    await asyncio.sleep(1000)
            assert now() < 40
            assert raised.value.__notes__ == ['the task "api" of operator shops failed']
            assert await lease_events(env) == [
                ("OperatorEnded", f'shops: the task "api" of operator shops failed: unexpected {error.__name__}')
            ]
            assert log.lines[-2:] == ["task ended", "lifespan closed"]

        run_test(test)

    def test_a_task_may_end(self, run_test: RunTest, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)

        async def test(env: Env) -> None:
            async def once(_: Process) -> None: ...

            await env.create(shop())
            async with env.operating(tasks=[BackgroundTask(name="import", run=once)]):
                await env.edit(key_of(), {"spec": {"motto": "closed"}})
                await asyncio.sleep(5)
            assert len(env.passes) == 2

        run_test(test)
        assert 'the task "import" of operator shops has ended' in caplog.text


class TestTimers:
    @pytest.mark.parametrize(
        ("seconds", "times"),
        [
            pytest.param(0.0, [0, 10, 20, 30], id="a call that takes no time"),
            pytest.param(4.0, [0, 10, 20, 30], id="the period counts from the start of a call"),
            pytest.param(25.0, [0, 25, 50, 75], id="calls do not overlap, and those missed are not made up for"),
        ],
    )
    def test_the_period(self, run_test: RunTest, seconds: float, times: list[float]) -> None:
        async def test(env: Env) -> None:
            calls: list[float] = []

            async def call(_: Process) -> None:
                calls.append(now())
                await asyncio.sleep(seconds)

            async with env.operating(tasks=[BackgroundTask(name="t", run=call, every=10 * SECOND)]):
                await asyncio.sleep(100)
            assert [round(at - calls[0]) for at in calls[:4]] == times

        run_test(test)

    @pytest.mark.promise("beside-reconciles", runs="calls of a timer that raise an error, and calls that hang")
    @pytest.mark.parametrize("kind", ["error", "hangs", "cancelled"])
    def test_it_goes_on_after_failures_with_one_event_for_those_in_a_row(
        self, run_test: RunTest, caplog: pytest.LogCaptureFixture, kind: str
    ) -> None:
        caplog.set_level(logging.INFO)

        async def test(env: Env) -> None:
            calls = 0

            async def call(_: Process) -> None:
                nonlocal calls
                calls += 1
                if calls in {2, 3, 5}:
                    if kind == "hangs":
                        await asyncio.sleep(1e9)
                    raise asyncio.CancelledError if kind == "cancelled" else LookupError("hunter2")

            await env.create(shop())
            task = BackgroundTask(name="poll", run=call, every=10 * SECOND)
            async with env.operating(
                options={"lease": LEASE}, tasks=[task], reconcile_timeout=5 * SECOND, lifespan=Log().lifespan()
            ):
                await asyncio.sleep(60)
            assert calls >= 6
            problem = {
                "hangs": "the call took longer than 0:00:05",
                "error": "unexpected LookupError",
                "cancelled": "unexpected CancelledError",
            }[kind]
            note = f'shops: the task "poll" of operator shops failed: {problem}'
            assert await lease_events(env) == [("BackgroundTaskFailed", note)]

        run_test(test)
        assert caplog.text.count("and is called again after its period") == 3
        assert caplog.text.count('the task "poll" of operator shops succeeds again') == 2

    def test_it_goes_on_while_components_fail(self, run_test: RunTest) -> None:
        """A failed reconcile has a delay of its own."""

        async def test(env: Env) -> None:
            calls: list[float] = []

            async def call(_: Process) -> None:
                calls.append(now())

            async def before(*_: object) -> None:
                raise LookupError("no price list")

            env.before = before
            await env.create(shop())
            async with env.operating(tasks=[BackgroundTask(name="poll", run=call, every=30 * SECOND)]):
                await asyncio.sleep(600)
            assert len(env.passes) < 20
            assert {round(after - at) for at, after in pairwise(calls)} == {30}

        run_test(test)


async def _nothing(_: Process) -> None: ...


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(lambda: BackgroundTask(name="", run=_nothing), "a background task needs a name", id="no name"),
        pytest.param(
            lambda: BackgroundTask(name="t", run=_nothing, every=timedelta(0)),
            "must be a positive timedelta",
            id="zero",
        ),
        pytest.param(
            lambda: BackgroundTask(name="t", run=print),  # type: ignore[arg-type]
            "`run` must be a coroutine function",
            id="a plain function",
        ),
        pytest.param(
            lambda: Env(None, None, None).operator(tasks=[BackgroundTask(name="t", run=_nothing)] * 2),  # type: ignore[arg-type]
            'two tasks are named "t"',
            id="two of one name",
        ),
    ],
)
def test_what_cannot_run_is_rejected_where_it_is_declared(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        make()


async def test_the_process_is_unready_until_the_lifespan_is_open() -> None:
    opened, entered = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: Process) -> AsyncIterator[None]:
        entered.set()
        await opened.wait()
        yield

    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(DEFINITION, field_manager="test")
    operator: Operator[Shop] = Operator(
        name="shops", owner=OwnerType.of(Shop), components=lambda _: (), lifespan=lifespan
    )
    options = ManagerOptions(listen=Listen(0, "127.0.0.1"))
    async with running(cluster, operator, options=options) as manager, aiohttp.ClientSession() as session:
        await entered.wait()
        assert manager.endpoints is not None

        async def answer(page: str) -> tuple[int, str]:
            assert manager.endpoints is not None
            async with session.get(f"{manager.endpoints.url}/{page}") as found:
                return found.status, await found.text()

        status, text = await answer("readyz")
        assert (status, "lifespan" in text) == (500, True)
        assert (await answer("healthz"))[0] == 200
        opened.set()
        await manager.started()
        assert (await answer("readyz/lifespan"))[0] == 200


async def test_a_test_of_one_owner_sets_what_the_lifespan_would() -> None:
    seen: list[str] = []

    def components(_: Shop, context: ReconcileContext) -> tuple[()]:
        seen.append(context.values[SESSION])
        return ()

    clock = VirtualClock()
    operator = Operator(name="shops", owner=OwnerType.of(Shop), components=components, lifespan=Log().lifespan())
    env = await OwnerEnv.create(operator, shop(), EmbeddedCluster(now=clock.now), clock)
    with pytest.raises(ConfigError, match="nor by the lifespan of its operator"):
        await env.reconcile()
    env.values[SESSION] = "fake"
    await env.reconcile()
    assert seen == ["fake"]
