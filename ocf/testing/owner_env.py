"""`OwnerEnv`: an owner and its operator on an embedded cluster, one reconcile at a time.

Between two reconciles nothing happens unless the test asks for it, so a test needs neither a running operator nor a
task that waits. To test the operator as it runs, with its watches and its queue, use `ocf.runtime.operator.running` in
virtual time instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, Generic, TypeVar

from ocf.cluster import PatchOptions, PatchType
from ocf.concepts import Recorder
from ocf.concepts.recorder import NullRecorder
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Operator
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.testing.clock import VirtualClock
from ocf.testing.fake_controllers import roll_out
from ocf.testing.recording_cluster import RecordingCluster
from ocf_server import EmbeddedCluster
from ocf_server.controllers.runner import Controllers

__all__ = ["OwnerEnv"]

O = TypeVar("O")  # noqa: E741 (the owner)

_USER: Final = "test"


class OwnerEnv(Generic[O]):
    """An owner, its operator and their cluster.

    Args:
        operator: The operator.
        owner: The owner, as a user would create it.
        cluster: The cluster.
        clock: The clock of cluster and operator.
        recorder: Gets the attempts, events and conditions of each reconcile.
        controllers: Built-in controllers of the cluster, which `settle` runs; None reports workloads as rolled out.

    Attributes:
        cluster: The cluster, to look at what the operator has made.
        clock: The clock, to let time pass between two reconciles.
        key: The key of the owner.

    Example:
        >>> import asyncio
        >>> from ocf.component import ReconcileContext
        >>> from ocf_server import CustomKind, EmbeddedCluster
        >>> from ocf.runtime.operator import Operator, OwnerType
        >>> from ocf.testing import VirtualClock
        >>> def count(context: ReconcileContext, owner: dict, outcome: object) -> None:
        ...     context.status["letters"] = len(owner["metadata"]["name"])
        >>> shops = Operator(
        ...     name="shops", owner=OwnerType("example.com/v1", "Shop"), components=lambda shop: (), report=count
        ... )
        >>> shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
        >>> async def letters() -> int:
        ...     clock = VirtualClock()
        ...     kinds = [CustomKind("example.com", "v1", "Shop")]
        ...     cluster = EmbeddedCluster(kinds=kinds, now=clock.now)
        ...     env = await OwnerEnv.create(shops, shop, cluster, clock)
        ...     await env.settle()
        ...     return (await env.read())["status"]["letters"]
        >>> asyncio.run(letters())
        6
    """

    def __init__(
        self,
        operator: Operator[O],
        owner: ObjectKey,
        cluster: EmbeddedCluster,
        clock: VirtualClock,
        *,
        recorder: Recorder | None = None,
        controllers: Controllers | None = None,
    ) -> None:
        self.operator = operator
        self.key = owner
        self.cluster = cluster
        self.clock = clock
        self._recorder = recorder or NullRecorder()
        self._controllers = controllers

    @classmethod
    async def create(
        cls,
        operator: Operator[O],
        owner: Manifest,
        cluster: EmbeddedCluster,
        clock: VirtualClock,
        *,
        recorder: Recorder | None = None,
        controllers: Controllers | None = None,
    ) -> OwnerEnv[O]:
        """Create the owner, with the definitions of the operator and the owner's namespace if they are missing.

        Args:
            operator: The operator.
            owner: The owner, as a user would create it.
            cluster: The cluster.
            clock: The clock of cluster and operator.
            recorder: Gets the attempts, events and conditions of each reconcile.
            controllers: Built-in controllers of the cluster, which `settle` runs; None reports workloads as rolled out.
        """
        namespace = owner["metadata"].get("namespace")
        if namespace and not await _exists(cluster, ObjectKey("v1", "Namespace", namespace)):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await cluster.create(body, field_manager=_USER)
        for definition in operator.all_definitions:
            await cluster.apply(definition, field_manager=_USER)
        created = await cluster.create(owner, field_manager=_USER)
        return cls(operator, ObjectKey.of(created), cluster, clock, recorder=recorder, controllers=controllers)

    async def reconcile(self) -> timedelta | None:
        """Reconcile the owner once.

        Returns:
            The delay until the next reconcile; None if only an event can change anything.

        Raises:
            Exception: The error that the reconcile failed with, after the status was written.
        """
        return await self._reconcile(RecordingCluster(self.cluster))

    async def settle(self, *, rollouts: bool = True, most: int = 20) -> None:
        """Reconcile until nothing is written any more; no time passes.

        Args:
            rollouts: Whether the controllers act after each reconcile; without any, workloads are rolled out as if
                their pods were running at once.
            most: The largest number of reconciles.

        Raises:
            AssertionError: If the last reconcile still sent a write; the message has its writes.
            Exception: The error of a reconcile that failed.
        """
        __tracebackhide__ = True
        recorded = RecordingCluster(self.cluster)
        for _ in range(most):
            recorded = RecordingCluster(self.cluster)
            await self._reconcile(recorded)
            rolled = await self._roll_out() if rollouts else False
            if not recorded.writes and not rolled:
                return
        writes = "; ".join(str(request) for request in recorded.writes)
        raise AssertionError(f"reconcile {most} of {self.key} still wrote: {writes or 'a rollout'}")

    async def read(self) -> Manifest:
        """Return the owner as it is stored."""
        return await self.cluster.get(self.key)

    async def conditions(self) -> Mapping[str, Manifest]:
        """Return the conditions of the owner by their types."""
        status = (await self.read()).get("status") or {}
        return {each["type"]: each for each in status.get("conditions") or ()}

    async def patch(self, changes: Manifest) -> Manifest:
        """Change the owner as a user does, by a JSON merge patch; return it as it is stored then."""
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=_USER)
        return await self.cluster.patch(self.key, changes, options)

    async def delete(self) -> None:
        """Delete the owner as a user does; it stays as long as it has finalizers."""
        await self.cluster.delete(self.key)

    async def _roll_out(self) -> bool:
        """Run the controllers; return whether they wrote anything."""
        if self._controllers is None:
            return await roll_out(self.cluster)
        before = self.cluster.resource_version
        await self._controllers.settle()
        return self.cluster.resource_version != before

    async def _reconcile(self, cluster: RecordingCluster) -> timedelta | None:
        return await reconcile_owner(
            self.operator, await self.read(), cluster, clock=self.clock, recorder=self._recorder
        )


async def _exists(cluster: EmbeddedCluster, key: ObjectKey) -> bool:
    try:
        await cluster.get(key)
    except NotFoundError:
        return False
    return True
