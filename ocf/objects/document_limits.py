"""How much a document may hold, whoever reads or writes it."""

from typing import Final

__all__ = ["MAX_DEPTH", "MAX_VALUES"]

MAX_DEPTH: Final = 100
"""How deep maps and lists may be nested; the schema of a large resource type takes about half of it."""

MAX_VALUES: Final = 300_000
"""How many values a text may have, keys included, counting an alias as what it stands for."""
