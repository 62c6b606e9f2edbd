"""Rollouts of the workload: a Deployment replaces its pods, as far as `maxSurge` and `maxUnavailable` let it.

The decisions are those of the Deployment controller with the strategy RollingUpdate, without `minReadySeconds`. Source:
`rolling.go`, `sync.go` and `util/deployment_util.go` in `pkg/controller/deployment`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ocf.simulation.engine.clock import NEVER, microseconds
from ocf.simulation.engine.pods import Pods
from ocf.simulation.scenario.workload import Rollout

__all__ = ["Rollouts", "bounds_of", "proportional", "rolled"]

_FULL: Final = 100

Sizes = Mapping[int, tuple[int, int]]
"""The pods of each revision that has some, and how many of them are ready; the newest revision is the highest."""


class Rollouts:
    """The rollouts of a run.

    Args:
        settings: The rollouts.
        pods: The pods that they replace.

    Attributes:
        due: The instant at which the next one begins, in microseconds.
    """

    __slots__ = ("_desired", "_next", "_pods", "_present", "due")

    def __init__(self, settings: Sequence[Rollout], pods: Pods) -> None:
        self._next = sorted(((microseconds(each.at), each) for each in settings), key=lambda pair: pair[0])
        self._pods = pods
        self._present: Rollout | None = None
        self._desired = 0
        self.due = self._next[0][0] if self._next else NEVER

    @property
    def is_active(self) -> bool:
        """Whether pods of an earlier revision are there, or pods of the new one are missing."""
        return self._present is not None

    def advance(self, now: int, replicas: int) -> bool:
        """Begin what is due, and continue; return whether pods were created or deleted.

        Args:
            replicas: `spec.replicas`.
        """
        while self.due <= now:
            _, self._present = self._next.pop(0)
            self._pods.revise(self._present.image_pull)
            self._desired = replicas
            self.due = self._next[0][0] if self._next else NEVER
        return self._continue(now)

    def scale(self, replicas: int, now: int) -> bool:
        """Change `spec.replicas` while a rollout is active; return whether pods were created or deleted."""
        present = self._present
        if present is None or replicas == self._desired:
            return False
        before, self._desired = self._desired, replicas
        sizes = {revision: count for revision, (count, _) in self._pods.revisions().items()}
        changed = self._resize(proportional(sizes, before=before, after=replicas, strategy=present), now)
        return self._continue(now) or changed

    def _continue(self, now: int) -> bool:
        """Create and delete pods until the rollout has to wait for pods that become ready."""
        changed = False
        while self._present is not None:
            sizes = self._pods.revisions()
            wanted = rolled(sizes, self._desired, self._pods.revision, self._present)
            if not wanted:
                if set(sizes) <= {self._pods.revision}:
                    self._present = None
                    self._pods.revise(None, anew=False)
                break
            changed = self._resize(wanted, now) or changed
        return changed

    def _resize(self, wanted: Mapping[int, int], now: int) -> bool:
        for revision, count in wanted.items():
            self._pods.scale(count, now, revision=revision)
        return bool(wanted)


def bounds_of(strategy: Rollout, desired: int) -> tuple[int, int]:
    """Return how many pods may be there beyond the desired ones, and how many of the desired ones need not be ready.

    Example:
        >>> from datetime import timedelta
        >>> bounds_of(Rollout(at=timedelta()), 10), bounds_of(Rollout(at=timedelta(), max_surge=0), 1)
        ((3, 2), (0, 1))
    """
    surge = _pods_of(strategy.max_surge, desired, up=True)
    unavailable = _pods_of(strategy.max_unavailable, desired, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, desired)


def _pods_of(share: int | str, desired: int, *, up: bool) -> int:
    if isinstance(share, int):
        return share
    percent = int(share.removesuffix("%")) * desired
    return -(-percent // _FULL) if up else percent // _FULL


def rolled(sizes: Sizes, desired: int, newest: int, strategy: Rollout) -> Mapping[int, int]:
    """Return the revisions whose number of pods changes next, with the number; none if the rollout has to wait.

    Example:
        >>> from datetime import timedelta
        >>> strategy = Rollout(at=timedelta())
        >>> rolled({0: (4, 4)}, 4, 1, strategy), rolled({0: (4, 4), 1: (1, 0)}, 4, 1, strategy)
        ({1: 1}, {0: 3})
    """
    surge, unavailable = bounds_of(strategy, desired)
    total = sum(count for count, _ in sizes.values())
    new, new_ready = sizes.get(newest, (0, 0))
    # The new pods come first: old ones are deleted by a later sync of the Deployment controller.
    room = max(0, desired + surge - total)
    grown = min(new + room, desired)
    if grown != new:
        return {newest: grown}
    least = desired - unavailable
    removable = total - least - (new - new_ready)
    left = {revision: count for revision, (count, _) in sorted(sizes.items()) if revision != newest}
    if removable <= 0 or not left:
        return {}
    # Old pods that are not ready go first: without them nothing is served less.
    for revision in left:
        count, ready = sizes[revision]
        gone = min(removable, count - ready)
        left[revision] -= gone
        removable -= gone
    surplus = sum(ready for _, ready in sizes.values()) - least
    for revision, count in left.items():
        gone = min(max(0, surplus), count)
        left[revision] -= gone
        surplus -= gone
    return {revision: count for revision, count in left.items() if count != sizes[revision][0]}


def proportional(sizes: Mapping[int, int], *, before: int, after: int, strategy: Rollout) -> Mapping[int, int]:
    """Return the number of pods of each revision when `spec.replicas` changes during a rollout: in proportion to it.

    Args:
        sizes: The pods of each revision that has some.
        before: `spec.replicas` before.
        after: `spec.replicas` from now on.

    Example:
        >>> from datetime import timedelta
        >>> proportional({0: 8, 1: 5}, before=10, after=15, strategy=Rollout(at=timedelta(), max_surge=3))
        {0: 11, 1: 7}
    """
    if len(sizes) == 1:
        return dict.fromkeys(sizes, after)
    most_before, most = before + bounds_of(strategy, before)[0], after + bounds_of(strategy, after)[0] if after else 0
    missing = most - sum(sizes.values())
    newest_first = missing > 0
    order = sorted(sizes, key=lambda revision: (-sizes[revision], -revision if newest_first else revision))
    found, added = dict[int, int](), 0
    for revision in order:
        size = sizes[revision]
        # Rounded half away from zero, of a number that is not negative.
        change = int(size * most / most_before + 0.5) - size if after else -size
        rest = missing - added
        change = min(change, rest) if missing > 0 else max(change, rest)
        found[revision] = size + change
        added += change
    found[order[0]] = max(0, found[order[0]] + missing - added)
    return found
