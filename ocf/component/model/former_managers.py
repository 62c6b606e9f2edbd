"""Field managers of former writers of an object, whose fields a component takes over: names, patterns, and the memory.

Each is taken over once per object, which a label of the object remembers: what the same client writes later is a change
by another writer, and stays. It is not an annotation, because one on a Deployment would change its generation, and be
copied to its ReplicaSets.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from ocf.objects import Manifest
from ocf.objects.manifest import PREFIX
from ocf.objects.paths import get_field

__all__ = ["is_former", "is_taken", "pattern_problems", "taken_label", "taken_labels"]

_TAKEN_OVER: Final = f"{PREFIX}/taken-over."
# The part of a label's name after the slash has at most 63 characters.
_READABLE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,50}[A-Za-z0-9])?")
_HASHED: Final = 32


def is_former(manager: str, patterns: Collection[str]) -> bool:
    """Return whether a field manager is one of those that are named.

    Example:
        >>> [is_former(name, ["kubectl-*"]) for name in ("kubectl-client-side-apply", "helm")]
        [True, False]
    """
    return any(fnmatchcase(manager, pattern) for pattern in patterns)


def pattern_problems(
    patterns: object,
    *,
    option: str = "former_managers",
    one: str = "field manager",
    example: str = "kubectl-client-side-apply",
    separators: str = "",
) -> Iterator[str]:
    """Yield why something cannot be named in this way.

    Args:
        patterns: The names and patterns, as the author gives them.
        option: The name of the option.
        one: What is named.
        example: The name of such a one.
        separators: Characters that each of the names has, so that a pattern with them may still match all.
    """
    if isinstance(patterns, str):
        yield f'{option} must be a list of {one}s, such as ["{patterns}"], not a text'
        return
    if not isinstance(patterns, Iterable):
        yield f"{option} must be a list of {one}s, got {patterns!r:.60}"
        return
    for each in patterns:
        if not isinstance(each, str) or not each:
            yield f"{option} must be names or patterns of {one}s, got {each!r:.60}"
        elif set("[]") & set(each):
            yield f'{option}: "{each}" must be a name, or a pattern with the wildcards * and ?, without [ and ]'
        elif not each.strip(f"*?{separators}"):
            yield (
                f'{option}: the pattern "{each}" matches every {one}, those of running controllers included: name the '
                f'former ones, for example "{example}"'
            )


def taken_label(manager: str) -> str:
    """Return the label of an object from which the fields of a field manager were taken over.

    A name that a label cannot contain is hashed.

    Example:
        >>> taken_label("kubectl-client-side-apply")
        'ocf.dev/taken-over.kubectl-client-side-apply'
        >>> taken_label("shops/Shop/web/c0ffee")
        'ocf.dev/taken-over.d28dd58a37f2f868174d72c8ddb75245'
    """
    is_readable = _READABLE.fullmatch(manager) is not None
    name = manager if is_readable else hashlib.sha256(manager.encode()).hexdigest()[:_HASHED]
    return f"{_TAKEN_OVER}{name}"


def is_taken(live: Manifest, manager: str) -> bool:
    """Return whether the fields of a field manager were taken over from an object before."""
    return taken_label(manager) in (get_field(live, ("metadata", "labels")) or {})


def taken_labels(live: Manifest) -> dict[str, str]:
    """Return the labels of an object that remember from whom fields were taken over."""
    labels = get_field(live, ("metadata", "labels")) or {}
    return {name: value for name, value in labels.items() if name.startswith(_TAKEN_OVER)}
