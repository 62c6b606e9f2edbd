"""Modes: whose autoscalers the controller runs.

The built-in controller acts on every HorizontalPodAutoscaler of autoscaling/v2 and cannot be told to leave one alone.
So two controllers may only live side by side where they look at different kinds, or where one of them only watches.
"""

from enum import StrEnum
from typing import Final

from ocf.objects import PREFIX

__all__ = ["BUILT_IN", "GROUP", "OWN", "Mode"]

GROUP: Final = f"autoscaling.{PREFIX}"
"""The API group of the kind of our own."""

OWN: Final = (f"{GROUP}/v1alpha1", "HorizontalAutoscaler")
"""apiVersion and kind of our own autoscalers."""

BUILT_IN: Final = ("autoscaling/v2", "HorizontalPodAutoscaler")
"""apiVersion and kind of the built-in controller's autoscalers."""


class Mode(StrEnum):
    """What the controller runs.

    Example:
        >>> Mode.OWN_KIND.watched
        ('autoscaling.ocf.dev/v1alpha1', 'HorizontalAutoscaler')
    """

    OWN_KIND = "own-kind"
    """A kind of our own, which the built-in controller does not see."""
    REPLACE = "replace"
    """autoscaling/v2, where the built-in controller is switched off."""
    DRY_RUN = "dry-run"
    """autoscaling/v2 beside the built-in controller: reads, tells what it would do, and writes nothing."""

    @property
    def watched(self) -> tuple[str, str]:
        """Which autoscalers are run, as apiVersion and kind."""
        return OWN if self is Mode.OWN_KIND else BUILT_IN

    @property
    def writes(self) -> bool:
        """Whether anything is written at all."""
        return self is not Mode.DRY_RUN
