"""Label selectors and field selectors.

A label selector has two forms: text, `app=web,tier in (front,back),!canary`, in queries, and an object with
`matchLabels` and `matchExpressions` in manifests. Both are parsed into the same class. Parsing is as strict as in the
API server, because a selector that matches too much counts or deletes the wrong objects.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.label_requirements import Requirement, SelectorOperator, shown
from ocf.objects.selector_parser import SUBJECT, read_requirements

__all__ = ["FieldTerm", "LabelSelector", "parse_field_selector", "selector_identity", "selects"]

_OPERATORS: Final = {
    "In": SelectorOperator.IN,
    "NotIn": SelectorOperator.NOT_IN,
    "Exists": SelectorOperator.EXISTS,
    "DoesNotExist": SelectorOperator.DOES_NOT_EXIST,
}


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A selector of objects by their labels.

    An empty selector (`{}`, or the empty text) matches every object. A missing selector (`None`) matches no object, as
    a missing `selector` does in the API.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/.

    Args:
        requirements: Requirements that labels must all meet, sorted by key.
        nothing: Whether no object matches, regardless of the requirements.

    Example:
        >>> selector = LabelSelector.parse("tier in (front,back), app=web, !canary")
        >>> selector.matches({"app": "web", "tier": "back"})
        True
        >>> print(selector)
        app=web,!canary,tier in (back,front)
        >>> LabelSelector.of({"matchLabels": {"app": "web"}}) == LabelSelector.parse("app=web")
        True
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        """Parse the text form.

        Args:
            text: Requirements joined by commas: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`,
                `a>1`, `a<1`.

        Raises:
            ManifestError: If `text` cannot be parsed, or contains an invalid label or value.
        """
        return cls(_sorted(read_requirements(text)))

    @classmethod
    def of(cls, selector: Mapping[str, Any] | None) -> "LabelSelector":
        """Parse the object form.

        Args:
            selector: A mapping with `matchLabels` and `matchExpressions`, or None for a missing selector.

        Returns:
            The selector; for None one that matches nothing.

        Raises:
            ManifestError: If the selector is invalid; it contains all invalid fields.
        """
        if selector is None:
            return cls(nothing=True)
        reader = _ObjectReader()
        requirements = _sorted(reader.read(selector))
        if reader.problems:
            raise ManifestError(SUBJECT, reader.problems)
        return cls(requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the selector matches an object with these labels.

        Args:
            labels: The labels of an object; an empty mapping if it has no labels.
        """
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """Return the text form; `<nothing>`, which the API server rejects, if the selector matches nothing."""
        return "<nothing>" if self.nothing else ",".join(map(str, self.requirements))


def selector_identity(selector: Mapping[str, Any] | None) -> Hashable:
    """Return the identity of a selector in object form, to find the entry of a list that has it.

    The order of labels, expressions and values is ignored, but not their number. A missing list or map equals an empty
    one. Selectors that only match the same objects are different: `matchLabels` with `a: b` differs from the expression
    `a In [b]`, and a missing selector differs from an empty one.

    Args:
        selector: A mapping with `matchLabels` and `matchExpressions`, or None.

    Returns:
        A value that is equal only for equal selectors.

    Example:
        >>> selector_identity({}) == selector_identity({"matchLabels": {}}) != selector_identity(None)
        True
    """
    if selector is None:
        return None
    labels = frozenset((selector.get("matchLabels") or {}).items())
    return labels, _multiset(
        (item.get("key") or "", item.get("operator") or "", _multiset(item.get("values") or ()))
        for item in selector.get("matchExpressions") or ()
    )


class FieldTerm(NamedTuple):
    """One condition of a field selector.

    Args:
        path: The field, `metadata.name`.
        operator: `=` or `!=`.
        value: The value, without escaping backslashes.
    """

    path: str
    operator: str
    value: str


# A term ends at a comma without a backslash before it.
_TERM: Final = re.compile(r"(?:[^\\,]|\\.|\\\Z)+", re.DOTALL)
_EQUALITY: Final = re.compile(r"!=|==?")
_VALUE: Final = re.compile(r"(?:[^\\=]|\\[\\,=])*")
_ESCAPE: Final = re.compile(r"\\(.)")


def selects(selector: str | Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Return whether a label selector selects an object with these labels.

    Args:
        selector: Its text, `app=web,tier in (front,back)`, or its object form as in a manifest. An empty one selects
            every object, and None, a missing one, selects none.
        labels: The labels; None for none.

    Raises:
        ManifestError: If the selector is invalid.

    Example:
        >>> pod = {"metadata": {"labels": {"app": "web", "tier": "back"}}}
        >>> selects("app=web,!canary", pod["metadata"].get("labels"))
        True
        >>> selects({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}, {"tier": "back"})
        False
    """
    parsed = LabelSelector.parse(selector) if isinstance(selector, str) else LabelSelector.of(selector)
    return parsed.matches(labels or {})


def parse_field_selector(text: str) -> tuple[FieldTerm, ...]:
    r"""Parse a field selector.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/.

    Args:
        text: Terms `path=value`, `path==value`, `path!=value`, joined by commas. In a value, a comma, `=` or
            backslash is escaped with a backslash.

    Returns:
        The terms in their order in the text, with `==` as `=`.

    Raises:
        ManifestError: If `text` cannot be parsed.

    Example:
        >>> for term in parse_field_selector("metadata.name=web,status.phase!=Running"):
        ...     print(*term)
        metadata.name = web
        status.phase != Running
    """
    return tuple(map(_field_term, _TERM.findall(text)))


def _field_term(part: str) -> FieldTerm:
    sign = _EQUALITY.search(part)
    if sign is None or sign.start() == 0:
        raise _field_problem(f"{shown(part)} must be path=value, path==value or path!=value")
    value = part[sign.end() :]
    if not _VALUE.fullmatch(value):
        raise _field_problem(f"{shown(part)} must write a comma, '=' or backslash in its value behind a backslash")
    operator = "!=" if sign[0] == "!=" else "="
    return FieldTerm(part[: sign.start()], operator, _ESCAPE.sub(r"\1", value))


def _field_problem(detail: str) -> ManifestError:
    return ManifestError("field selector", [FieldProblem("", detail)])


def _multiset(items: Iterable[Hashable]) -> Hashable:
    return frozenset(Counter(items).items())


def _sorted(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


class _ObjectReader:
    """Parser of the object form; it collects all problems, so that they are reported together."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []

    def read(self, selector: Mapping[str, Any]) -> Iterator[Requirement]:
        fields = self._fields("", selector, ("matchLabels", "matchExpressions"))
        labels = fields.get("matchLabels")
        for key, value in self._fields("matchLabels", {} if labels is None else labels).items():
            yield from self._requirement("matchLabels", key, SelectorOperator.EQUALS, [value])
        for index, item in enumerate(self._items("matchExpressions", fields.get("matchExpressions"))):
            path = f"matchExpressions[{index}]"
            yield from self._expression(path, self._fields(path, item, ("key", "operator", "values")))

    def _expression(self, path: str, item: Mapping[str, Any]) -> Iterator[Requirement]:
        operator = item.get("operator")
        if isinstance(operator, str) and operator in _OPERATORS:
            values = self._items(f"{path}.values", item.get("values"))
            yield from self._requirement(path, item.get("key"), _OPERATORS[operator], values)
        else:
            self._reject(f"{path}.operator", f"must be one of {', '.join(_OPERATORS)}, not {operator!r}")

    def _requirement(self, path: str, key: Any, operator: SelectorOperator, values: list[Any]) -> Iterator[Requirement]:
        wrong = [text for text in (key, *values) if not isinstance(text, str)]
        if wrong:
            self._reject(path, f"a label and its values must be texts, not {wrong[0]!r}")
            return
        given = Requirement(key, operator, tuple(values))
        self.problems += [FieldProblem(f"{path}.{problem.path}", problem.detail) for problem in given.problems()]
        yield replace(given, values=tuple(sorted(set(values))))

    def _fields(self, path: str, value: object, known: tuple[str, ...] = ()) -> Mapping[Any, Any]:
        if not isinstance(value, Mapping):
            self._reject(path, f"must be a map, not {type(value).__name__}")
            return {}
        for key in value:
            if known and key not in known:
                self._reject(path, f"unknown field {key!r}; there are {', '.join(known)}")
        return value

    def _items(self, path: str, value: object) -> list[Any]:
        if value is None or isinstance(value, list | tuple):
            return list(value or ())
        self._reject(path, f"must be a list, not {type(value).__name__}")
        return []

    def _reject(self, path: str, detail: str) -> None:
        self.problems.append(FieldProblem(path, detail))
