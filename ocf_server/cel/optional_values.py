"""Optional values of CEL: their functions, and the access to fields, items and keys that may be missing.

Source: https://github.com/google/cel-spec/wiki/proposal-246 and
https://pkg.go.dev/github.com/google/cel-go/cel#OptionalTypes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.runtime import Frame, Run
from ocf_server.cel.types import OPTIONAL
from ocf_server.cel.values import EvaluationError, Opaque, equal, require_valid

__all__ = ["OPTIONALS", "Maybe", "first_present", "selected"]


class _Nothing:
    """Type of the mark of an optional value without a value, since null is a value."""


_NOTHING: Final = _Nothing()


@dataclass(frozen=True, slots=True, eq=False)
class Maybe(Opaque):
    """An optional value.

    Example:
        >>> Maybe(None).is_present, Maybe.none().is_present
        (True, False)
    """

    content: Any
    kind: str = field(default=OPTIONAL, init=False)

    @classmethod
    def none(cls) -> "Maybe":
        """Return an optional value without a value."""
        return cls(_NOTHING)

    @property
    def is_present(self) -> bool:
        """Whether it has a value."""
        return self.content is not _NOTHING

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Maybe) or self.is_present is not other.is_present:
            return False
        return not self.is_present or equal(self.content, other.content)

    def __hash__(self) -> int:
        return hash(self.is_present)

    def value(self) -> Any:
        """Return the value.

        Raises:
            EvaluationError: If it has none.
        """
        if not self.is_present:
            raise EvaluationError("optional.none() dereference")
        return require_valid(self.content)


def selected(value: Any, key: Any) -> Maybe:
    """Return the field, item or entry of a value, or of an optional value.

    Args:
        key: The name of the field, the index of the item, or the key of the entry.
    """
    if isinstance(value, Maybe):
        return selected(value.content, key) if value.is_present else value
    if isinstance(value, dict) and key in value:
        return Maybe(require_valid(value[key]))
    if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
        return Maybe(require_valid(value[key]))
    return Maybe.none()


def first_present(left: Run, right: Run, *, unwrap: bool) -> Run:
    """Return the functions `or` and `orValue`, which evaluate their argument only if the target has no value.

    Args:
        unwrap: Whether the result is the value itself, as that of `orValue`.
    """

    def run(frame: Frame) -> Any:
        frame.spend()
        found = left(frame)
        if not isinstance(found, Maybe):
            raise EvaluationError("no such overload")
        if not found.is_present:
            return right(frame)
        return found.value() if unwrap else found

    return run


def _of_non_zero(value: Any) -> Maybe:
    is_zero = value is None or (
        isinstance(value, bool | int | float | str | bytes | list | dict | timedelta) and not value
    )
    return Maybe.none() if is_zero else Maybe(value)


def _present(values: list[Any]) -> list[Any]:
    return [value.value() for value in values if not isinstance(value, Maybe) or value.is_present]


def _end(index: int) -> Callable[[list[Any]], Maybe]:
    return lambda items: Maybe(require_valid(items[index])) if items else Maybe.none()


OPTIONALS: Final[tuple[Function, ...]] = (
    overload("optional.of: A -> optional(A)", Maybe),
    overload("optional.ofNonZeroValue: A -> optional(A)", _of_non_zero),
    overload("optional.none -> optional(A)", Maybe.none),
    overload("optional(A) on value -> A", Maybe.value),
    overload("optional(A) on hasValue -> bool", lambda value: value.is_present),
    overload("optional(A) on or: optional(A) -> optional(A)", lambda left, right: left if left.is_present else right),
    overload("optional(A) on orValue: A -> A", lambda left, right: left.value() if left.is_present else right),
    overload("list(A) on first -> optional(A)", _end(0)),
    overload("list(A) on last -> optional(A)", _end(-1)),
    overload("optional.unwrap: list(optional(A)) -> list(A)", _present),
    overload("list(optional(A)) on unwrapOpt -> list(A)", _present),
    *(
        overload(f"{name}: {target} -> optional({'A' if 'list' in target else 'B'})", selected)
        for name, kinds in {
            "_[?_]": ("list(A), int", "optional(list(A)), int", "map(A, B), A", "optional(map(A, B)), A"),
            "_[_]": ("optional(list(A)), int", "optional(map(A, B)), A"),
        }.items()
        for target in kinds
    ),
)
"""The functions of optional values."""
