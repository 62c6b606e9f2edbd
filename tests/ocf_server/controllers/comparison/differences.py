"""Known differences between our controllers and the real ones, by scenario."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["KNOWN"]

KNOWN: Final[Mapping[str, Sequence[re.Pattern[str]]]] = {
    # More than ten similar events are combined into one by the real recorder, so that some texts are missing there.
    "deployment-rolled-out": (re.compile(r"step 3\.events"),),
    "rollout-stuck": (re.compile(r"step 3\.events"),),
    # The real controller replaces the pods of nodes in no particular order.
    "daemon-set-stuck": (re.compile(r"step 2\.objects\.Pod.*\"n[12]\""),),
}
"""Patterns of the differences that are left."""
