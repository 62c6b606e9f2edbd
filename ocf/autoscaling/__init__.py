"""The HorizontalPodAutoscaler, pure: authoring and defaulting. No cluster and no clock is needed for any of it."""

from ocf.autoscaling import metrics
from ocf.autoscaling.defaulting import default

__all__ = ["default", "metrics"]
