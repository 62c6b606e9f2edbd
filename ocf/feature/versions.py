"""Versions: tolerant parsing and fast comparison.

A version comes from the user (`spec.version`, `gitVersion` of a cluster), so it may be short (`1.5`), start with `v` or
have leading zeros. It is parsed like in Go's Masterminds/semver, whose constraints operator authors know, into a
`semver.Version`. Comparing these takes microseconds, and gates are evaluated far more often than versions are parsed,
so each version is converted once to a tuple, its order, and only tuples are compared.
"""

import re
from functools import lru_cache
from typing import Final, TypeAlias

from semver import Version

from ocf.errors import FeatureGateError

__all__ = ["RELEASE", "Identifier", "Order", "parse_version", "read_version", "release_of", "shown", "version_order"]

Identifier: TypeAlias = tuple[int, int, str]
"""One part of a prerelease: (0, number, "") or (1, 0, text), so that numbers come before texts."""

Order: TypeAlias = tuple[float, int, int, tuple[Identifier, ...], int]
"""Major, minor, patch, prerelease, and 0; a bound may end with 1, which is directly after that version.

The empty prerelease sorts before all versions with the same numbers. The first part is a float only to allow infinity.
"""

RELEASE: Final[tuple[Identifier, ...]] = ((2, 0, ""),)
"""The prerelease part of a release, which sorts after all prereleases."""

# The limits of Masterminds/semver: numbers of 64 bits, and since 3.5 256 characters.
_LARGEST: Final = 2**64 - 1
_DIGITS_OF_LARGEST: Final = 20
_MAX_LENGTH: Final = 256
_MAX_SHOWN: Final = 80

# `semver` checks prerelease and build, but not the numbers, because it rejects `v1`, `1.5` and `01`.
_LOOSE: Final = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?")

# The three that "Kubernetes Release Versioning" names (github.com/kubernetes/sig-release, release-engineering); k3s
# tags its own with -rc1, so a digit may follow.
_KUBERNETES_PRERELEASE: Final = re.compile(r"(?:alpha|beta|rc)(?![A-Za-z])")


def shown(value: object) -> str:
    """Return a value quoted for a message, on one line and shortened if it is long."""
    if not isinstance(value, str):
        return "None" if value is None else f"{type(value).__name__} {value!r:.{_MAX_SHOWN}}"
    if len(value) <= _MAX_SHOWN:
        return repr(value)
    return f"{value[:_MAX_SHOWN]!r}… ({len(value)} characters)"


# Every reconcile evaluates many gates with few different versions.
@lru_cache(maxsize=256)
def read_version(text: str) -> Version | None:
    """Parse a version; return None if the text is not a version.

    Args:
        text: One to three numbers less than 2**64, optionally with a leading `v`, a prerelease and a build; at most
            256 characters.

    Returns:
        The version, with missing numbers as 0; None if the text is not a version.

    Example:
        >>> str(read_version("v1.5-rc.1"))
        '1.5.0-rc.1'
        >>> read_version("latest")
    """
    match = _LOOSE.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    major, minor, patch = (int(match[group] or 0) for group in (1, 2, 3))
    if max(major, minor, patch) > _LARGEST:
        return None
    try:
        return Version.parse(f"{major}.{minor}.{patch}{match[4] or ''}")
    except ValueError:
        return None


def parse_version(text: object) -> Version:
    """Parse a version; raise an error if the text is not a version.

    Args:
        text: See `read_version`; a value from the user, which may have any type.

    Raises:
        FeatureGateError: If the value is not a string or not a version.

    Example:
        >>> str(parse_version("1.31"))
        '1.31.0'
    """
    version = read_version(text) if isinstance(text, str) else None
    if version is None:
        raise FeatureGateError(
            f"{shown(text)} is not a version: write MAJOR.MINOR.PATCH as text, such as '1.31.4' or 'v1.31.4-rc.1+build'"
            f" (MINOR and PATCH are optional, numbers must be less than 2**64, {_MAX_LENGTH} characters at most)"
        )
    return version


def release_of(version: Version) -> Version:
    """Return a cluster version without the suffix of its vendor.

    The text after the hyphen is removed, unless it starts with `alpha`, `beta` or `rc`, which mark prereleases of
    Kubernetes itself.

    Args:
        version: For example `1.31.4-gke.1234000`.

    Returns:
        The release that the version is based on, or the version itself.

    Example:
        >>> str(release_of(Version.parse("1.31.4-eks-1a2b3c"))), str(release_of(Version.parse("1.32.0-rc.1")))
        ('1.31.4', '1.32.0-rc.1')
    """
    if version.prerelease is None or _KUBERNETES_PRERELEASE.match(version.prerelease):
        return version
    return version.replace(prerelease=None)


def version_order(version: Version) -> Order:
    """Return a tuple that sorts like the version (semver.org, section 11).

    Args:
        version: Any version; its build is not part of the order.

    Example:
        >>> version_order(Version.parse("1.5.0-rc.1")) < version_order(Version.parse("1.5.0+k3s1"))
        True
    """
    prerelease = version.prerelease
    identifiers = tuple(map(_identifier, prerelease.split("."))) if prerelease else RELEASE
    return (version.major, version.minor, version.patch, identifiers, 0)


def _identifier(text: str) -> Identifier:
    # Masterminds/semver compares a number of more than 64 bits as text; the order must be the same here.
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS_OF_LARGEST:
        number = int(text)
        if number <= _LARGEST:
            return (0, number, "")
    return (1, 0, text)
