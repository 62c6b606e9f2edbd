"""Effects of single settings: one is changed, all others are as the winner has them."""

from collections.abc import Mapping, Sequence

from ocf.simulation.tuning.objectives import Objective
from ocf.simulation.tuning.problem import Candidate, Problem
from ocf.simulation.tuning.tuned import Member, SettingEffect

__all__ = ["effects_of", "neighbours"]

_SHARE = 10
_MOST_CHOICES = 8


def neighbours(problem: Problem, winner: Candidate) -> list[Candidate]:
    """Return the candidates that differ from the winner in one setting.

    Args:
        winner: The winner; none has neighbours if these are the current settings.

    Returns:
        For a range, the values a tenth of it below and above; for choices, the others, at most eight.
    """
    if winner is None:
        return []
    return [
        (*winner[:at], other, *winner[at + 1 :])
        for at in range(len(winner))
        for other in _others(problem, at, winner[at])
    ]


def _others(problem: Problem, at: int, chosen: int) -> list[int]:
    setting = problem.settings[at]
    count = len(setting.values)
    if not setting.is_ordered:
        return [each for each in range(count) if each != chosen][:_MOST_CHOICES]
    step = max(1, count // _SHARE)
    return [each for each in (max(0, chosen - step), min(count - 1, chosen + step)) if each != chosen]


def effects_of(
    problem: Problem,
    front: Sequence[Member],
    objectives: Sequence[Objective],
    members: Mapping[Candidate, Member | None],
) -> tuple[SettingEffect, ...]:
    """Return the effects of single settings around the winner; the setting that matters most comes first.

    Args:
        front: The front; its first member is the winner.
    """
    winner = front[0]
    found: list[SettingEffect] = []
    for candidate in neighbours(problem, winner.candidate):
        [path] = [
            each.path
            for each, one, other in zip(problem.settings, candidate or (), winner.candidate or (), strict=True)
            if one != other
        ]
        member = members[candidate]
        found.append(
            SettingEffect(
                path=path,
                value=problem.values(candidate)[path],
                measures={} if member is None else member.measures,
                is_allowed=member is not None and member.violation == 0,
                weight=0.0 if member is None else _weight(member, front, objectives),
            )
        )
    weights = {path: max(each.weight for each in found if each.path == path) for path in {each.path for each in found}}
    # The sort is stable: settings of the same weight stay in the order of the search.
    return tuple(sorted(found, key=lambda each: -weights[each.path]))


def _weight(member: Member, front: Sequence[Member], objectives: Sequence[Objective]) -> float:
    changes = []
    for each in objectives:
        values = [other.measures[each.name] for other in front]
        scale = (max(values) - min(values)) or abs(front[0].measures[each.name]) or 1.0
        changes.append(abs(member.measures[each.name] - front[0].measures[each.name]) / scale)
    return float(f"{max(changes):.9g}")
