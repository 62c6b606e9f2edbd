"""Properties of the cache: never older than our own writes, and finally equal to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.cache import Selection
from ocf.cluster.protocol import ObjectList, Preconditions
from ocf.errors import ApiError, ExpiredError, NotFoundError, ServerError
from ocf.objects import Manifest
from ocf.testing import run_in_virtual_time

if TYPE_CHECKING:
    from tests.cluster.cache.conftest import Env

NAMES = ("a", "b")
FINALIZER = "example.com/hold"

State = str | None
"""Version of an object, or None while it is not there."""


class Run:
    """One schedule: the steps, the history of the cluster, and the part of it that a reader may still see."""

    def __init__(self, env: Env, held: str = "all") -> None:
        self.env = env
        self.held = held
        self.outside: set[tuple[str, State]] = set()
        """States that the selection does not select."""
        self.history: list[dict[str, State]] = []
        self.oldest_visible: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.pending: list[asyncio.Task[None]] = []
        self.lossy = False
        self._count = 0

    async def remember(self) -> int:
        """Record the present state of the cluster; return its position in the history."""
        env = self.env
        page = await env.server.list(env.api_version, env.kind)
        present = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in page.items}
        self.history.append({name: present.get(name) for name in NAMES})
        self.outside |= {(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for one in self.unselected(page)}
        return len(self.history) - 1

    def unselected(self, page: ObjectList) -> list[Manifest]:
        if self.held != "selected":
            return []
        return [one for one in page.items if SELECTED.selects(one) is not True]

    def manifest(self, name: str) -> Manifest:
        """Return what a client writes: with the label of the selection, or without."""
        self._count += 1
        return self.env.web(name, note=str(self._count), **({"ours": "yes"} if self._count % 2 else {}))

    async def patiently(self, step: Coroutine[Any, Any, None]) -> None:
        """Run a step; if it waits for a list that is held, let the lists go on."""
        running = asyncio.create_task(step)
        await self.env.settle()
        if not running.done():
            self.env.connection.release_lists()
        await running

    # Our writes, through the cache

    async def ours(self, name: str, write: Callable[[], Awaitable[Any]]) -> None:
        try:
            await write()
        except ApiError:
            return
        if not self.pending:
            self.oldest_visible[name] = len(self.history)

    async def apply(self, name: str) -> None:
        manifest = self.manifest(name)
        await self.ours(name, lambda: self.env.cached.apply(manifest, field_manager="us", force=True))

    async def repeat(self, name: str) -> None:
        """Apply without a change."""
        fixed = self.env.web(name, note="fixed")
        await self.ours(name, lambda: self.env.cached.apply(fixed, field_manager="us", force=True))

    async def create(self, name: str) -> None:
        manifest = self.manifest(name)
        await self.ours(name, lambda: self.env.cached.create(manifest, field_manager="us"))

    async def update(self, name: str) -> None:
        """Read, change and write; after a conflict, a second read must lead to success."""
        for _ in range(2):
            try:
                live = await self.env.cached.get(self.env.key(name))
            except NotFoundError:
                return
            self._count += 1
            live["metadata"]["annotations"] = {"note": str(self._count)}
            try:
                await self.env.cached.update(live, field_manager="us")
            except ApiError:
                continue
            self.oldest_visible[name] = len(self.history)
            return
        raise AssertionError("a read after a conflict was stale again")

    async def scaled(self, name: str) -> None:
        self._count += 1
        await self.env.cached.patch(
            self.env.key(name),
            {"spec": {"replicas": self._count}},
            PatchOptions(patch_type=PatchType.MERGE, field_manager="us", subresource=Subresource.SCALE),
        )

    async def scale(self, name: str) -> None:
        await self.ours(name, lambda: self.scaled(name))

    async def delete(self, name: str) -> None:
        await self.ours(name, lambda: self.env.cached.delete(self.env.key(name)))

    async def delete_as_read(self, name: str) -> None:
        try:
            live = await self.env.cached.get(self.env.key(name))
        except NotFoundError:
            return
        bound = Preconditions(uid=live["metadata"]["uid"])
        await self.ours(name, lambda: self.env.cached.delete(self.env.key(name), DeleteOptions(preconditions=bound)))

    async def unfinalize(self, name: str) -> None:
        await self.ours(
            name,
            lambda: self.env.cached.patch(
                self.env.key(name),
                {"metadata": {"finalizers": None}},
                PatchOptions(patch_type=PatchType.MERGE, field_manager="us"),
            ),
        )

    async def slowly(self, name: str, write: Callable[[], Awaitable[Any]]) -> None:
        """Write, and receive the answer much later."""
        self.env.connection.hold_answers = True
        now = len(self.history)

        async def written() -> None:
            try:
                await write()
            except ApiError:
                return
            self.oldest_visible[name] = max(self.oldest_visible[name], now)

        self.pending.append(asyncio.create_task(written()))
        await self.env.settle()

    async def apply_slowly(self, name: str) -> None:
        manifest = self.manifest(name)
        await self.slowly(name, lambda: self.env.cached.apply(manifest, field_manager="us", force=True))

    async def scale_slowly(self, name: str) -> None:
        await self.slowly(name, lambda: self.scaled(name))

    async def delete_slowly(self, name: str) -> None:
        await self.slowly(name, lambda: self.env.cached.delete(self.env.key(name)))

    async def answers(self, _: str) -> None:
        self.env.connection.release_answers()
        await asyncio.gather(*self.pending)
        self.pending = []

    # Writes of another client

    async def their_apply(self, name: str) -> None:
        await self.env.server.apply(self.manifest(name), field_manager="them", force=True)

    async def their_delete(self, name: str) -> None:
        await _trying(self.env.server.delete(self.env.key(name)))

    async def their_finalizer(self, name: str) -> None:
        patch = {"metadata": {"finalizers": [FINALIZER]}}
        await _trying(
            self.env.server.patch(
                self.env.key(name), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="them")
            )
        )

    # Faults

    async def deliver(self, _: str) -> None:
        self.env.connection.deliver()
        await self.env.settle()

    async def catch_up(self, _: str) -> None:
        self.env.connection.deliver(10)
        await self.env.settle()

    async def drop(self, _: str) -> None:
        self.env.connection.drop, self.lossy = 1, True

    async def duplicate(self, _: str) -> None:
        self.env.connection.repeat = 1

    async def compact(self, _: str) -> None:
        self.env.server.compact()

    async def hang_up(self, _: str) -> None:
        self.env.connection.disconnect()
        await self.env.settle()

    async def break_off(self, _: str) -> None:
        self.env.connection.disconnect(ServerError("connection reset"))
        await self.env.settle()

    async def expire(self, _: str) -> None:
        self.env.connection.disconnect(ExpiredError("too old resource version", code=410))
        await self.env.settle()

    async def crash(self, _: str) -> None:
        self.env.connection.disconnect(RuntimeError("not foreseen"))
        await self.env.settle()

    async def slow_lists(self, _: str) -> None:
        self.env.connection.hold_lists = True

    async def lists(self, _: str) -> None:
        self.env.connection.release_lists()
        await self.env.settle()

    async def wait(self, _: str) -> None:
        await self.env.time.advance(80)

    # Reads

    async def read(self, name: str) -> None:
        try:
            live = await self.env.cached.get(self.env.key(name))
        except NotFoundError:
            self.check(name, None)
            return
        assert "spec" in live
        self.check(name, live["metadata"]["resourceVersion"])

    async def read_metadata(self, _: str) -> None:
        """List what needs no content, so that it may be held without."""
        options = ListOptions(metadata_only=True)
        page = await self.env.cached.list(self.env.api_version, self.env.kind, options)
        self.check_list(page)

    async def read_all(self, _: str) -> None:
        page = await self.env.cached.list(self.env.api_version, self.env.kind)
        assert all("spec" in item for item in page.items)
        self.check_list(page)

    def check_list(self, page: ObjectList) -> None:
        present = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in page.items}
        for name in NAMES:
            allowed = self.history[self.oldest_visible[name] :]
            # A list may leave out what is not selected, and a read by name may not.
            if name in present or not any((name, state[name]) in self.outside for state in allowed):
                self.check(name, present.get(name))

    def check(self, name: str, found: State) -> None:
        allowed = [state[name] for state in self.history[self.oldest_visible[name] :]]
        assert found in allowed, f"{name}: saw {found}, but since our own write it was {allowed}"

    async def end(self) -> None:
        """Let all work finish, and compare the cache with the cluster."""
        env = self.env
        await self.answers("")
        await self.lists("")
        env.connection.drop = env.connection.repeat = 0
        env.connection.deliver_all()
        # Long enough for every delay, and for the periodic list if events were lost.
        await env.time.advance(2 * env.timing.relist_every if self.lossy else 60)
        for _ in range(10):
            await env.settle()
        expected = await env.server.list(env.api_version, env.kind)
        found = await env.cached.list(env.api_version, env.kind)
        for name in NAMES:
            await self.read(name)
        hidden = [one for one in self.unselected(expected) if one not in found.items]
        assert [*found.items] == [one for one in expected.items if one not in hidden]
        await env.settle()
        assert env.cached.healthy
        assert env.connection.watches <= (len(NAMES) + 1 if self.held == "selected" else 1)


async def _trying(write: Awaitable[Any]) -> None:
    try:
        await write
    except ApiError:
        return


ACTIONS = (
    Run.apply,
    Run.repeat,
    Run.create,
    Run.update,
    Run.scale,
    Run.delete,
    Run.delete_as_read,
    Run.unfinalize,
    Run.apply_slowly,
    Run.scale_slowly,
    Run.delete_slowly,
    Run.answers,
    Run.their_apply,
    Run.their_delete,
    Run.their_finalizer,
    Run.deliver,
    Run.catch_up,
    Run.drop,
    Run.duplicate,
    Run.compact,
    Run.hang_up,
    Run.break_off,
    Run.expire,
    Run.crash,
    Run.slow_lists,
    Run.lists,
    Run.wait,
    Run.read,
    Run.read_all,
    Run.read_metadata,
)
# These steps would wait for a pending answer.
_WRITES = {
    Run.apply, Run.repeat, Run.create, Run.update, Run.scale, Run.delete, Run.delete_as_read, Run.unfinalize,
}  # fmt: skip

SCHEDULES = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(NAMES)), max_size=30)


SELECTED = Selection(label_selector="ours=yes")
HELD: dict[str, Selection | None] = {
    "all": None,
    "metadata": Selection(metadata_only=True),
    "by name": Selection(by_name=True),
    "selected": SELECTED,
}


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(schedule=SCHEDULES, held=st.sampled_from([*HELD]))
@pytest.mark.promise("cache-laws")
def test_a_read_is_never_older_than_our_own_write_and_the_cache_ends_equal_to_the_cluster(
    env_type: type[Env], schedule: list[tuple[Callable[[Run, str], Coroutine[Any, Any, None]], str]], held: str
) -> None:
    """Whatever other clients write, and however the connection delays, loses and repeats events or breaks.

    Also where only the metadata of an object is held until it is read, where only objects are watched that are read by
    name, and where the objects of a selection are, which each write enters or leaves.
    """

    async def run_test() -> None:
        kind = (env_type.api_version, env_type.kind)
        selection = HELD[held]
        env = env_type(selections={} if selection is None else {kind: selection})
        async with env.cached:
            run = Run(env, held)
            await run.remember()
            await env.sync()
            env.connection.held = True
            for action, name in schedule:
                if run.pending and action in _WRITES:
                    await run.answers("")
                await run.patiently(action(run, name))
                await run.remember()
                await run.patiently(run.read(name))
            await run.end()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_in_virtual_time(run_test())
