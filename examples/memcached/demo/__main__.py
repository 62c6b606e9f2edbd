"""The steps of the demo; every printed claim is checked, and the demo fails if one does not hold."""

from __future__ import annotations

import asyncio
import logging
from copy import deepcopy
from typing import Final, NamedTuple

from examples.memcached.demo.output import chapter, fact, say, show, time_of
from examples.memcached.demo.spike import add_nodes
from examples.memcached.demo.stage import AUTOSCALER, CACHE, DEPLOYMENT, SERVICE, Stage, staged
from ocf.errors import InvalidError
from ocf.objects import Manifest

FIXED: Final = 3
LOWEST: Final = 2
HIGHEST: Final = 10
MORE: Final = 4

WRITTEN: Final[Manifest] = {
    "apiVersion": CACHE.api_version,
    "kind": CACHE.kind,
    "metadata": {"name": CACHE.name, "namespace": CACHE.namespace},
    "spec": {
        "replicas": FIXED,
        "resources": {"requests": {"cpu": "100m"}},
        "autoscaling": {"enabled": True, "minReplicas": LOWEST, "maxReplicas": HIGHEST},
    },
}

TRAFFIC: Final = {0: 150, 4: 400, 12: 900, 24: 120}
"""Number of an HPA period to the cpu demand of the clients from then on, in millicores."""

PERIODS: Final = 46
IDLE_PERIODS: Final = 40


async def print_conditions(stage: Stage) -> None:
    """Print the conditions of the cache."""
    for one in await stage.conditions():
        say(f"{one['type']:<12} {one['status']:<6} {one['message']}", "cyan", mark="     ")


async def print_events(stage: Stage, *notes: str) -> None:
    """Wait for events about the cache, and print them: they are posted with a short delay."""

    async def are_there() -> bool:
        return {*notes} <= {event["note"] for event in await stage.events()}

    await stage.until(are_there)
    for event in await stage.events():
        if event["note"] in notes:
            say(f"event: {event['type']} {event['reason']}: {event['note']}", "magenta", mark="     ")


# --- The steps. ---


async def main() -> None:
    """Run the demo."""
    # Warnings of the API server would be printed between the lines of the demo.
    logging.getLogger("ocf.cluster.client.connection").addHandler(logging.NullHandler())
    async with staged() as stage:
        await create(stage)
        await reject(stage)
        await scale(stage)
        await repair(stage)
        await toggle_autoscaling(stage)
        await suspend(stage)
        await idle(stage)
        await add_nodes(stage)
        await delete(stage)


async def create(stage: Stage) -> None:
    """Create a cache, as a user does."""
    chapter("1. A user applies a cache that scales between 2 and 10 pods")
    await stage.apply(WRITTEN)
    scaling = (await stage.cluster.get(CACHE))["spec"]["autoscaling"]
    say("The webhook fills in what was left out:")
    show({name: scaling[name] for name in ("metrics", "behavior")})

    async def are_made() -> bool:
        return None not in [await stage.get(key) for key in (DEPLOYMENT, AUTOSCALER, SERVICE)]

    await stage.until(are_made)
    say("The operator makes three objects:")
    names = ", ".join(f"{key.kind} {key.name}" for key in (DEPLOYMENT, AUTOSCALER, SERVICE))
    await print_events(stage, f"Created 3 objects: {names}")
    stage.world.load = TRAFFIC[0]
    await stage.rollout()
    await print_conditions(stage)
    fact("the cache is ready", holds="Ready" in await stage.true_conditions())


async def reject(stage: Stage) -> None:
    """Apply an invalid cache, which the webhook rejects."""
    chapter("2. The webhook rejects an invalid cache, with all errors at once")
    wrong = deepcopy(WRITTEN)
    wrong["spec"]["autoscaling"]["minReplicas"] = 12
    wrong["spec"]["security"] = {"sasl": {"enabled": True}}
    try:
        await stage.apply(wrong)
    except InvalidError as error:
        for cause in error.causes:
            say(f"{cause.field}: {cause.message}", "red", mark="     ")
        fact("nothing was stored", holds=len(error.causes) > 1)
    else:
        fact("the webhook rejects it", holds=False)


async def scale(stage: Stage) -> None:
    """Let the HPA controller scale a varying load."""
    chapter("3. The load changes; the HPA algorithm scales, every 15 seconds")
    say("time   wanted    cpu  replicas  ready  true conditions", "bold")
    before: Row | None = None
    for number in range(PERIODS):
        stage.world.load = TRAFFIC.get(number, stage.world.load)
        events = await stage.sync()
        row = Row(stage.world.load, await stage.replicas(), stage.world.ready, await stage.true_conditions())
        if row != before:
            print_row(number, row, stage.world.used)
        for event in events:
            say(f"hpa: {event.message}", "magenta", mark="     ")
        before = row
    highest, last = max(stage.counts), stage.counts[-1]
    fact(f"{highest} pods at most, {last} at the end", holds=(highest, last) == (HIGHEST, LOWEST))


class Row(NamedTuple):
    """Row of the table: the state after one HPA period."""

    load: int
    replicas: int
    ready: int
    true_conditions: list[str]


def print_row(number: int, row: Row, used: int) -> None:
    """Print a row of the table."""
    shares = f"{row.load:>5}m  {used:>4}%  {row.replicas:>8}  {row.ready:>5}"
    say(f"{time_of(number)}  {shares}  {', '.join(row.true_conditions)}")


async def repair(stage: Stage) -> None:
    """Edit the autoscaler by hand, which the operator reverts."""
    chapter("4. A user sets maxReplicas of the autoscaler to 3, by hand")
    await stage.change(AUTOSCALER, maxReplicas=3)

    async def is_repaired() -> bool:
        return bool((await stage.cluster.get(AUTOSCALER))["spec"]["maxReplicas"] == HIGHEST)

    await stage.until(is_repaired)
    await print_events(stage, f"Updated {AUTOSCALER.kind} {AUTOSCALER.name}")
    fact("the operator sets it to 10 again, as in the cache", holds=await is_repaired())


async def toggle_autoscaling(stage: Stage) -> None:
    """Disable autoscaling and enable it again."""
    chapter("5. Autoscaling is disabled, and enabled again")
    await stage.change(CACHE, autoscaling={"enabled": False})

    async def is_manual() -> bool:
        return await stage.get(AUTOSCALER) is None and await stage.replicas() == FIXED

    await stage.until(is_manual)
    await stage.rollout()
    await print_conditions(stage)
    fact("disabled: no autoscaler, and 3 replicas, as in the cache", holds=await is_manual())

    counts = len(stage.counts)
    await stage.change(CACHE, autoscaling={"enabled": True})

    async def is_scaled() -> bool:
        return await stage.get(AUTOSCALER) is not None

    await stage.until(is_scaled)
    await stage.in_sync()
    fact("enabled: the autoscaler starts at 3", holds=stage.counts[counts:] == [])
    stage.world.load = 300
    await stage.rollout()
    fact(f"and scales from there: {await stage.replicas()} replicas", holds=stage.counts[counts:] == [MORE])


async def suspend(stage: Stage) -> None:
    """Suspend the cache and resume it."""
    chapter("6. Suspend: first the autoscaler is deleted, then the pods; and resume")
    live = await stage.replicas()
    await stage.change(CACHE, suspended=True)

    async def is_suspended() -> bool:
        return await stage.get(AUTOSCALER) is None and await stage.replicas() == 0

    await stage.until(is_suspended)
    await stage.rollout()
    await print_conditions(stage)
    fact("no autoscaler, no pods", holds=await is_suspended())

    counts = len(stage.counts)
    await stage.change(CACHE, suspended=False)

    async def is_resumed() -> bool:
        return await stage.get(AUTOSCALER) is not None and await stage.replicas() > 0

    await stage.until(is_resumed)
    await stage.rollout()
    fact(f"{live} replicas at once, as before", holds=stage.counts[counts] == live)
    fact("the cache is ready", holds="Ready" in await stage.true_conditions())


async def idle(stage: Stage) -> None:
    """Let time pass without a change."""
    chapter("7. Ten minutes without a change")
    # Only the last 10 000 requests are kept, of which those that wait for something are many.
    stage.embedded.requests.clear()
    for _ in range(IDLE_PERIODS):
        await stage.sync()
    written = stage.writes_of_operator()
    fact(f"writes of the operator: {written}", holds=written == 0)


async def delete(stage: Stage) -> None:
    """Delete the cache."""
    chapter("9. The user deletes the cache")
    await stage.cluster.delete(CACHE)

    async def is_gone() -> bool:
        return all([await stage.get(key) is None for key in (CACHE, DEPLOYMENT, AUTOSCALER, SERVICE)])

    await stage.until(is_gone)
    fact("its objects are deleted as well", holds=await is_gone())


if __name__ == "__main__":
    asyncio.run(main())
