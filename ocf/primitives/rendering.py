"""Rendering of a resource: record the edits of all mutations, then apply them to a copy of the baseline.

All mutations record their edits before the first edit is applied, so a gate that fails does so before the copy is
changed. The object is returned only after all edits have succeeded, so a partly edited object is never visible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from ocf.concepts.data import AuthorCode
from ocf.concepts.provenance import Effect, MutationEffect, Provenance, Source, SourceKind
from ocf.concepts.provenance_trace import ProvenanceTrace
from ocf.concepts.resource import Rendering
from ocf.errors import DataNotExtractedError, ManifestError, MutationError, OcfError
from ocf.feature import BooleanGate, VersionGate
from ocf.feature.mutation import record_edits
from ocf.objects import copy_json
from ocf.objects.managed_fields import fields_path
from ocf.objects.model_errors import describe_invalid
from ocf.objects.owned_paths import ABSENT, is_below, value_at
from ocf.objects.paths import without_field
from ocf.primitives.cleared import EditedPart, take_cleared
from ocf.primitives.kind import Kind, ModelT, MutatorT
from ocf.primitives.mutator import EditError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ocf.feature import Gate, Mutation
    from ocf.feature.mutation import PlainResult
    from ocf.objects import Manifest

__all__ = ["Renderer", "closed_because", "explanation"]

_SUSPENSION: Final = "suspension"


class _Plan(NamedTuple):
    """The edits that one mutation recorded."""

    mutation: str
    stage: str
    mutator: Any
    # What was read since before the rendering: a later edit may quote a value that an earlier one has set.
    code: AuthorCode


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
        code = AuthorCode(self._identity)
        if ignore_fields:
            return self._kind.view(self._read(self.rendering(ignore_fields=ignore_fields).manifest, code))
        return self._kind.view(self._edited(self._plans(code), self._baseline)[0])

    def rendering(
        self,
        *,
        suspend: Callable[[MutatorT], PlainResult] | None = None,
        ignore_fields: Collection[tuple[str, ...]] = (),
    ) -> Rendering:
        """Return the object after all mutations and the suspension edit, and the fields that the mutations clear."""
        code = AuthorCode(self._identity)
        manifest, cleared = self._written(self._plans(code), self._baseline)
        # Before the suspension edit, which alone may set a field that another controller sets while it runs.
        for path in ignore_fields:
            manifest = without_field(manifest, path)
        ignored = [fields_path(path) for path in ignore_fields]
        cleared = tuple(each for each in cleared if not is_below(each, ignored))
        if suspend is not None:
            # What the suspension clears would not come back on resume.
            manifest, _ = self._written([self._recorded_suspension(suspend, code)], manifest)
        # Null is a value of some fields of custom resources; such a field is in the manifest.
        return Rendering(manifest, tuple(place for place in cleared if value_at(manifest, place) is ABSENT))

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
        code = AuthorCode(self._identity)
        manifest = yield from self._steps_of(self._plans(code), self._baseline, Source(SourceKind.BASE))
        if ignore_fields:
            for path in ignore_fields:
                manifest = without_field(manifest, path)
            yield Source(SourceKind.IGNORED), manifest
        if suspend is not None:
            plan = self._recorded_suspension(suspend, code)
            yield from self._steps_of([plan], manifest, Source(SourceKind.SUSPENSION))

    def _steps_of(
        self, plans: Sequence[_Plan], start: Manifest, by: Source
    ) -> Generator[tuple[Source, Manifest], None, Manifest]:
        """Apply plans step by step; the first step is the start, as the models write it."""
        manifest = self._written((), start).manifest
        if not any(plan.mutator.has_edits for plan in plans):
            yield by, manifest
            return manifest
        model = self._read(start, plans[0].code)
        manifest = self._writable(model, ()) or manifest
        yield by, manifest
        parts = self._parts(model)
        written: Manifest | None = manifest
        for plan, category in _steps(plans):
            try:
                category.apply(model, plan.mutator.recorded(category.name))
            except Exception as error:
                raise self._failed(plan, category.name, error) from error
            written = self._writable(model, parts)
            # A later step may fix a model that cannot be written; the changes of both are then attributed to it.
            if written is not None:
                manifest = written
                yield _source(plan, category.name), manifest
        return manifest if written is not None else self._written(plans, start).manifest

    def _plans(self, code: AuthorCode) -> list[_Plan]:
        return [self._recorded(mutation, code) for mutation in self._mutations]

    def _written(self, plans: Sequence[_Plan], start: Manifest) -> Rendering:
        if any(plan.mutator.has_edits for plan in plans):
            return self._edited(plans, start)[1]
        # Without edits the start is returned: the models have written it before.
        return Rendering(copy_json(start))

    def _edited(self, plans: Sequence[_Plan], start: Manifest) -> tuple[Any, Rendering]:
        model = self._read(start, plans[0].code if plans else AuthorCode(self._identity))
        parts = self._parts(model)
        for plan in plans:
            try:
                plan.mutator.apply(model)
            except EditError as error:
                cause = error.__cause__ or error
                raise self._failed(plan, error.category, cause) from cause
        try:
            cleared = take_cleared(parts, self._parts(model))
            return model, Rendering(self._kind.write(model), cleared)
        except ManifestError as error:
            raise self._blame(error, plans, start) from error

    def _read(self, start: Manifest, code: AuthorCode) -> Any:
        try:
            return self._kind.open(start)
        except ValueError as error:
            # A model built without validation, or a required field that is an ignored field.
            problem = f"the object before the edits is not a valid {self._kind.name}: {self._describe(error, code)}"
            raise MutationError(self._identity, "", problem) from error

    def _writable(self, model: Any, parts: Iterable[EditedPart]) -> Manifest | None:
        take_cleared(parts, self._parts(model))
        try:
            return self._kind.write(model)
        except ManifestError:
            return None

    def _parts(self, model: Any) -> list[EditedPart]:
        return [part for category in self._kind.mutator.categories for part in category.parts(model)]

    def _recorded(self, mutation: Mutation[MutatorT], code: AuthorCode) -> _Plan:
        mutator = self._kind.mutator()
        with self._recording(mutation.name, f"mutation intent for {mutation.name}", code):
            mutation.record(mutator)
            mutator.end_recording()
        return _Plan(mutation.name, "planned", mutator, code)

    def _recorded_suspension(self, suspend: Callable[[MutatorT], PlainResult], code: AuthorCode) -> _Plan:
        mutator = self._kind.mutator()
        with self._recording(_SUSPENSION, "suspension mutations", code):
            record_edits(suspend, mutator, "the suspend mutation")
            mutator.end_recording()
        return _Plan(_SUSPENSION, _SUSPENSION, mutator, code)

    def _recording(self, mutation: str, what: str, code: AuthorCode) -> AbstractContextManager[None]:
        def failed(error: Exception) -> MutationError:
            return MutationError(self._identity, mutation, f"failed to apply {what}: {self._describe(error, code)}")

        return code.raising(failed)

    def _describe(self, error: BaseException, code: AuthorCode) -> str:
        """Return a cause in one line; errors of other packages are prefixed with their type."""
        if code.has_read_secret and not isinstance(error, DataNotExtractedError):
            return code.error_text(error)
        invalid = describe_invalid(error)
        if invalid or isinstance(error, OcfError):
            return invalid or str(error)
        return code.error_text(error)

    def _failed(self, plan: _Plan, category: str, cause: BaseException) -> MutationError:
        text = self._describe(cause, plan.code)
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
        text = self._describe(error, plans[0].code)
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


def explanation(
    identity: str,
    mutations: Sequence[Mutation[Any]],
    steps: Iterable[tuple[Source, Manifest]],
    defaulted: Sequence[Sequence[str]] = (),
) -> Provenance:
    """Return the provenance of an object from the steps of its rendering: each source, and the object after it.

    What the baseline lacked, the fields `defaulted`, has the component as its source.
    """
    trace = ProvenanceTrace()
    changed: dict[str, list[bool]] = defaultdict(list)
    for source, manifest in steps:
        if source.kind is SourceKind.BASE and defaulted:
            trace.step(reduce(without_field, defaulted, manifest), source)
            source = Source(SourceKind.COMPONENT)  # noqa: PLW2901 (the rest of the step)
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
