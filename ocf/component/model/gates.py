"""Evaluation of a gate that may be the user's own.

Such a gate may raise or return anything. Objects behind a gate that is off are deleted, so a result that is merely
falsy is an error.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ocf.errors import FeatureGateError, OcfError

if TYPE_CHECKING:
    from ocf.feature import Gate

__all__ = ["is_open"]


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
