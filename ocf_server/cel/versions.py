"""Semantic versions in CEL, with the error texts of the Go library blang/semver.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-semver-library.
"""

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final

from ocf.objects.go_strings import go_quoted
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import SEMVER
from ocf_server.cel.values import EvaluationError, Opaque

__all__ = ["VERSIONS"]

_PARTS: Final = ("Major", "Minor", "Patch")
_DIGITS: Final = re.compile(r"[0-9]*")
_LETTERS: Final = re.compile(r"[0-9A-Za-z-]*")


@total_ordering
@dataclass(frozen=True, slots=True)
class _Version(Opaque):
    """A version; build metadata is not compared."""

    numbers: tuple[int, ...]
    prerelease: tuple[str, ...] = ()
    kind: str = field(default=SEMVER.name, init=False)

    def _rank(self) -> tuple[object, ...]:
        names = tuple((0, int(name), "") if _DIGITS.fullmatch(name) else (1, 0, name) for name in self.prerelease)
        return self.numbers, not names, names

    def __lt__(self, other: "_Version") -> bool:
        return self._rank() < other._rank()


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {go_quoted(text)}")
    if text.startswith("0") and len(text) > 1:
        raise EvaluationError(f"{name} number must not contain leading zeroes {go_quoted(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {go_quoted(text)}: value out of range")
    return int(text)


def _check_prerelease(name: str) -> None:
    if not name:
        raise EvaluationError("Prerelease is empty")
    if not _LETTERS.fullmatch(name):
        raise EvaluationError(f"Invalid character(s) found in prerelease {go_quoted(name)}")
    if _DIGITS.fullmatch(name):
        if name.startswith("0") and len(name) > 1:
            text = f"Numeric PreRelease version must not contain leading zeroes {go_quoted(name)}"
            raise EvaluationError(text)
        _unsigned(name)


def _check_build(name: str) -> None:
    if not name:
        raise EvaluationError("Build meta data is empty")
    if not _LETTERS.fullmatch(name):
        raise EvaluationError(f"Invalid character(s) found in build meta data {go_quoted(name)}")


def _parsed(text: str) -> _Version:
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) < len(_PARTS):
        raise EvaluationError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    numbers = tuple(_number(part, name) for part, name in zip((*parts[:2], patch), _PARTS, strict=True))
    names = tuple(prerelease.split(".")) if dash else ()
    for name in names:
        _check_prerelease(name)
    for name in build.split(".") if plus else ():
        _check_build(name)
    return _Version(numbers, names)


def _normalized(text: str) -> str:
    """Return a version without a leading `v` and leading zeros, with all three numbers."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < len(_PARTS) and re.search(r"[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: len(_PARTS)])


def _without_zeros(part: str) -> str:
    if len(part) < 2:  # noqa: PLR2004
        return part
    rest = part.lstrip("0")
    return rest if re.match(r"[0-9]", rest) else f"0{rest}"


def _version(text: str, normalize: bool = False) -> _Version:  # noqa: FBT001, FBT002 (an argument of the function in CEL)
    return _parsed(_normalized(text) if normalize else text)


def _is_version(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 (an argument of the function in CEL)
    try:
        _version(text, normalize)
    except EvaluationError:
        return False
    return True


VERSIONS: Final[tuple[Function, ...]] = (
    overload("semver: string -> semver", _version),
    overload("semver: string, bool -> semver", _version),
    overload("isSemver: string -> bool", _is_version),
    overload("isSemver: string, bool -> bool", _is_version),
    overload("semver on isGreaterThan: semver -> bool", lambda left, right: left > right),
    overload("semver on isLessThan: semver -> bool", lambda left, right: left < right),
    overload("semver on compareTo: semver -> int", lambda left, right: (left > right) - (left < right)),
    *(
        overload(f"semver on {name.lower()} -> int", lambda version, at=index: version.numbers[at])
        for index, name in enumerate(_PARTS)
    ),
)
"""The functions of the library of semantic versions."""
