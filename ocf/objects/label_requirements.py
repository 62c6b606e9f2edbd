"""Requirements of a label selector, and the rules for labels and their values.

Both forms of a selector, text and object, are converted to requirements, so they share these rules.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ocf.errors import FieldProblem

__all__ = ["Requirement", "SelectorOperator", "shown"]


class SelectorOperator(StrEnum):
    """Operator between a label and its values, in the spelling of the text form."""

    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = ">"
    LESS_THAN = "<"


_POSITIVE: Final = frozenset({SelectorOperator.IN, SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS})
_NEGATIVE: Final = frozenset({SelectorOperator.NOT_IN, SelectorOperator.NOT_EQUALS})
_SETS: Final = frozenset({SelectorOperator.IN, SelectorOperator.NOT_IN})
_UNARY: Final = frozenset({SelectorOperator.EXISTS, SelectorOperator.DOES_NOT_EXIST})
_ORDERED: Final = frozenset({SelectorOperator.GREATER_THAN, SelectorOperator.LESS_THAN})

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_MAX_NAME: Final = 63
_MAX_PREFIX: Final = 253
_MAX_SHOWN: Final = 80
_INT64_END: Final = 2**63
_NAME_FORM: Final = "at most 63 letters, digits, '-', '_' or '.', with a letter or digit at either end"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label.

    Args:
        values: The values, sorted and unique; empty for `EXISTS` and `DOES_NOT_EXIST`.

    Example:
        >>> requirement = Requirement("tier", SelectorOperator.NOT_IN, ("back", "front"))
        >>> print(requirement, requirement.matches({"app": "web"}), requirement.matches({"tier": "back"}))
        tier notin (back,front) True False
    """

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet this requirement.

        Returns:
            Whether they do. A missing label meets only `DOES_NOT_EXIST`, `NOT_IN` and `NOT_EQUALS`.
        """
        value = labels.get(self.key)
        if value is None:
            return self.operator in _NEGATIVE or self.operator is SelectorOperator.DOES_NOT_EXIST
        if self.operator in _POSITIVE:
            return value in self.values
        if self.operator in _NEGATIVE:
            return value not in self.values
        if self.operator in _UNARY:
            return self.operator is SelectorOperator.EXISTS
        return self._compares(value)

    def problems(self) -> Iterator[FieldProblem]:
        """Yield the problems that the API server finds in this requirement.

        Yields:
            Problems at `key` and `values`, the names in the object form of a selector.
        """
        yield from _problems_of_key(self.key)
        count = len(self.values)
        if self.operator in _UNARY:
            if count:
                yield FieldProblem("values", f"must be empty where the operator asks for presence, not {count} values")
        elif self.operator in _SETS:
            if not count:
                yield FieldProblem("values", "needs at least one value with this operator")
        elif count != 1:
            yield FieldProblem("values", f"needs exactly one value with this operator, not {count}")
        for index, value in enumerate(self.values):
            yield from self._problems_of_value(f"values[{index}]", value)

    def __str__(self) -> str:
        if self.operator is SelectorOperator.EXISTS:
            return self.key
        if self.operator is SelectorOperator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in _SETS:
            return f"{self.key} {self.operator} ({','.join(self.values)})"
        return f"{self.key}{self.operator}{','.join(self.values)}"

    def _compares(self, value: str) -> bool:
        number, bound = _int64(value), _int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator is SelectorOperator.GREATER_THAN else number < bound

    def _problems_of_value(self, path: str, value: str) -> Iterator[FieldProblem]:
        if value and not _is_name(value):
            yield FieldProblem(path, f"{shown(value)} is not a label value: write nothing, or {_NAME_FORM}")
        elif self.operator in _ORDERED and _int64(value) is None:
            yield FieldProblem(path, f"{shown(value)} must be an integer of 64 bits")


def shown(text: str) -> str:
    """Return a text quoted for a message and shortened if it is long."""
    return repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r}…"


def _problems_of_key(key: str) -> Iterator[FieldProblem]:
    prefix, slash, name = key.rpartition("/")
    if not _is_name(name):
        yield FieldProblem("key", f"{shown(key)} is not a label: write a name, {_NAME_FORM}")
    if slash and not _is_subdomain(prefix):
        yield FieldProblem(
            "key", f"{shown(key)} is not a label: write a DNS subdomain before the slash, like example.com"
        )


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_NAME and _NAME.fullmatch(text) is not None


def _is_subdomain(text: str) -> bool:
    return len(text) <= _MAX_PREFIX and all(_DNS_LABEL.fullmatch(part) for part in text.split("."))


def _int64(text: str) -> int | None:
    # A longer text is not a label value.
    if len(text) > _MAX_NAME or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64_END <= number < _INT64_END else None
