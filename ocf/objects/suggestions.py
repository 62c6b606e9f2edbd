"""Names that a user may have meant, for messages about unknown ones."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearest", "suggestions"]


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most likely meant; empty without a likely one.

    Example:
        >>> nearest("max_replica", ["minReplicas", "maxReplicas"])
        'maxReplicas'
    """
    return next(iter(suggestions(name, known, most=1)), "")


def suggestions(name: str, known: Iterable[str], *, most: int) -> list[str]:
    """Return the known names that are likely meant, the likeliest first.

    Upper case and separators do not count, so that `max_replicas` is `maxReplicas`. A name may also be cut off, as in
    `deploy`, or lack its begin, as in `version` for `apiVersion`.

    Args:
        most: The largest number of names.
    """
    from difflib import get_close_matches  # an error is rare, and commands start faster without it

    spelled: dict[str, list[str]] = {}
    for one in known:
        spelled.setdefault(_plain(one), []).append(one)
    wanted = _plain(name)
    exact = [wanted] if wanted in spelled else []
    begun = [one for one in spelled if one.startswith(wanted)] if len(wanted) > len("ab") else []
    ended = [one for one in spelled if one.endswith(wanted)]
    if len(begun) > most:
        # Any of them could be meant, so none is likely.
        begun = []
    # That two names have the same letters does not make one of them likely: `--host` is not `--port`.
    close = [
        one
        for one in get_close_matches(wanted, spelled, n=len(spelled) or 1)
        if _is_typo(wanted, one) or one in begun or wanted.startswith(one) or ended == [one]
    ]
    return [one for each in dict.fromkeys([*exact, *close, *begun]) for one in spelled[each]][:most]


def _is_typo(wanted: str, known: str) -> bool:
    """Return whether few letters differ; the first one, which is seldom mistyped, in longer names only."""
    if known.startswith(wanted):
        return len(known) == len(wanted) + 1
    longer = max(len(wanted), len(known))
    distance = _distance(wanted, known)
    if wanted[:1] != known[:1]:
        return distance == 1 and longer > len("code")
    return distance <= max(1, longer // 3)


def _distance(one: str, other: str) -> int:
    """Return how many letters are added, left out, changed, or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one):
        earlier, before, row = before, row, [at + 1]
        for place, wanted in enumerate(other):
            best = min(before[place] + (letter != wanted), before[place + 1] + 1, row[place] + 1)
            if at and place and letter == other[place - 1] and one[at - 1] == wanted:
                best = min(best, earlier[place - 1] + 1)
            row.append(best)
    return row[-1]


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
