"""From a baseline and its mutations to one object: plan everything, then apply, on a copy.

Nothing touches the copy before every mutation has recorded its edits, so a gate that cannot answer fails before the
first edit; and nothing leaves this module before everything has succeeded, so a failed render leaves nothing
half-done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from ocf.concepts import Source, SourceKind
from ocf.errors import ManifestError, MutationError, OcfError
from ocf.objects import copy_json, describe_invalid, without_field, write_model
from ocf.primitives.kind import Kind, ModelT, MutatorT
from ocf.primitives.mutator import EditError

if TYPE_CHECKING:
    from ocf.feature import Mutation
    from ocf.objects import Manifest

__all__ = ["Renderer"]

_SUSPENSION: Final = "suspension"


class _Plan(NamedTuple):
    """What one mutation recorded."""

    mutation: str
    stage: str
    mutator: Any


class Renderer(Generic[ModelT, MutatorT]):
    """Renders one resource; pure, so it may be asked any number of times.

    Args:
        kind: The kind's declaration.
        identity: Identity of the resource, for error messages.
        baseline: The manifest that the mutations start from; never changed.
        mutations: The mutations, in order of registration.
    """

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
        """Return the object as the mutations leave it.

        Args:
            ignore_fields: Fields that are dropped after the mutations.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        if ignore_fields:
            return self._read(self.manifest(ignore_fields=ignore_fields))
        return self._edited(self._plans(), self._baseline)[0]

    def manifest(
        self,
        *,
        suspend: Callable[[MutatorT], object] | None = None,
        ignore_fields: Collection[tuple[str, ...]] = (),
    ) -> Manifest:
        """Return the object as the mutations and last the suspension edit leave it.

        Args:
            suspend: Records the suspension edit; None renders without one.
            ignore_fields: Fields that are dropped after the mutations; the suspension edit may still set them.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        manifest = self._written(self._plans(), self._baseline)
        for path in ignore_fields:
            manifest = without_field(manifest, path)
        if suspend is None:
            return manifest
        return self._written([self._recorded_suspension(suspend)], manifest)

    def steps(
        self,
        *,
        suspend: Callable[[MutatorT], object] | None = None,
        ignore_fields: Collection[tuple[str, ...]] = (),
    ) -> Iterator[tuple[Source, Manifest]]:
        """Yield the object as each step leaves it, and who made the step; the last one is what `manifest` returns.

        A step is one category of edits of one mutation: the edits of a category belong together, because selectors
        look at the object as it was before the first of them.

        Args:
            suspend: Records the suspension edit; None renders without one.
            ignore_fields: Fields that are dropped after the mutations.

        Raises:
            MutationError: If a gate, a mutation or an edit fails.
        """
        manifest = yield from self._steps_of(self._plans(), self._baseline, Source(SourceKind.BASE))
        if ignore_fields:
            for path in ignore_fields:
                manifest = without_field(manifest, path)
            yield Source(SourceKind.IGNORED), manifest
        if suspend is not None:
            plan = self._recorded_suspension(suspend)
            yield from self._steps_of([plan], manifest, Source(SourceKind.SUSPENSION))

    def _steps_of(
        self, plans: Sequence[_Plan], start: Manifest, by: Source
    ) -> Generator[tuple[Source, Manifest], None, Manifest]:
        """Run plans step by step; the start, as the models write it, is the first step."""
        manifest = self._written((), start)
        if not any(plan.mutator.has_edits for plan in plans):
            yield by, manifest
            return manifest
        model = self._read(start)
        manifest = _writable(model) or manifest
        yield by, manifest
        written: Manifest | None = manifest
        for plan, category in _steps(plans):
            try:
                category.apply(model, plan.mutator.recorded(category.name))
            except Exception as error:
                raise self._failed(plan, category.name, error) from error
            written = _writable(model)
            # What cannot be written may be mended by a later step, which then gets the credit for both.
            if written is not None:
                manifest = written
                yield _source(plan, category.name), manifest
        return manifest if written is not None else self._written(plans, start)

    def _plans(self) -> list[_Plan]:
        return [self._recorded(mutation) for mutation in self._mutations]

    def _written(self, plans: Sequence[_Plan], start: Manifest) -> Manifest:
        if any(plan.mutator.has_edits for plan in plans):
            return self._edited(plans, start)[1]
        # Nothing to edit: the start has been through the models already.
        copied: Manifest = copy_json(start)
        return copied

    def _edited(self, plans: Sequence[_Plan], start: Manifest) -> tuple[ModelT, Manifest]:
        model = self._read(start)
        for plan in plans:
            try:
                plan.mutator.apply(model)
            except EditError as error:
                cause = error.__cause__ or error
                raise self._failed(plan, error.category, cause) from cause
        try:
            return model, write_model(model)
        except ManifestError as error:
            raise self._blame(error, plans, start) from error

    def _read(self, start: Manifest) -> ModelT:
        try:
            return self._kind.model.model_validate(start)
        except ValueError as error:
            # A model made past its own checks, or a required field that is ignored.
            problem = f"what the edits start from is no {self._kind.name}: {_describe(error)}"
            raise MutationError(self._identity, "", problem) from error

    def _recorded(self, mutation: Mutation[MutatorT]) -> _Plan:
        mutator = self._kind.mutator()
        try:
            mutation.record(mutator)
        except Exception as error:
            problem = f"failed to apply mutation intent for {mutation.name}: {_describe(error)}"
            raise MutationError(self._identity, mutation.name, problem) from error
        return _Plan(mutation.name, "planned", mutator)

    def _recorded_suspension(self, suspend: Callable[[MutatorT], object]) -> _Plan:
        mutator = self._kind.mutator()
        try:
            suspend(mutator)
        except Exception as error:
            problem = f"failed to apply suspension mutations: {_describe(error)}"
            raise MutationError(self._identity, _SUSPENSION, problem) from error
        return _Plan(_SUSPENSION, _SUSPENSION, mutator)

    def _failed(self, plan: _Plan, category: str, cause: BaseException) -> MutationError:
        problem = f'failed to apply {plan.stage} mutations: mutation "{plan.mutation}", {category}: {_describe(cause)}'
        return MutationError(self._identity, plan.mutation, problem, category=category)

    def _blame(self, error: ManifestError, plans: Sequence[_Plan], start: Manifest) -> MutationError:
        """Find the edit that left something that cannot be written: the same plans again, looking after each step."""
        model = self._kind.model.model_validate(start)
        for plan, category in _steps(plans):
            category.apply(model, plan.mutator.recorded(category.name))
            try:
                write_model(model)
            except ManifestError as found:
                return self._failed(plan, category.name, found)
        return MutationError(self._identity, "", f"the rendered object cannot be written: {error}")


def _steps(plans: Sequence[_Plan]) -> Iterator[tuple[_Plan, Any]]:
    for plan in plans:
        for category in plan.mutator.categories:
            if plan.mutator.recorded(category.name):
                yield plan, category


def _writable(model: Any) -> Manifest | None:
    try:
        return write_model(model)
    except ManifestError:
        return None


def _source(plan: _Plan, category: str) -> Source:
    if plan.stage == _SUSPENSION:
        return Source(SourceKind.SUSPENSION, category=category)
    return Source(SourceKind.MUTATION, plan.mutation, category)


def _describe(error: BaseException) -> str:
    """Word a cause in one line; what is no error of ours is named by its type too."""
    refusal = describe_invalid(error)
    if refusal or isinstance(error, OcfError):
        return refusal or str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
