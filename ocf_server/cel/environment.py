"""Expressions of admission: match conditions and the expressions of admission policies.

Variables, types and error texts are those of a real API server. Source:
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocf_server.cel.authorizer import authorizer_values
from ocf_server.cel.expressions import ExpressionError, checked_expression
from ocf_server.cel.runtime import MAX_STEPS, Checked, Frame, StepMeter, TooExpensiveError
from ocf_server.cel.types import (
    ANY,
    AUTHORIZER,
    AUTHORIZER_TYPES,
    BOOL,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
)
from ocf_server.cel.values import EvaluationError, InvalidValue

__all__ = [
    "BOOLEAN",
    "MAX_MATCH_STEPS",
    "MAX_POLICY_STEPS",
    "TEXT",
    "TEXT_OR_NULL",
    "Budget",
    "CompiledExpression",
    "Environment",
    "OutOfBudgetError",
    "namespace_value",
]

MAX_POLICY_STEPS: Final = 10_000_000
"""Maximum number of steps of all validations of a policy; the cost budget of a real API server."""
MAX_MATCH_STEPS: Final = MAX_POLICY_STEPS // 4
"""Maximum number of steps of all match conditions of a policy or webhook."""

BOOLEAN: Final = (BOOL,)
TEXT: Final = (STRING,)
TEXT_OR_NULL: Final = (STRING, NULL)

_TOO_EXPENSIVE: Final = "operation cancelled: actual cost limit exceeded"
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


def _object(name: str, /, **fields: CelType) -> CelType:
    return CelType(f"kubernetes.{name}", fields={key: (key, kind) for key, kind in fields.items()})


_TEXTS: Final = list_of(STRING)
_GROUP_KIND: Final = _object("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_GROUP_RESOURCE: Final = _object("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_REQUEST: Final = _object(
    "AdmissionRequest",
    kind=_GROUP_KIND,
    resource=_GROUP_RESOURCE,
    subResource=STRING,
    requestKind=_GROUP_KIND,
    requestResource=_GROUP_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_object("UserInfo", username=STRING, uid=STRING, groups=_TEXTS, extra=map_of(STRING, _TEXTS)),
    dryRun=BOOL,
    options=ANY,
)
_NAMESPACE: Final = _object(
    "Namespace",
    metadata=_object(
        "NamespaceMetadata",
        name=STRING,
        generateName=STRING,
        namespace=STRING,
        labels=map_of(STRING, STRING),
        annotations=map_of(STRING, STRING),
        UID=STRING,
        creationTimestamp=TIMESTAMP,
        deletionGracePeriodSeconds=INT,
        deletionTimestamp=TIMESTAMP,
        generation=INT,
        resourceVersion=STRING,
        finalizers=_TEXTS,
    ),
    spec=_object("NamespaceSpec", finalizers=_TEXTS),
    status=_object(
        "NamespaceStatus",
        conditions=list_of(
            _object(
                "NamespaceCondition",
                status=STRING,
                type=STRING,
                lastTransitionTime=TIMESTAMP,
                message=STRING,
                reason=STRING,
            )
        ),
        phase=STRING,
    ),
)


class OutOfBudgetError(Exception):
    """The expressions of a policy exceed their steps together; the text is that of a real API server."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@dataclass(slots=True)
class Budget:
    """Remaining steps of the expressions of a policy."""

    left: int


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """A compiled expression.

    Args:
        checked: The compiled expression; None if it cannot be compiled.
    """

    text: str
    checked: Checked | None
    problem: str = ""

    def evaluate(self, values: Mapping[str, Any], budget: Budget) -> Any:
        """Evaluate the expression.

        Args:
            budget: The remaining steps; the steps of the expression are subtracted.

        Returns:
            The value.

        Raises:
            EvaluationError: If the evaluation fails; the text is that of a real API server.
            OutOfBudgetError: If no steps remain.
        """
        if self.checked is None:
            raise EvaluationError(f"compilation error: {self.problem}")
        meter = StepMeter(MAX_STEPS)
        try:
            return self.checked.run(Frame(dict(values), meter))
        except (TooExpensiveError, RecursionError):
            raise EvaluationError(f"expression '{self.text}' resulted in error: {_TOO_EXPENSIVE}") from None
        except EvaluationError as error:
            raise EvaluationError(f"expression '{self.text}' resulted in error: {error}") from None
        finally:
            budget.left -= MAX_STEPS - max(meter.left, 0)
            if budget.left < 0:
                raise OutOfBudgetError


@dataclass(slots=True)
class Environment:
    """Environment in which the expressions of a webhook or policy are compiled.

    Args:
        params: Whether the policy has parameters.
        compose: Whether expressions can use the variables of the policy.
        object_type: The type of `object` and `oldObject`, where types are checked after the policy was accepted.

    Example:
        >>> environment = Environment(compose=True)
        >>> environment.add_variable("size", "size(object.data)").problem
        ''
        >>> environment.compiled("variables.size + 1", BOOLEAN).problem
        'must evaluate to bool but got int'
    """

    params: bool = False
    compose: bool = False
    object_type: CelType = ANY
    _composed: dict[str, tuple[str, CelType]] = field(default_factory=dict, init=False)
    _compiled: dict[str, CompiledExpression] = field(default_factory=dict, init=False)

    @classmethod
    def of_policy(cls, spec: Mapping[str, Any], object_type: CelType = ANY) -> "Environment":
        """Return the environment of a policy; its variables are not declared yet."""
        given = {"params": spec.get("paramKind") is not None, "compose": bool(spec.get("variables"))}
        return cls(**given, object_type=object_type)

    def _types(self, *, authorizer: bool) -> Mapping[str, CelType]:
        typed = self.object_type
        known = {"object": typed, "oldObject": typed, "request": _REQUEST, "namespaceObject": _NAMESPACE}
        if self.params:
            known["params"] = ANY
        if authorizer:
            known |= {"authorizer": AUTHORIZER, "authorizer.requestResource": AUTHORIZER_TYPES["resource"]}
        if self.compose:
            known["variables"] = CelType("kubernetes.variables", fields=dict(self._composed))
        return known

    def compiled(
        self, text: str, gives: tuple[CelType, ...] = (), *, authorizer: bool = True, mutates: bool = False
    ) -> CompiledExpression:
        """Compile an expression.

        Args:
            gives: The types that its value may have; empty for any type.
            authorizer: Whether it can use the authorizer.
            mutates: Whether it is a mutation, which can use object literals.

        Returns:
            The expression; `problem` is not empty if it is invalid.

        Raises:
            BadRequestError: If it uses a feature that the embedded cluster does not support.
        """
        try:
            expression = checked_expression(text, self._types(authorizer=authorizer), mutates=mutates)
        except ExpressionError as error:
            return CompiledExpression(text, None, error.text)
        checked = expression.checked
        if gives and checked.kind not in gives:
            return CompiledExpression(text, None, _type_problem(checked.kind, gives))
        if expression.program_problem:
            return CompiledExpression(text, None, expression.program_problem)
        return CompiledExpression(text, checked)

    def add_variable(self, name: str, text: str) -> CompiledExpression:
        """Compile a variable of the policy; expressions that are compiled later can use it as `variables.NAME`."""
        compiled = self.compiled(text)
        self._composed[name] = (name, ANY if compiled.checked is None else compiled.checked.kind)
        self._compiled[name] = compiled
        return compiled

    def values(self, budget: Budget, **given: Any) -> dict[str, Any]:
        """Return the values of the variables for an evaluation.

        Args:
            budget: The remaining steps; those of the variables of the policy are subtracted.
            **given: Values of `object`, `oldObject`, `request`, `namespaceObject` and `params`; and those of the
                authorizer, without which everything is allowed.

        Returns:
            The values; the variables of the policy are evaluated when an expression uses them, at most once.
        """
        values = {**_ALLOWED, **given}
        values["variables"] = _Composed(self._compiled, values, budget)
        return values


_ALLOWED: Final = authorizer_values()


def _type_problem(kind: CelType, gives: tuple[CelType, ...]) -> str:
    if len(gives) == 1:
        return f"must evaluate to {gives[0]} but got {_shown(kind)}"
    return f"must evaluate to one of [{' '.join(map(_shown, gives))}] but got {_shown(kind)}"


def _shown(kind: CelType) -> str:
    return "null_type" if kind == NULL else str(kind)


class _Composed(dict[str, Any]):
    """The variables of a policy, which are evaluated on first use."""

    def __init__(self, compiled: Mapping[str, CompiledExpression], values: Mapping[str, Any], budget: Budget) -> None:
        super().__init__()
        self._compiled, self._values, self._budget = compiled, values, budget
        self._problems: dict[str, str] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._compiled

    def __iter__(self) -> Iterator[str]:
        return iter(self._compiled)

    def __len__(self) -> int:
        return len(self._compiled)

    def __missing__(self, name: str) -> Any:
        if name not in self._problems:
            try:
                self[name] = self._value(name)
            except EvaluationError as error:
                # Kept as well: a variable is evaluated at most once, also if that fails.
                self._problems[name] = str(error)
            else:
                return self[name]
        raise EvaluationError(self._problems[name])

    def _value(self, name: str) -> Any:
        compiled = self._compiled[name]
        if compiled.checked is None:
            raise EvaluationError(f'composited variable "{name}" fails to compile: {compiled.problem}')
        meter = StepMeter(MAX_STEPS)
        try:
            return compiled.checked.run(Frame(dict(self._values), meter))
        except (TooExpensiveError, RecursionError):
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {_TOO_EXPENSIVE}') from None
        except EvaluationError as error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        finally:
            self._budget.left -= MAX_STEPS - max(meter.left, 0)


def namespace_value(namespace: Mapping[str, Any] | None) -> Any:
    """Return the value of `namespaceObject`.

    Args:
        namespace: The namespace of the request; None if the request is cluster-scoped.

    Returns:
        The value. A real API server does not convert its timestamps, so an expression that uses one fails.
    """
    if namespace is None:
        return None
    metadata = {name: value for name, value in namespace["metadata"].items() if name != "managedFields"}
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in metadata:
            metadata[name] = InvalidValue("no such overload")
    return {"metadata": metadata, **{name: namespace[name] for name in ("spec", "status") if name in namespace}}
