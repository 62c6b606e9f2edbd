"""The named mutation: a feature of a product, as a change to a resource, with the gate that switches it.

A mutation only records. What recording means, in which order edits run and what an error becomes is the business of
whoever hands it a mutator; here is only the decision whether it is asked at all.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ocf.errors import ConfigError, FeatureGateError
from ocf.feature.gate import Gate
from ocf.feature.versions import shown

__all__ = ["Mutation"]

MutatorT_contra = TypeVar("MutatorT_contra", contravariant=True)


# Not slotted: calling an alias such as `Mutation[Mutator]` would fail on Python 3.11, where `typing` sets an attribute.
@dataclass(frozen=True)
class Mutation(Generic[MutatorT_contra]):
    """A named change to a resource, applied if its gate is open.

    It is generic in the mutator it records with, and contravariant: a mutation written for what all workloads share is
    a mutation for a Deployment. A kind names its own: `Mutation = feature.Mutation[Mutator]`.

    Args:
        name: What errors, previews and tests call it; unique within a resource.
        mutate: Called with the mutator to record the edits; what it returns is ignored. None is accepted, and an error
            only when the mutation fires.
        feature: When it is applied; None means always.

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
    mutate: Callable[[MutatorT_contra], object] | None
    feature: Gate | None = field(default=None, kw_only=True)

    def fires(self) -> bool:
        """Tell whether the mutation is applied.

        Returns:
            The gate's answer; True without a gate.

        Raises:
            FeatureGateError: If the gate cannot answer, or answers something else than True or False.
        """
        if self.feature is None:
            return True
        answer: object = self.feature.enabled()
        if not isinstance(answer, bool):
            _discard(answer)
            raise FeatureGateError(f"gate of mutation {self.name} has to answer True or False, got {shown(answer)}")
        return answer

    def record(self, mutator: MutatorT_contra) -> None:
        """Record the edits with a mutator, if the mutation fires.

        Args:
            mutator: What the edits are recorded with.

        Raises:
            ConfigError: If the mutation fires and has no function, or one that does its work only when awaited or
                iterated, which nobody does.
            FeatureGateError: If the gate cannot answer.
        """
        if not self.fires():
            return
        if self.mutate is None:
            raise ConfigError(f"mutation handler of {self.name} is nil")
        result = self.mutate(mutator)
        if result is not None and _works_later(result):
            _discard(result)
            raise ConfigError(
                f"mutation handler of {self.name} returned {type(result).__name__}, so nothing was recorded: "
                "write it as a plain function, without async and yield"
            )


def _works_later(result: object) -> bool:
    return inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)


def _discard(result: object) -> None:
    # A coroutine that is neither awaited nor closed warns; a task that is not cancelled would still run.
    for name in ("close", "cancel"):
        end = getattr(result, name, None)
        if callable(end):
            end()
            return
