"""Demo of a shop, from its creation to its deletion, on the embedded cluster: `python -m examples.web`.

The script checks every claim that it prints, and ends with an error if one does not hold.
"""

import asyncio
import textwrap
from typing import Final

from examples.web import played
from ocf.cluster import Cluster
from ocf.component import Reason, Result
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster

LIVE: Final = 5


class Story:
    """A cluster and the operator.

    Args:
        cluster: The cluster.
        clock: A clock that does not advance, so that every run prints the same.
    """

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        self.cluster = cluster
        self._clock = clock

    async def reconcile(self) -> dict[str, str]:
        """Reconcile the shop, as an operator does for an event; print the writes and the conditions.

        Returns:
            Type of each condition to its reason.
        """
        self.cluster.requests.clear()
        results = await played.reconcile_shop(self.cluster, self._clock)
        for result in results:
            show(result)
        writes = [f"{each.verb} {each.kind}" for each in self.cluster.requests if not each.verb.is_read]
        say(f"wrote: {', '.join(writes) or 'nothing'}")
        return {result.condition.type: result.condition.reason for result in results}

    async def reconcile_reported(self) -> dict[str, str]:
        """Let the controllers report every object as healthy, and reconcile."""
        await played.controllers(self.cluster)
        return await self.reconcile()

    async def replicas(self) -> int:
        """Return the replica count in the spec of the application's Deployment."""
        return int((await self.cluster.get(played.WEB))["spec"]["replicas"])

    async def container(self) -> Manifest:
        """Return the container of the application."""
        live = await self.cluster.get(played.WEB)
        first: Manifest = live["spec"]["template"]["spec"]["containers"][0]
        return first


async def exists(cluster: Cluster, key: ObjectKey) -> bool:
    """Return whether an object exists."""
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


def show(result: Result) -> None:
    """Print the condition of a component and the action taken on each object that was written."""
    condition = result.condition
    say(f"{condition.type}={condition.status} {condition.reason}: {condition.message}")
    for outcome in result.outcomes:
        if outcome.writes:
            *_, kind, _, name = outcome.resource.split("/")
            say(f"{outcome.action} {kind} {name}", mark="     ")


def fact(claim: str, *, holds: bool) -> None:
    """Print a claim; end the demo with an error if it does not hold."""
    if not holds:
        raise SystemExit(f"this should hold, and does not: {claim}")
    say(claim, mark="   ok  ")


# --- The demo. ---


async def main() -> None:
    """Run the demo."""
    clock = VirtualClock()
    story = Story(await played.new_cluster(clock, version="1.4.2"), clock)
    await create(story)
    await scale(story)
    await suspend(story)
    await upgrade(story)
    await delete(story)


async def create(story: Story) -> None:
    """Create the shop; its Secret is missing at first."""
    chapter("1. A user creates a shop, and forgets the Secret with the password")
    reasons = await story.reconcile()
    fact("the database waits for the Secret", holds=reasons["DatabaseReady"] == Reason.BLOCKED)
    fact("and the application for the database", holds=reasons["ApplicationReady"] == Reason.PREREQUISITE_NOT_MET)

    chapter("2. The Secret is there: the database comes up")
    await played.give_password(story.cluster)
    reasons = await story.reconcile()
    fact("the database is on its way", holds=reasons["DatabaseReady"] == Reason.CREATING)
    fact("nothing of the application is there yet", holds=not await exists(story.cluster, played.WEB))

    chapter("3. The database is ready: the same reconcile applies the application")
    reasons = await story.reconcile_reported()
    fact("the application follows at once", holds=reasons["ApplicationReady"] == Reason.CREATING)
    url = next(each["value"] for each in (await story.container())["env"] if each["name"] == "DATABASE_URL")
    say(f"DATABASE_URL=...@{url.partition('@')[2]}", mark="     ")
    fact("its database host comes from the ConfigMap", holds="@corner-db.shop.svc:5432" in url)

    chapter("4. All is well, and nothing is left to do")
    reasons = await story.reconcile_reported()
    fact("both components are healthy", holds=set(reasons.values()) == {Reason.HEALTHY})
    await story.reconcile()
    fact("no write without a change", holds=story.cluster.requests.writes == 0)


async def scale(story: Story) -> None:
    """Scale the application and enable the exporter."""
    chapter(f"5. The autoscaler sets {LIVE} replicas")
    await played.scale(story.cluster, LIVE)
    await story.reconcile()
    await story.reconcile_reported()
    fact(f"the operator does not reset them: {await story.replicas()} replicas", holds=await story.replicas() == LIVE)

    chapter("6. The user asks for the exporter")
    await played.change(story.cluster, exporter=True)
    await story.reconcile()
    fact("it runs beside the application", holds=await exists(story.cluster, played.EXPORTER))
    await played.report(story.cluster, played.DEPLOYMENT)
    await story.reconcile()


async def suspend(story: Story) -> None:
    """Suspend the shop and resume it."""
    chapter("7. Suspend: the autoscaler goes first, then all goes to zero")
    await played.change(story.cluster, suspended=True)
    await story.reconcile()
    reasons = await story.reconcile_reported()
    fact("both components are suspended", holds=set(reasons.values()) == {Reason.SUSPENDED})
    fact("the autoscaler is gone", holds=not await exists(story.cluster, played.AUTOSCALER))

    chapter("8. Resume: the live count is back")
    await played.change(story.cluster, suspended=False)
    await story.reconcile()
    fact(f"{await story.replicas()} replicas at once", holds=await story.replicas() == LIVE)
    reasons = await story.reconcile_reported()
    fact("all is healthy again", holds=set(reasons.values()) == {Reason.HEALTHY})


async def upgrade(story: Story) -> None:
    """Upgrade the product twice."""
    for number, version in ((9, "2.0.3"), (10, "2.3.0")):
        chapter(f"{number}. Upgrade to {version}")
        await played.change(story.cluster, version=version)
        await story.reconcile()
        container = await story.container()
        say(f"variables {', '.join(each['name'] for each in container['env'])}", mark="     ")
        say(f"probe {container['readinessProbe']['httpGet']['path']}", mark="     ")
        reasons = await story.reconcile_reported()
        fact("healthy at this version", holds=set(reasons.values()) == {Reason.HEALTHY})
        fact("with the replicas it had", holds=await story.replicas() == LIVE)


async def delete(story: Story) -> None:
    """Disable the exporter, then delete the shop."""
    chapter("11. The user disables the exporter")
    await played.change(story.cluster, exporter=False)
    await story.reconcile()
    fact("it is gone", holds=not await exists(story.cluster, played.EXPORTER))
    await story.reconcile_reported()

    chapter("12. The shop is deleted")
    await story.cluster.delete(played.SHOP)
    kinds = [("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"), ("v1", "Service"), ("v1", "Secret")]
    left = [item["metadata"]["name"] for kind in kinds for item in (await story.cluster.list(*kind)).items]
    fact(f"what is left is the user's own: {', '.join(left)}", holds=left == ["corner-password"])


if __name__ == "__main__":
    asyncio.run(main())
