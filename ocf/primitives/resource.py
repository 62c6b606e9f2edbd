"""Resources, one class per category.

A resource holds its baseline, its mutations and its handlers, but no state of a reconcile. So it can be rendered any
number of times, previewed without a cluster, and shared between reconciles.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, TypeVar

from ocf.concepts import (
    AliveStatus,
    ApplyOperation,
    CompletionStatus,
    GraceStatus,
    GuardStatus,
    OperationalStatus,
    ScaleTarget,
    StatusReport,
    SuspensionStatus,
)
from ocf.concepts.data import AuthorCode
from ocf.concepts.resource import DataRead, Rendering
from ocf.errors import FeatureGateError, HandlerError, MutationError, NotReadyError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import pod_causes
from ocf.primitives.kind import Handlers, Kind, ModelT, MutatorT, OnManifest, StatusT
from ocf.primitives.rendering import Renderer, explanation

if TYPE_CHECKING:
    from ocf.concepts import Data
    from ocf.concepts.provenance import Provenance
    from ocf.feature import Mutation
    from ocf.feature.mutation import PlainResult

__all__ = [
    "BaseResource",
    "Definition",
    "Extraction",
    "IntegrationResource",
    "ScalerResource",
    "StaticResource",
    "TaskResource",
    "WorkloadResource",
]

ValueT = TypeVar("ValueT")
ReportedT = TypeVar("ReportedT", bound=StrEnum)


@dataclass(frozen=True)
class Extraction(Generic[ModelT, ValueT]):
    """A data cell and the function that returns its value from the live object."""

    cell: Data[ValueT]
    extract: Callable[[ModelT], ValueT]


@dataclass(frozen=True, kw_only=True)
class Definition(Generic[ModelT, MutatorT, StatusT]):
    """All settings of a resource, as its builder collected and checked them; sequences are in order of declaration."""

    kind: Kind[ModelT, MutatorT]
    baseline: Manifest
    handlers: Handlers[ModelT, MutatorT, StatusT]
    mutations: tuple[Mutation[MutatorT], ...] = ()
    guard: Callable[[ModelT], StatusReport[GuardStatus]] | None = None
    extractions: tuple[Extraction[ModelT, Any], ...] = ()
    reads: tuple[DataRead, ...] = ()
    metrics_identifier: str = ""
    selects_by_default: bool = False
    defaulted: tuple[tuple[str, ...], ...] = ()
    is_reference: bool = False


class BaseResource(Generic[ModelT, MutatorT, StatusT]):
    """Base class of the resources of all categories."""

    def __init__(self, definition: Definition[ModelT, MutatorT, StatusT]) -> None:
        self._definition = definition
        self._kind = definition.kind
        self._handlers = definition.handlers
        self._key = ObjectKey.of(definition.baseline)
        self._identity = str(self._key)
        self._renderer = Renderer(definition.kind, self.identity, definition.baseline, definition.mutations)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"

    @property
    def key(self) -> ObjectKey:
        """The API version, kind, namespace and name of the object."""
        return self._key

    @property
    def identity(self) -> str:
        """The key as text, `autoscaling/v2/HorizontalPodAutoscaler/shop/backend-hpa`."""
        return self._identity

    @property
    def metrics_identifier(self) -> str:
        """Value of the `resource` label of metrics; empty means the kind in lower case."""
        return self._definition.metrics_identifier

    @property
    def selects_by_default(self) -> bool:
        """Whether its selector is that of the component, because its baseline has none."""
        return self._definition.selects_by_default

    @property
    def is_reference(self) -> bool:
        """Whether its baseline has only kind and name, because the component does not apply it."""
        return self._definition.is_reference

    def baseline(self) -> ModelT:
        """Return a copy of the baseline; required fields that a reference lacks have the zero value of their type."""
        baseline = self._definition.baseline
        return self._kind.read_live(baseline) if self.is_reference else self._kind.view(self._kind.open(baseline))

    def preview(self, *, ignore_fields: Collection[tuple[str, ...]] = ()) -> ModelT:
        """Return what `render` returns for the same arguments, as a model of the client.

        Args:
            ignore_fields: Fields that another controller sets.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        if self.is_reference:
            return self._kind.read_live(self.render(ignore_fields=ignore_fields))
        return self._renderer.model(ignore_fields)

    def render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        """Return the desired object: the baseline after all mutations that fire and the suspension edit, if requested.

        Args:
            suspended: Whether to apply the suspension edit; a resource that cannot be suspended does not have one.
            ignore_fields: Fields that another controller sets. Values from baseline and mutations are removed; only
                the suspension edit can set them.

        Returns:
            A new manifest; the caller may change it.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        return self.rendering(suspended=suspended, ignore_fields=ignore_fields).manifest

    def rendering(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Rendering:
        """Return what `render` returns for the same arguments, with the fields that edits have set to None.

        Args:
            suspended: Whether to apply the suspension edit.
            ignore_fields: Fields that another controller sets; they are not cleared.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        suspend = self._suspend_edit() if suspended else None
        return self._renderer.rendering(suspend=suspend, ignore_fields=ignore_fields)

    def explain(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Provenance:
        """Return the source of each field of the object that `render` returns for the same arguments.

        The object is compared before and after each step, so this takes as long as several renderings. Secret values
        are replaced by digests.

        Args:
            suspended: Whether to apply the suspension edit.
            ignore_fields: Fields that another controller sets.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.

        Example:
            >>> from ocf.primitives import hpa
            >>> target = {"kind": "Deployment", "name": "web"}
            >>> base = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            ...         "metadata": {"name": "web", "namespace": "shop"},
            ...         "spec": {"scaleTargetRef": target, "maxReplicas": 10}}
            >>> large = hpa.Mutation("large", lambda m: m.edit_hpa_spec(lambda spec: spec.set_max_replicas(20)))
            >>> field = hpa.Builder(base).with_mutation(large).build().explain().field("spec.maxReplicas")
            >>> field.value, str(field.source), field.previous.value, str(field.previous.source)
            (20, 'mutation large, edit_hpa_spec', 10, 'base')
        """
        suspend = self._suspend_edit() if suspended else None
        steps = self._renderer.steps(suspend=suspend, ignore_fields=ignore_fields)
        return explanation(self.identity, self._definition.mutations, steps, self._definition.defaulted)

    @property
    def registered_mutations(self) -> tuple[str, ...]:
        """Names of all mutations, in order of registration, whether their gates are open or not."""
        return tuple(mutation.name for mutation in self._definition.mutations)

    def firing_set(self) -> tuple[str, ...]:
        """Return the names of the mutations whose gate is absent or enabled, in order of registration.

        Raises:
            FeatureGateError: If a gate fails.
        """
        return tuple(mutation.name for mutation in self._definition.mutations if self._fires(mutation))

    @property
    def has_guard(self) -> bool:
        """Whether more than its required data decides when the resource may be reconciled."""
        return self._definition.guard is not None

    def guard_status(self) -> StatusReport[GuardStatus]:
        """Return whether the resource may be reconciled now: it needs all its required data, then its guard decides.

        Raises:
            HandlerError: If the guard raises or does not return a guard status.
        """
        missing = [f'"{read.cell.name}"' for read in self._definition.reads if not (read.optional or read.cell.is_set)]
        if missing:
            return StatusReport(GuardStatus.BLOCKED, f"waiting for data {', '.join(missing)}")
        guard = self._definition.guard
        if guard is None:
            return StatusReport(GuardStatus.UNBLOCKED)
        return _call_handler("guard", self.identity, GuardStatus, lambda: guard(self.baseline()))

    @property
    def produced_data(self) -> tuple[Data[Any], ...]:
        """The cells it fills, each once, in order of declaration."""
        return tuple(dict.fromkeys(extraction.cell for extraction in self._definition.extractions))

    @property
    def consumed_data(self) -> tuple[DataRead, ...]:
        """The cells it reads, in order of declaration."""
        return self._definition.reads

    def extract_data(self, live: Manifest) -> None:
        """Fill the cells from the live object, in order of declaration.

        Args:
            live: The object as the API server returned it.

        Raises:
            HandlerError: If an extraction raises; its cell and the later ones are not changed.
        """
        if not self._definition.extractions:
            return
        model = self._observe(live)
        for extraction in self._definition.extractions:
            code = AuthorCode(self.identity)
            try:
                value = extraction.extract(model)
            except Exception as error:
                # Even an error of ours may quote a value that it could not parse, and the object may be a Secret.
                problem = f'extract data "{extraction.cell.name}": {type(error).__name__}'
                raise HandlerError(problem) from error
            # The value may be made of one that comes from a Secret.
            extraction.cell.put(value, from_secret=code.knows_secret)

    def _suspend_edit(self) -> Callable[[MutatorT], PlainResult] | None:
        return None

    def _fires(self, mutation: Mutation[MutatorT]) -> bool:
        code = AuthorCode(self.identity)

        def failed(error: Exception) -> FeatureGateError:
            text = code.error_text(error) if code.has_read_secret else str(error)
            return FeatureGateError(f'evaluating gate for mutation "{mutation.name}": {text}')

        with code.raising(failed):
            return mutation.fires()

    def _judge(
        self,
        handler: Callable[..., StatusReport[ReportedT]] | OnManifest[ReportedT],
        live: Manifest,
        *before: ApplyOperation,
    ) -> StatusReport[ReportedT]:
        """Return the report of a status handler about a live object, in the form that the handler reads."""
        if isinstance(handler, OnManifest):
            return handler.handler(*before, self._of_kind(live))
        return handler(*before, self._observe(live))

    def _observe(self, live: Manifest) -> ModelT:
        """Return a live object as the model that handlers receive."""
        return self._kind.read_live(self._of_kind(live))

    def _of_kind(self, live: Manifest) -> Manifest:
        expected = (self._kind.api_version, self._kind.name)
        if (live.get("apiVersion"), live.get("kind")) != expected:
            seen = f"{live.get('apiVersion')} {live.get('kind')}"
            raise HandlerError(f"{self.identity}: expected an object of {' '.join(expected)}, got {seen}")
        return live


class StaticResource(BaseResource[ModelT, MutatorT, Never]):
    """A resource without a status: it is ready as soon as it exists."""


class _GracefulResource(BaseResource[ModelT, MutatorT, StatusT]):
    """A resource with a status after the grace period."""

    def grace_status(self, live: Manifest) -> StatusReport[GraceStatus]:
        """Return the status of the live object after the grace period.

        Args:
            live: The object as the API server returned it.

        Raises:
            HandlerError: If the handler is missing, raises, or returns a status outside its vocabulary.
        """
        handler = self._handlers.grace
        if handler is None:
            raise HandlerError(f"{self.identity}: grace status handler is not configured")
        return _call_handler("grace status", self.identity, GraceStatus, lambda: self._judge(handler, live))


class _SuspendableResource(BaseResource[ModelT, MutatorT, StatusT]):
    """A resource that can be suspended."""

    def delete_on_suspend(self) -> bool:
        """Return whether suspending deletes the object.

        Raises:
            HandlerError: If the handler raises.
        """
        decide = self._handlers.delete_on_suspend
        if decide is None:
            return False
        code, what = AuthorCode(self.identity), f"{self.identity}: deletion decision failed"
        with code.raising(lambda error: HandlerError(f"{what}: {code.error_text(error)}")):
            return bool(decide(self.baseline()))

    def suspension_status(self, live: Manifest) -> StatusReport[SuspensionStatus]:
        """Return the suspension status of the live object.

        Args:
            live: The object as the API server returned it.

        Raises:
            HandlerError: If the handler is missing, raises, or returns a status outside its vocabulary.
        """
        handler = self._handlers.suspension
        if handler is None:
            raise HandlerError(f"{self.identity}: suspend status handler is not configured")
        return _call_handler("suspension status", self.identity, SuspensionStatus, lambda: self._judge(handler, live))

    def _suspend_edit(self) -> Callable[[MutatorT], PlainResult] | None:
        if self._handlers.suspend is None:
            raise HandlerError(f"{self.identity}: suspend mutation handler is not configured")
        return self._handlers.suspend


class _PodSource(BaseResource[ModelT, MutatorT, StatusT]):
    """A resource whose object may have pods."""

    def pod_selector(self, live: Manifest) -> str:
        """Return the label selector of the pods of the live object; empty if it has none."""
        return pod_causes.pod_selector(live)

    def lacks_pods(self, live: Manifest, pods: Sequence[Manifest]) -> bool:
        """Return whether the live object has fewer pods than it should have."""
        return pod_causes.lacks_pods(live, pods)

    def pod_cause(self, pods: Sequence[Manifest]) -> str:
        """Return why pods are not ready; empty if that is not known."""
        return pod_causes.pod_cause(pods)

    def refusal_cause(self, events: Sequence[Manifest], now: datetime) -> str:
        """Return why no pods are created, by events about the live object; empty if that is not known."""
        return pod_causes.refusal_cause(events, now)


class WorkloadResource(
    _GracefulResource[ModelT, MutatorT, AliveStatus],
    _SuspendableResource[ModelT, MutatorT, AliveStatus],
    _PodSource[ModelT, MutatorT, AliveStatus],
):
    """A resource that runs until it is deleted."""

    def alive_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[AliveStatus]:
        """Return the status of the live object.

        Args:
            operation: What this reconcile did to the object.
            live: The object as the API server returned it.

        Raises:
            HandlerError: If the handler is missing, raises, or returns a status outside its vocabulary.
        """
        return _converging(self, AliveStatus, operation, live)


class TaskResource(
    _SuspendableResource[ModelT, MutatorT, CompletionStatus], _PodSource[ModelT, MutatorT, CompletionStatus]
):
    """A resource that runs to completion."""

    def completion_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[CompletionStatus]:
        """Return the status of the live object.

        Args:
            operation: What this reconcile did to the object.
            live: The object as the API server returned it.

        Raises:
            HandlerError: If the handler is missing, raises, or returns a status outside its vocabulary.
        """
        return _converging(self, CompletionStatus, operation, live)


class IntegrationResource(
    _GracefulResource[ModelT, MutatorT, OperationalStatus], _SuspendableResource[ModelT, MutatorT, OperationalStatus]
):
    """A resource that another controller makes operational."""

    def operational_status(self, operation: ApplyOperation, live: Manifest) -> StatusReport[OperationalStatus]:
        """Return the status of the live object.

        Args:
            operation: What this reconcile did to the object.
            live: The object as the API server returned it.

        Raises:
            HandlerError: If the handler is missing, raises, or returns a status outside its vocabulary.
        """
        return _converging(self, OperationalStatus, operation, live)


class ScalerResource(IntegrationResource[ModelT, MutatorT]):
    """An autoscaler as a resource of a component; only it sets the replica count of its target."""

    default_target: ClassVar[tuple[str, str]] = ("", "")
    """API version and kind of a target whose reference does not name them."""

    def scale_target(self, rendered: Manifest | None = None) -> ScaleTarget:
        """Return the scale target of the rendered object.

        While a mutation waits for data that is not extracted yet, this is the target of the baseline.

        Args:
            rendered: The object as rendered in this reconcile; None renders it.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        if rendered is None:
            try:
                rendered = self.render()
            except MutationError as error:
                if not isinstance(error.__cause__, NotReadyError):
                    raise
                rendered = self._definition.baseline
        reference = rendered["spec"]["scaleTargetRef"]
        api_version, kind = self.default_target
        key = ObjectKey(
            reference.get("apiVersion") or api_version,
            reference.get("kind") or kind,
            reference["name"],
            self.key.namespace,
        )
        return ScaleTarget(key)


def _converging(
    resource: BaseResource[Any, Any, StatusT], vocabulary: type[StatusT], operation: ApplyOperation, live: Manifest
) -> StatusReport[StatusT]:
    handler = resource._handlers.status  # noqa: SLF001 (a resource of this module)
    if handler is None:
        raise HandlerError(f"{resource.identity}: status handler is not configured")
    return _call_handler("status", resource.identity, vocabulary, lambda: resource._judge(handler, live, operation))  # noqa: SLF001


def _call_handler(
    what: str, identity: str, vocabulary: type[StatusT], handler: Callable[[], StatusReport[StatusT]]
) -> StatusReport[StatusT]:
    """Return the report of a handler, with a status of the vocabulary; anything else is a `HandlerError`."""
    # An unknown status is rejected here, because callers could not rank it and might treat it as healthy.
    code, failed = AuthorCode(identity), f"{identity}: {what} handler failed"
    with code.raising(lambda error: HandlerError(f"{failed}: {code.error_text(error)}"), unchanged=HandlerError):
        report: object = handler()
    if inspect.iscoroutine(report):
        report.close()
        raise HandlerError(f"{identity}: {what} handler is asynchronous; it has to return its answer")
    if not isinstance(report, StatusReport) or not isinstance(report.reason, str):
        raise HandlerError(f"{identity}: {what} handler must return a StatusReport, got {type(report).__name__}")
    try:
        return StatusReport(vocabulary(report.status), report.reason)
    except ValueError:
        allowed = ", ".join(vocabulary)
        raise HandlerError(f'{identity}: {what} handler returned "{report.status}", must be one of {allowed}') from None
