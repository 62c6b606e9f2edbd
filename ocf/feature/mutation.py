"""Mutation: a named change of a resource for a feature of a product, with a gate.

A mutation decides whether it fires and records its edits with a mutator. The renderer determines the order of the edits
and handles their errors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any, Final, Generic, SupportsInt, TypeAlias, TypeVar

from ocf.errors import ConfigError, FeatureGateError
from ocf.feature.gate import Gate
from ocf.feature.versions import shown
from ocf.lazy_types.pydantic import BaseModel

__all__ = ["Mutation", "PlainResult", "is_deferred_function", "mutation_problems", "record_edits"]

MutatorT_contra = TypeVar("MutatorT_contra", contravariant=True)

PlainResult: TypeAlias = Callable[..., object] | SupportsInt | Sized | BaseModel | None
"""The result of a plain function, for type checkers: what a lambda usually returns, but neither a coroutine nor a
generator, because such a function would not have run."""


# Not slotted: calling an alias such as `Mutation[Mutator]` would fail on Python 3.11, where `typing` sets an attribute.
@dataclass(frozen=True)
class Mutation(Generic[MutatorT_contra]):
    """A named change to a resource, applied if its gate is open.

    It is generic in the type of the mutator, and contravariant: a mutation for the mutator of all workloads is also a
    mutation for a Deployment. Each kind defines its own alias: `Mutation = feature.Mutation[Mutator]`.

    Args:
        name: Name in errors, previews and tests; unique within a resource.
        mutate: Called with the mutator to record the edits; its result is ignored. None is accepted, but raises an
            error when the mutation fires.
        feature: The gate; None means that the mutation is always applied.

    Example:
        >>> from ocf.feature import VersionGate
        >>> before_2 = VersionGate("1.4.0", "<2")
        >>> rename = Mutation[list[str]]("old-name", lambda edits: edits.append("rename"), feature=before_2)
        >>> edits: list[str] = []
        >>> rename.record(edits)
        >>> rename.fires(), edits
        (True, ['rename'])
    """

    name: str
    mutate: Callable[[MutatorT_contra], PlainResult] | None
    feature: Gate | None = field(default=None, kw_only=True)

    def fires(self) -> bool:
        """Return whether the mutation is applied; always True without a gate.

        Raises:
            FeatureGateError: If the gate fails or returns anything but True or False.
        """
        if self.feature is None:
            return True
        enabled: object = self.feature.enabled()
        if not isinstance(enabled, bool):
            _discard(enabled)
            raise FeatureGateError(f"gate of mutation {self.name} must return True or False, got {shown(enabled)}")
        return enabled

    def record(self, mutator: MutatorT_contra) -> None:
        """Record the edits with a mutator if the mutation fires.

        Args:
            mutator: Records the edits.

        Raises:
            ConfigError: If the mutation fires and does not have a function, or its function is asynchronous or a
                generator, so that it has not recorded anything.
            FeatureGateError: If the gate fails.
        """
        if not self.fires():
            return
        if self.mutate is None:
            raise ConfigError(f"mutation handler of {self.name} is None")
        record_edits(self.mutate, mutator, f"mutation handler of {self.name}")


def record_edits(mutate: Callable[[MutatorT_contra], PlainResult], mutator: MutatorT_contra, subject: str) -> None:
    """Call a function that records edits.

    Args:
        mutate: The function; its result is ignored.
        mutator: Records the edits.
        subject: The function, for the error: `mutation handler of grow`.

    Raises:
        ConfigError: If the function is asynchronous or a generator, so that it has not recorded anything.
    """
    result: object = mutate(mutator)
    if result is not None and _is_deferred(result):
        _discard(result)
        raise ConfigError(
            f"{subject} returned {type(result).__name__}, so nothing was recorded: "
            "write it as a plain function, without async and yield"
        )


def is_deferred_function(function: object) -> bool:
    """Return whether a function is written with async or yield, so that calling it runs nothing of it.

    Args:
        function: A function, a method, or a `functools.partial` of one; anything else is not such a function.

    Example:
        >>> async def wait() -> None: ...
        >>> is_deferred_function(wait), is_deferred_function(print)
        (True, False)
    """
    # Nearly all are plain functions or their methods, and every component that is built asks for each of its handlers.
    # Attributes may mark a plain function as asynchronous.
    called = function.__func__ if type(function) is MethodType else function
    if type(called) is FunctionType and not vars(called):
        return bool(called.__code__.co_flags & _DEFERRED_FLAGS)
    return any(deferred(function) for deferred in _DEFERRED_FUNCTIONS)


def mutation_problems(value: object) -> Iterator[str]:
    """Yield the reasons why a value is not a valid mutation.

    Args:
        value: What a caller passed as a mutation.

    Example:
        >>> list(mutation_problems(Mutation[list[str]]("grow", lambda edits: edits.append("grow"))))
        []
        >>> list(mutation_problems(None))
        ['with_mutation takes mutations, got None']
        >>> list(mutation_problems(print))
        ['with_mutation takes mutations, got the function print: name it, Mutation("print", print)']
    """
    if not isinstance(value, Mutation):
        yield f"with_mutation takes mutations, got {_not_a_mutation(value)}"
        return
    name: object = value.name
    if not isinstance(name, str):
        yield f"the name of a mutation must be a text, got {shown(name)}"
    yield from _attribute_problems(value)


def _not_a_mutation(value: object) -> str:
    if not callable(value) or isinstance(value, type):
        return shown(value)
    name = getattr(value, "__name__", "")
    label = name if name.isidentifier() else "name"
    return f'the function {name}: name it, Mutation("{label}", {label})'


def _attribute_problems(mutation: Mutation[Any]) -> Iterator[str]:
    mutate: object = mutation.mutate
    if mutate is not None and not callable(mutate):
        yield f"mutation {mutation.name} takes a function, got {shown(mutate)}"
    if is_deferred_function(mutate):
        yield f"mutation {mutation.name} takes a plain function, without async and yield; this one records nothing"
    if mutation.feature is not None and not callable(getattr(mutation.feature, "enabled", None)):
        yield f"mutation {mutation.name}: a gate has a method enabled(), got {shown(mutation.feature)}"


_DEFERRED_FLAGS: Final = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_DEFERRED_FUNCTIONS: Final = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


def _is_deferred(result: object) -> bool:
    return inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)


def _discard(result: object) -> None:
    # A coroutine that is neither awaited nor closed warns; a task that is not cancelled would still run.
    for name in ("close", "cancel"):
        end = getattr(result, name, None)
        if callable(end):
            end()
            return
