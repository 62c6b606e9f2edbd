"""Tables of a search, for the terminal and for the page."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.measures.formatting import value_text
from ocf.simulation.tuning.across import Across
from ocf.simulation.tuning.tuned import Finalist, Tuned

__all__ = ["VIOLATED", "Table", "measure_names", "setting_text", "short_names", "tables", "verdict_lines"]

VIOLATED: Final = "VIOLATED"
"""The beginning of a cell about a requirement that is not met."""
_DASH: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Args:
        headings: One per column.
        note: A sentence below the title; empty for none.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(tuned: Tuned, *, currency: str = "", most: int | None = None) -> Iterator[Table]:
    """Yield the tables of a search.

    Args:
        most: Most rows of the front; None for all.
    """
    yield _settings(tuned)
    yield _compared(tuned, currency, held_out=False)
    if tuned.winner.held_out:
        yield _compared(tuned, currency, held_out=True)
    if tuned.is_feasible:
        yield _front(tuned, currency, most)
    if tuned.effects:
        yield _effects(tuned, currency)


def verdict_lines(tuned: Tuned, *, currency: str = "") -> Iterator[str]:
    """Yield the verdict in sentences: why the winner wins, and what speaks against it."""
    if not tuned.is_feasible:
        yield (
            f"No settings meet the requirements. The closest ones violate: {', '.join(tuned.winner.unmet)}. Search"
            " other settings or wider ranges, or relax a requirement."
        )
    elif tuned.is_current:
        yield "Keep the current settings: of all candidates, they are the best compromise of the objectives."
    else:
        yield f"The winner compared with the current settings: {_changes(tuned, tuned.current, currency)}."
    for name in tuned.worse_overload:
        before, after = (finalist.measures[name] for finalist in (tuned.current, tuned.winner))
        yield (
            f"No requirement limits the {MEASURES[name].title}, and the winner makes it worse:"
            f" {value_text(name, after)} instead of {value_text(name, before)}."
            f" The requirement `{name} <= {_at_least(before)}` keeps it as good as it is."
        )
    if tuned.current.unmet and tuned.is_feasible:
        yield f"The current settings violate: {', '.join(tuned.current.unmet)}."
    if tuned.runner_up is not None and tuned.is_feasible:
        yield f"The winner compared with the runner-up: {_changes(tuned, tuned.runner_up, currency)}."
    # A setting matters if one of its values does; the effects begin with the setting that matters most.
    moving = {each.path for each in tuned.effects if each.weight > 0}
    idle = [each.path for each in tuned.effects if each.path not in moving]
    if tuned.effects and tuned.effects[0].path in moving:
        yield f"Around the winner, {tuned.effects[0].path} matters most."
    if idle:
        yield f"Around the winner, these do not change any objective: {', '.join(dict.fromkeys(idle))}."
    if tuned.winner.unmet_held_out:
        yield (
            f"In the time that the search has not seen, the winner violates: {', '.join(tuned.winner.unmet_held_out)}."
        )
    if tuned.is_worse_when_held_out:
        yield "In the time that the search has not seen, the winner is worse than the current settings."
    yield from (f"Warning for the winner: {each}." for each in tuned.winner.warnings)


def _at_least(share: float) -> str:
    """Return a share as a percentage that is not below it, so that the current settings meet it."""
    return f"{math.ceil(share * 10_000) / 100:g}%"


def _changes(tuned: Tuned, other: Finalist, currency: str) -> str:
    before, after = other.measures, tuned.winner.measures
    return ", ".join(
        f"{MEASURES[each.name].title} {value_text(each.name, after[each.name], currency=currency)} instead of"
        f" {value_text(each.name, before[each.name], currency=currency)}"
        for each in tuned.objectives
        if each.name in before and each.name in after
    )


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return a distinct short name for each path: the shortest suffix that no other path ends with.

    Example:
        >>> list(short_names(["spec.behavior.scaleUp.tolerance", "controller.tolerance", "spec.minReplicas"]).values())
        ['scaleUp.tolerance', 'controller.tolerance', 'minReplicas']
    """
    found: dict[str, str] = {}
    for path in paths:
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[-count:])
            if sum(other == name or other.endswith(f".{name}") for other in paths) == 1:
                break
        else:
            name = path
        found[path] = name
    return found


def setting_text(value: Any) -> str:
    """Return the value of a setting as text.

    Args:
        value: The value; None where the field is not set.

    Example:
        >>> setting_text(60), setting_text("Max"), setting_text(None)
        ('60', 'Max', 'not set')
    """
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def measure_names(tuned: Tuned) -> tuple[str, ...]:
    """Return the measures of objectives and requirements."""
    used = (name for each in tuned.requirements for name in each.names)
    return tuple(dict.fromkeys((*(each.name for each in tuned.objectives), *used)))


def _finalists(tuned: Tuned) -> tuple[tuple[str, Finalist], ...]:
    name = "winner" if tuned.is_feasible else "closest"
    found = (("current", tuned.current), (name, tuned.winner), ("runner-up", tuned.runner_up))
    return tuple((name, each) for name, each in found if each is not None)


def _settings(tuned: Tuned) -> Table:
    finalists = _finalists(tuned)
    return Table(
        title="settings",
        headings=("field", *(name for name, _ in finalists)),
        rows=tuple((path, *(setting_text(each.values[path]) for _, each in finalists)) for path in tuned.winner.values),
    )


def _compared(tuned: Tuned, currency: str, *, held_out: bool) -> Table:
    finalists = _finalists(tuned)
    measures = [each.held_out_measures if held_out else each.measures for _, each in finalists]
    rows = [
        (MEASURES[name].title, *(_text(name, each, currency) for each in measures)) for name in measure_names(tuned)
    ]
    for requirement in tuned.requirements:
        unmet = [each.unmet_held_out if held_out else each.unmet for _, each in finalists]
        rows.append((requirement.text, *(VIOLATED if requirement.text in each else "met" for each in unmet)))
    share = f"{tuned.searched * 100:.3g} %"
    if held_out:
        title = f"held out: the last {(1 - tuned.searched) * 100:.3g} % of the time{_since(tuned)}"
    else:
        title = f"searched: the first {share} of the time" if tuned.searched < 1 else "searched: all of the time"
    scaled = "Totals are scaled to the length of the whole time." if tuned.searched < 1 else ""
    return Table(
        title=title,
        headings=("measure", *(name for name, _ in finalists)),
        rows=tuple(rows),
        note=" ".join(filter(None, (scaled, _across(tuned, "measure")))),
    )


def _since(tuned: Tuned) -> str:
    """Return when the time that is held out begins; empty without dates."""
    begins = [
        f"{at:%Y-%m-%d %H:%M:%S}{f' of {name}' if len(tuned.traces) > 1 else ''}"
        for name, at in zip(tuned.traces, tuned.held_out_from, strict=False)
        if at is not None
    ]
    return f", from {', '.join(begins)} UTC" if begins else ""


def _across(tuned: Tuned, value: str) -> str:
    """Return what a number stands for, where there are several traces; empty for one."""
    count = len(tuned.traces)
    if count == 1:
        return ""
    return {
        Across.MEAN: f"Each {value} is the mean over {count} scenarios.",
        Across.WORST: f"Each {value} is the worst of {count} scenarios.",
    }[tuned.across]


def _text(name: str, measures: Mapping[str, float], currency: str) -> str:
    return value_text(name, measures[name], currency=currency) if name in measures else _DASH


def _front(tuned: Tuned, currency: str, most: int | None) -> Table:
    names = short_names(list(tuned.winner.values))
    rows = [
        (
            "current" if each.candidate is None else str(number),
            *(value_text(one.name, each.measures[one.name], currency=currency) for one in tuned.objectives),
            *(setting_text(each.values[path]) for path in names),
        )
        for number, each in enumerate(tuned.front, start=1)
    ]
    shown = rows if most is None else rows[:most]
    across = _across(tuned, "objective")
    rest = f" {len(rows) - len(shown)} more are in the report." if len(shown) < len(rows) else ""
    return Table(
        title=f"front: {len(rows)} candidates that no other one is better than",
        headings=("rank", *(MEASURES[each.name].title for each in tuned.objectives), *names.values()),
        rows=tuple(shown),
        note=" ".join(filter(None, (f"Ranked by distance from the best value of each objective.{rest}", across))),
    )


def _effects(tuned: Tuned, currency: str) -> Table:
    names = short_names(list(tuned.winner.values))
    winner = tuned.front[0]

    def unmet(measures: Mapping[str, float]) -> Iterator[str]:
        return (each.text for each in tuned.requirements if not each.holds(measures))

    def violated(texts: Iterable[str]) -> str:
        # Across several scenarios, a requirement may be violated in one and met by their mean.
        return ": ".join(filter(None, (VIOLATED, ", ".join(texts))))

    rows = [
        (
            "none",
            "the winner",
            *(value_text(one.name, winner.measures[one.name], currency=currency) for one in tuned.objectives),
            "met" if tuned.is_feasible else violated(tuned.winner.unmet),
        ),
        *(
            (
                names[each.path],
                setting_text(each.value),
                *(_text(one.name, each.measures, currency) for one in tuned.objectives),
                "met" if each.is_allowed else (violated(unmet(each.measures)) if each.measures else "invalid"),
            )
            for each in tuned.effects
        ),
    ]
    return Table(
        title="effects of single settings",
        headings=("changed", "to", *(MEASURES[each.name].title for each in tuned.objectives), "requirements"),
        rows=tuple(rows),
        note="One setting is changed, all others are as the winner has them. The one that matters most comes first.",
    )
