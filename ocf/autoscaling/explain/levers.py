"""Fields of the spec with which the number of replicas would differ now, found by running the algorithm.

For each field, the algorithm runs with the largest and the smallest value that the API server accepts. If the result
differs, the nearest value with such a result is found by bisection: the value next to it, on the side of the present
one, gives the present result. Some fields have edges beyond which the result may jump back, and each part between two
of them is searched: beyond a limit the controller goes to the limit without a look at the metrics; a target at which
the ratio is within the tolerance keeps the replicas, while more pods than replicas are ready; a longer period counts
one more change.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm import Autoscaler, Behavior, Decision, History, Metric, ScalingRules, Settings
from ocf.autoscaling.algorithm.decide import tolerances_of
from ocf.autoscaling.algorithm.normalize import downscale_window
from ocf.autoscaling.algorithm.replica_calculator import Calculation
from ocf.autoscaling.explain.bisection import first_holding
from ocf.autoscaling.explain.formatting import amount
from ocf.autoscaling.explain.what_if import WhatIf
from ocf.schema.metric_sources import RESOURCE_METRICS

__all__ = ["Lever", "TriedLever", "levers", "tried_levers"]

_INT32: Final = 2**31 - 1
# The API server sets no limit for a target or the value of a policy; the search needs an end. 2**50 thousandths are a
# tebibyte of memory per pod.
_HIGHEST_TARGET: Final = 2**50
_HIGHEST_VALUE: Final = 10**6
# MaxStabilizationWindowSeconds and MaxPeriodSeconds of the API validation.
_LONGEST_WINDOW: Final = 3600
_LONGEST_PERIOD: Final = 1800
# A policy that removes more than all pods does not differ from one that removes all.
_ALL_OF_IT: Final = 100
_PERMILLE: Final = 1000
_BYTES: Final = tuple(2**power * 1000 for power in (20, 10, 0))
"""A mebibyte, a kibibyte and a byte in thousandths of a byte."""
_CHOICES: Final = ("Max", "Min", "Disabled")


class Lever(NamedTuple):
    """A field with which the number of replicas would differ now.

    Args:
        field: The path of the field; the flag of the controller for a setting.
        present: Its present value.
        value: The nearest value with another result.
        side: 1 if all larger values have that effect as well, -1 if all smaller ones have, 0 otherwise.
        replicas: The result with it.
        change: The difference to the present result.
        is_last: Whether the API server accepts no value beyond it.
    """

    field: str
    present: str
    value: str
    side: int
    replicas: int
    change: int
    is_last: bool = False


class TriedLever(NamedTuple):
    """A lever with the specs that it was found with.

    Args:
        changed: Autoscaler and settings with the value of the lever.
        step_less: Those with the value next to it, on the side of the present one; None without an order.
    """

    lever: Lever
    changed: tuple[Autoscaler, Settings]
    step_less: tuple[Autoscaler, Settings] | None


class _Field(NamedTuple):
    """A field with whole numbers as values.

    Args:
        edges: The last values, in ascending order, of the parts in which the result is monotone.
    """

    path: str
    value: int
    low: int
    high: int
    apply: Callable[[int], tuple[Autoscaler, Settings]]
    text: Callable[[int], str] = str
    edges: Callable[[], Sequence[int]] = tuple


def levers(
    decision: Decision,
    histories: Sequence[History],
    *,
    settings: Settings,
    now: datetime,
    most: bool = False,
) -> Iterator[Lever]:
    """Find the fields with which the number of replicas would differ now.

    Args:
        decision: The decision.
        histories: The history of the controller; several if it is not known which one it has.
        settings: The controller's settings.
        now: The instant of the sync.
        most: Use the history with the most replicas for each value; otherwise the one with the fewest.

    Yields:
        At most two per field, one with larger and one with smaller values; none if the scale cannot be read.
    """
    for each in tried_levers(decision, histories, settings=settings, now=now, most=most):
        yield each.lever


def tried_levers(
    decision: Decision, histories: Sequence[History], *, settings: Settings, now: datetime, most: bool = False
) -> Iterator[TriedLever]:
    """Find the levers of `levers`, each with the specs that it was found with."""
    if decision.trace.current is None:
        return
    snapshot, present = decision.snapshot, decision.desired

    def result(changed: tuple[Autoscaler, Settings]) -> int:
        autoscaler, flags = changed
        seen = replace(snapshot, autoscaler=autoscaler)
        return WhatIf(seen, histories, flags, now, most=most).decide(seen)[0].desired

    what_if = WhatIf(snapshot, histories, settings, now, most=most)
    for field in _fields(what_if, decision.trace.current):
        # Without a `behavior`, the fields of one exist only together with the defaults of the others.
        if field.low <= field.value <= field.high and result(field.apply(field.value)) == present:
            yield from _nearest(field, result, present)
    for path, chosen, choices in _choices(snapshot.autoscaler, settings):
        for choice, changed in choices:
            replicas = result(changed)
            if choice != chosen and replicas != present:
                yield TriedLever(Lever(path, chosen, choice, 0, replicas, replicas - present), changed, None)


def _nearest(field: _Field, result: Callable[[tuple[Autoscaler, Settings]], int], present: int) -> Iterator[TriedLever]:
    """Find the nearest values with more and with fewer replicas; the result is monotone between two edges."""

    @cache
    def sign(value: int) -> int:
        replicas = result(field.apply(value))
        return (replicas > present) - (replicas < present)

    def distance(first: int, last: int, side: int, wanted: int) -> int:
        """Return how far the first value with a sign is from the first one; the last value has that sign."""
        return first_holding(0, abs(last - first), lambda step: sign(first + side * step) == wanted)

    edges = field.edges()
    for side in (1, -1):
        parts = _parts(field, edges, side)
        seen: set[int] = set()
        for index, (first, last) in enumerate(parts):
            later = [sign(last), *(sign(each) for part in parts[index + 1 :] for each in part)]
            for wanted in dict.fromkeys((sign(first), later[0])):
                if wanted == 0 or wanted in seen:
                    continue
                seen.add(wanted)
                value = first if sign(first) == wanted else first + side * distance(first, last, side, wanted)
                replicas = result(field.apply(value))
                order = side if all(each == wanted for each in later) else 0
                texts = field.text(field.value), field.text(value)
                is_last = value == (field.high if side > 0 else field.low)
                lever = Lever(field.path, *texts, order, replicas, replicas - present, is_last)
                yield TriedLever(lever, field.apply(value), field.apply(value - side))


def _parts(field: _Field, edges: Sequence[int], side: int) -> list[tuple[int, int]]:
    """Return the first and the last value of each part on a side of the present value, the nearest part first."""
    starts = [field.low, *sorted({each + 1 for each in edges if field.low <= each < field.high}), field.high + 1]
    parts = [(low, following - 1) for low, following in pairwise(starts)]
    if side > 0:
        return [(max(low, field.value + 1), high) for low, high in parts if high > field.value]
    return [(min(high, field.value - 1), low) for low, high in reversed(parts) if low < field.value]


def _fields(what_if: WhatIf, current: int) -> Iterator[_Field]:
    autoscaler, settings = what_if.snapshot.autoscaler, what_if.settings
    yield from _bounds(autoscaler, settings, current)
    for position, metric in enumerate(autoscaler.metrics):
        yield from _target(what_if, position, metric)
    yield from _tolerances(autoscaler, settings)
    yield from _windows(autoscaler, settings)
    if autoscaler.behavior is not None:
        yield from _policies(what_if, autoscaler.behavior)


def _bounds(autoscaler: Autoscaler, settings: Settings, current: int) -> Iterator[_Field]:
    # As the API server validates it: without the gate, or without a metric that works without pods, 0 is rejected.
    fewest = 0 if settings.features.scale_to_zero and autoscaler.has_podless_metric else 1
    yield _Field(
        "spec.minReplicas",
        autoscaler.minimum,
        fewest,
        autoscaler.maximum,
        lambda value: (replace(autoscaler, minimum=value), settings),
        # A minimum above the current replicas ends the sync before its metrics are read, as a maximum below them does.
        edges=lambda: (current,),
    )
    yield _Field(
        "spec.maxReplicas",
        autoscaler.maximum,
        max(1, autoscaler.minimum),
        _INT32,
        lambda value: (replace(autoscaler, maximum=value), settings),
        edges=lambda: (current - 1,),
    )


def _target(what_if: WhatIf, position: int, metric: Metric) -> Iterator[_Field]:
    autoscaler, settings, target = what_if.snapshot.autoscaler, what_if.settings, metric.target
    # The target that the algorithm uses if the spec sets several: only an Object metric goes by its type.
    value_first = metric.type == "Object" and target.type == "Value"
    if target.average is not None and not value_first:
        name, number = "average", target.average
    elif target.utilization is not None and metric.type in RESOURCE_METRICS:
        name, number = "utilization", target.utilization
    elif target.value is not None:
        name, number = "value", target.value
    else:
        return
    key = {"average": "averageValue", "utilization": "averageUtilization", "value": "value"}[name]

    def apply(value: int) -> tuple[Autoscaler, Settings]:
        other: Any = {name: value}
        changed = replace(metric, target=replace(target, **other))
        metrics = (*autoscaler.metrics[:position], changed, *autoscaler.metrics[position + 1 :])
        return replace(autoscaler, metrics=metrics), settings

    highest = _INT32 if name == "utilization" else _HIGHEST_TARGET
    path = f"spec.metrics[{position}].{metric.source_field}.target.{key}"
    # An amount of memory is written in the unit of the present one: a thousandth of a byte helps no reader.
    unit = next((each for each in _BYTES if metric.name == "memory" and name == "average" and number % each == 0), 1)

    def in_unit(value: int) -> tuple[Autoscaler, Settings]:
        return apply(value * unit)

    def written(value: int) -> str:
        return str(value) if name == "utilization" else amount(value * unit, metric)

    def edges() -> Sequence[int]:
        return _target_edges(what_if, position, in_unit, highest // unit)

    yield _Field(path, number // unit, 1, highest // unit, in_unit, written, edges)


def _target_edges(
    what_if: WhatIf, position: int, apply: Callable[[int], tuple[Autoscaler, Settings]], highest: int
) -> Sequence[int]:
    """Return the last targets before the ratio crosses the tolerance and 1; it falls as the target grows."""
    tolerated = tolerances_of(what_if.snapshot.autoscaler, what_if.settings)

    @cache
    def ratio(value: int) -> float:
        decision, _ = what_if.decide(replace(what_if.snapshot, autoscaler=apply(value)[0]))
        found = decision.trace.combination
        result = None if found is None else found.outcomes[position].result
        return result.ratio if isinstance(result, Calculation) else math.inf

    crossed: tuple[Callable[[int], bool], ...] = (
        lambda value: ratio(value) <= 1.0 + tolerated.up,
        lambda value: ratio(value) <= 1.0,
        # Exactly 1 is a part of its own: nothing is filled in there, above and below it something is.
        lambda value: ratio(value) < 1.0,
        lambda value: ratio(value) < 1.0 - tolerated.down,
    )
    return [first_holding(1, highest + 1, each) - 1 for each in crossed]


def _with_rules(autoscaler: Autoscaler, settings: Settings, *, up: bool, **fields: Any) -> tuple[Autoscaler, Settings]:
    """Return an autoscaler with other rules of a direction; without a `behavior`, the others are the defaults."""
    behavior = autoscaler.behavior or _default_behavior()
    changed = replace(behavior.up if up else behavior.down, **fields)
    both = Behavior(changed, behavior.down) if up else Behavior(behavior.up, changed)
    return replace(autoscaler, behavior=both), settings


@cache
def _default_behavior() -> Behavior:
    """Return the rules that the API server sets in an empty `behavior`."""
    read = Autoscaler.of({"spec": {"maxReplicas": 1, "behavior": {"scaleUp": {}}}}).behavior
    return read or Behavior(ScalingRules(), ScalingRules())


def _with_tolerance(autoscaler: Autoscaler, settings: Settings, value: int, *, up: bool) -> tuple[Autoscaler, Settings]:
    # As the controller reads the quantity: 940m is 940 * 1e-3, which is not always 0.94.
    return _with_rules(autoscaler, settings, up=up, tolerance=value * 1e-3)


def _with_window(autoscaler: Autoscaler, settings: Settings, value: int, *, up: bool) -> tuple[Autoscaler, Settings]:
    return _with_rules(autoscaler, settings, up=up, window=timedelta(seconds=value))


def _tolerances(autoscaler: Autoscaler, settings: Settings) -> Iterator[_Field]:
    def text(value: int) -> str:
        return f"{value / _PERMILLE:g}"

    if not settings.features.configurable_tolerance:
        yield _Field(
            "--horizontal-pod-autoscaler-tolerance",
            round(settings.tolerance * _PERMILLE),
            0,
            _PERMILLE,
            lambda value: (autoscaler, replace(settings, tolerance=value / _PERMILLE)),
            text,
        )
        return
    present = tolerances_of(autoscaler, settings)
    for up, tolerance in ((True, present.up), (False, present.down)):
        yield _Field(
            f"spec.behavior.{_side(up=up)}.tolerance",
            round(tolerance * _PERMILLE),
            0,
            _PERMILLE,
            partial(_with_tolerance, autoscaler, settings, up=up),
            text,
        )


def _windows(autoscaler: Autoscaler, settings: Settings) -> Iterator[_Field]:
    up_window = None if autoscaler.behavior is None else autoscaler.behavior.up.window
    for up, window in ((True, up_window or timedelta()), (False, downscale_window(autoscaler, settings))):
        yield _Field(
            f"spec.behavior.{_side(up=up)}.stabilizationWindowSeconds",
            int(window.total_seconds()),
            0,
            _LONGEST_WINDOW,
            partial(_with_window, autoscaler, settings, up=up),
        )


def _policies(what_if: WhatIf, behavior: Behavior) -> Iterator[_Field]:
    autoscaler, settings = what_if.snapshot.autoscaler, what_if.settings

    def ages() -> Sequence[int]:
        # A change counts for periods that are longer than its age.
        events = (each for history in what_if.histories for each in (*history.scale_ups, *history.scale_downs))
        ages = {(what_if.now - each.at) // timedelta(seconds=1) for each in events}
        return [each + more for each in ages for more in (-1, 0)]

    for up, rules in ((True, behavior.up), (False, behavior.down)):
        for position, policy in enumerate(rules.policies):
            path = f"spec.behavior.{_side(up=up)}.policies[{position}]"
            highest = _ALL_OF_IT if policy.type == "Percent" and not up else _HIGHEST_VALUE
            other = partial(_with_policy, autoscaler, settings, up=up, position=position)
            yield _Field(f"{path}.value", policy.value, 1, highest, partial(other, "value"))
            seconds = int(policy.period.total_seconds())
            yield _Field(f"{path}.periodSeconds", seconds, 1, _LONGEST_PERIOD, partial(other, "period"), edges=ages)


def _with_policy(
    autoscaler: Autoscaler, settings: Settings, field: str, value: int, *, up: bool, position: int
) -> tuple[Autoscaler, Settings]:
    behavior = autoscaler.behavior or _default_behavior()
    policies = list((behavior.up if up else behavior.down).policies)
    other: Any = {field: timedelta(seconds=value) if field == "period" else value}
    policies[position] = replace(policies[position], **other)
    return _with_rules(autoscaler, settings, up=up, policies=tuple(policies))


def _choices(
    autoscaler: Autoscaler, settings: Settings
) -> Iterator[tuple[str, str, list[tuple[str, tuple[Autoscaler, Settings]]]]]:
    behavior = autoscaler.behavior
    if behavior is None:
        return
    for up, rules in ((True, behavior.up), (False, behavior.down)):
        choices = [(each, _with_rules(autoscaler, settings, up=up, select=each)) for each in _CHOICES]
        yield f"spec.behavior.{_side(up=up)}.selectPolicy", rules.select, choices


def _side(*, up: bool) -> str:
    return "scaleUp" if up else "scaleDown"
