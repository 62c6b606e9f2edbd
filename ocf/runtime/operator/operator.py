"""Declaration of an operator: the kind of its owners, their components, and the kinds that it watches.

A declaration is a frozen value; `running`, `run` and `main` run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ocf.component import Component, DeletionOrder
from ocf.component.deletion import condition_type
from ocf.component.model.former_managers import pattern_problems
from ocf.component.pause import pause_condition, pause_path
from ocf.concepts import Recorder
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import BuildError, ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import condition_type_problem
from ocf.objects.manifest import split_api_version
from ocf.objects.name_validation import dns_label
from ocf.runtime.admission.webhooks import Webhook
from ocf.runtime.crds import VersionedResource
from ocf.runtime.events.recorders import EventFormatter
from ocf.runtime.operator.callbacks import Callbacks
from ocf.runtime.operator.owner_type import OwnerType
from ocf.runtime.operator.types import Cleanup, Components, Report
from ocf.runtime.rbac.policy_rule import PolicyRule
from ocf.runtime.rbac.rules import EVENTS, policy_rules
from ocf.runtime.workqueue.queue import RateLimiter
from ocf.schema.rest_mapping import rest_mapping

__all__ = ["Kind", "Operator", "Watch"]

O = TypeVar("O")  # noqa: E741 (the owner)

Kind: TypeAlias = tuple[str, str]
"""A kind, `("apps/v1", "Deployment")`."""

_DELAYS: Final = ExponentialBackoff()
_LIMIT: Final = timedelta(minutes=5)
_RESYNC: Final = timedelta(hours=10)


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch of objects that affect owners which neither control them nor read them by name.

    Args:
        api_version: Group and version.
        owners: Maps an object to the owners to reconcile, as pairs of namespace (empty for none) and name. It is called
            with the state before a modification as well as with the new one. An exception is logged.
    """

    api_version: str
    kind: str
    owners: Callable[[Manifest], Iterable[tuple[str, str]]]


@dataclass(frozen=True, kw_only=True)
class Operator(Generic[O]):
    """An operator: it reconciles the components of every owner.

    An owner is reconciled when it changes, when an object changes that it controls or that its last reconcile read by
    name or in a list, when a watch of `watches` maps an event to it, when its last reconcile asked to be requeued, and
    every `resync`. Versions that a reconcile has read or written itself trigger nothing.

    Args:
        name: Name of the operator, a DNS label such as `shop-operator`. It is in metrics, events and leases, and shows
            which operator has written something for an owner: it is part of the field managers, the finalizers, and the
            conditions of failures and clean-ups. So it must not change, and each operator needs a name of its own.
        owner: The kind of its owners.
        components: Returns the components of an owner; called in every reconcile. It may read objects through the
            context (`context.cluster.get` and `list`): objects read by name or in a list are watched from then on.
            While the owner is being deleted (`context.is_ending`) it is called where its objects have to be found, and
            should make nothing.
        report: Sets fields and conditions of the owner's status, which are part of its one status write; called at the
            end of each reconcile, also if the reconcile failed. It is not called for an owner that its model cannot
            read, because there is no owner to pass, nor once the owner is gone.
        published_conditions: Types of the conditions that it publishes beside those of its components. Generated alerts
            and dashboards watch them.
        abnormal_conditions: Those that are bad when True, such as `Degraded`; generated alerts and dashboards leave
            them out.
        failure_condition: Type of the condition that shows a failure that is not a component's own: False, with the
            reason `Error`, while reconciles fail. It does not exist otherwise. Such a failure changes no other
            condition. Empty for `<name>/Reconciled`.
        on_delete: Deletes what Kubernetes does not collect: a database, a DNS record, a bucket. Called with the owner,
            the context and the cluster while the owner is being deleted, and again until it returns None; it must
            succeed if there is nothing left to delete. A finalizer, set before the first call of `components`, holds
            the owner until then. A `CleanupPending` asks for another call; an error is retried with backoff.
        pause_field: A field of the spec that pauses an owner while it is true, such as `spec.paused`, beside the
            annotation `<name>.ocf.dev/paused`. Nothing is written for a paused owner. Empty for none.
        deletion_order: Whether `on_delete` is called before or after the objects of the components are deleted.
        owns: Kinds of objects that its components create. They are watched from the start, and no reconcile begins
            before they are read; other kinds are watched from their first request on.
        reads: Kinds that `components` reads itself, for the RBAC rules.
        watches: Watches of objects that affect owners in other ways; no reconcile begins before their kinds are read.
        late_kinds: Declared kinds (its owners', or of `owns` or `watches`) that may be installed at any time after the
            start: the process waits for them. For others that are not served it waits for at most
            `ManagerOptions.cache_sync_timeout`, and ends with an error then.
        uncached: Kinds that are never cached: each read is a request, and changes trigger nothing.
        webhooks: Admission webhooks, mostly of owners. `ManagerOptions.admission` has the options of their server.
        former_managers: Field managers of clients that wrote the objects of its components before, by name or pattern,
            such as `kubectl-client-side-apply`: what they have set is taken over once per object. See
            `ocf.component.Builder.with_former_managers`.
        definitions: The CustomResourceDefinitions of the kinds of its components that are not built in.
        workers: How many owners are reconciled at once.
        rate_limiter: How long an owner waits after a failed reconcile.
        reconcile_timeout: How long a reconcile may take before it is cancelled, which is an error.
        resync: Period after which all owners are reconciled without an event; None for never.
        event_formatter: Rewrites events in the operator's own terms; None posts them unchanged.
        recorders: Recorders of attempts, events and conditions, in addition to those of metrics and events.
        on_deleted: Called with the key of each owner that is gone, to drop data that the process keeps for it.

    Raises:
        BuildError: If a setting is out of range.
    """

    name: str
    owner: OwnerType[O]
    components: Components[O]
    report: Report[O] | None = None
    published_conditions: Sequence[str] = ()
    abnormal_conditions: Sequence[str] = ()
    failure_condition: str = ""
    on_delete: Cleanup[O] | None = None
    pause_field: str = ""
    deletion_order: DeletionOrder = DeletionOrder.EXTERNAL_FIRST
    owns: Sequence[Kind] = ()
    reads: Sequence[Kind] = ()
    watches: Sequence[Watch] = ()
    late_kinds: Sequence[Kind] = ()
    uncached: Sequence[Kind] = ()
    webhooks: Sequence[Webhook[Any]] = ()
    former_managers: Sequence[str] = ()
    definitions: Sequence[Manifest] = ()
    workers: int = 4
    rate_limiter: RateLimiter = _DELAYS
    reconcile_timeout: timedelta = _LIMIT
    resync: timedelta | None = _RESYNC
    event_formatter: EventFormatter | None = None
    recorders: Sequence[Recorder] = ()
    on_deleted: Callable[[ObjectKey], object] | None = None

    def __post_init__(self) -> None:
        problems = []
        if not self.name:
            problems.append("an operator needs a name")
        else:
            problems += [f'name "{self.name}": {problem}' for problem in dns_label(self.name)]
        if self.workers < 1:
            problems.append(f"workers must be at least 1, got {self.workers}")
        if self.reconcile_timeout <= timedelta(0):
            problems.append(f"reconcile_timeout must be positive, got {self.reconcile_timeout}")
        if self.resync is not None and self.resync <= timedelta(0):
            problems.append(f"resync must be positive, or None for never, got {self.resync}")
        try:
            pause_path(self.pause_field)
        except ConfigError as error:
            problems.append(str(error))
        lists = {"published_conditions": self.published_conditions, "abnormal_conditions": self.abnormal_conditions}
        problems += [
            f'{name} must be a list of condition types, such as ["{one}"], not a text'
            for name, one in lists.items()
            if isinstance(one, str)
        ]
        types = [one for each in lists.values() if not isinstance(each, str) for one in each]
        problems += filter(None, map(condition_type_problem, dict.fromkeys([*types, self.failure_type])))
        problems += [
            f"{kind} is in `uncached`, so it cannot be watched"
            for _, kind in sorted({*self.declared_kinds} & {*self.uncached})
        ]
        problems += [
            f"{kind} is in `late_kinds`, but {api_version} {kind} is neither the kind of its owners nor in `owns` or "
            "`watches`"
            for api_version, kind in sorted({*self.late_kinds} - {*self.declared_kinds})
        ]
        problems += pattern_problems(self.former_managers)
        if problems:
            raise BuildError(problems)

    @property
    def owner_kind(self) -> Kind:
        """The kind of its owners."""
        return self.owner.api_version, self.owner.kind

    @property
    def owner_group_kind(self) -> tuple[str, str]:
        """Group and kind of its owners, which are the same in all versions."""
        return split_api_version(self.owner.api_version)[0], self.owner.kind

    @property
    def controller(self) -> str:
        """Reporting controller of its events: group of the owners and name, `example.com/shop-operator`."""
        group, _ = split_api_version(self.owner.api_version)
        return f"{group}/{self.name}" if group else self.name

    @property
    def failure_type(self) -> str:
        """Type of the condition that shows a failure that is not a component's own."""
        return self.failure_condition or f"{self.name}/Reconciled"

    @property
    def declared_conditions(self) -> frozenset[str]:
        """Types of the conditions that it is known to set before the first reconcile, or may set in any of them."""
        own = self.failure_type, f"{self.name}/Reconciled", condition_type(self.name), pause_condition(self.name)
        return frozenset({*self.published_conditions, *self.abnormal_conditions, *own})

    @cached_property
    def callbacks(self) -> Callbacks[O]:
        """The operator's functions, called with the arguments that they accept."""
        return Callbacks(self.components, self.report, self.on_delete)

    def policy_rules(
        self, components: Iterable[Component], *, enforced: bool = False, removes_finalizer: bool = False
    ) -> frozenset[PolicyRule]:
        """Return the RBAC rules of the operator, those for posting events included.

        Args:
            components: Its components in every state that they may have: gates open and closed.
            enforced: See `ocf.runtime.rbac.policy_rules`.
            removes_finalizer: Whether owners may still have the finalizer of an earlier version of the operator, which
                had an `on_delete` or cluster-scoped objects; removing it takes a privilege.

        Returns:
            The rules; `ManagerOptions.policy_rules` adds those of the process, for its lease and its webhooks.

        Raises:
            ConfigError: If a kind is neither built in nor defined.
        """
        definitions = self.all_definitions
        owners = rest_mapping(self.owner.api_version, self.owner.kind, definitions)
        without = DeletionOrder.EXTERNAL_FIRST if removes_finalizer else None
        order = self.deletion_order if self.on_delete is not None else without
        watched = {*self.owns, *self.reads, *self._watched} - {*self.uncached}
        found = policy_rules(
            components,
            owner=ObjectKey(self.owner.api_version, self.owner.kind, "any", "any" if owners.namespaced else ""),
            watches=sorted(watched),
            definitions=definitions,
            cached=True,
            enforced=enforced,
            deletion_order=order,
        )
        direct = {(one.group, one.plural) for one in (rest_mapping(*kind, definitions) for kind in self.uncached)}
        kept = {one for one in found if (one.group, one.resource) not in direct or one.verb not in {"list", "watch"}}
        read = (rest_mapping(*kind, definitions) for kind in self.reads)
        got = {PolicyRule(one.group, one.plural, "get", namespaced=one.namespaced) for one in read}
        # Events about a cluster-scoped object are in this namespace.
        events = EVENTS if owners.namespaced else {replace(one, namespace="default") for one in EVENTS}
        return frozenset(kept | got | events)

    @property
    def all_definitions(self) -> list[Manifest]:
        """The CustomResourceDefinitions of the owner and of other kinds, `definitions`; the owner's first."""
        own = self.owner.definition
        return [*([] if own is None else [own() if callable(own) else own]), *self.definitions]

    @property
    def conversions(self) -> tuple[VersionedResource, ...]:
        """The resources whose objects the process converts: that of its owners, if it has several versions."""
        versions = self.owner.versions
        return (versions,) if versions is not None and versions.has_conversions else ()

    @property
    def serves_webhooks(self) -> bool:
        """Whether API servers call the operator."""
        return bool(self.webhooks or self.conversions)

    @property
    def declared_kinds(self) -> tuple[Kind, ...]:
        """The kinds that are watched from the start: the owners' kind, `owns` and `watches`."""
        return tuple(dict.fromkeys((self.owner_kind, *self.owns, *self._watched)))

    @property
    def _watched(self) -> tuple[Kind, ...]:
        return tuple((watch.api_version, watch.kind) for watch in self.watches)
