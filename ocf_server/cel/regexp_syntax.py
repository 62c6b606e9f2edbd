"""Parser of regular expressions.

API servers use the syntax of Go, which is that of RE2: it has no backreferences, lookahead or lookbehind. Error texts
are those of Go. Source: https://pkg.go.dev/regexp/syntax.
"""

import re
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NoReturn, TypeAlias

from ocf_server.cel.regexp_program import (
    Assertion,
    Characters,
    Fragment,
    Instruction,
    Item,
    choice,
    one,
    repeated,
    sequence,
)
from ocf_server.cel.unicode_classes import unicode_class

__all__ = ["RegexpSyntaxError", "parse_regexp"]

_MAX_COUNT: Final = 1000
"""The limit of Go for a count, and for the product of nested counts."""


class RegexpSyntaxError(Exception):
    """A text is not a valid regular expression."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"{problem}: `{part}`")


# Each new cluster of a test process checks the patterns of the same definitions again.
@lru_cache(maxsize=256)
def parse_regexp(text: str) -> tuple[Instruction, ...]:
    r"""Parse a regular expression.

    Raises:
        RegexpSyntaxError: If the syntax is invalid.
        BadRequestError: If it needs more than 10 000 instructions.

    Example:
        >>> parse_regexp("a*")
        (Fork(offsets=(1, 3)), Characters(items=(('a', 'a'),), negated=False, fold=False), Fork(offsets=(-2,)))
    """
    return _Parser(text).parse().code


_Flags: TypeAlias = frozenset[str]


@dataclass(slots=True)
class _Group:
    """An open group."""

    flags: _Flags
    options: list[Fragment] = field(default_factory=list)
    parts: list[Fragment] = field(default_factory=list)

    def close_option(self) -> None:
        """Complete the last option."""
        self.options.append(sequence(self.parts))
        self.parts = []


_MAX_DIGITS: Final = 5
"""The number of digits of a count that are converted: enough to exceed every limit, and few enough for Python."""
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_ESCAPE: Final = re.compile(
    r"\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|(0[0-7]{0,2}|[1-7][0-7]{1,2})|([afnrtv])|([^0-9A-Za-z\x80-\U0010ffff]))"
)
_HEX: Final = "[0-9a-fA-F]"
_TOO_LARGE: Final = rf"x\{{0*(?:10{_HEX}{{5}}|1[1-9a-fA-F]{_HEX}{{4}}|[2-9a-fA-F]{_HEX}{{5}})"
"""The start of a hexadecimal number, up to the digit that makes it larger than any code point."""
_BAD_ESCAPE: Final = re.compile(rf"\\(?:{_TOO_LARGE}|x\{{{_HEX}*(?:.|$)|x.{{0,2}}|.)", re.DOTALL)
_RANGE: Final = re.compile(r"-[^\]]")
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NAMED_GROUP: Final = re.compile(r"\(\?P?<(?=.)([^>]*)(>?)", re.DOTALL)
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_BAD_FLAGS: Final = re.compile(r"\(\?[imsU]*(?:-[imsU]*)?(?:.|$)", re.DOTALL)

_DIGITS: Final = (("0", "9"),)
_UPPER: Final = (("A", "Z"),)
_LOWER: Final = (("a", "z"),)
_WORD: Final = (*_DIGITS, *_UPPER, ("_", "_"), *_LOWER)
_PERL: Final = {"d": _DIGITS, "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")), "w": _WORD}
_POSIX: Final = {
    "alnum": (*_DIGITS, *_UPPER, *_LOWER),
    "alpha": (*_UPPER, *_LOWER),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": _DIGITS,
    "graph": (("!", "~"),),
    "lower": _LOWER,
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGITS, ("A", "F"), ("a", "f")),
}


@dataclass(slots=True)
class _Parser:
    """Parser of a regular expression, with a stack of open groups.

    Args:
        groups: The open groups at this position; the first is the whole expression.
        repetition: Start of the repetition that ends at this position; None if none ends here.
    """

    text: str
    at: int = 0
    flags: _Flags = frozenset()
    groups: list[_Group] = field(default_factory=lambda: [_Group(frozenset())])
    repetition: int | None = None

    def parse(self) -> Fragment:
        """Parse the whole expression."""
        while self.at < len(self.text):
            start = self.at
            count = self._count()
            if count is None:
                self._part()
            else:
                self._repeat(start, *count)
            self.repetition = None if count is None else start
        if len(self.groups) > 1:
            raise RegexpSyntaxError("missing closing )", self.text)
        return self._close()

    def _fail(self, problem: str, start: int) -> NoReturn:
        raise RegexpSyntaxError(problem, self.text[start : self.at])

    def _next(self, part: str) -> bool:
        """Consume a text if it comes next; return whether it does."""
        found = self.text.startswith(part, self.at)
        self.at += len(part) if found else 0
        return found

    def _add(self, part: Fragment) -> None:
        self.groups[-1].parts.append(part)

    def _characters(self, *items: Item, negated: bool = False) -> Characters:
        return Characters(items, negated, fold="i" in self.flags)

    def _count(self) -> tuple[int, int | None] | None:
        """Consume a repetition operator and return its minimum and maximum count; None if none comes next."""
        for sign, count in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._next(sign):
                return count
        found = _COUNT.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        least = int(found[1][:_MAX_DIGITS])
        most = int(found[3][:_MAX_DIGITS]) if found[3] else None if found[2] else least
        if max(least, most or 0) > _MAX_COUNT or (most is not None and least > most):
            self._fail("invalid repeat count", found.start())
        return least, most

    def _repeat(self, start: int, least: int, most: int | None) -> None:
        """Repeat the last part."""
        greedy = self._next("?") is ("U" in self.flags)
        if self.repetition is not None:
            self._fail("invalid nested repetition operator", self.repetition)
        parts = self.groups[-1].parts
        if not parts:
            self._fail("missing argument to repetition operator", start)
        if self.text[start] == "{" and max(least, most or 0) > 1:
            copies = parts[-1].copies * (least if most is None else most)
            if copies > _MAX_COUNT:
                self._fail("invalid repeat count", start)
            parts[-1] = Fragment(parts[-1].code, parts[-1].is_optional, copies)
        parts[-1] = repeated(parts[-1], least, most, greedy=greedy)

    def _part(self) -> None:
        """Parse anything except a repetition operator."""
        sign = self.text[self.at]
        match sign:
            case "(":
                self._open()
            case "|":
                self.at += 1
                self.groups[-1].close_option()
            case ")":
                self.at += 1
                if len(self.groups) == 1:
                    raise RegexpSyntaxError("unexpected )", self.text)
                self._add(self._close())
            case "[":
                self._add(Fragment((self._class(),), is_optional=False))
            case "\\":
                self._backslash()
            case "." | "^" | "$":
                self.at += 1
                self._sign(sign)
            case _:
                self.at += 1
                self._add(one(sign, fold="i" in self.flags))

    def _sign(self, sign: str) -> None:
        if sign == ".":
            outside = () if "s" in self.flags else (("\n", "\n"),)
            self._add(Fragment((Characters(outside, negated=True),), is_optional=False))
        else:
            whole = {"^": "\\A", "$": "\\z"}[sign]
            self._add(Fragment((Assertion(sign if "m" in self.flags else whole),)))

    def _open(self) -> None:
        """Open a group, or set flags for the rest of the current group."""
        start, flags = self.at, self.flags
        if not self.text.startswith("(?", start):
            self.at += 1
        elif named := _NAMED_GROUP.match(self.text, start):
            self.at = named.end() if named[2] else len(self.text)
            if not named[2] or not re.fullmatch("[0-9A-Za-z_]+", named[1]):
                self._fail("invalid named capture", start)
        elif set_flags := _FLAGS.match(self.text, start):
            self.at = set_flags.end()
            self.flags = (flags | {*set_flags[1]}) - {*(set_flags[2] or "")}
            if set_flags[3] == ")":
                return
        else:
            bad = _BAD_FLAGS.match(self.text, start)
            self.at = bad.end() if bad else len(self.text)
            self._fail("invalid or unsupported Perl syntax", start)
        self.groups.append(_Group(flags))

    def _close(self) -> Fragment:
        """Close the last group."""
        group = self.groups.pop()
        group.close_option()
        self.flags = group.flags
        return choice(group.options)

    def _backslash(self) -> None:
        """Parse a sequence that starts with a backslash, outside of brackets."""
        start = self.at
        sign = self.text[start + 1 : start + 2]
        if sign and sign in "AbBz":
            self.at += 2
            self._add(Fragment((Assertion(f"\\{sign}"),)))
        elif sign == "Q":
            quoted, end, _ = self.text[start + 2 :].partition("\\E")
            self.at += 2 + len(quoted) + len(end)
            for char in quoted:
                self._add(one(char, fold="i" in self.flags))
        elif known := self._known_class():
            self._add(Fragment((known,), is_optional=False))
        else:
            self._add(one(self._escape(), fold="i" in self.flags))

    def _known_class(self) -> Characters | None:
        r"""Parse a predefined class, such as `\d` or `\pL`; return None if none comes next."""
        start = self.at
        sign = self.text[start + 1 : start + 2]
        if self.text[start] != "\\" or not sign:
            return None
        if sign in "pP":
            return self._unicode_class(start, negated=sign == "P")
        ranges = _PERL.get(sign.lower())
        self.at += 2 if ranges else 0
        return self._characters(*ranges, negated=sign.isupper()) if ranges else None

    def _unicode_class(self, start: int, *, negated: bool) -> Characters:
        name = self.text[start + 2 : start + 3]
        self.at = start + 2 + len(name)
        if name == "{":
            name, end, _ = self.text[self.at :].partition("}")
            self.at += len(name) + len(end)
            if not end:
                self._fail("invalid character class range", start)
        bare = name.removeprefix("^")
        if bare == "Any":
            return Characters((), negated is (bare != name))
        known = unicode_class(bare)
        if known is None:
            self._fail("invalid character class range", start)
        return self._characters(known, negated=negated is (bare == name))

    def _class(self) -> Characters:
        """Parse a class in brackets."""
        start = self.at
        self.at += 1
        negated = self._next("^")
        items: list[Item] = []
        first = True  # a closing bracket at the start is a member of the class
        while first or not self.text.startswith("]", self.at):
            first = False
            items.append(self._class_item(start))
        self.at += 1
        return self._characters(*items, negated=negated)

    def _class_item(self, start: int) -> Item:
        before = self.at
        end = self.text.find(":]", before + 2) if self.text.startswith("[:", before) else -1
        if end >= 0:
            self.at = end + 2
            name = self.text[before + 2 : end]
            ranges = _POSIX.get(name.removeprefix("^"))
            if ranges is None:
                self._fail("invalid character class range", before)
            return self._characters(*ranges, negated=name.startswith("^"))
        known = self._known_class() if before < len(self.text) else None
        if known:
            return known
        low = high = self._class_char(start)
        if _RANGE.match(self.text, self.at):
            self.at += 1
            high = self._class_char(start)
            if high < low:
                self._fail("invalid character class range", before)
        return low, high

    def _class_char(self, start: int) -> str:
        if self.at >= len(self.text):
            self._fail("missing closing ]", start)
        if self.text[self.at] == "\\":
            return self._escape()
        self.at += 1
        return self.text[self.at - 1]

    def _escape(self) -> str:
        """Parse an escape sequence for one character."""
        start = self.at
        if start + 1 == len(self.text):
            raise RegexpSyntaxError("trailing backslash at end of expression", "")
        found = _ESCAPE.match(self.text, start)
        code = _code(found) if found else sys.maxunicode + 1
        if code > sys.maxunicode:
            found = _BAD_ESCAPE.match(self.text, start)
        self.at = found.end() if found else len(self.text)
        if code > sys.maxunicode:
            self._fail("invalid escape sequence", start)
        return chr(code)


def _code(escape: re.Match[str]) -> int:
    long, short, octal, control, sign = escape.groups()
    if octal:
        return int(octal, 8)
    return int(long or short, 16) if long or short else ord(_CONTROLS.get(control, sign))
