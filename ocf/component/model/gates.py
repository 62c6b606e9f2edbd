"""Evaluation of a gate that may be the user's own.

Such a gate may raise or return anything. Objects behind a gate that is off are deleted, so a result that is merely
falsy is an error. It may also answer differently each time, so one reconcile evaluates the gate of a component once.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ocf.concepts import data_scope
from ocf.errors import FeatureGateError, OcfError

if TYPE_CHECKING:
    from ocf.feature import Gate

__all__ = ["GateAnswers", "is_open"]


def is_open(gate: Gate | None) -> bool:
    """Return whether a gate is open.

    Args:
        gate: The gate; None is always open.

    Raises:
        FeatureGateError: If the gate fails, or returns something else than True or False.

    Example:
        >>> from ocf.feature import BooleanGate
        >>> is_open(BooleanGate(False)), is_open(None)
        (False, True)
    """
    if gate is None:
        return True
    try:
        enabled: object = gate.enabled()
    except FeatureGateError:
        raise
    except OcfError as error:
        raise FeatureGateError(str(error)) from error
    except Exception as error:
        raise FeatureGateError(f"feature gate failed: {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(enabled):
        enabled.close()
    if not isinstance(enabled, bool):
        raise FeatureGateError(f"a feature gate must return True or False, got {type(enabled).__name__}")
    return enabled


class GateAnswers:
    """Answers of the gates of components in one reconcile of their owner."""

    def __init__(self) -> None:
        # A gate need not be hashable. Each is kept, so that no other one gets its identity.
        self._known: dict[int, tuple[Gate, bool | FeatureGateError]] = {}

    def is_open(self, gate: Gate | None) -> bool:
        """Return whether a gate is open; it is evaluated at the first call, before any data cell has a value.

        Args:
            gate: The gate; None is always open.

        Raises:
            FeatureGateError: If the gate has failed, or returned something else than True or False.
        """
        if gate is None:
            return True
        known = self._known.get(id(gate))
        answer = known[1] if known is not None else self._evaluate(gate)
        if isinstance(answer, FeatureGateError):
            raise answer
        return answer

    def _evaluate(self, gate: Gate) -> bool | FeatureGateError:
        answer: bool | FeatureGateError
        try:
            with data_scope():
                answer = is_open(gate)
        except FeatureGateError as error:
            answer = error
        self._known[id(gate)] = gate, answer
        return answer
