"""Match conditions of webhooks and admission policies.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ocf_server.cel.environment import (
    BOOLEAN,
    MAX_MATCH_STEPS,
    Budget,
    CompiledExpression,
    Environment,
    OutOfBudgetError,
)
from ocf_server.cel.values import EvaluationError

__all__ = ["ConditionError", "conditions_match"]


class ConditionError(Exception):
    """Match conditions could not be evaluated, and none of the others is false; the text is the API server's."""


@lru_cache(maxsize=1024)
def _compiled(text: str, *, params: bool) -> CompiledExpression:
    return Environment(params=params).compiled(text.strip(), BOOLEAN)


def conditions_match(
    conditions: Sequence[Mapping[str, Any]], values: Mapping[str, Any], *, params: bool = False
) -> bool:
    """Return whether match conditions select a request.

    Args:
        values: Values of `object`, `oldObject`, `request`, and `params`.
        params: Whether the expressions can use parameters.

    Returns:
        Whether all conditions are true; a false one decides even if others cannot be evaluated.

    Raises:
        ConditionError: If no condition is false and some cannot be evaluated.
    """
    budget = Budget(MAX_MATCH_STEPS)
    environment = Environment(params=params)
    problems: list[str] = []
    for condition in conditions:
        expression = _compiled(condition["expression"], params=params)
        try:
            if not expression.evaluate(environment.values(budget, namespaceObject=None, **values), budget):
                return False
        except OutOfBudgetError as error:
            # The budget is shared: the conditions that follow could not be evaluated either.
            raise ConditionError(str(error)) from None
        except EvaluationError as error:
            problems.append(str(error))
    if problems:
        unique = [*dict.fromkeys(problems)]
        raise ConditionError(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
    return True
