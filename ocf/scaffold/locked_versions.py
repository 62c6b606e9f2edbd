"""Lock files from the installed packages: no index is asked, so they hold the versions that are at work here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Final, NamedTuple

__all__ = ["TESTED", "closure", "lock_file", "missing"]

TESTED: Final[Mapping[str, str]] = {"mypy": "2.4.1", "ruff": "0.17.5"}
"""Versions of tools that a new project needs and that may not be installed, with which its template is tested."""

_REQUIREMENT: Final = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[(?P<extras>[^]]*)\])?[^;]*(?:;(?P<marker>.*))?"
)
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


class _Wanted(NamedTuple):
    name: str
    extras: frozenset[str]


def closure(requirements: Iterable[str], fallback: Mapping[str, str] = TESTED) -> dict[str, str]:
    """Return the installed versions of packages and of all that they need.

    Packages that are needed on other platforms only are not installed here, and not returned.

    Args:
        requirements: Names with extras, such as `ocf[testing]`.
        fallback: Versions of packages that need not be installed.

    Returns:
        Normalized name to version, sorted; without packages that are neither installed nor in `fallback`.
    """
    found: dict[str, str] = {}
    waiting = [_parse(text) for text in requirements]
    seen: set[_Wanted] = set()
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        needed = _requires(wanted.name)
        if needed is not None:
            found[wanted.name] = version(wanted.name)
            waiting += _needed(needed, wanted.extras)
        elif wanted.name in fallback:
            found[wanted.name] = fallback[wanted.name]
    return dict(sorted(found.items()))


def missing(requirements: Iterable[str]) -> list[str]:
    """Return the packages that are not installed, of those that requirements name directly or by their extras.

    Args:
        requirements: Names with extras, such as `ocf[kopf]`.
    """
    wanted = [_parse(text) for text in requirements]
    wanted += [each for one in wanted for each in _needed(_requires(one.name) or (), one.extras)]
    return sorted({one.name for one in wanted if _requires(one.name) is None})


def _requires(name: str) -> list[str] | None:
    """Return the requirements of an installed package; None if it is not installed."""
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return None


def lock_file(versions: Mapping[str, str], note: Sequence[str]) -> str:
    """Return a requirements file with exact versions.

    Args:
        versions: Name to version.
        note: Lines of the comment at its top.
    """
    lines = [*(f"# {line}" for line in note), *(f"{name}=={version}" for name, version in versions.items())]
    return "\n".join(lines) + "\n"


def _needed(requirements: Iterable[str], extras: frozenset[str]) -> Iterator[_Wanted]:
    for text in requirements:
        found = _REQUIREMENT.match(text)
        asked = set(_EXTRA.findall((found and found["marker"]) or ""))
        if not asked or asked & extras:
            yield _parse(text)


def _parse(text: str) -> _Wanted:
    found = _REQUIREMENT.match(text)
    if found is None:
        raise ValueError(f"invalid requirement {text!r}")
    extras = frozenset(extra.strip() for extra in (found["extras"] or "").split(",") if extra.strip())
    return _Wanted(re.sub(r"[-_.]+", "-", found["name"]).lower(), extras)
