"""Why a file cannot be read, as a message says it."""

from __future__ import annotations

import os

__all__ = ["file_problem"]


def file_problem(file: str, error: OSError) -> str:
    """Return why a file cannot be read; a link that leads nowhere is named, since a listing shows that it is there."""
    if isinstance(error, FileNotFoundError) and os.path.islink(file):  # noqa: PTH114 (commands start without pathlib)
        return f"it is a link to {os.readlink(file)}, which does not exist"  # noqa: PTH115 (likewise)
    return error.strerror or str(error)
