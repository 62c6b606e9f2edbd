"""The explanation of an owner, or of all of a kind, as lines and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ocf.ownership import OwnerExplanation
from ocf.ownership.lines import by_trouble, explanation_json, explanation_lines, trouble_lines

if TYPE_CHECKING:
    from ocf.cli.explain.next_reconcile import NextReconcile

__all__ = ["OwnerAnswer"]


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """The explanation of an owner, or of all of a kind.

    Args:
        found: The explanations: one if `is_one`.
        now: The time of the snapshot.
        following: What the next reconcile would do; None without the operator's code.
    """

    found: tuple[OwnerExplanation, ...]
    now: datetime
    is_one: bool
    following: NextReconcile | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        if self.is_one:
            following = {} if self.following is None else {"next": self.following.to_json()}
            return {**explanation_json(self.found[0]), **following}
        return {"owners": [explanation_json(one) for one in by_trouble(self.found)]}

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield its lines with their indentation."""
        if self.is_one:
            yield from explanation_lines(self.found[0], self.now)
            if self.following is not None:
                yield 0, ""
                yield from self.following.lines()
        else:
            yield from ((0, one) for one in trouble_lines(self.found))

    def headlines(self) -> list[str]:
        """Return a sentence for each owner, and for several their number."""
        return [self.found[0].sentence] if self.is_one else [*trouble_lines(self.found)]
