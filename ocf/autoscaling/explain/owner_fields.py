"""Fields of the object that controls an HPA: its controller reverts what a user writes into the HPA itself."""

import re
from collections.abc import Sequence
from typing import Final

from ocf.autoscaling.algorithm import Metric
from ocf.autoscaling.targets.scaled_objects import scaled_object_field

__all__ = ["owned_field"]

_SCALED_OBJECT: Final = "ScaledObject"
_METRIC: Final = re.compile(r"spec\.metrics\[(\d+)\]")
_TRIGGER: Final = re.compile(r"s(\d+)-")


def owned_field(field: str, owner: str, metrics: Sequence[Metric]) -> str:
    """Return the name of a field for a user: that of the object that controls the HPA, if one does.

    Args:
        field: The field of the HPA, or a flag of the controller.
        owner: Kind and name of the object that controls the HPA; empty without one.
        metrics: The metrics of the HPA.

    Example:
        >>> owned_field("spec.maxReplicas", "ScaledObject web", ())
        'spec.maxReplicaCount of ScaledObject web'
        >>> owned_field("spec.maxReplicas", "Shop corner", ())
        'what Shop corner sets as spec.maxReplicas'
    """
    if not owner or not field.startswith("spec."):
        return field
    if not owner.startswith(f"{_SCALED_OBJECT} "):
        return f"what {owner} sets as {field}"
    return f"{_of_scaled_object(field, metrics)} of {owner}"


def _of_scaled_object(field: str, metrics: Sequence[Metric]) -> str:
    found = _METRIC.match(field)
    if found is None:
        return scaled_object_field(field)
    metric = metrics[int(found[1])]
    # KEDA names an external metric after its trigger: s1-prometheus is that of the second one.
    trigger = _TRIGGER.match(metric.name)
    place = f"spec.triggers[{trigger[1]}]" if trigger else f"the trigger of type {metric.name} in spec.triggers"
    return f"the threshold of {place}"
