"""Modes of the controller: which autoscalers it runs.

The built-in controller acts on every HorizontalPodAutoscaler of autoscaling/v2 and cannot be configured to skip one.
So two controllers can only run side by side if they run different kinds, or if one of them only reads.
"""

from enum import StrEnum
from typing import Final

from ocf.objects.manifest import PREFIX

__all__ = ["BUILT_IN", "GROUP", "OWN", "Mode"]

GROUP: Final = f"autoscaling.{PREFIX}"
"""The API group of our own kind."""

OWN: Final = (f"{GROUP}/v1alpha1", "HorizontalAutoscaler")
"""apiVersion and kind of our own autoscalers."""

BUILT_IN: Final = ("autoscaling/v2", "HorizontalPodAutoscaler")
"""apiVersion and kind of the built-in controller's autoscalers."""


class Mode(StrEnum):
    """Which autoscalers the controller runs.

    Example:
        >>> Mode.OWN_KIND.watched
        ('autoscaling.ocf.dev/v1alpha1', 'HorizontalAutoscaler')
    """

    OWN_KIND = "own-kind"
    """Our own kind, which the built-in controller does not see."""
    REPLACE = "replace"
    """autoscaling/v2, where the built-in controller is switched off."""
    DRY_RUN = "dry-run"
    """autoscaling/v2 beside the built-in controller: read, report what would be done, and write nothing."""

    @property
    def watched(self) -> tuple[str, str]:
        """The apiVersion and kind of the autoscalers that are run."""
        return OWN if self is Mode.OWN_KIND else BUILT_IN

    @property
    def writes(self) -> bool:
        """Whether the controller writes at all."""
        return self is not Mode.DRY_RUN
