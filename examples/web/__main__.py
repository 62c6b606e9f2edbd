"""The life of a shop, from its creation to its end, on the embedded cluster: `python -m examples.web`.

The script checks what it claims, and ends with an error if a fact does not hold.
"""

import asyncio
import textwrap
from typing import Final

from examples.web import played
from ocf.cluster import Cluster
from ocf.component import Reason, Result
from ocf.embedded import EmbeddedCluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import VirtualClock

LIVE: Final = 5


class Story:
    """A cluster with the operator in it.

    Args:
        cluster: The cluster.
        clock: Stands still, so that the story is the same every time.
    """

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.cluster = cluster
        self._clock = clock

    async def reconcile(self) -> dict[str, Reason]:
        """Do what an operator does for an event; print what it wrote and concluded.

        Returns:
            Type of each condition to its reason.
        """
        self.cluster.requests.clear()
        results = await played.reconcile_shop(self.cluster, self._clock)
        for result in results:
            tell(result)
        writes = [f"{each.verb} {each.kind}" for each in self.cluster.requests if not each.verb.is_read]
        say(f"wrote: {', '.join(writes) or 'nothing'}")
        return {result.condition.type: result.condition.reason for result in results}

    async def settle(self) -> dict[str, Reason]:
        """Let the controllers report that all is well, and reconcile."""
        await played.controllers(self.cluster)
        return await self.reconcile()

    async def replicas(self) -> int:
        """Tell how many replicas the application asks for."""
        return int((await self.cluster.get(played.WEB))["spec"]["replicas"])

    async def container(self) -> Manifest:
        """Return the container of the application."""
        live = await self.cluster.get(played.WEB)
        first: Manifest = live["spec"]["template"]["spec"]["containers"][0]
        return first


async def exists(cluster: Cluster, key: ObjectKey) -> bool:
    """Tell whether there is such an object."""
    try:
        await cluster.get(key)
    except NotFoundError:
        return False
    return True


# --- What is printed. ---


def chapter(text: str) -> None:
    """Print a headline."""
    print(f"\n{text}")


def say(text: str, mark: str = "   ") -> None:
    """Print a paragraph."""
    print(textwrap.fill(text, 78, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False))


def tell(result: Result) -> None:
    """Print what a component reports, and why its objects were written."""
    condition = result.condition
    say(f"{condition.type}={condition.status} {condition.reason}: {condition.message}")
    for outcome in result.outcomes:
        if outcome.writes:
            *_, kind, _, name = outcome.resource.split("/")
            say(f"{outcome.action} {kind} {name}", mark="     ")


def fact(claim: str, *, holds: bool) -> None:
    """Print a fact, and end the story with an error if it is none."""
    if not holds:
        raise SystemExit(f"this should hold, and does not: {claim}")
    say(claim, mark="   ok  ")


# --- The story. ---


async def main() -> None:
    """Tell it."""
    clock = VirtualClock()
    story = Story(await played.new_cluster(clock, version="1.4.2"), clock)
    await birth(story)
    await work(story)
    await sleep(story)
    await growth(story)
    await end(story)


async def birth(story: Story) -> None:
    """Create the shop, step by step."""
    chapter("1. A user creates a shop, and forgets the Secret with the password")
    reasons = await story.reconcile()
    fact("the database waits for the Secret", holds=reasons["DatabaseReady"] == Reason.BLOCKED)
    fact("and the application for the database", holds=reasons["ApplicationReady"] == Reason.PREREQUISITE_NOT_MET)

    chapter("2. The Secret is there: the database comes up")
    await played.give_password(story.cluster)
    reasons = await story.reconcile()
    fact("the database is on its way", holds=reasons["DatabaseReady"] == Reason.CREATING)
    fact("nothing of the application is there yet", holds=not await exists(story.cluster, played.WEB))

    chapter("3. The database is ready: the same pass applies the application")
    reasons = await story.settle()
    fact("the application follows at once", holds=reasons["ApplicationReady"] == Reason.CREATING)
    url = next(each["value"] for each in (await story.container())["env"] if each["name"] == "DATABASE_URL")
    say(f"DATABASE_URL=...@{url.partition('@')[2]}", mark="     ")
    fact("it knows the database by data, not by agreement", holds="@corner-db.shop.svc:5432" in url)

    chapter("4. All is well, and nothing is left to do")
    reasons = await story.settle()
    fact("both components are healthy", holds=set(reasons.values()) == {Reason.HEALTHY})
    await story.reconcile()
    fact("no write without a change", holds=story.cluster.requests.writes == 0)


async def work(story: Story) -> None:
    """Scale it and measure it."""
    chapter(f"5. The autoscaler sets {LIVE} replicas")
    await played.scale(story.cluster, LIVE)
    await story.reconcile()
    await story.settle()
    fact(f"nobody takes them back: {await story.replicas()} replicas", holds=await story.replicas() == LIVE)

    chapter("6. The user asks for the exporter")
    await played.change(story.cluster, exporter=True)
    await story.reconcile()
    fact("it runs beside the application", holds=await exists(story.cluster, played.EXPORTER))
    await played.report(story.cluster, played.DEPLOYMENT)
    await story.reconcile()


async def sleep(story: Story) -> None:
    """Put it to sleep, and wake it."""
    chapter("7. Suspend: the autoscaler goes first, then all goes to zero")
    await played.change(story.cluster, suspended=True)
    await story.reconcile()
    reasons = await story.settle()
    fact("all is asleep", holds=set(reasons.values()) == {Reason.SUSPENDED})
    fact("the autoscaler is gone", holds=not await exists(story.cluster, played.AUTOSCALER))

    chapter("8. Resume: the live count is back")
    await played.change(story.cluster, suspended=False)
    await story.reconcile()
    fact(f"{await story.replicas()} replicas at once", holds=await story.replicas() == LIVE)
    reasons = await story.settle()
    fact("all is healthy again", holds=set(reasons.values()) == {Reason.HEALTHY})


async def growth(story: Story) -> None:
    """Upgrade it."""
    for number, version in ((9, "2.0.3"), (10, "2.3.0")):
        chapter(f"{number}. Upgrade to {version}")
        await played.change(story.cluster, version=version)
        await story.reconcile()
        container = await story.container()
        say(f"variables {', '.join(each['name'] for each in container['env'])}", mark="     ")
        say(f"probe {container['readinessProbe']['httpGet']['path']}", mark="     ")
        reasons = await story.settle()
        fact("healthy at this version", holds=set(reasons.values()) == {Reason.HEALTHY})
        fact("with the replicas it had", holds=await story.replicas() == LIVE)


async def end(story: Story) -> None:
    """Take the exporter away, then all."""
    chapter("11. The exporter is not wanted any more")
    await played.change(story.cluster, exporter=False)
    await story.reconcile()
    fact("it is gone", holds=not await exists(story.cluster, played.EXPORTER))
    await story.settle()

    chapter("12. The shop is deleted")
    await story.cluster.delete(played.SHOP)
    kinds = [("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "Secret")]
    left = [item["metadata"]["name"] for kind in kinds for item in (await story.cluster.list(*kind)).items]
    fact(f"what is left is the user's own: {', '.join(left)}", holds=left == ["corner-password"])


if __name__ == "__main__":
    asyncio.run(main())
