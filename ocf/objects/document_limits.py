"""Limits of the size of a document."""

from typing import Final

__all__ = ["MAX_DEPTH", "MAX_VALUES"]

MAX_DEPTH: Final = 100
"""Maximum nesting of maps and lists; the schema of a large resource type needs about half of it."""

MAX_VALUES: Final = 300_000
"""Maximum number of values in a text, including keys; an alias counts as the values it repeats."""
