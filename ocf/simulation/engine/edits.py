"""Edits of the HPA of a run, each from the first sync that is not before it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Metric
from ocf.autoscaling.api.versions import read_hpa
from ocf.objects import Manifest
from ocf.simulation.engine.clock import microseconds
from ocf.simulation.scenario.scenario import HpaEdit

__all__ = ["Edit", "edits_of", "placed_metrics"]


class Edit(NamedTuple):
    """An edit of the HPA.

    Args:
        recreated: Whether it is another one, whose history and status are empty.
    """

    at: int
    autoscaler: Autoscaler
    recreated: bool = False


def edits_of(hpa: Manifest, edits: Sequence[HpaEdit]) -> Iterator[Edit]:
    """Yield the edits of an HPA."""
    for each in edits:
        yield Edit(microseconds(each.at), Autoscaler.of(read_hpa({**hpa, "spec": each.spec})), each.recreated)


def placed_metrics(autoscalers: Sequence[Autoscaler]) -> tuple[tuple[Metric, ...], list[int]]:
    """Return the metrics of HPAs, one HPA after the other, and where those of each HPA begin; equal ones count once.

    Example:
        >>> placed_metrics([Autoscaler(name="web", maximum=9), Autoscaler(name="web", maximum=5)])
        ((), [0, 0])
    """
    metrics: list[Metric] = []
    places: list[int] = []
    for position, each in enumerate(autoscalers):
        same = next((at for at in range(position) if autoscalers[at].metrics == each.metrics), None)
        places.append(len(metrics) if same is None else places[same])
        metrics += each.metrics if same is None else ()
    return tuple(metrics), places
