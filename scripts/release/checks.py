"""What a release requires, as functions of values."""

import re
from collections.abc import Collection, Iterator
from datetime import date
from typing import Final, NamedTuple

from packaging.version import InvalidVersion, Version

__all__ = ["Checkout", "problems", "released_changelog", "released_project"]

_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")
_PROJECT_VERSION: Final = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
_UNRELEASED: Final = re.compile(r"^## Unreleased\n(?P<entries>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class Checkout(NamedTuple):
    """The state of a checkout.

    Args:
        branch: The branch that is checked out.
        changes: Files with changes that are not committed.
        tags: All tags.
        changelog: The text of the changelog.
        has_address: Whether the address of the repository is filled in.
    """

    branch: str
    changes: Collection[str]
    tags: Collection[str]
    changelog: str
    has_address: bool


def problems(version: str, checkout: Checkout) -> Iterator[str]:
    r"""Yield why a version cannot be released from a checkout, with what to do.

    Args:
        version: The version.
        checkout: The state of the checkout.

    Example:
        >>> log = "## Unreleased\n\n* A command.\n"
        >>> list(problems("0.1.0", Checkout("main", (), ("v0.0.9",), log, has_address=True)))
        []
        >>> list(problems("0.1", Checkout("main", (), (), log, has_address=True)))
        ['version 0.1: must be of the form 1.2.3 or 1.2.3rc1']
    """
    if checkout.branch != "main":
        yield f"branch {checkout.branch}: releases are made from main; check it out"
    if checkout.changes:
        yield f"changes that are not committed: {', '.join(sorted(checkout.changes))}; commit or revert them"
    if not checkout.has_address:
        yield "the address of the repository is not known: fill in REPOSITORY in scripts/release/address.py"
    unreleased = _UNRELEASED.search(checkout.changelog)
    if unreleased is None or not re.search(r"^\* ", unreleased["entries"], re.MULTILINE):
        yield "CHANGELOG.md: the section Unreleased has no entry; write what users notice"
    if not _VERSION.fullmatch(version):
        yield f"version {version}: must be of the form 1.2.3 or 1.2.3rc1"
        return
    released = max(_versions(checkout.tags), default=None)
    if released is not None and Version(version) <= released:
        yield f"version {version}: must be above {released}, the last release"


def _versions(tags: Collection[str]) -> Iterator[Version]:
    for tag in tags:
        try:
            yield Version(tag.removeprefix("v"))
        except InvalidVersion:
            continue


def released_changelog(changelog: str, version: str, day: date) -> str:
    r"""Return the changelog in which the entries belong to a version, below an empty section.

    Args:
        changelog: The text of the changelog.
        version: The version.
        day: The day of the release.

    Example:
        >>> print(released_changelog("## Unreleased\n\n* A command.\n", "0.1.0", date(2026, 1, 31)))
        ## Unreleased
        <BLANKLINE>
        ## 0.1.0 - 2026-01-31
        <BLANKLINE>
        * A command.
        <BLANKLINE>
    """
    return changelog.replace("## Unreleased\n", f"## Unreleased\n\n## {version} - {day.isoformat()}\n", 1)


def released_project(project: str, version: str) -> str:
    r"""Return the text of pyproject.toml with a version.

    Args:
        project: The text.
        version: The version.

    Raises:
        ValueError: If it does not have exactly one version.

    Example:
        >>> print(released_project('name = "ocf"\nversion = "0.1.0.dev0"', "0.1.0"))
        name = "ocf"
        version = "0.1.0"
    """
    text, count = _PROJECT_VERSION.subn(f'version = "{version}"', project)
    if count != 1:
        raise ValueError(f"pyproject.toml has {count} lines with a version, must be 1")
    return text
