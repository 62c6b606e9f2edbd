"""The string function `format`, `'%d of %s'.format([self.count, self.name])`.

Numbers with a point have the notation of the locale en-US, as on a real API server. Source:
https://pkg.go.dev/github.com/google/cel-go/ext#Strings.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ocf.objects.go_strings import go_quoted
from ocf_server.cel.conversions import shown
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.syntax_tree import Entries, Listing, Node
from ocf_server.cel.types import CelType, run_time_name
from ocf_server.cel.values import EvaluationError, TypeName, kind_name

__all__ = ["format_problems", "formatted"]

_CLAUSE: Final = re.compile(r"(\.([0-9]*+))?(.)", re.DOTALL)
_PRECISION: Final = 6
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_WORDS: Final = ("NaN", "Infinity", "-Infinity")
_SHOWN: Final = ("int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type")

_STRING_CLAUSE: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps"
)
_TAKEN: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "s": (
        _STRING_CLAUSE,
        (*_SHOWN, "list", "map", "null", "null_type"),
    ),
    "d": ("decimal clause can only be used on integers", ("int", "uint")),
    "f": ("fixed-point clause can only be used on doubles", ("double", "string")),
    "e": ("scientific clause can only be used on doubles", ("double", "string")),
    "b": ("only integers and bools can be formatted as binary", ("int", "uint", "bool")),
    "x": (
        "only integers, byte buffers, and strings can be formatted as hex",
        ("int", "uint", "string", "bytes"),
    ),
    "o": ("octal clause can only be used on integers", ("int", "uint")),
}
"""The error text of each clause, and the names of the types that it accepts."""


class _FormatError(Exception):
    """A format string is invalid; the text is that of a real API server."""


def _given(name: str, clause: str) -> str:
    return f"error during formatting: {_TAKEN[clause.lower()][0]}, was given {run_time_name(name)}"


def _parts(text: str) -> Iterator[tuple[str, int | None]]:
    """Yield the clauses of a format string with their precision, and the texts between them as clauses `""`."""
    index = 0
    while index < len(text):
        end = text.find("%", index)
        end = len(text) if end < 0 else end
        if end > index:
            yield text[index:end], None
        if end == len(text):
            return
        if text[end + 1 : end + 2] == "%":
            yield "%", None
            index = end + 2
            continue
        yield "", None  # announces a clause, so that a missing argument is found before a malformed clause
        clause, precision, size = _clause(text[end + 1 :])
        yield f"%{clause}", precision
        index = end + 1 + size


def _clause(text: str) -> tuple[str, int | None, int]:
    """Return a clause without its percent sign, its precision, and the length of its text."""
    if not text:
        raise _FormatError("unexpected end of string")
    found = _CLAUSE.match(text)
    problem = "could not parse formatting clause: "
    if found is None or (text[0] == "." and found[1] is None):
        raise _FormatError(f"{problem}error while parsing precision: could not find end of precision specifier")
    if found[1] is not None and not found[2]:
        cause = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        raise _FormatError(f"{problem}error while parsing precision: {cause}")
    if found[3] not in "sdfebxXo":
        raise _FormatError(f'{problem}unrecognized formatting clause "{found[3]}"')
    return found[3], int(found[2]) if found[2] else None, found.end()


def _merged(text: str, count: int, format_argument: Callable[[int, str, int], str]) -> str:
    """Return a format string with its clauses replaced.

    Args:
        format_argument: Function that formats an argument, by its index, for a clause with a precision.

    Raises:
        _FormatError: If the format string is malformed, or refers to more arguments.
    """
    out, used = [], 0
    for part, precision in _parts(text):
        if not part:
            _check_index(used, count)
        elif part.startswith("%") and len(part) > 1:
            out.append(format_argument(used, part[1], _PRECISION if precision is None else precision))
            used += 1
        else:
            out.append(part)
    return "".join(out)


def _check_index(index: int, count: int) -> None:
    if index >= count:
        raise _FormatError(f"index {index} out of range")


def format_problems(
    text: str, items: Sequence[Node], kind_of: Callable[[Node], CelType], at: int
) -> list[RuleSyntaxError]:
    """Check a call of `format` with a literal text and a list literal.

    Args:
        kind_of: Function that returns the type of an expression.

    Returns:
        The first problem, if any.
    """
    used: list[int] = []

    def check(index: int, clause: str, _: int) -> str:
        used.append(index)
        bad = _unsuitable(items[index], clause, kind_of)
        if bad is not None:
            raise RuleSyntaxError(_given(kind_of(bad).name, clause), bad.at)
        return ""

    try:
        _merged(text, len(items), check)
    except RuleSyntaxError as error:
        return [error]
    except _FormatError as error:
        return [RuleSyntaxError(str(error), at)]
    if len(used) == len(items):
        return []
    return [
        RuleSyntaxError(f"too many arguments supplied to string.format (expected {len(used)}, got {len(items)})", at)
    ]


def _unsuitable(node: Node, clause: str, kind_of: Callable[[Node], CelType]) -> Node | None:
    """Return the expression in an argument that a clause does not accept."""
    kind = kind_of(node)
    if not kind.is_open and kind.name not in _TAKEN[clause.lower()][1]:
        return node
    below: list[Node] = []
    if clause == "s" and isinstance(node, Listing):
        below = [item.node for item in node.items]
    if clause == "s" and isinstance(node, Entries):
        below = [side for entry in node.entries for side in (entry.key, entry.value)]
    return next((bad for each in below if (bad := _unsuitable(each, clause, kind_of)) is not None), None)


def formatted(text: str, values: list[Any]) -> str:
    """Return a format string with its clauses replaced by values.

    Raises:
        EvaluationError: If the format string is malformed, or a value does not suit its clause.

    Example:
        >>> formatted("%s has %.1f%%", ["a", 2.5])
        'a has 2.5%'
    """
    try:
        return _merged(text, len(values), lambda index, *how: _formatted(values[index], *how))
    except _FormatError as error:
        raise EvaluationError(str(error)) from None


def _formatted(value: Any, clause: str, precision: int) -> str:
    kind = kind_name(value)
    if clause == "s":
        return _text(value)
    if kind not in _TAKEN[clause.lower()][1] or (clause in "fe" and kind == "string" and value not in _WORDS):
        raise _FormatError(_given(kind, clause))
    match clause:
        case "f":
            return _fixed(float(value), precision)
        case "e":
            return _scientific(float(value))
        case "x" | "X" if isinstance(value, str | bytes):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits.upper() if clause == "X" else digits
        case _:
            return f"{int(value):{clause}}"


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else ""


def _fixed(value: float, precision: int) -> str:
    return _special(value) or f"{value:,.{precision}f}"


def _scientific(value: float) -> str:
    if special := _special(value):
        return special
    digits, _, exponent = f"{value:.{_PRECISION}e}".partition("e")
    # The API server ignores the precision.
    return f"{digits}\N{MULTIPLICATION SIGN}10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _text(value: Any) -> str:
    match value:
        case list():
            return f"[{', '.join(map(_quoted, value))}]"
        case dict():
            pairs = sorted((_quoted(key), _quoted(item)) for key, item in value.items())
            return f"{{{', '.join(f'{key}:{item}' for key, item in pairs)}}}"
        case None:
            return "null"
        case TypeName():
            return value.name
        case _ if kind_name(value) in _SHOWN:
            return shown(value)
    raise _FormatError(_given(kind_name(value), "s"))


def _quoted(value: Any) -> str:
    """Return the text of an item of a list or map."""
    match value:
        case str():
            return go_quoted(value)
        case bytes():
            return f"b{go_quoted(shown(value))}"
        case float():
            return f"{value:.{_PRECISION}f}" if math.isfinite(value) else go_quoted(_fixed(value, 0))
        case list() | dict() | TypeName() | None:
            return _text(value)
    kind = kind_name(value)
    if kind in ("timestamp", "duration"):
        return f"{kind}({go_quoted(shown(value))})"
    if kind not in _SHOWN:
        raise _FormatError(f"error during formatting: no formatting function for {run_time_name(kind)}")
    return shown(value)
