"""From a baseline and its mutations to one object: plan everything, then apply, on a copy.

Nothing touches the copy before every mutation has recorded its edits, so a gate that cannot answer fails before the
first edit; and nothing leaves this module before everything has succeeded, so a failed render leaves nothing
half-done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from ocf.errors import ManifestError, MutationError, OcfError
from ocf.objects import describe_invalid, write_model
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

    def model_and_manifest(self, suspend: Callable[[MutatorT], object] | None = None) -> tuple[ModelT, Manifest]:
        """Return the rendered object, as a model and as a manifest.

        Args:
            suspend: Records the suspension edit; None renders without one.

        Raises:
            MutationError: If a gate, a mutation or an edit fails, or what an edit left cannot be written.
        """
        model = self._kind.model.model_validate(self._baseline)
        for plan in self._plans(suspend):
            self._apply(plan, model)
        try:
            return model, write_model(model)
        except ManifestError as error:
            raise self._blame(error, suspend) from error

    def _plans(self, suspend: Callable[[MutatorT], object] | None) -> list[_Plan]:
        plans = [self._recorded(mutation) for mutation in self._mutations]
        if suspend is not None:
            plans.append(self._recorded_suspension(suspend))
        return plans

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
            problem = f"failed to record the suspension edit: {_describe(error)}"
            raise MutationError(self._identity, _SUSPENSION, problem) from error
        return _Plan(_SUSPENSION, "suspension", mutator)

    def _apply(self, plan: _Plan, model: ModelT) -> None:
        try:
            plan.mutator.apply(model)
        except EditError as error:
            cause = error.__cause__ or error
            raise self._failed(plan, error.category, cause) from cause

    def _failed(self, plan: _Plan, category: str, cause: BaseException) -> MutationError:
        problem = f'failed to apply {plan.stage} mutations: mutation "{plan.mutation}", {category}: {_describe(cause)}'
        return MutationError(self._identity, plan.mutation, problem, category=category)

    def _blame(self, error: ManifestError, suspend: Callable[[MutatorT], object] | None) -> MutationError:
        """Find the edit that left something that cannot be written: the same plans again, looking after each step."""
        model = self._kind.model.model_validate(self._baseline)
        for plan, category in _steps(self._plans(suspend)):
            category.apply(model, plan.mutator.recorded(category.name))
            try:
                write_model(model)
            except ManifestError as found:
                return self._failed(plan, category.name, found)
        return MutationError(self._identity, "", f"the rendered object cannot be written: {error}")


def _steps(plans: list[_Plan]) -> Iterator[tuple[_Plan, Any]]:
    for plan in plans:
        for category in plan.mutator.categories:
            if plan.mutator.recorded(category.name):
                yield plan, category


def _describe(error: BaseException) -> str:
    """Word a cause in one line; what is no error of ours is named by its type too."""
    text = describe_invalid(error) or str(error)
    return text if isinstance(error, OcfError) or not text else f"{type(error).__name__}: {text}"
