"""Names of the scenarios of one command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["distinct_names"]


def distinct_names(paths: Sequence[Path]) -> list[str | None]:
    """Return distinct names for scenarios: the names of the files, or their paths where these are equal.

    Returns:
        A name for each; None for a single scenario, which has the name in its file.

    Example:
        >>> distinct_names([Path("a/web.yaml"), Path("b/web.yaml"), Path("batch.yaml")])
        ['a/web.yaml', 'b/web.yaml', 'batch']
    """
    if len(paths) == 1:
        return [None]
    stems = [path.stem for path in paths]
    return [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)]
