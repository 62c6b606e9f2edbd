"""Asking a gate, and refusing whatever is no answer.

A gate may be the user's own, so it may raise anything and answer anything. Behind a gate that is off, objects are
deleted; an answer that only happens to be falsy must not do that.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ocf.errors import FeatureGateError, OcfError

if TYPE_CHECKING:
    from ocf.feature import Gate

__all__ = ["is_open"]


def is_open(gate: Gate | None) -> bool:
    """Ask a gate.

    Args:
        gate: The gate; None is always open.

    Raises:
        FeatureGateError: If the gate cannot answer, or answers something else than True or False.

    Example:
        >>> from ocf.feature import BooleanGate
        >>> is_open(BooleanGate(False)), is_open(None)
        (False, True)
    """
    if gate is None:
        return True
    try:
        answer: object = gate.enabled()
    except FeatureGateError:
        raise
    except OcfError as error:
        raise FeatureGateError(str(error)) from error
    except Exception as error:
        raise FeatureGateError(f"feature gate failed: {type(error).__name__}: {error}") from error
    if inspect.iscoroutine(answer):
        answer.close()
    if not isinstance(answer, bool):
        raise FeatureGateError(f"a feature gate has to answer True or False, got {type(answer).__name__}")
    return answer
