"""Builders of resources, one class per category.

The builder of a kind adds its declaration, as the class attributes `kind` and `handlers`. A builder checks nothing
until `build`, which reports all problems together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Generic, Never, Self, TypeVar

from ocf.concepts import AliveStatus, CompletionStatus, Data, GuardStatus, OperationalStatus, StatusReport
from ocf.concepts.resource import DataRead, ObjectDefaults
from ocf.errors import BuildError, ConfigError, ManifestError
from ocf.feature import Mutation
from ocf.feature.mutation import PlainResult, mutation_problems
from ocf.objects import Manifest, load_document
from ocf.primitives.defaults import added_paths, completed, lacks_selector
from ocf.primitives.kind import (
    GraceHandler,
    Handlers,
    Kind,
    ModelT,
    MutatorT,
    StatusHandler,
    StatusT,
    SuspensionHandler,
    function_problems,
)
from ocf.primitives.resource import (
    Definition,
    Extraction,
    IntegrationResource,
    StaticResource,
    TaskResource,
    WorkloadResource,
)

__all__ = ["DataReader", "IntegrationBuilder", "StaticBuilder", "TaskBuilder", "WorkloadBuilder"]

_REFERENCE: Final = frozenset({"apiVersion", "kind", "metadata"})
_DEFAULT_HANDLERS: Final[Handlers[Any, Any, Any]] = Handlers()

ValueT = TypeVar("ValueT")
ResourceT = TypeVar("ResourceT")


class DataReader:
    """Methods of the builders of resources that read data cells."""

    _reads: list[DataRead]

    def with_data_guard(self, *cells: Data[Any]) -> Self:
        """Declare required data: the resource is blocked until all the cells are set.

        Args:
            cells: Cells that earlier resources fill.
        """
        self._reads.extend(DataRead(cell) for cell in cells)
        return self

    def with_optional_data(self, *cells: Data[Any]) -> Self:
        """Declare optional data: the resource reads the cells but does not wait for them.

        Args:
            cells: Cells that earlier resources fill.
        """
        self._reads.extend(DataRead(cell, optional=True) for cell in cells)
        return self


class _Builder(DataReader, Generic[ModelT, MutatorT, StatusT]):
    """Methods that the builders of all categories have.

    Args:
        base: The desired baseline: a model of the client, a manifest, or a YAML text with one document.
        kind: Declaration of a kind that is known at run time only; None for the class attribute.
        handlers: Default handlers of such a kind; None for the class attribute.

    Raises:
        ConfigError: If there is no declaration of the kind.
    """

    kind: Kind[ModelT, MutatorT]
    """Declaration of the kind, in the builder of one kind."""

    handlers: Handlers[ModelT, MutatorT, StatusT] = _DEFAULT_HANDLERS
    """Default handlers of the kind; without a status unless set."""

    # The problem that `build` reports if the status handler was cleared; empty for a category without a status.
    _missing_status: str = ""

    def __init__(
        self,
        base: ModelT | Manifest | str,
        kind: Kind[ModelT, MutatorT] | None = None,
        handlers: Handlers[ModelT, MutatorT, StatusT] | None = None,
    ) -> None:
        if kind is None and not hasattr(self, "kind"):
            raise ConfigError(f"{type(self).__name__}: kind: required value; set the class attribute, or pass a Kind")
        self._base: object = base
        self._kind = kind or self.kind
        self._handlers = handlers or self.handlers
        self._mutations: list[Mutation[MutatorT]] = []
        self._guard: Callable[[ModelT], StatusReport[GuardStatus]] | None = None
        self._extractions: list[Extraction[ModelT, Any]] = []
        self._reads = []
        self._metrics_identifier: str | None = None
        self._defaults = ObjectDefaults()
        self._selects_by_default = False
        self._defaulted: tuple[tuple[str, ...], ...] = ()

    def with_mutation(self, *mutations: Mutation[MutatorT]) -> Self:
        """Append mutations; they are applied in order of registration, each on the result of the ones before it.

        Args:
            mutations: Any number of mutations; their names must be unique within the resource.
        """
        self._mutations.extend(mutations)
        return self

    def with_guard(self, guard: Callable[[ModelT], StatusReport[GuardStatus]] | None) -> Self:
        """Set the guard, which can block the resource and all resources registered after it.

        Args:
            guard: Called with a copy of the baseline once all required data is extracted; None clears it.
        """
        self._guard = guard
        return self

    def extract_into(self, cell: Data[ValueT], extract: Callable[[ModelT], ValueT]) -> Self:
        """Declare that the resource fills a data cell as soon as it is applied or read.

        Args:
            extract: Called with the live object; its result is stored in the cell.
        """
        self._extractions.append(Extraction(cell, extract))
        return self

    def with_defaults(self, defaults: ObjectDefaults) -> Self:
        """Set what the object gets where its baseline has nothing; a component sets it for its owner.

        Args:
            defaults: Namespace, name and selector.
        """
        self._defaults = defaults
        return self

    def with_metrics_identifier(self, identifier: str) -> Self:
        """Set the value of the `resource` label of metrics; the default is the kind in lower case.

        Args:
            identifier: Text of the label; it must not be blank.
        """
        self._metrics_identifier = identifier
        return self

    def _build(self, resource: Callable[[Definition[ModelT, MutatorT, StatusT]], ResourceT]) -> ResourceT:
        """Check all settings and return the resource, or raise one `BuildError` with all problems."""
        problems: list[str] = []
        baseline = self._read_base(problems)
        problems.extend(self._problems())
        if problems:
            raise BuildError(problems)
        definition = Definition(
            kind=self._kind,
            baseline=baseline,
            handlers=self._handlers,
            mutations=tuple(self._mutations),
            guard=self._guard,
            extractions=tuple(self._extractions),
            reads=tuple(self._reads),
            metrics_identifier=self._metrics_identifier or "",
            selects_by_default=self._selects_by_default,
            defaulted=self._defaulted,
            is_reference=self._is_reference,
        )
        return resource(definition)

    def _read_base(self, problems: list[str]) -> Manifest:
        if self._base is None:
            problems.append("object cannot be None")
            return {}
        kind = self._kind
        try:
            if self._is_reference:
                base = self._document()
                complete = completed(base, kind, replace(self._defaults, selector={}))
                self._defaulted = tuple(added_paths(base, complete))
                baseline = kind.read_reference(complete)
                problems.extend(self._naming_problems(baseline.get("metadata") or {}))
                return baseline
            baseline = kind.read_base(self._completed())
        except ManifestError as error:
            problems.extend(f"{error.subject}: {problem}" for problem in error.problems)
            metadata = _metadata_of(self._base)
            problems.extend(self._naming_problems(metadata) if metadata is not None else ())
            return {}
        # A model is completed once it is a manifest.
        read, baseline = baseline, completed(baseline, kind, self._defaults)
        self._defaulted = self._defaulted or tuple(added_paths(read, baseline))
        problems.extend(self._naming_problems(baseline.get("metadata") or {}))
        try:
            kind.check(baseline)
        except ManifestError as error:
            problems.extend(f"{error.subject}: {problem}" for problem in error.problems)
        return baseline

    @property
    def _is_reference(self) -> bool:
        """Whether the base has only kind and metadata, and the component needs no more of the object."""
        base = self._document() if self._defaults.by_name else None
        return isinstance(base, Mapping) and base.keys() <= _REFERENCE

    def _document(self) -> Any:
        return load_document(self._base) if isinstance(self._base, str) else self._base

    def _completed(self) -> object:
        """Return the base with what it lacks, so that it can pass the strict checks; a model as it is."""
        base = self._document()
        if not isinstance(base, Mapping):
            return base
        self._selects_by_default = bool(self._defaults.selector) and lacks_selector(base, self._kind)
        complete = completed(dict(base), self._kind, self._defaults)
        self._defaulted = tuple(added_paths(base, complete))
        return complete

    def _naming_problems(self, metadata: Manifest) -> Iterator[str]:
        owner, cluster_scoped = self._defaults.owner, self._kind.cluster_scoped
        if not metadata.get("name") and (prefix := metadata.get("generateName")):
            instead = "" if owner is None else f", or omit both for that of the owner {owner.kind} {owner.name}"
            yield (
                f'object name cannot be empty: metadata.generateName "{prefix}" cannot replace it, because the API '
                "server generates another name for each create, so each reconcile would create another object; set "
                f"metadata.name{instead}"
            )
        elif not metadata.get("name") and owner is None:
            yield "object name cannot be empty"
        elif not metadata.get("name") and cluster_scoped and owner is not None and owner.namespace:
            yield (
                "the name of a cluster-scoped object cannot be empty: it does not take that of its owner, because "
                "owners in other namespaces may have the same"
            )
        if cluster_scoped and metadata.get("namespace"):
            yield "cluster-scoped object must not have a namespace"
        if not (cluster_scoped or metadata.get("namespace") or self._defaults.namespace):
            hint = (
                "" if owner is None else f": the owner {owner.kind} {owner.name} has none, so set it, or with_namespace"
            )
            yield f"object namespace cannot be empty{hint}"

    def _problems(self) -> Iterator[str]:
        namespace: object = self._defaults.namespace
        if not isinstance(namespace, str):
            yield f"default namespace must be a text, not of type {type(namespace).__name__}"
        identifier: object = self._metrics_identifier
        if identifier is not None and not isinstance(identifier, str):
            yield f"metrics identifier must be a text, not of type {type(identifier).__name__}"
        elif identifier is not None and not identifier.strip():
            yield "metrics identifier cannot be blank"
        yield from function_problems("guard", self._guard)
        yield from self._handlers.problems
        for extraction in self._extractions:
            if not isinstance(extraction.cell, Data):
                yield "declared data extraction requires a cell, not None"
            elif not callable(extraction.extract):
                yield f'declared data extraction into "{extraction.cell.name}" requires a function'
            else:
                yield from function_problems(f'data extraction into "{extraction.cell.name}"', extraction.extract)
        if not all(isinstance(read.cell, Data) for read in self._reads):
            yield "declared data read (with_data_guard or with_optional_data) requires a cell, not None"
        yield from self._mutation_problems()
        if self._missing_status and self._handlers.status is None:
            yield self._missing_status

    def _mutation_problems(self) -> Iterator[str]:
        names: list[str] = []
        for mutation in self._mutations:
            problems = list(mutation_problems(mutation))
            yield from problems
            names += [] if problems else [mutation.name]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield f'duplicate mutation name "{name}": mutation names must be unique within a resource'


def _metadata_of(base: object) -> Manifest | None:
    """Return the metadata of a base that is not a valid object of its kind; None if it does not have a map there."""
    if isinstance(base, str):
        with suppress(ManifestError):
            base = load_document(base)
    metadata = base.get("metadata", {}) if isinstance(base, Mapping) else None
    return metadata if isinstance(metadata, dict) else None


class StaticBuilder(_Builder[ModelT, MutatorT, Never]):
    """Builds a resource that is ready as soon as it exists."""

    def build(self) -> StaticResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(StaticResource)


class _GracefulBuilder(_Builder[ModelT, MutatorT, StatusT]):
    """Methods of categories with a grace status."""

    def with_custom_grace_status(self, handler: GraceHandler[ModelT] | None) -> Self:
        """Replace the grace handler.

        Args:
            handler: Returns the status of the live object after the grace period; None clears it, and requesting the
                status then raises an error.
        """
        self._handlers = replace(self._handlers, grace=handler)
        return self


class _SuspendableBuilder(_Builder[ModelT, MutatorT, StatusT]):
    """Methods of categories that can be suspended."""

    def with_custom_suspend_status(self, handler: SuspensionHandler[ModelT] | None) -> Self:
        """Replace the suspension handler.

        Args:
            handler: Returns the suspension status of the live object; None clears it, and requesting the status then
                raises an error.
        """
        self._handlers = replace(self._handlers, suspension=handler)
        return self

    def with_custom_suspend_mutation(self, edit: Callable[[MutatorT], PlainResult] | None) -> Self:
        """Replace the suspension edit.

        Args:
            edit: Records edits that run once, after all mutations, while the component is suspended; None clears it,
                and suspending then raises an error.
        """
        self._handlers = replace(self._handlers, suspend=edit)
        return self

    def with_custom_suspend_deletion_decision(self, decide: Callable[[ModelT], bool] | None) -> Self:
        """Replace the decision whether suspending deletes the object.

        Args:
            decide: Called with a copy of the baseline, possibly several times per reconcile; None clears it, and the
                object is not deleted.
        """
        self._handlers = replace(self._handlers, delete_on_suspend=decide)
        return self


class WorkloadBuilder(
    _GracefulBuilder[ModelT, MutatorT, AliveStatus], _SuspendableBuilder[ModelT, MutatorT, AliveStatus]
):
    """Builds a resource that runs until it is deleted."""

    _missing_status = "converging status handler is required"

    def with_custom_converge_status(self, handler: StatusHandler[ModelT, AliveStatus] | None) -> Self:
        """Replace the status handler.

        Args:
            handler: Returns the status of the live object; None clears it, and `build` then raises an error.
        """
        self._handlers = replace(self._handlers, status=handler)
        return self

    def build(self) -> WorkloadResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(WorkloadResource)


class TaskBuilder(_SuspendableBuilder[ModelT, MutatorT, CompletionStatus]):
    """Builds a resource that runs to completion."""

    _missing_status = "converging status handler is required"

    def with_custom_converge_status(self, handler: StatusHandler[ModelT, CompletionStatus] | None) -> Self:
        """Replace the status handler.

        Args:
            handler: Returns the status of the live object; None clears it, and `build` then raises an error.
        """
        self._handlers = replace(self._handlers, status=handler)
        return self

    def build(self) -> TaskResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(TaskResource)


class IntegrationBuilder(
    _GracefulBuilder[ModelT, MutatorT, OperationalStatus], _SuspendableBuilder[ModelT, MutatorT, OperationalStatus]
):
    """Builds a resource that another controller makes operational."""

    _missing_status = "operational status handler is required"

    def with_custom_operational_status(self, handler: StatusHandler[ModelT, OperationalStatus] | None) -> Self:
        """Replace the status handler.

        Args:
            handler: Returns the status of the live object; None clears it, and `build` then raises an error.
        """
        self._handlers = replace(self._handlers, status=handler)
        return self

    def build(self) -> IntegrationResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(IntegrationResource)
