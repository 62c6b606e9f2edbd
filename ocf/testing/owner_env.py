"""`OwnerEnv`: an owner and its operator on an embedded cluster, one reconcile at a time.

Between two reconciles nothing happens unless the test asks for it, so a test needs neither a running operator nor a
task that waits. To test the operator as it runs, with its watches and its queue, use `ocf.runtime.operator.running` in
virtual time instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Generic

from typing_extensions import TypeVar

from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType
from ocf.component.model.context_values import ContextValues
from ocf.concepts import Clock, Recorder
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ForbiddenError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission.policies import apply_policies
from ocf.runtime.operator import Operator, Relation
from ocf.runtime.operator.reconciler import ReconcileHooks, reconcile_owner
from ocf.testing.clock import VirtualClock
from ocf.testing.fake_controllers import roll_out
from ocf.testing.local_webhooks import LocalWebhooks, can_call_webhooks
from ocf.testing.recording_cluster import RecordingCluster
from ocf_server import EmbeddedCluster
from ocf_server.controllers.runner import Controllers

__all__ = ["OwnerEnv", "reconcile_if_selected"]

O = TypeVar("O")  # noqa: E741 (the owner)
C = TypeVar("C", bound=Cluster, default=EmbeddedCluster)
# Of `create`: for type checkers, those of the class have their defaults in `OwnerEnv.create`.
O2 = TypeVar("O2")
C2 = TypeVar("C2", bound=Cluster)

_USER: Final = "test"


class OwnerEnv(Generic[O, C]):
    """An owner, its operator and their cluster.

    Args:
        operator: The operator.
        owner: The key of the owner.
        cluster: The cluster: an embedded one, or the API server of the fixture `envtest_cluster`.
        clock: The clock of cluster and operator.
        recorder: Gets the attempts, events and conditions of each reconcile.
        controllers: Controllers of an embedded cluster, which `settle` runs; None reports workloads as rolled out.
        others: Further operators of the process. After the owner, each reconciles all of its own owners, in the
            namespace of the owner if both kinds have namespaces; in all namespaces with a relation across them.
        webhooks: The webhooks of the operators, if the cluster calls them in this process.
        reconciles_with: The cluster as the operator uses it, such as that of `operator_cluster`; None for `cluster`.

    Attributes:
        cluster: The cluster, to look at what the operator has made, and to do what users do.
        clock: The clock, to let time pass between two reconciles.
        key: The key of the owner.
        webhooks: The webhooks of the operators, to look at their calls and to inject faults; None if there are none, or
            the cluster does not call them in this process.
        values: What each reconcile finds in `context.values`. The lifespan of the operator is not opened: set fakes of
            what it opens.

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

    def __init__(  # noqa: PLR0913 (settings, each with a default)
        self,
        operator: Operator[O],
        owner: ObjectKey,
        cluster: C,
        clock: VirtualClock,
        *,
        recorder: Recorder | None = None,
        controllers: Controllers | None = None,
        others: Sequence[Operator[Any]] = (),
        webhooks: LocalWebhooks | None = None,
        reconciles_with: Cluster | None = None,
    ) -> None:
        self.operator = operator
        self.key = owner
        self.cluster = cluster
        self.clock = clock
        self._recorder = recorder or NullRecorder()
        self._controllers = controllers
        self._others = tuple(others)
        self._reconciles_with: Cluster = cluster if reconciles_with is None else reconciles_with
        self.webhooks: Final = webhooks
        self.values: Final = ContextValues()

    @staticmethod
    async def create(  # noqa: PLR0913 (settings, each with a default)
        operator: Operator[O2],
        owner: Manifest,
        cluster: C2,
        clock: VirtualClock,
        *,
        recorder: Recorder | None = None,
        controllers: Controllers | None = None,
        others: Sequence[Operator[Any]] = (),
        webhooks: bool = True,
        reconciles_with: Cluster | None = None,
    ) -> OwnerEnv[O2, C2]:
        """Create the owner, with the definitions and policies of the operators, and the namespace if it is missing.

        Args:
            operator: The operator.
            owner: The owner, as a user would create it.
            cluster: The cluster. A real API server has to serve the definitions before: `Envtest.plane.install_crds`.
            clock: The clock of cluster and operator.
            recorder: Gets the attempts, events and conditions of each reconcile.
            controllers: Controllers of an embedded cluster, which `settle` runs; None reports workloads as rolled out.
            others: Further operators of the process, which reconcile their own owners.
            webhooks: Whether an embedded cluster calls the webhooks of the operators, in this process; see
                `LocalWebhooks`. A real one calls those of `serve_webhooks`.
            reconciles_with: The cluster as the operator uses it, such as that of `operator_cluster`; None for
                `cluster`.
        """
        namespace = owner["metadata"].get("namespace")
        if namespace and not await _exists(cluster, ObjectKey("v1", "Namespace", namespace)):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await cluster.create(body, field_manager=_USER)
        for definition in (each for one in (operator, *others) for each in one.all_definitions):
            await cluster.apply(definition, field_manager=_USER)
        operators = (operator, *others)
        local = None
        if webhooks and can_call_webhooks(cluster) and any(one.serves_webhooks for one in operators):
            local = await LocalWebhooks.install(cluster, *operators)
        else:
            policies = [policy for one in operators for policy in one.policies]
            # As `ocf manifests` installs them: the namespace of the operator has its name.
            await apply_policies(cluster, policies, namespace=operator.name, field_manager=_USER)
        key = ObjectKey.of(await cluster.create(owner, field_manager=_USER))
        return OwnerEnv(
            operator,
            key,
            cluster,
            clock,
            recorder=recorder,
            controllers=controllers,
            others=others,
            webhooks=local,
            reconciles_with=reconciles_with,
        )

    async def reconcile(self) -> timedelta | None:
        """Reconcile the owner once; nothing happens if it is gone.

        Returns:
            The delay until the next reconcile; None if only an event can change anything.

        Raises:
            Exception: The error that the reconcile failed with, after the status was written.
        """
        return await self._reconcile(RecordingCluster(self._reconciles_with))

    async def settle(self, *, rollouts: bool = True, most: int = 20) -> None:
        """Reconcile until nothing is written any more, and no other reconcile is asked for at once; no time passes.

        A deleted owner is settled once it is gone.

        Args:
            rollouts: Whether the controllers act after each reconcile; without any, `roll_out` makes all workloads,
                claims and load balancers of the cluster ready at once, so pass False on one that tests share.
            most: The largest number of reconciles.

        Raises:
            AssertionError: If the last reconcile still sent a write, or asked for another one; the message says which.
            Exception: The error of a reconcile that failed.
        """
        __tracebackhide__ = True
        recorded, at_once = RecordingCluster(self._reconciles_with), False
        for _ in range(most):
            recorded = RecordingCluster(self._reconciles_with)
            delay = await self._reconcile(recorded)
            at_once = delay is not None and delay <= timedelta(0)
            rolled = await self._roll_out() if rollouts else False
            if not (recorded.writes or rolled or at_once):
                return
        writes = "; ".join(str(request) for request in recorded.writes) or ("" if at_once else "a rollout")
        still = f"still wrote: {writes}" if writes else "still asked for another one at once"
        raise AssertionError(f"reconcile {most} of {self.key} {still}")

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
        if self._controllers is None or not isinstance(self.cluster, EmbeddedCluster):
            return await roll_out(self.cluster)
        before = self.cluster.resource_version
        await self._controllers.settle()
        return self.cluster.resource_version != before

    async def _reconcile(self, cluster: RecordingCluster) -> timedelta | None:
        delays = [await self._reconcile_one(self.operator, self.key, cluster)]
        for operator in self._others:
            delays += [await self._reconcile_one(operator, key, cluster) for key in await self._owners_of(operator)]
        return min((delay for delay in delays if delay is not None), default=None)

    async def _owners_of(self, operator: Operator[Any]) -> list[ObjectKey]:
        """Return the keys of what another operator may reconcile."""
        is_scoped = await self.cluster.is_namespaced(*operator.owner_kind) and not any(
            isinstance(watch, Relation) and watch.across_namespaces is not False for watch in operator.watches
        )
        options = ListOptions(namespace=self.key.namespace if is_scoped else "")
        return [ObjectKey.of(live) for live in (await self.cluster.list(*operator.owner_kind, options)).items]

    async def _reconcile_one(
        self, operator: Operator[Any], key: ObjectKey, cluster: RecordingCluster
    ) -> timedelta | None:
        try:
            owner = await self.cluster.get(key)
        except NotFoundError:
            return None
        try:
            return await reconcile_if_selected(
                operator, owner, cluster, clock=self.clock, recorder=self._recorder, values=self.values
            )
        except ForbiddenError as error:
            if self._reconciles_with is not self.cluster:
                error.add_note(
                    "The operator reconciles with its roles: `ocf manifests` writes them anew after a change."
                )
            raise


async def reconcile_if_selected(
    operator: Operator[Any],
    owner: Manifest,
    cluster: Cluster,
    *,
    clock: Clock,
    recorder: Recorder | None = None,
    values: ContextValues | None = None,
) -> timedelta | None:
    """Reconcile an owner that an operator selects, or has to release, as a running operator would; return the delay."""
    selected = operator.selects(owner)
    if not (selected or operator.finalizers.own_of(owner)):
        return None
    hooks = ReconcileHooks(selected=selected, values=values)
    return await reconcile_owner(
        operator, owner, cluster, clock=clock, recorder=recorder or NullRecorder(), hooks=hooks
    )


async def _exists(cluster: Cluster, key: ObjectKey) -> bool:
    try:
        await cluster.get(key)
    except NotFoundError:
        return False
    return True
