"""Functions of CEL on strings, lists and maps.

Sources: https://kubernetes.io/docs/reference/using-api/cel/#cel-options-language-features-and-libraries and the
extensions of https://pkg.go.dev/github.com/google/cel-go/ext that an API server enables.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final

from ocf_server.cel.authorizer import AUTHORIZATION
from ocf_server.cel.conversions import CONVERSIONS
from ocf_server.cel.format_function import formatted
from ocf_server.cel.named_formats import FORMATS
from ocf_server.cel.network import NETWORK
from ocf_server.cel.operators import OPERATORS, natural, whole
from ocf_server.cel.optional_values import OPTIONALS
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.patch_types import PATCH_FUNCTIONS
from ocf_server.cel.quantities import QUANTITIES
from ocf_server.cel.regexp import Regexp
from ocf_server.cel.regexp_syntax import RegexpSyntaxError
from ocf_server.cel.urls import URLS
from ocf_server.cel.values import EvaluationError, equal, kind_name
from ocf_server.cel.versions import VERSIONS

__all__ = ["FUNCTIONS", "MUTATION_FUNCTIONS", "SORTED_KINDS", "pattern", "sorted_by"]

_CASE: Final = ord("a") - ord("A")
_UPPER: Final = {letter: letter - _CASE for letter in range(ord("a"), ord("z") + 1)}
_LOWER: Final = {upper: lower for lower, upper in _UPPER.items()}


@lru_cache(maxsize=1024)
def pattern(text: str) -> Regexp:
    """Return the parsed regular expression, from a cache.

    Raises:
        EvaluationError: If the syntax is invalid.
        BadRequestError: If it uses a feature that the embedded cluster does not support.
    """
    try:
        return Regexp.parse(text)
    except RegexpSyntaxError as error:
        raise EvaluationError(f"error parsing regexp: {error}") from None


def _matches(text: str, expression: str) -> bool:
    return pattern(expression).matches(text)


def _legal(expression: str) -> Regexp:
    try:
        return pattern(expression)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _found(text: str, expression: str) -> str:
    return _legal(expression).find(text) or ""


def _all_found(text: str, expression: str, most: int = -1) -> list[str]:
    return [*islice(_legal(expression).find_all(text), None if most < 0 else most)]


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _part(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    for index in (start, last):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    if start > last:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


def _offset(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_offset(text: str, part: str) -> int:
    return text.rfind(part)


def _last_offset_before(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by:
        return text.split(by, most - 1 if most > 0 else -1)
    return [*text] if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    wrong = ""
    if start < 0 or end < 0:
        wrong = "negative indexes not supported"
    elif start > end:
        wrong = "start index must be less than or equal to end index"
    elif end > len(items):
        wrong = f"list is length {len(items)}"
    if wrong:
        raise EvaluationError(f"cannot slice({start}, {end}), {wrong}")
    return items[start:end]


def _canonical(value: Any) -> Any:
    """Return a hashable value that is equal for equal values."""
    match value:
        # In Python, true equals 1 and would be the same key.
        case bool() | None:
            return repr(value)
        case list():
            return tuple(map(_canonical, value))
        case dict():
            return frozenset((_canonical(key), _canonical(item)) for key, item in value.items())
        case _:
            return value


def _distinct(items: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(_canonical(item), item)
    return [*found.values()]


def _flattened(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        found += _flattened(item, depth - 1) if isinstance(item, list) and depth else [item]
    return found


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """Sort a list by the keys of its items.

    Raises:
        EvaluationError: If the keys are of different types, or of a type without an order.
    """
    kinds = {kind_name(key) for key in keys}
    if kinds and kind_name(keys[0]) not in SORTED_KINDS:
        raise EvaluationError("list elements must be comparable")
    if len(kinds) > 1:
        raise EvaluationError("list elements must have the same type")
    return [items[index] for index in sorted(range(len(items)), key=keys.__getitem__)]


def _sorted(items: list[Any]) -> list[Any]:
    return sorted_by(items, items)


_QUOTED: Final = {ord(char): f"\\{letter}" for char, letter in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}


def _quoted(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _index(items: list[Any], item: Any) -> int:
    return next((index for index, each in enumerate(items) if equal(each, item)), -1)


def _last_index(items: list[Any], item: Any) -> int:
    return next((index for index in reversed(range(len(items))) if equal(items[index], item)), -1)


def _extreme(name: str, choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def chosen(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        return choose(items)

    return chosen


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in pairwise(items))


def _known(items: list[Any]) -> set[Any]:
    return {*map(_canonical, items)}


SORTED_KINDS: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
"""Names of the types with an order."""


def _for_each(kinds: tuple[str, ...], text: str, run: Callable[[Any], Any]) -> list[Function]:
    return [overload(text.format(kind), run) for kind in kinds]


_TEXTS: Final = (
    overload("string on contains: string -> bool", lambda text, part: part in text),
    overload("string on startsWith: string -> bool", str.startswith),
    overload("string on endsWith: string -> bool", str.endswith),
    overload("string on matches: string -> bool", _matches),
    overload("matches: string, string -> bool", _matches),
    overload("string on find: string -> string", _found),
    overload("string on findAll: string -> list(string)", _all_found),
    overload("string on findAll: string, int -> list(string)", _all_found),
    overload("string on charAt: int -> string", _char_at),
    overload("string on indexOf: string -> int", _offset),
    overload("string on indexOf: string, int -> int", _offset),
    overload("string on lastIndexOf: string -> int", _last_offset),
    overload("string on lastIndexOf: string, int -> int", _last_offset_before),
    overload("string on lowerAscii -> string", lambda text: text.translate(_LOWER)),
    overload("string on upperAscii -> string", lambda text: text.translate(_UPPER)),
    overload("string on replace: string, string -> string", str.replace),
    overload("string on replace: string, string, int -> string", str.replace),
    overload("string on split: string -> list(string)", _split),
    overload("string on split: string, int -> list(string)", _split),
    overload("string on substring: int -> string", _part),
    overload("string on substring: int, int -> string", _part),
    overload("string on trim -> string", str.strip),
    overload("string on format: list(any) -> string", formatted),
    overload("strings.quote: string -> string", _quoted),
    overload("list(string) on join -> string", "".join),
    overload("list(string) on join: string -> string", lambda items, by: by.join(items)),
)
_LISTS: Final = (
    *(overload(f"size: {kind} -> int", len) for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    *(overload(f"{kind} on size -> int", len) for kind in ("string", "bytes", "list(A)", "map(A, B)")),
    *_for_each(SORTED_KINDS, "list({}) on isSorted -> bool", _is_sorted),
    *(overload(f"list({kind}) on max -> {kind}", _extreme("max", max)) for kind in SORTED_KINDS),
    *(overload(f"list({kind}) on min -> {kind}", _extreme("min", min)) for kind in SORTED_KINDS),
    *(overload(f"list({kind}) on sort -> list({kind})", _sorted) for kind in SORTED_KINDS),
    overload("list(list(A)) on flatten -> list(A)", _flattened),
    overload("list(any) on flatten: int -> list(any)", _flattened),
    overload("lists.range: int -> list(int)", lambda size: [*range(size)]),
    overload("list(int) on sum -> int", lambda items: whole(sum(items))),
    overload("list(uint) on sum -> uint", lambda items: natural(sum(items))),
    overload("list(double) on sum -> double", lambda items: sum(items, 0.0)),
    overload("list(duration) on sum -> duration", lambda items: sum(items, timedelta())),
    overload("list(A) on indexOf: A -> int", _index),
    overload("list(A) on lastIndexOf: A -> int", _last_index),
    overload("list(A) on slice: int, int -> list(A)", _slice),
    overload("list(A) on distinct -> list(A)", _distinct),
    overload("list(A) on reverse -> list(A)", lambda items: items[::-1]),
    overload("sets.contains: list(A), list(A) -> bool", lambda items, part: _known(part) <= _known(items)),
    overload("sets.equivalent: list(A), list(A) -> bool", lambda items, others: _known(items) == _known(others)),
    overload("sets.intersects: list(A), list(A) -> bool", lambda items, others: bool(_known(items) & _known(others))),
)


def _by_name(functions: tuple[Function, ...]) -> dict[str, tuple[Function, ...]]:
    names = dict.fromkeys(function.name for function in functions)
    return {name: tuple(function for function in functions if function.name == name) for name in names}


_LIBRARIES: Final = (OPTIONALS, QUANTITIES, VERSIONS, URLS, NETWORK, FORMATS, AUTHORIZATION)
FUNCTIONS: Final = _by_name((*OPERATORS, *CONVERSIONS, *_TEXTS, *_LISTS, *(each for of in _LIBRARIES for each in of)))
"""The overloads of functions and operators, by name."""
MUTATION_FUNCTIONS: Final = FUNCTIONS | _by_name(PATCH_FUNCTIONS)
"""Those that the mutations of a policy can use."""
