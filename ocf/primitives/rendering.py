"""Rendering of a resource: record the edits of all mutations, then apply them to a copy of the baseline.

All mutations record their edits before the first edit is applied, so a gate that fails does so before the copy is
changed. The object is returned only after all edits have succeeded, so a partly edited object is never visible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from ocf.concepts import Effect, MutationEffect, Provenance, ProvenanceTrace, Source, SourceKind
from ocf.concepts.data import secret_reads
from ocf.errors import DataNotExtractedError, ManifestError, MutationError, OcfError
from ocf.feature import BooleanGate, VersionGate
from ocf.feature.mutation import record_edits
from ocf.objects import copy_json, describe_invalid, without_field
from ocf.primitives.kind import Kind, ModelT, MutatorT
from ocf.primitives.mutator import EditError

if TYPE_CHECKING:
    from ocf.feature import Gate, Mutation, PlainResult
    from ocf.objects import Manifest

__all__ = ["Renderer", "cause_text", "closed_because", "explanation", "is_of_secret"]

_SUSPENSION: Final = "suspension"
_OF_SECRET: Final = "v1/Secret/"  # noqa: S105 (a kind)
_WITHHELD: Final = "text withheld, since it may quote a Secret; the traceback is in the log at level DEBUG"


class _Plan(NamedTuple):
    """The edits that one mutation recorded."""

    mutation: str
    stage: str
    mutator: Any
    # `secret_reads` before the rendering: a later edit may quote a value that an earlier one has set.
    since: int


class Renderer(Generic[ModelT, MutatorT]):
    """Renders one resource; it changes neither itself nor the baseline, so it can be used any number of times."""

    __slots__ = ("_baseline", "_identity", "_kind", "_mutations")

    def __init__(
        self,
        kind: Kind[ModelT, MutatorT],
        identity: str,
        baseline: Manifest,
        mutations: Sequence[Mutation[MutatorT]],
    ) -> None:
        self._kind = kind
        self._identity = identity
        self._baseline = baseline
        self._mutations = mutations

    def model(self, ignore_fields: Collection[tuple[str, ...]] = ()) -> ModelT:
        """Return the object after all mutations, without the ignored fields, as a model."""
        if ignore_fields:
            since = secret_reads()
            return self._kind.view(self._read(self.manifest(ignore_fields=ignore_fields), since))
        return self._kind.view(self._edited(self._plans(), self._baseline)[0])

    def manifest(
        self,
        *,
        suspend: Callable[[MutatorT], PlainResult] | None = None,
        ignore_fields: Collection[tuple[str, ...]] = (),
    ) -> Manifest:
        """Return the object after all mutations and the suspension edit."""
        since = secret_reads()
        manifest = self._written(self._plans(), self._baseline)
        # Before the suspension edit, which alone may set a field that another controller sets while it runs.
        for path in ignore_fields:
            manifest = without_field(manifest, path)
        if suspend is None:
            return manifest
        return self._written([self._recorded_suspension(suspend, since)], manifest)

    def steps(
        self,
        *,
        suspend: Callable[[MutatorT], PlainResult] | None = None,
        ignore_fields: Collection[tuple[str, ...]] = (),
    ) -> Iterator[tuple[Source, Manifest]]:
        """Yield the source of each step and the object after it; the last object is what `manifest` returns.

        A step is one category of edits of one mutation. The edits of a category are one step, because selectors see the
        object as it was before the first of them.
        """
        since = secret_reads()
        manifest = yield from self._steps_of(self._plans(), self._baseline, Source(SourceKind.BASE))
        if ignore_fields:
            for path in ignore_fields:
                manifest = without_field(manifest, path)
            yield Source(SourceKind.IGNORED), manifest
        if suspend is not None:
            plan = self._recorded_suspension(suspend, since)
            yield from self._steps_of([plan], manifest, Source(SourceKind.SUSPENSION))

    def _steps_of(
        self, plans: Sequence[_Plan], start: Manifest, by: Source
    ) -> Generator[tuple[Source, Manifest], None, Manifest]:
        """Apply plans step by step; the first step is the start, as the models write it."""
        manifest = self._written((), start)
        if not any(plan.mutator.has_edits for plan in plans):
            yield by, manifest
            return manifest
        model = self._read(start, plans[0].since)
        manifest = self._writable(model) or manifest
        yield by, manifest
        written: Manifest | None = manifest
        for plan, category in _steps(plans):
            try:
                category.apply(model, plan.mutator.recorded(category.name))
            except Exception as error:
                raise self._failed(plan, category.name, error) from error
            written = self._writable(model)
            # A later step may fix a model that cannot be written; the changes of both are then attributed to it.
            if written is not None:
                manifest = written
                yield _source(plan, category.name), manifest
        return manifest if written is not None else self._written(plans, start)

    def _plans(self) -> list[_Plan]:
        since = secret_reads()
        return [self._recorded(mutation, since) for mutation in self._mutations]

    def _written(self, plans: Sequence[_Plan], start: Manifest) -> Manifest:
        if any(plan.mutator.has_edits for plan in plans):
            return self._edited(plans, start)[1]
        # Without edits the start is returned: the models have written it before.
        copied: Manifest = copy_json(start)
        return copied

    def _edited(self, plans: Sequence[_Plan], start: Manifest) -> tuple[Any, Manifest]:
        model = self._read(start, plans[0].since if plans else secret_reads())
        for plan in plans:
            try:
                plan.mutator.apply(model)
            except EditError as error:
                cause = error.__cause__ or error
                raise self._failed(plan, error.category, cause) from cause
        try:
            return model, self._kind.write(model)
        except ManifestError as error:
            raise self._blame(error, plans, start) from error

    def _read(self, start: Manifest, since: int) -> Any:
        try:
            return self._kind.open(start)
        except ValueError as error:
            # A model built without validation, or a required field that is an ignored field.
            problem = f"the object before the edits is not a valid {self._kind.name}: {self._describe(error, since)}"
            raise MutationError(self._identity, "", problem) from error

    def _writable(self, model: Any) -> Manifest | None:
        try:
            return self._kind.write(model)
        except ManifestError:
            return None

    def _recorded(self, mutation: Mutation[MutatorT], since: int) -> _Plan:
        mutator = self._kind.mutator()
        try:
            mutation.record(mutator)
            mutator.end_recording()
        except Exception as error:
            problem = f"failed to apply mutation intent for {mutation.name}: {self._describe(error, since)}"
            raise MutationError(self._identity, mutation.name, problem) from error
        return _Plan(mutation.name, "planned", mutator, since)

    def _recorded_suspension(self, suspend: Callable[[MutatorT], PlainResult], since: int) -> _Plan:
        mutator = self._kind.mutator()
        try:
            record_edits(suspend, mutator, "the suspend mutation")
            mutator.end_recording()
        except Exception as error:
            problem = f"failed to apply suspension mutations: {self._describe(error, since)}"
            raise MutationError(self._identity, _SUSPENSION, problem) from error
        return _Plan(_SUSPENSION, _SUSPENSION, mutator, since)

    def _describe(self, error: BaseException, since: int) -> str:
        """Return a cause in one line; errors of other packages are prefixed with their type."""
        if secret_reads() > since and not isinstance(error, DataNotExtractedError):
            return cause_text(self._identity, error, since)
        invalid = describe_invalid(error)
        if invalid or isinstance(error, OcfError):
            return invalid or str(error)
        return cause_text(self._identity, error, since)

    def _failed(self, plan: _Plan, category: str, cause: BaseException) -> MutationError:
        text = self._describe(cause, plan.since)
        problem = f'failed to apply {plan.stage} mutations: mutation "{plan.mutation}", {category}: {text}'
        return MutationError(self._identity, plan.mutation, problem, category=category)

    def _blame(self, error: ManifestError, plans: Sequence[_Plan], start: Manifest) -> MutationError:
        """Return an error that names the edit after which the model cannot be written; applies the plans again."""
        model = self._kind.open(start)
        for plan, category in _steps(plans):
            category.apply(model, plan.mutator.recorded(category.name))
            try:
                self._kind.write(model)
            except ManifestError as found:
                return self._failed(plan, category.name, found)
        text = self._describe(error, plans[0].since)
        return MutationError(self._identity, "", f"the rendered object cannot be written: {text}")


def _steps(plans: Sequence[_Plan]) -> Iterator[tuple[_Plan, Any]]:
    for plan in plans:
        for category in plan.mutator.categories:
            if plan.mutator.recorded(category.name):
                yield plan, category


def _source(plan: _Plan, category: str) -> Source:
    if plan.stage == _SUSPENSION:
        return Source(SourceKind.SUSPENSION, category=category)
    return Source(SourceKind.MUTATION, plan.mutation, category)


def is_of_secret(identity: str) -> bool:
    """Return whether the identity is that of a Secret."""
    return identity.startswith(_OF_SECRET)


def cause_text(identity: str, error: BaseException, since: int) -> str:
    """Return how an error names its cause, an exception in an author's function: its type and text.

    The text may quote a value. So it is left out if the resource is a Secret, or if the function has read a value of a
    Secret from a data cell since the count of `secret_reads` that is given.

    Example:
        >>> cause_text("v1/ConfigMap/shop/settings", ValueError("invalid literal for int(): 'many'"), 0)
        "ValueError: invalid literal for int(): 'many'"
        >>> cause_text("v1/Secret/shop/login", ValueError("invalid literal for int(): 'hunter2'"), 0)
        'ValueError'
    """
    kind = type(error).__name__
    if is_of_secret(identity) or not str(error):
        return kind
    return f"{kind} ({_WITHHELD})" if secret_reads() > since else f"{kind}: {error}"


def explanation(
    identity: str, mutations: Sequence[Mutation[Any]], steps: Iterable[tuple[Source, Manifest]]
) -> Provenance:
    """Return the provenance of an object from the steps of its rendering: each source, and the object after it."""
    trace = ProvenanceTrace()
    changed: dict[str, list[bool]] = defaultdict(list)
    for source, manifest in steps:
        did = trace.step(manifest, source)
        if source.kind is SourceKind.MUTATION:
            changed[source.mutation].append(did)
    effects = tuple(_effect(mutation, changed[mutation.name]) for mutation in mutations)
    return Provenance(identity, trace.fields, trace.removed, effects)


def _effect(mutation: Mutation[Any], changed: Sequence[bool]) -> MutationEffect:
    if not mutation.fires():
        return MutationEffect(mutation.name, Effect.CLOSED, closed_because(mutation.feature))
    if any(changed):
        return MutationEffect(mutation.name, Effect.CHANGED)
    why = "the object already had all its values" if changed else "it recorded no edit"
    return MutationEffect(mutation.name, Effect.NOTHING, why)


def closed_because(gate: Gate | None) -> str:
    """Return why a closed gate is closed.

    Example:
        >>> closed_because(VersionGate("2.0.9", ">= 2.1", "< 3"))
        'version 2.0.9 is not ">= 2.1"'
        >>> closed_because(VersionGate("2.0.9", ">= 2.0").when(False))
        'switched off'
    """
    match gate:
        case VersionGate():
            asked = (
                (one, VersionGate(gate.version, one, ignore_vendor_suffix=gate.ignore_vendor_suffix))
                for one in gate.constraints
            )
            against = [f'version {gate.version} is not "{one}"' for one, alone in asked if not alone.enabled()]
            return " and ".join([*against, *([] if gate.switched_on else ["switched off"])])
        case BooleanGate():
            return "switched off"
        case _:
            return f"{type(gate).__name__} is closed"
