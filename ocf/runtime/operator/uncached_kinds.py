"""The kinds that are read from the cluster, by name, or by a wildcard for those that are known only at run time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ocf.objects.manifest import split_api_version
from ocf.runtime.rbac.rules import ANY, wildcard_group

__all__ = ["UncachedKinds", "wildcard_problems"]

_IS_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?").fullmatch
"""A core version is not a group: `v1/*` would be one of that name."""


class UncachedKinds:
    """What is never cached, of one operator or of all of a process.

    A wildcard leaves out the declared kinds, of which each is watched from the start.

    Args:
        uncached: Pairs of apiVersion and kind, wildcards among them.
        declared: The declared kinds.
    """

    def __init__(self, uncached: Iterable[tuple[str, str]], declared: Iterable[tuple[str, str]]) -> None:
        given = frozenset(uncached)
        self._groups = frozenset(wildcard_group(api_version) for api_version, kind in given if kind == ANY)
        self._declared = frozenset((split_api_version(api_version)[0], kind) for api_version, kind in declared)
        self.named = frozenset(one for one in given if one[1] != ANY)
        """Those that are named."""

    def __contains__(self, kind: object) -> bool:
        if kind in self.named or not self._groups or not isinstance(kind, tuple):
            return kind in self.named
        group = split_api_version(kind[0])[0]
        return self.has_group(group) and (group, kind[1]) not in self._declared

    def has_group(self, group: str) -> bool:
        """Return whether a wildcard is for a group; that of a rule may be a wildcard itself."""
        return group in self._groups or ANY in self._groups


def wildcard_problems(option: str, kinds: Iterable[tuple[str, str]], *, allowed: bool = True) -> Iterator[str]:
    """Yield which pairs of an option have a wildcard that has no meaning there."""
    for api_version, name in kinds:
        kind, _, part = name.partition("/")
        if ANY not in api_version + kind:
            continue
        given = f'{option}: ("{api_version}", "{name}")'
        group = wildcard_group(api_version)
        if not allowed:
            yield f"{given} has a wildcard, but each of these kinds is watched from the start: name them"
        elif part and (part == ANY or option in {"uncached", "deletes"}):
            yield f'{given} names a subresource of all kinds: `reads` and `writes` may, by its name, ("*", "*/scale")'
        elif (
            kind != ANY
            or api_version not in {ANY, "v1", f"{group}/{ANY}"}
            or (ANY in group and group != ANY)
            or _IS_VERSION(group)
        ):
            yield (
                f'{given} is not a wildcard: ("example.com/*", "*") is for all kinds of a group, ("v1", "*") for those '
                'of the core group, ("*", "*") for all'
            )
