"""Whether a mutation is applied, and what it may be made of."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import FrozenInstanceError
from functools import partial
from types import MethodType
from typing import Any, TypeAlias, cast

import pytest

from ocf import feature
from ocf.errors import ConfigError, FeatureGateError
from ocf.feature import BooleanGate, Gate, Mutation, VersionGate
from ocf.feature.mutation import is_deferred_function


class Recorder:
    """The least a mutator can be."""

    def __init__(self) -> None:
        self.edits: list[str] = []

    def edit(self, name: str) -> None:
        self.edits.append(name)


class WorkloadRecorder(Recorder):
    """A mutator that can do more."""


RecorderMutation: TypeAlias = feature.Mutation[Recorder]


def edit(mutator: Recorder) -> None:
    mutator.edit("done")


def recorded(mutation: RecorderMutation) -> list[str]:
    mutator = Recorder()
    mutation.record(mutator)
    return mutator.edits


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        pytest.param(None, ["done"], id="no gate"),
        pytest.param(BooleanGate(True), ["done"], id="open gate"),
        pytest.param(BooleanGate(False), [], id="closed gate"),
        pytest.param(VersionGate("1.4", "<2"), ["done"], id="a version that is admitted"),
        pytest.param(VersionGate("2.4", "<2"), [], id="a version that is not"),
    ],
)
def test_it_records_if_its_gate_is_open_or_absent(gate: Gate | None, expected: list[str]) -> None:
    mutation = RecorderMutation("a", edit, feature=gate)

    assert recorded(mutation) == expected
    assert mutation.fires() is bool(expected)


class TestMissingFunction:
    def test_it_is_an_error_that_names_the_mutation(self) -> None:
        with pytest.raises(ConfigError) as caught:
            recorded(RecorderMutation("tracing", None))

        assert str(caught.value) == "mutation handler of tracing is None"

    def test_it_is_an_error_behind_an_open_gate(self) -> None:
        with pytest.raises(ConfigError, match=r"^mutation handler of tracing is None$"):
            recorded(RecorderMutation("tracing", None, feature=BooleanGate(True)))

    def test_behind_a_closed_gate_it_is_none(self) -> None:
        assert recorded(RecorderMutation("tracing", None, feature=BooleanGate(False))) == []


class TestGateError:
    def test_it_goes_through_and_nothing_is_recorded(self) -> None:
        mutator = Recorder()

        with pytest.raises(FeatureGateError, match="'latest' is not a version"):
            RecorderMutation("a", edit, feature=VersionGate("latest")).record(mutator)
        assert mutator.edits == []

    def test_asking_whether_it_fires_raises_it_too(self) -> None:
        with pytest.raises(FeatureGateError, match="'latest' is not a version"):
            RecorderMutation("a", edit, feature=VersionGate("latest")).fires()

    @pytest.mark.parametrize("answer", [pytest.param(1, id="a number"), pytest.param(None, id="nothing")])
    def test_a_gate_answers_true_or_false(self, answer: Any) -> None:
        class Odd:
            def enabled(self) -> bool:
                return cast("bool", answer)

        with pytest.raises(FeatureGateError, match="gate of mutation tracing must return True or False, got"):
            RecorderMutation("tracing", edit, feature=Odd()).fires()

    def test_a_coroutine_is_rejected(self) -> None:
        """It is true, so the mutation would always fire; and it is closed, or it would warn."""

        class Slow:
            async def enabled(self) -> bool:
                return False

        with pytest.raises(FeatureGateError, match="got coroutine"):
            RecorderMutation("tracing", edit, feature=cast("Any", Slow())).fires()


async def edit_later(mutator: Recorder) -> None:
    mutator.edit("too late")


def edit_in_steps(mutator: Recorder) -> Iterator[None]:
    mutator.edit("too late")
    yield


async def edit_in_later_steps(mutator: Recorder) -> AsyncIterator[None]:
    mutator.edit("too late")
    yield


class TestReturnValue:
    @pytest.mark.parametrize(
        ("mutate", "kind"),
        [
            pytest.param(edit_later, "coroutine", id="async def"),
            pytest.param(edit_in_steps, "generator", id="yield"),
            pytest.param(edit_in_later_steps, "async_generator", id="async def with yield"),
        ],
    )
    def test_deferred_work_is_an_error_that_names_the_mutation(self, mutate: Any, kind: str) -> None:
        mutator = Recorder()

        with pytest.raises(ConfigError, match=f"^mutation handler of tracing returned {kind}, so nothing was recorded"):
            RecorderMutation("tracing", mutate).record(mutator)
        assert mutator.edits == []

    async def test_a_task_is_cancelled(self) -> None:
        """Or it would edit after the mutation was refused."""
        tasks: list[asyncio.Task[None]] = []

        def start(mutator: Recorder) -> Any:
            tasks.append(asyncio.get_running_loop().create_task(edit_later(mutator)))
            return tasks[0]

        mutator = Recorder()
        with pytest.raises(ConfigError, match="returned Task"):
            RecorderMutation("tracing", start).record(mutator)

        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        assert mutator.edits == []

    @pytest.mark.parametrize("result", [None, False, 0, "text", [1]])
    def test_any_other_is_ignored(self, result: object) -> None:
        def mutate(mutator: Recorder) -> Any:
            mutator.edit("done")
            return result

        assert recorded(RecorderMutation("a", mutate)) == ["done"]

    def test_the_error_of_the_function_goes_through(self) -> None:
        def fail(_: Recorder) -> None:
            raise LookupError("no such field")

        with pytest.raises(LookupError, match="no such field"):
            recorded(RecorderMutation("a", fail))


class TestTyping:
    """What a kind relies on when it names its own mutation; the type checkers read this file too."""

    def test_an_alias_is_an_annotation_and_a_constructor(self) -> None:
        mutation: RecorderMutation = RecorderMutation("a", edit)

        assert mutation == Mutation("a", edit)

    def test_the_alias_knows_the_mutator_of_a_lambda(self) -> None:
        assert recorded(RecorderMutation("a", lambda m: m.edit("lambda"))) == ["lambda"]

    def test_a_mutation_for_the_general_mutator_fits_the_special_one(self) -> None:
        general: Mutation[Recorder] = Mutation("a", edit)
        special: Mutation[WorkloadRecorder] = general

        mutator = WorkloadRecorder()
        special.record(mutator)

        assert mutator.edits == ["done"]

    def test_the_reverse_is_rejected_by_type_checkers(self) -> None:
        special: Mutation[WorkloadRecorder] = Mutation("a", edit)
        general: Mutation[Recorder] = special  # type: ignore[assignment] # the point: mypy would report an unused ignore

        assert general is special

    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            RecorderMutation("a", edit).name = "b"  # type: ignore[misc] # the point of the test


class _Handlers:
    def plain(self) -> None: ...

    async def asynchronous(self) -> None: ...

    @classmethod
    async def of_class(cls) -> None: ...


async def _asynchronous() -> None: ...


def _generator() -> Iterator[None]:
    yield


async def _asynchronous_generator() -> AsyncIterator[None]:
    yield


def _plain() -> None: ...


def _annotated() -> None: ...


_annotated.audience = "operators"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "deferred"),
    [
        pytest.param(_plain, False, id="a function"),
        pytest.param(_annotated, False, id="a function with an attribute"),
        pytest.param(lambda: None, False, id="a lambda"),
        pytest.param(partial(_plain), False, id="a partial of a function"),
        pytest.param(_Handlers().plain, False, id="a method"),
        pytest.param(print, False, id="a built-in function"),
        pytest.param(None, False, id="not a function"),
        pytest.param(_asynchronous, True, id="an asynchronous function"),
        pytest.param(_generator, True, id="a generator"),
        pytest.param(_asynchronous_generator, True, id="an asynchronous generator"),
        pytest.param(partial(_asynchronous), True, id="a partial of an asynchronous function"),
        pytest.param(_Handlers().asynchronous, True, id="an asynchronous method"),
        pytest.param(_Handlers.of_class, True, id="an asynchronous method of a class"),
        pytest.param(MethodType(partial(_asynchronous), _Handlers()), True, id="a partial as a method"),
    ],
)
def test_functions_with_async_or_yield_are_recognized(function: object, deferred: bool) -> None:
    assert is_deferred_function(function) is deferred
