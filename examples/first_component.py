"""A first component, from its first rendering to its resumption, on the embedded cluster.

Read it from top to bottom: first the code that an operator's author writes, then the cluster and the controllers that
the demo simulates, and last the demo itself. The script checks every claim that it prints, and ends with an error if
one does not hold.
"""

import asyncio
import difflib
import textwrap
from typing import Final

import yaml
from kubernetes.client import V2HorizontalPodAutoscalerBehavior, V2HPAScalingRules
from rich.console import Console
from rich.text import Text

from ocf import component
from ocf.autoscaling import metrics
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.component import Component, Reason, Result, reconciling
from ocf.editors import HPASpecEditor
from ocf.feature import VersionGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment, hpa
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster

# Kind, name, namespace, labels and selector follow from the builders and the owner.
DEPLOYMENT: Final = """
spec:
  template:
    spec: {containers: [{name: app, image: backend, resources: {requests: {cpu: 500m}}}]}
"""

AUTOSCALER: Final = """
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: corner}
  minReplicas: 2
  maxReplicas: 10
"""

CORNER: Final = """
apiVersion: example.com/v1
kind: Shop
metadata: {name: corner, namespace: shop}
spec: {version: 2.3.1}
"""


# --- What an operator's author writes: the owner, mutations, resources, a component. ---


class ShopSpec(CamelModel):
    """Desired state."""

    version: str
    suspended: bool = False


class Shop(CustomResource[ShopSpec], group="example.com", version="v1", condition="WebReady"):
    """A shop."""


def aggressive_scaling(version: str) -> hpa.Mutation:
    """Return the mutation that scales to more replicas and scales down sooner, as supported since 2.0.0."""

    def mutate(m: hpa.Mutator) -> None:
        @m.edit_hpa_spec
        def _(spec: HPASpecEditor) -> None:
            spec.set_max_replicas(20)
            spec.ensure_metric(metrics.cpu(average_utilization=70))
            quick = V2HPAScalingRules(stabilization_window_seconds=60)
            spec.set_behavior(V2HorizontalPodAutoscalerBehavior(scale_down=quick))

        m.edit_object_metadata(lambda meta: meta.ensure_label("app.kubernetes.io/version", version))

    return hpa.Mutation("aggressive-scaling", mutate, feature=VersionGate(version, ">= 2.0.0"))


def web(shop: Shop) -> Component:
    """Return the component: a Deployment and its autoscaler, reported as one condition."""
    return (
        component.Builder("web", owner=shop.key, condition_type="WebReady")
        .with_resource(deployment.Builder(DEPLOYMENT))
        .with_resource(hpa.Builder(AUTOSCALER).with_mutation(aggressive_scaling(shop.spec.version)))
        .suspend(shop.spec.suspended)
        .build()
    )


# --- The cluster, and the controllers that the embedded cluster does not run. ---

OWNER: Final = ObjectKey.of(yaml.safe_load(CORNER))
TARGET: Final = ObjectKey("apps/v1", "Deployment", "corner", "shop")
SCALER: Final = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "corner", "shop")
LIVE: Final = 6


class Stage:
    """A cluster with the operator in it, and the controllers of Kubernetes."""

    def __init__(self) -> None:
        self.clock = VirtualClock()  # it stands still, so that the demo does the same every time
        self.cluster = EmbeddedCluster(namespaces=["shop"], now=self.clock.now)

    async def reconcile(self) -> Result:
        """Reconcile the shop, as an operator does for an event; print the writes and the condition."""
        owner = await self.cluster.get(OWNER)
        feature = web(Shop.model_validate(owner))
        self.cluster.requests.clear()
        async with reconciling(owner, self.cluster, clock=self.clock) as context:
            result = await feature.reconcile(context)
        say(f"reconcile: {', '.join(self.writes()) or 'no write'}")
        say(f"{result.condition.type}={result.condition.status} {result.condition.reason}", "cyan")
        say(result.condition.message, mark="     ")
        return result

    def writes(self) -> list[str]:
        """Return the writes that the last reconcile sent."""
        sent = [request for request in self.cluster.requests if not (request.verb.is_read or request.dry_run)]
        return [f"{request.verb} {request.kind} {request.subresource or ''}".strip() for request in sent]

    async def replicas(self) -> int:
        """Return the replica count in the spec of the Deployment."""
        return int((await self.cluster.get(TARGET))["spec"]["replicas"])

    async def patch(self, key: ObjectKey, patch: Manifest, part: Subresource | None = None) -> None:
        """Patch an object as a field manager other than the operator."""
        await self.cluster.patch(
            key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="other", subresource=part)
        )

    async def autoscaler_reports(self, active: str, why: str) -> None:
        """Write the condition that the autoscaler's controller would write."""
        condition = {"type": "ScalingActive", "status": active, "message": why}
        await self.patch(SCALER, {"status": {"conditions": [condition]}}, Subresource.STATUS)

    async def rollout_finishes(self) -> None:
        """Write the status that the Deployment's controller would write."""
        live = await self.cluster.get(TARGET)
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), live["spec"]["replicas"])
        status = {"observedGeneration": live["metadata"]["generation"], **counts}
        await self.patch(TARGET, {"status": status}, Subresource.STATUS)


# --- What is printed: plain text when piped, colours in a terminal. ---

console: Final = Console(highlight=False, soft_wrap=True)


def say(text: str, style: str = "", *, mark: str = "   ") -> None:
    """Print a paragraph."""
    console.print(Text(textwrap.fill(text, 78, initial_indent=mark, subsequent_indent=" " * len(mark)), style))


def fact(claim: str, *, holds: bool) -> None:
    """Print a claim; end the demo with an error if it does not hold."""
    if not holds:
        raise SystemExit(f"this should hold, and does not: {claim}")
    say(claim, "green", mark="   ok  ")


def difference(before: Manifest, after: Manifest) -> None:
    """Print a unified diff of two manifests as YAML."""
    old, new = (yaml.safe_dump(each, sort_keys=False).splitlines() for each in (before, after))
    for line in difflib.unified_diff(old, new, "version 1.9.0", "version 2.3.1", lineterm="", n=1):
        console.print(Text(f"   {line}", {"+": "green", "-": "red", "@": "dim"}.get(line[0], "")))


# --- The demo. ---


def rendered_autoscaler(version: str) -> Manifest:
    """Return the autoscaler of a shop with a version of the product."""
    corner = Shop.model_validate(yaml.safe_load(CORNER))
    upgraded = corner.model_copy(update={"spec": ShopSpec(version=version)})
    _, scaler = web(upgraded).render()
    return scaler


async def main() -> None:
    """Run the demo."""
    say("1. Render the autoscaler for two versions of the product", "bold", mark="")
    old, new = (rendered_autoscaler(version) for version in ("1.9.0", "2.3.1"))
    difference(old, new)
    fact("2.3.1 fires the mutation", holds="metrics" in new["spec"])
    fact("1.9.0 does not", holds="metrics" not in old["spec"])

    say("2. Create the owner and reconcile its component", "bold", mark="\n")
    shop = Stage()
    await shop.cluster.create(Shop.definition(), field_manager="user")
    await shop.cluster.create(yaml.safe_load(CORNER), field_manager="user")
    await shop.reconcile()
    objects = ["apply Deployment", "apply HorizontalPodAutoscaler"]
    fact("two objects and one status were written", holds=shop.writes() == [*objects, "update Shop status"])

    say("3. The controllers report, and the condition follows", "bold", mark="\n")
    await shop.rollout_finishes()
    await shop.autoscaler_reports("False", "no metrics were returned")
    blind = await shop.reconcile()
    fact("an autoscaler without metrics is not hidden", holds=blind.condition.reason == Reason.OPERATION_FAILING)
    await shop.autoscaler_reports("True", "the replica count was computed")
    ready = await shop.reconcile()
    fact("once it scales, the component is healthy", holds=ready.condition.status)

    say("4. Reconcile again: nothing has changed", "bold", mark="\n")
    await shop.reconcile()
    fact(f"write requests: {shop.cluster.requests.writes}", holds=shop.cluster.requests.writes == 0)

    say(f"5. The autoscaler sets {LIVE} replicas through the Scale subresource", "bold", mark="\n")
    await shop.patch(TARGET, {"spec": {"replicas": LIVE}}, Subresource.SCALE)
    await shop.reconcile()
    fact("only the condition is written: the rollout is not done", holds=shop.writes() == ["update Shop status"])
    await shop.rollout_finishes()
    await shop.reconcile()
    await shop.reconcile()
    fact(f"replicas after three reconciles: {await shop.replicas()}", holds=await shop.replicas() == LIVE)

    say("6. Suspend: first the autoscaler goes, then its target goes to zero", "bold", mark="\n")
    await shop.patch(OWNER, {"spec": {"suspended": True}})
    await shop.reconcile()
    fact("the autoscaler went first", holds=shop.writes()[0] == "delete HorizontalPodAutoscaler")
    await shop.rollout_finishes()
    suspended = await shop.reconcile()
    fact(f"replicas: {await shop.replicas()}", holds=suspended.condition.status and await shop.replicas() == 0)

    say("7. Resume: the autoscaler is back, and so is the live count", "bold", mark="\n")
    await shop.patch(OWNER, {"spec": {"suspended": False}})
    await shop.reconcile()
    fact(f"replicas at once: {await shop.replicas()}", holds=await shop.replicas() == LIVE)
    await shop.rollout_finishes()
    await shop.autoscaler_reports("True", "the replica count was computed")
    resumed = await shop.reconcile()
    fact("the component is healthy again", holds=resumed.condition.status)


if __name__ == "__main__":
    asyncio.run(main())
