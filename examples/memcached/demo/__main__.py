"""The story: `python -m examples.memcached.demo`. It checks what it claims, and fails if a fact does not hold."""

from __future__ import annotations

import asyncio
import textwrap
from copy import deepcopy
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from examples.memcached.demo.played import ROUND
from examples.memcached.demo.stage import AUTOSCALER, CACHE, DEPLOYMENT, SERVICE, Stage, staged
from ocf.errors import InvalidError
from ocf.objects import Manifest, dump_document

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
"""How much cpu the clients want, in thousandths, from which round on."""

ROUNDS: Final = 46
QUIET: Final = 40

# --- What is printed: plain text when piped, colours in a terminal. ---

console: Final = Console(highlight=False, soft_wrap=True)


def chapter(text: str) -> None:
    """Print a headline."""
    console.print(Text(f"\n{text}", "bold"))


def say(text: str, style: str = "", *, mark: str = "   ") -> None:
    """Print a paragraph."""
    filled = textwrap.fill(text, 78, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False)
    console.print(Text(filled, style))


def show(manifest: Manifest) -> None:
    """Print a manifest."""
    console.print(Text(textwrap.indent(dump_document(manifest).rstrip(), " " * 5)))


def fact(claim: str, *, holds: bool) -> None:
    """Print a fact, and end the demo with an error if it is none."""
    if not holds:
        raise SystemExit(f"this should hold, and does not: {claim}")
    say(claim, "green", mark="   ok  ")


async def tell_conditions(stage: Stage) -> None:
    """Print what the cache reports."""
    for one in await stage.conditions():
        say(f"{one['type']:<12} {one['status']:<6} {one['message']}", "cyan", mark="     ")


async def tell_events(stage: Stage, *notes: str) -> None:
    """Wait for events on the cache, and print them: they are posted a little later than they happen."""

    async def are_there() -> bool:
        return {*notes} <= {event["note"] for event in await stage.events()}

    await stage.until(are_there)
    for event in await stage.events():
        if event["note"] in notes:
            say(f"event: {event['type']} {event['reason']}: {event['note']}", "magenta", mark="     ")


# --- The story. ---


async def main() -> None:
    """Tell it."""
    async with staged() as stage:
        await birth(stage)
        await refusal(stage)
        await work(stage)
        await repair(stage)
        await hand_over(stage)
        await sleep(stage)
        await rest(stage)
        await end(stage)


async def birth(stage: Stage) -> None:
    """A user applies a cache."""
    chapter("1. A user applies a cache that scales between 2 and 10 pods")
    await stage.apply(WRITTEN)
    scaling = (await stage.cluster.get(CACHE))["spec"]["autoscaling"]
    say("The webhook fills in what was left out:")
    show({name: scaling[name] for name in ("metrics", "behavior")})

    async def are_made() -> bool:
        return None not in [await stage.get(key) for key in (DEPLOYMENT, AUTOSCALER, SERVICE)]

    await stage.until(are_made)
    say("The operator makes three objects:")
    await tell_events(stage, *(f"Created {key.kind} {key.name}" for key in (DEPLOYMENT, AUTOSCALER, SERVICE)))
    stage.world.load = TRAFFIC[0]
    await stage.rollout()
    await tell_conditions(stage)
    fact("the cache is ready", holds="Ready" in await stage.true_ones())


async def refusal(stage: Stage) -> None:
    """A user errs."""
    chapter("2. What cannot be is refused, every mistake at once")
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
        fact("the webhook refuses it", holds=False)


async def work(stage: Stage) -> None:
    """Clients come and go."""
    chapter("3. Clients come and go; the HPA algorithm scales, every 15 seconds")
    say("time   wanted    cpu  replicas  ready  conditions that hold", "bold")
    before: Row | None = None
    for number in range(ROUNDS):
        stage.world.load = TRAFFIC.get(number, stage.world.load)
        told = await stage.round()
        row = Row(stage.world.load, await stage.replicas(), stage.world.ready, await stage.true_ones())
        if row != before:
            tell_row(number, row, stage.world.used)
        for event in told:
            say(f"hpa: {event.message}", "magenta", mark="     ")
        before = row
    highest, last = max(stage.counts), stage.counts[-1]
    fact(f"{highest} pods at most, {last} at the end", holds=(highest, last) == (HIGHEST, LOWEST))


class Row(NamedTuple):
    """What the table shows of a round."""

    load: int
    replicas: int
    ready: int
    true_ones: list[str]


def tell_row(number: int, row: Row, used: int) -> None:
    """Print a row of the table."""
    minutes, seconds = divmod(number * ROUND.seconds, 60)
    shares = f"{row.load:>5}m  {used:>4}%  {row.replicas:>8}  {row.ready:>5}"
    say(f"{minutes:02}:{seconds:02}  {shares}  {', '.join(row.true_ones)}")


async def repair(stage: Stage) -> None:
    """Somebody edits what the operator made."""
    chapter("4. Somebody sets maxReplicas of the autoscaler to 3, by hand")
    await stage.change(AUTOSCALER, maxReplicas=3)

    async def is_repaired() -> bool:
        return bool((await stage.cluster.get(AUTOSCALER))["spec"]["maxReplicas"] == HIGHEST)

    await stage.until(is_repaired)
    await tell_events(stage, f"Updated {AUTOSCALER.kind} {AUTOSCALER.name}")
    fact("it is 10 again, as the cache says", holds=await is_repaired())


async def hand_over(stage: Stage) -> None:
    """The count changes hands, twice."""
    chapter("5. Autoscaling off, and on again")
    await stage.change(CACHE, autoscaling={"enabled": False})

    async def is_manual() -> bool:
        return await stage.get(AUTOSCALER) is None and await stage.replicas() == FIXED

    await stage.until(is_manual)
    await stage.rollout()
    await tell_conditions(stage)
    fact("off: no autoscaler, and 3 replicas, as the cache says", holds=await is_manual())

    counts = len(stage.counts)
    await stage.change(CACHE, autoscaling={"enabled": True})

    async def is_scaled() -> bool:
        return await stage.get(AUTOSCALER) is not None

    await stage.until(is_scaled)
    await stage.settle()
    fact("on: the autoscaler takes over at 3", holds=stage.counts[counts:] == [])
    stage.world.load = 300
    await stage.rollout()
    fact(f"and scales from there: {await stage.replicas()} replicas", holds=stage.counts[counts:] == [MORE])


async def sleep(stage: Stage) -> None:
    """The cache is put to sleep, and woken."""
    chapter("6. Suspend: the autoscaler goes, then the pods; resume: both are back")
    live = await stage.replicas()
    await stage.change(CACHE, suspended=True)

    async def is_asleep() -> bool:
        return await stage.get(AUTOSCALER) is None and await stage.replicas() == 0

    await stage.until(is_asleep)
    await stage.rollout()
    await tell_conditions(stage)
    fact("no autoscaler, no pods", holds=await is_asleep())

    counts = len(stage.counts)
    await stage.change(CACHE, suspended=False)

    async def is_awake() -> bool:
        return await stage.get(AUTOSCALER) is not None and await stage.replicas() > 0

    await stage.until(is_awake)
    await stage.rollout()
    fact(f"{live} replicas at once, as before", holds=stage.counts[counts] == live)
    fact("the cache is ready", holds="Ready" in await stage.true_ones())


async def rest(stage: Stage) -> None:
    """Nothing happens."""
    chapter("7. Ten minutes in which nothing changes")
    before = stage.writes_of_operator()
    for _ in range(QUIET):
        await stage.round()
    written = stage.writes_of_operator() - before
    fact(f"writes of the operator: {written}", holds=written == 0)


async def end(stage: Stage) -> None:
    """The cache is deleted."""
    chapter("8. The user deletes the cache")
    await stage.cluster.delete(CACHE)

    async def is_gone() -> bool:
        return all([await stage.get(key) is None for key in (CACHE, DEPLOYMENT, AUTOSCALER, SERVICE)])

    await stage.until(is_gone)
    fact("nothing of it is left", holds=await is_gone())


if __name__ == "__main__":
    asyncio.run(main())
