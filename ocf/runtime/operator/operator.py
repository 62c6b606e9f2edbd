"""Declaration of an operator: the kind of its owners, their components, and the kinds that it watches.

A declaration is a frozen value; `running`, `run` and `main` run it.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ocf.cluster.cache import Selection
from ocf.component import Component, DeletionOrder
from ocf.component.author_code import is_cancelled
from ocf.component.model.former_managers import pattern_problems
from ocf.component.owner_deletion import FinalizerNames, condition_type, finalizer_problems
from ocf.component.pause import pause_condition, pause_path
from ocf.concepts import Recorder
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import BuildError, ConfigError, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import condition_type_problem
from ocf.objects.manifest import copy_json, split_api_version
from ocf.objects.name_validation import dns_label
from ocf.objects.selectors import LabelSelector
from ocf.runtime.admission.policies import Policy, policy_problems
from ocf.runtime.admission.webhooks import Webhook
from ocf.runtime.crds import VersionedResource
from ocf.runtime.events.recorders import EventFormatter
from ocf.runtime.operator.callbacks import Callbacks
from ocf.runtime.operator.owner_type import OwnerType
from ocf.runtime.operator.predicates import Predicate
from ocf.runtime.operator.process import BackgroundTask, Lifespan
from ocf.runtime.operator.relations import Relation
from ocf.runtime.operator.types import Cleanup, Components, Report
from ocf.runtime.operator.uncached_kinds import UncachedKinds, wildcard_problems
from ocf.runtime.operator.watches import Watch
from ocf.runtime.rbac.policy_rule import PolicyRule
from ocf.runtime.rbac.rules import ANY, EVENTS, declared_rules, is_known, mapping_or_guess, policy_rules
from ocf.runtime.workqueue.queue import RateLimiter
from ocf.schema.rest_mapping import rest_mapping

__all__ = ["Kind", "Operator"]

O = TypeVar("O")  # noqa: E741 (the owner)

Kind: TypeAlias = tuple[str, str]
"""A kind, `("apps/v1", "Deployment")`."""

_DELAYS: Final = ExponentialBackoff()
_LIMIT: Final = timedelta(minutes=5)
_RESYNC: Final = timedelta(hours=10)


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
        select: Which objects of the owner kind are its owners; empty for all. A label selector, such as
            `example.com/copy=true`, or a `Selection` by labels, fields and namespaces, goes to the API server, so that
            other objects of the kind are neither sent to the process nor cached. A function is called with the manifest
            of an object, for annotations or other fields, and returns True or False; the metadata of all others is
            cached then. Objects that are not selected get no finalizer, status or reconcile. An owner that is not
            selected any more is released: the finalizers of the operator are removed without a call of `on_delete`, and
            its objects and its status stay. If it is being deleted, it is cleaned up as if it were selected. Webhooks
            get every object.
        published_conditions: Types of the conditions that it publishes beside those of its components. Generated alerts
            and dashboards watch them.
        abnormal_conditions: Those that are bad when True, such as `Degraded`; generated alerts and dashboards leave
            them out.
        failure_condition: Type of the condition that shows a failure that is not a component's own: False, with the
            reason `Error`, while reconciles fail. It does not exist otherwise. Such a failure changes no other
            condition. Empty for `<name>/Reconciled`; None writes none: a failure is an event, in the log and in the
            metrics.
        on_delete: Deletes what Kubernetes does not collect: a database, a DNS record, a bucket. Called with the owner,
            the context and the cluster while the owner is being deleted, and again until it returns None; it must
            succeed if there is nothing left to delete. A finalizer, set before the first call of `components`, holds
            the owner until then. A `CleanupPending` asks for another call; an error is retried with backoff.
        pause_field: A field of the spec that pauses an owner while it is true, such as `spec.paused`, beside the
            annotation `<name>.ocf.dev/paused`. Nothing is written for a paused owner. Empty for none.
        deletion_order: Whether `on_delete` is called before or after the objects of the components are deleted.
        owns: Kinds of objects that its components create. They are watched from the start, and no reconcile begins
            before they are read; other kinds are watched from their first request on.
        reads: Kinds that its functions read themselves, for the RBAC rules. Here and in `writes` and `deletes`,
            `("example.com/*", "*")` is for all kinds of a group, and `("*", "*")` for all.
        writes: Kinds of which its functions create or change objects themselves, through `context.cluster` or the
            `Process`, for the RBAC rules. A subresource is named as in a role: `("apps/v1", "Deployment/scale")`.
        deletes: Kinds of which its functions delete objects, by `context.children.delete` or `context.cluster.delete`,
            for the RBAC rules.
        patches_owner: Whether its functions call `context.patch_owner`, for the RBAC rules.
        watches: Watches of objects that affect owners in other ways, and relations by label selectors; no reconcile
            begins before their kinds are read.
        triggers: Which changes of the objects of a kind trigger a reconcile, by predicates such as `spec_changed`; each
            change of a kind that is not named does. The kind may be that of the owners, of their objects, of what
            reconciles read or of a watch.
        late_kinds: Declared kinds (its owners', or of `owns` or `watches`) that may be installed at any time after the
            start: the process waits for them. For others that are not served it waits for at most
            `ManagerOptions.cache_sync_timeout`, and ends with an error then.
        uncached: Kinds that are never cached: each read is a request, and changes trigger nothing. For kinds that are
            known only at run time, `("example.com/*", "*")` is for all kinds of a group, and `("*", "*")` for all, but
            for those that an operator of the process declares.
        selections: Which objects of a kind are listed, watched and cached, where these are not all: by label, field or
            namespace, or only those that reconciles read or write by name; that is the default for Secrets and
            ConfigMaps of which the operator makes and declares none. Owners are selected by `select`.
        webhooks: Admission webhooks, of owners or of any other kind; several of a kind need different names.
            `ManagerOptions.admission` has the options of their server.
        policies: Admission policies, which the API server evaluates itself; the manifests of the operator have them.
        former_managers: Field managers of clients that wrote the objects of its components before, by name or pattern,
            such as `kubectl-client-side-apply`: what they have set is taken over once per object. See
            `ocf.component.Builder.with_former_managers`.
        finalizer: Name of the finalizer that holds an owner until `on_delete` has succeeded, exactly as given, such as
            `finalizer.example.com`; empty for `<name>.ocf.dev/cleanup-external`. Where owners have the latter, it is
            replaced.
        former_finalizers: Finalizers that a former operator of the owners has left on them and does not remove any
            more, by name or pattern, such as `kopf.zalando.org/KopfFinalizerMarker`. They are replaced by that of this
            operator in one write, hold an owner that is being deleted until `on_delete` has succeeded, and without an
            `on_delete` are removed at once. No other finalizer is changed.
        lifespan: Opens what its functions need for as long as the process runs, such as an HTTP session: an
            `asynccontextmanager` that takes the `Process`. In each replica it is opened before anything else of the
            operator runs, webhooks included, and closed after it. What it puts into `process.values`, each reconcile
            finds in `context.values`. A failure to open it ends the process.
        leader_lifespan: The same for what only one process may hold: it is opened each time that the process becomes
            the leader, before the first reconcile, and closed after the last one, before the lease is released.
        tasks: Coroutine functions that run beside the reconciles, once or with a period of their own.
        definitions: The CustomResourceDefinitions of the kinds of its components that are not built in.
        workers: How many owners are reconciled at once.
        rate_limiter: How long an owner waits after a failed reconcile.
        reconcile_timeout: How long a reconcile may take before it is cancelled, which is an error.
        resync: Period after which all owners are reconciled without an event; None for never.
        event_formatter: Rewrites events in the operator's own terms; None posts them unchanged.
        fold_events: Whether the events of a reconcile about objects that it created, updated or deleted are posted as
            one event; otherwise, each is an event.
        recorders: Recorders of attempts, events and conditions, in addition to those of metrics and events.
        on_deleted: Called with the key of each owner that is gone, to drop data that the process keeps for it.

    Raises:
        BuildError: If a setting is out of range.
    """

    name: str
    owner: OwnerType[O]
    components: Components[O]
    select: str | Selection | Callable[[Manifest], bool] = ""
    report: Report[O] | None = None
    published_conditions: Sequence[str] = ()
    abnormal_conditions: Sequence[str] = ()
    failure_condition: str | None = ""
    on_delete: Cleanup[O] | None = None
    pause_field: str = ""
    deletion_order: DeletionOrder = DeletionOrder.EXTERNAL_FIRST
    owns: Sequence[Kind] = ()
    reads: Sequence[Kind] = ()
    writes: Sequence[Kind] = ()
    deletes: Sequence[Kind] = ()
    patches_owner: bool = False
    watches: Sequence[Watch | Relation] = ()
    triggers: Mapping[Kind, Predicate] = field(default_factory=dict)
    late_kinds: Sequence[Kind] = ()
    uncached: Sequence[Kind] = ()
    selections: Mapping[Kind, Selection] = field(default_factory=dict)
    webhooks: Sequence[Webhook[Any]] = ()
    policies: Sequence[Policy] = ()
    former_managers: Sequence[str] = ()
    finalizer: str = ""
    former_finalizers: Sequence[str] = ()
    lifespan: Lifespan | None = None
    leader_lifespan: Lifespan | None = None
    tasks: Sequence[BackgroundTask] = ()
    definitions: Sequence[Manifest] = ()
    workers: int = 4
    rate_limiter: RateLimiter = _DELAYS
    reconcile_timeout: timedelta = _LIMIT
    resync: timedelta | None = _RESYNC
    event_formatter: EventFormatter | None = None
    fold_events: bool = True
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
        problems += _selection_problems(self.select, self.owner_kind in self.watched_kinds)
        problems += [
            f"watches: the relation of {one.kind[1]} to {one.selects[1]} does not concern {self.owner.kind}"
            for one in self.watches
            if isinstance(one, Relation) and self.owner_kind not in (one.kind, one.selects)
        ]
        named = {"uncached": self.uncached, "reads": self.reads, "writes": self.writes, "deletes": self.deletes}
        problems += [one for option, kinds in named.items() for one in wildcard_problems(option, kinds)]
        problems += wildcard_problems("owns or watches", self.watched_kinds, allowed=False)
        # What the API server selects has a cache of its own.
        apart = not _is_invalid(self.select) and self.selects_by_server
        watched = self.watched_kinds if apart else self.declared_kinds
        problems += [
            f"{kind} is in `uncached`, so it cannot be watched" for _, kind in sorted({*watched} & {*self.uncached})
        ]
        problems += [
            f"{kind} is in `late_kinds`, but {api_version} {kind} is neither the kind of its owners nor in `owns` or "
            "`watches`"
            for api_version, kind in sorted({*self.late_kinds} - {*self.declared_kinds})
        ]
        problems += _choice_problems(self.selections, self.owner_kind, self.uncached_kinds)
        problems += _trigger_problems(self.triggers, {*self.uncached} - ({self.owner_kind} if apart else set()))
        names = [task.name for task in self.tasks]
        problems += [f'two tasks are named "{name}"' for name in sorted({*names}) if names.count(name) > 1]
        problems += policy_problems(self.policies)
        problems += pattern_problems(self.former_managers)
        problems += finalizer_problems(self.name, self.finalizer, self.former_finalizers)
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

    @cached_property
    def selection(self) -> Selection:
        """What the API server selects of the kind of its owners; all if a function selects them."""
        if isinstance(self.select, Selection):
            return self.select
        return Selection(label_selector=self.select) if isinstance(self.select, str) else Selection()

    @property
    def selects_by_server(self) -> bool:
        """Whether the API server selects its owners."""
        return not self.selection.selects_all

    def selects(self, live: Manifest) -> bool:
        """Return whether an object of the kind of its owners is an owner, or may be, if only the API server knows.

        Args:
            live: The object.

        Raises:
            ConfigError: If the function `select` fails. The text of its own error may quote the object.
        """
        if isinstance(self.select, str | Selection):
            return self.selection.selects(live) is not False
        what = f"`select` of the operator {self.name}, called with {ObjectKey.of(live)},"
        try:
            # The function gets a copy: the object is written and compared afterwards.
            answer: object = self.select(copy_json(live))
        except (Exception, CancelledError) as error:
            if is_cancelled(error):
                raise
            raise ConfigError(f"{what} raised {type(error).__name__}") from error
        if not isinstance(answer, bool):
            raise ConfigError(f"{what} must return True or False, got {type(answer).__name__}")
        return answer

    @property
    def controller(self) -> str:
        """Reporting controller of its events: group of the owners and name, `example.com/shop-operator`."""
        group, _ = split_api_version(self.owner.api_version)
        return f"{group}/{self.name}" if group else self.name

    @property
    def finalizers(self) -> FinalizerNames:
        """Names of its finalizers on its owners."""
        return FinalizerNames(self.name, self.finalizer, tuple(self.former_finalizers))

    @property
    def failure_type(self) -> str:
        """Type of the condition that shows a failure that is not a component's own."""
        return self.failure_condition or self.reconciled_type

    @property
    def reconciled_type(self) -> str:
        """Type of the condition about the reconciles themselves, which only the operator sets."""
        return f"{self.name}/Reconciled"

    @property
    def declared_conditions(self) -> frozenset[str]:
        """Types of the conditions that it is known to set before the first reconcile, or may set in any of them."""
        own = self.failure_type, self.reconciled_type, condition_type(self.name), pause_condition(self.name)
        return frozenset({*self.published_conditions, *self.abnormal_conditions, *own})

    @cached_property
    def callbacks(self) -> Callbacks[O]:
        """The operator's functions, called with the arguments that they accept."""
        return Callbacks(self.owner, self.components, self.report, self.on_delete)

    def policy_rules(
        self,
        components: Iterable[Component],
        *,
        enforced: bool = False,
        removes_finalizer: bool = False,
        definitions: Sequence[Manifest] = (),
    ) -> frozenset[PolicyRule]:
        """Return the RBAC rules of the operator, those for posting events included.

        Args:
            components: Its components in every state that they may have: gates open and closed.
            enforced: See `ocf.runtime.rbac.policy_rules`.
            removes_finalizer: Whether owners may still have the finalizer of an earlier version of the operator, which
                had an `on_delete` or cluster-scoped objects; removing it takes a privilege.
            definitions: Further CustomResourceDefinitions, such as those of the other operators of the process.

        Returns:
            The rules; `ManagerOptions.policy_rules` adds those of the process, for its lease and its webhooks.

        Raises:
            ConfigError: If the owner's kind, or one of the components, is neither built in nor defined. For the kinds
                of `owns`, `watches`, `reads`, `writes` and `deletes` the plural is guessed, see `undefined_kinds`.
        """
        definitions = [*self.all_definitions, *definitions]
        owners = rest_mapping(self.owner.api_version, self.owner.kind, definitions)
        without = DeletionOrder.EXTERNAL_FIRST if removes_finalizer else None
        without = DeletionOrder.EXTERNAL_FIRST if self.former_finalizers or self.finalizer else without
        order = self.deletion_order if self.on_delete is not None else without
        rules = partial(
            policy_rules,
            tuple(components),
            owner=ObjectKey(self.owner.api_version, self.owner.kind, "any", "any" if owners.namespaced else ""),
            watches=sorted({*self.watched_kinds} - {*self.uncached}),
            definitions=definitions,
            enforced=enforced,
            deletion_order=order,
        )
        # The latter are lists and watches of the framework's own, whether it has a cache or not.
        found, needed = rules(cached=True), rules()
        related = [kind for one in self.watches if isinstance(one, Relation) for kind in (one.kind, one.selects)]
        declared = declared_rules(
            reads=(*self.reads, *related), writes=self.writes, deletes=self.deletes, definitions=definitions
        )
        uncached = self.uncached_kinds
        direct = {(one.group, one.plural) for one in (mapping_or_guess(*kind, definitions) for kind in uncached.named)}

        def is_cached(one: PolicyRule) -> bool:
            return not ((one.group, one.resource) in direct or uncached.has_group(one.group))

        got = {one for one in found if one in needed or is_cached(one)}
        got |= {one for one in declared if one.verb not in {"list", "watch"} or one in needed or is_cached(one)}
        if self.patches_owner:
            got.add(PolicyRule(owners.group, owners.plural, "patch", namespaced=owners.namespaced))
        # Events about a cluster-scoped object are in this namespace.
        events = EVENTS if owners.namespaced else {replace(one, namespace="default") for one in EVENTS}
        return frozenset(got | events)

    def undefined_kinds(self, definitions: Iterable[Manifest] = ()) -> tuple[Kind, ...]:
        """Return the kinds that it names, for which the plural in the RBAC rules is guessed.

        Args:
            definitions: Further CustomResourceDefinitions, as for `policy_rules`.
        """
        known = [*self.all_definitions, *definitions]
        named = (*self.watched_kinds, *self.reads, *self.writes, *self.deletes, *self.uncached)
        found = {(api_version, name.partition("/")[0]) for api_version, name in named}
        return tuple(kind for kind in sorted(found) if kind[1] != ANY and not is_known(*kind, known))

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
        return tuple(dict.fromkeys((self.owner_kind, *self.watched_kinds)))

    @property
    def watched_kinds(self) -> tuple[Kind, ...]:
        """The kinds of which all objects are watched from the start: `owns` and `watches`."""
        return tuple(dict.fromkeys((*self.owns, *((watch.api_version, watch.kind) for watch in self.kind_watches))))

    @cached_property
    def uncached_kinds(self) -> UncachedKinds:
        """The kinds in `uncached`."""
        return UncachedKinds(self.uncached, self.declared_kinds)

    @cached_property
    def kind_watches(self) -> tuple[Watch, ...]:
        """Its watches, with those of its relations."""
        found: list[Watch] = []
        for one in self.watches:
            found += one.watches_of(self.owner_kind) if isinstance(one, Relation) else [one]
        return tuple(found)


def _is_invalid(select: object) -> bool:
    return any(True for _ in _selection_problems(select))


def _selection_problems(select: object, is_watched: bool = False) -> Iterator[str]:  # noqa: FBT001, FBT002 (private)
    """Yield why owners cannot be selected in this way, also if their kind is watched as a whole."""
    if isinstance(select, Selection):
        if select.by_name or select.metadata_only:
            yield "select: owners are held as a whole, and all of them: leave out by_name and metadata_only"
        if select.namespaces and is_watched:
            yield "select: with namespaces, the kind of the owners cannot be in `owns` or `watches` as well"
    elif isinstance(select, str):
        try:
            LabelSelector.parse(select)
        except ManifestError as error:
            yield f'select: "{select}" is not a label selector: {error}'
    elif not callable(select) or inspect.iscoroutinefunction(select):
        what = "a label selector, a Selection, or a function of a manifest that returns a bool"
        yield f"select must be {what}, got {select!r:.60}"


def _choice_problems(given: Mapping[Any, object], owners: Kind, uncached: Container[Kind]) -> Iterator[str]:
    """Yield why the objects of a kind cannot be selected."""
    for kind, selection in given.items():
        if not (isinstance(kind, tuple) and list(map(type, kind)) == [str, str] and ANY not in kind):
            yield f'selections: a kind must be a pair such as ("v1", "Secret"), got {kind!r:.60}'
        elif not isinstance(selection, Selection):
            yield f"selections: {kind[1]} needs a Selection, got {selection!r:.60}"
        elif kind == owners:
            yield f"selections: {kind[1]} is the kind of the owners, which `select` selects"
        elif kind in uncached:
            yield f"selections: {kind[1]} is in `uncached`, so that nothing of it is cached"


def _trigger_problems(triggers: Mapping[Any, object], uncached: Collection[Kind]) -> Iterator[str]:
    """Yield why changes of a kind cannot be compared."""
    for kind, predicate in triggers.items():
        if not (isinstance(kind, tuple) and list(map(type, kind)) == [str, str]):
            yield f'triggers: a kind must be a pair such as ("apps/v1", "Deployment"), got {kind!r:.60}'
        elif kind in uncached:
            yield f"triggers: {kind[1]} is in `uncached`, so that its changes trigger nothing"
        elif not callable(predicate) or inspect.iscoroutinefunction(predicate):
            yield f"triggers: {kind[1]} needs a function of two manifests that returns a bool, got {predicate!r:.60}"
