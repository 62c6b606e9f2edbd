"""Label and field selectors as they stand in a request.

Parsed here and not with the label selectors of objects, because a request's selector is a text with a grammar of its
own (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#api), and a bad one is the caller's bad
request.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ocf.cluster.embedded.failures import bad_request
from ocf.objects import Manifest

__all__ = ["Predicate", "field_predicate", "label_predicate", "selector_text"]

Predicate: TypeAlias = Callable[[Manifest], bool]
"""Says whether an object is selected."""

_Labels: TypeAlias = Mapping[str, str]
_TOKEN: Final = re.compile(r"\s*(!=|==|=|!|\(|\)|,|<|>|[^\s!=(),<>]+)")
_SETS: Final = ("in", "notin")


def _tokens(text: str) -> list[str]:
    text = text.strip()
    found = _TOKEN.findall(text)
    return [*found, ""]


def _unexpected(token: str, wanted: str) -> Exception:
    return bad_request(f"unable to parse requirement: found '{token}', expected: {wanted}")


class _Parser:
    """Reads one selector from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def peek(self) -> str:
        return self._tokens[self._next]

    def take(self) -> str:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def name(self, wanted: str) -> str:
        token = self.take()
        if not token or token in ("!", "=", "==", "!=", "(", ")", ",", "<", ">"):
            raise _unexpected(token, wanted)
        return token

    def requirements(self) -> list[Callable[[_Labels], bool]]:
        found = [] if self.peek() == "" else [self._requirement()]
        while self.peek() == ",":
            self.take()
            found.append(self._requirement())
        if self.peek():
            raise _unexpected(self.peek(), "',' or 'end of string'")
        return found

    def _requirement(self) -> Callable[[_Labels], bool]:
        if self.peek() == "!":
            self.take()
            key = self.name("identifier")
            return lambda labels: key not in labels
        key = self.name("identifier")
        operator = self.peek()
        if operator in (",", ""):
            return lambda labels: key in labels
        self.take()
        if operator in _SETS:
            values = self._set()
            if operator == "in":
                return lambda labels: labels.get(key) in values
            return lambda labels: labels.get(key) not in values
        return self._comparison(key, operator)

    def _comparison(self, key: str, operator: str) -> Callable[[_Labels], bool]:
        if operator not in ("=", "==", "!=", "<", ">"):
            raise _unexpected(operator, "in, notin, =, ==, !=, gt, lt")
        value = "" if self.peek() in (",", "") else self.name("identifier")
        if operator in ("=", "=="):
            return lambda labels: labels.get(key) == value
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        if not _is_integer(value):
            raise bad_request(
                f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        bound, above = int(value), operator == ">"
        return lambda labels: (
            _is_integer(labels.get(key, "")) and (int(labels[key]) > bound if above else int(labels[key]) < bound)
        )

    def _set(self) -> frozenset[str]:
        if self.take() != "(":
            self._next -= 1
            raise bad_request(f"unable to parse requirement: found '{self.peek()}' expected: '('")
        values = []
        while True:
            values.append("" if self.peek() in (",", ")") else self.name("identifier"))
            mark = self.take()
            if mark == ")":
                return frozenset(values)
            if mark != ",":
                raise _unexpected(mark, "',' or ')'")


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def label_predicate(selector: str) -> Predicate | None:
    """Read a label selector.

    Args:
        selector: The text, `app=web,tier in (front,back),!canary`; empty selects everything.

    Returns:
        What it selects, or None for everything.

    Raises:
        BadRequestError: If it is malformed.

    Example:
        >>> select = label_predicate("app=web,!canary")
        >>> select({"metadata": {"labels": {"app": "web"}}})
        True
    """
    requirements = _Parser(selector).requirements()
    if not requirements:
        return None

    def selected(manifest: Manifest) -> bool:
        labels = manifest["metadata"].get("labels") or {}
        return all(requirement(labels) for requirement in requirements)

    return selected


_FIELDS: Final = ("metadata.name", "metadata.namespace")


def field_predicate(selector: str) -> Predicate | None:
    """Read a field selector.

    Args:
        selector: The text, `metadata.name=web`; empty selects everything.

    Returns:
        What it selects, or None for everything.

    Raises:
        BadRequestError: If it is malformed or asks for a field other than name and namespace.
    """
    terms = [_field_term(term) for term in selector.split(",") if term]
    if not terms:
        return None

    def selected(manifest: Manifest) -> bool:
        metadata = manifest["metadata"]
        return all((metadata.get(name, "") == value) is wanted for name, value, wanted in terms)

    return selected


def _field_term(term: str) -> tuple[str, str, bool]:
    for operator, wanted in (("!=", False), ("==", True), ("=", True)):
        path, found, value = term.partition(operator)
        if found:
            if path not in _FIELDS:
                known = ", ".join(f'"{name}"' for name in _FIELDS)
                raise bad_request(f'"{path}" is not a known field selector: only {known}')
            return path.removeprefix("metadata."), value, wanted
    raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")


_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Write an object's label selector as a text.

    Args:
        selector: A label selector with `matchLabels` and `matchExpressions`.

    Returns:
        The text, as a Scale reports it.

    Example:
        >>> selector_text({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]})
        'app=web,tier'
    """
    if not selector:
        return ""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    expressions = selector.get("matchExpressions") or ()
    terms.extend((expression["key"], _expression_text(expression)) for expression in expressions)
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _expression_text(expression: Mapping[str, Any]) -> str:
    key, operator = expression["key"], expression["operator"]
    if operator in _OPERATORS:
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(expression.get('values') or ()))})"
    return f"!{key}" if operator == "DoesNotExist" else str(key)
