"""Evaluation of the rules of a schema for an object.

A violation in an unchanged value does not prevent an update, unless the rule uses `oldSelf`. Source:
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting
and #transition-rules; the error texts are those of a real API server.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from ocf.errors import FieldProblem
from ocf.objects.json_equality import equal_json
from ocf_server.api.status_errors import go_json
from ocf_server.cel.compiler import CompiledRule, Rules
from ocf_server.cel.conversions import shown
from ocf_server.cel.optional_values import Maybe
from ocf_server.cel.runtime import MAX_STEPS, Frame, Run, StepMeter, TooExpensiveError
from ocf_server.cel.values import EvaluationError, value_of

__all__ = ["broken_rules", "default_problems"]

_MAX_TOTAL_STEPS: Final = 10_000_000
"""Maximum number of steps of all rules of an object together; the limit of a real API server."""
# MaxEvaluatedMessageExpressionSizeBytes.
_MAX_MESSAGE_BYTES: Final = 5 * 1024
# Violations that may make the evaluation of rules too expensive, or impossible.
_BLOCKING: Final = ("Unsupported value", "Required value", "Too long", "Too many")
_UNCHECKED: Final = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class _StopError(Exception):
    """The evaluation of all rules stops."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A value and its previous value."""

    new: Any
    old: Any

    @property
    def unchanged(self) -> bool:
        return self.new is not None and self.old is not None and equal_json(self.new, self.old)


@dataclass(frozen=True, slots=True)
class _Place:
    """A location in an object with rules.

    Args:
        old: The previous value; None if the value has no correlatable previous value.
        pair: Both values, if they are correlated.
    """

    path: str
    new: Any
    old: Any
    pair: _Pair | None
    above: _Pair | None

    @property
    def unchanged(self) -> bool:
        near = self.pair or self.above
        return near is not None and near.unchanged

    def below(self, path: str, new: Any, old: Any, *, same: bool) -> "_Place":
        """Return a location below; `same` means that the old value is correlated with the new one."""
        if self.pair is None:
            return _Place(path, new, old, None, self.above)
        return _Place(path, new, old, _Pair(new, old) if same else None, self.pair)


def broken_rules(
    rules: Rules, new: Mapping[str, Any], old: Mapping[str, Any] | None, problems: Sequence[FieldProblem]
) -> list[FieldProblem]:
    """Evaluate the rules of a kind for an object.

    Args:
        old: The live object; None for a new one.
        problems: Violations of the schema; after some of them, rules are not evaluated.

    Returns:
        The violations of the rules.
    """
    if any(problem.detail.startswith(_BLOCKING) or _is_of_wrong_type(problem) for problem in problems):
        return [FieldProblem("<nil>", _UNCHECKED)]
    return _evaluated(rules, _Place("", new, old, None if old is None else _Pair(new, old), None))


def _is_of_wrong_type(problem: FieldProblem) -> bool:
    return " in body must be of type " in problem.detail


def default_problems(rules: Rules, default: Any, path: str) -> list[FieldProblem]:
    """Evaluate the rules of a schema for its default, which is also the value of `oldSelf`.

    Args:
        path: Path of the default in the CustomResourceDefinition.

    Returns:
        The violations of the rules.
    """
    return _evaluated(rules, _Place(path, default, default, None, None))


def _evaluated(rules: Rules, place: _Place) -> list[FieldProblem]:
    evaluator = _Evaluator(StepMeter(_MAX_TOTAL_STEPS))
    with suppress(_StopError):
        evaluator.walk(rules, place)
    return evaluator.problems


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """Evaluator of the rules of an object."""

    budget: StepMeter
    problems: list[FieldProblem] = field(default_factory=list)

    def walk(self, rules: Rules, place: _Place) -> None:
        """Evaluate the rules at a location and below."""
        if place.new is None:
            return
        if rules.here:
            self._here(rules, place)
        if isinstance(place.new, dict):
            for below, where in _fields(rules, place):
                self.walk(below, where)
        elif isinstance(place.new, list) and rules.items is not None:
            for where in _items(rules, place):
                self.walk(rules.items, where)

    def _here(self, rules: Rules, place: _Place) -> None:
        new = value_of(place.new, rules.schema)
        old = None if place.old is None else value_of(place.old, rules.schema)
        for rule in rules.here:
            if rule.given.get("optionalOldSelf"):
                previous: Any = Maybe.none() if place.old is None else Maybe(old)
            elif place.old is not None or not rule.uses_old:
                previous = old
            else:
                continue
            self._evaluate_rule(rule, place, {"self": new, "oldSelf": previous}, rules.schema)

    def _evaluate_rule(
        self, rule: CompiledRule, place: _Place, values: dict[str, Any], schema: Mapping[str, Any]
    ) -> None:
        try:
            if self._evaluated(rule.run, values) is True:
                return
        except EvaluationError as error:
            self._add_error(place.path, schema, _evaluation(str(error), rule))
        except TooExpensiveError:
            text = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to "
            self._stop(place.path, schema, f"{text}call cost exceeds limit for rule: {_named(rule)}")
        else:
            self._add_violation(rule, place, values, schema)

    def _evaluated(self, run: Run, values: dict[str, Any]) -> Any:
        """Evaluate an expression; its steps also count for the limit of all rules."""
        meter = StepMeter(min(MAX_STEPS, self.budget.left))
        before = meter.left
        try:
            return run(Frame(values, meter))
        except RecursionError:
            raise TooExpensiveError from None
        finally:
            self.budget.left -= before - max(meter.left, 0)

    def _add_violation(
        self, rule: CompiledRule, place: _Place, values: dict[str, Any], schema: Mapping[str, Any]
    ) -> None:
        # A transition rule has decided about this value and the one before, so it is never ratcheted.
        if not rule.uses_old and place.unchanged:
            return
        path = ".".join(filter(None, (place.path, rule.path)))
        try:
            detail = self._message(rule, values)
        except TooExpensiveError:
            text = "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
            self._stop(path, schema, f"{text}{go_json(rule.given['messageExpression'])}")
        number = isinstance(place.new, float)
        value = shown(place.new) if number else go_json(place.new)
        value = "" if schema.get("type") in ("object", "array") else value
        self.problems.append(FieldProblem(path or "<nil>", _detail(rule.given.get("reason"), value, detail)))

    def _message(self, rule: CompiledRule, values: dict[str, Any]) -> str:
        if rule.message is not None:
            with suppress(EvaluationError):
                text = str(self._evaluated(rule.message, values)).strip()
                if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE_BYTES:
                    return text
        fixed = str(rule.given.get("message") or "")
        return fixed.strip() if fixed else f"failed rule: {_named(rule)}"

    def _add_error(self, path: str, schema: Mapping[str, Any], detail: str) -> None:
        kind = go_json(schema.get("type") or "")
        self.problems.append(FieldProblem(path or "<nil>", f"Invalid value: {kind}: {detail}"))

    def _stop(self, path: str, schema: Mapping[str, Any], detail: str) -> NoReturn:
        self._add_error(path, schema, detail)
        raise _StopError


def _named(rule: CompiledRule) -> str:
    return str(rule.given.get("message") or rule.given["rule"]).strip()


def _evaluation(error: str, rule: CompiledRule) -> str:
    if error.startswith("no such overload"):
        explanation = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {explanation}: {_named(rule)}"
    return f"{error} evaluating rule: {_named(rule)}"


def _detail(reason: str | None, value: str, text: str) -> str:
    match reason:
        case "FieldValueForbidden":
            return f"Forbidden: {text}"
        case "FieldValueRequired":
            return f"Required value: {text}"
        case "FieldValueDuplicate":
            return f"Duplicate value: {value}" if value else "Duplicate value"
        case _:
            return f"Invalid value: {value}: {text}" if value else f"Invalid value: {text}"


def _fields(rules: Rules, place: _Place) -> Iterator[tuple[Rules, _Place]]:
    before = place.old if isinstance(place.old, dict) else {}
    root = place.pair is not None and place.above is None
    for name, value in place.new.items():
        below = rules.extra or rules.fields.get(name)
        if below is None:
            continue
        path = f"{place.path}[{name}]" if rules.extra else f"{place.path}.{name}" if place.path else name
        # The API server takes the type of an object from elsewhere, so that it has no previous value.
        same = name in before and not (root and name in ("apiVersion", "kind"))
        yield below, place.below(path, value, before.get(name), same=same)


def _items(rules: Rules, place: _Place) -> Iterator[_Place]:
    keys = rules.schema.get("x-kubernetes-list-map-keys") or ()
    before: dict[str, Any] = {}
    if rules.schema.get("x-kubernetes-list-type") == "map" and isinstance(place.old, list):
        # Of equal keys, the first item counts.
        for item in reversed(place.old):
            before[_key(item, keys)] = item
    for index, item in enumerate(place.new):
        old = before.get(_key(item, keys)) if keys else None
        yield place.below(f"{place.path}[{index}]", item, old, same=old is not None)


def _key(item: Any, keys: Sequence[str]) -> str:
    return go_json([item.get(name) for name in keys]) if isinstance(item, dict) else ""
