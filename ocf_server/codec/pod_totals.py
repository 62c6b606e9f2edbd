"""Totals of the resources of the containers of a pod.

Source: `AggregateContainerRequests` and `AggregateContainerLimits` in `resource/helpers.go` of component-helpers.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from ocf.errors import QuantityError
from ocf.objects.quantity import Quantity

__all__ = ["pod_totals"]

_Json: TypeAlias = Mapping[str, Any]

_LARGEST: Final = str(2**63 - 1)


def pod_totals(spec: _Json, amounts: str) -> dict[str, Quantity]:
    """Return the sums of the containers, or of the largest phase of initialization where it is larger.

    Args:
        amounts: What is summed, `requests` or `limits`.
    """
    totals: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    largest: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(totals, _amounts(container, amounts))
    for container in spec.get("initContainers") or ():
        own = _amounts(container, amounts)
        if container.get("restartPolicy") == "Always":
            _add(totals, own)
            _add(sidecars, own)
            # While a sidecar starts, those before it run.
            own = dict(sidecars)
        else:
            # An init container runs beside the sidecars before it.
            _add(own, sidecars)
        for name, value in own.items():
            largest[name] = max(value, largest.get(name, value))
    for name, value in largest.items():
        totals[name] = max(value, totals.get(name, value))
    return totals


def _amounts(container: _Json, amounts: str) -> dict[str, Quantity]:
    given = container.get("resources", {}).get(amounts) or {}
    return {name: Quantity.parse(value) for name, value in given.items()}


def _add(totals: dict[str, Quantity], amounts: Mapping[str, Quantity]) -> None:
    for name, value in amounts.items():
        totals[name] = _sum(totals[name], value) if name in totals else value


def _sum(one: Quantity, other: Quantity) -> Quantity:
    try:
        return one + other
    except QuantityError:
        # The API server compares the exact sum, too.
        return Quantity(one.nano + other.nano, _LARGEST)
