"""Decisions about an owner that is, or may be, deleted: functions of its manifest, without a cluster.

Two finalizers of ours hold an owner while something is left that Kubernetes does not delete: one for external
resources, which `on_delete` deletes, and one for cluster-scoped objects of a namespaced owner, which the garbage
collector leaves behind, and for objects that were held for the clean-up and have to be released. Each is removed when
its part is done, so a part that is done is not done again, and where only one part exists, the other one cannot hold
the owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from ocf.component.model.former_managers import pattern_problems
from ocf.component.model.ownership import finalizers_of, is_ending
from ocf.objects import Manifest
from ocf.objects.manifest import PREFIX
from ocf.objects.name_validation import qualified_name
from ocf.objects.paths import get_field

__all__ = [
    "SKIP_CLEANUP",
    "CleanupPending",
    "CleanupReason",
    "DeletionOrder",
    "DeletionStep",
    "FinalizerNames",
    "cleanup_finalizer",
    "condition_type",
    "decide",
    "external_finalizer",
    "finalizer_problems",
    "is_held",
    "is_of_framework",
]

# Those of the garbage collector, which no operator sets or removes.
_OF_KUBERNETES: Final = frozenset({"foregroundDeletion", "orphan"})

SKIP_CLEANUP: Final = f"{PREFIX}/skip-cleanup"
"""Annotation of an owner: with the value `true`, its deletion does not wait for a clean-up."""


class DeletionOrder(StrEnum):
    """Order in which a deletion cleans up."""

    EXTERNAL_FIRST = "external first"
    """`on_delete` is called first. Objects that refer to the owner are deleted by Kubernetes: after the owner, or, in a
    foreground deletion and with the namespace, at the same time, unless they are held for the clean-up. The others are
    deleted after `on_delete` has succeeded."""
    COMPONENTS_FIRST = "components first"
    """The objects of the components are deleted, with their pods, and `on_delete` is called once they do not exist."""


class DeletionStep(StrEnum):
    """What the deletion state of an owner requires first."""

    HOLD = "hold"
    """It is not being deleted, and the finalizer for external resources must be set before anything is made."""
    RELEASE = "release"
    """It has the finalizer for external resources, and there is no `on_delete` any more."""
    RECONCILE = "reconcile"
    """It is not being deleted, and that finalizer is as it should be."""
    CLEAN_UP = "clean up"
    """It is being deleted, and a finalizer of ours holds it."""
    SKIP = "skip"
    """It is being deleted, a finalizer of ours holds it, and a user asked to skip the clean-up."""
    CLEANED = "cleaned"
    """It is being deleted, and no finalizer of ours holds it: nothing was made, or everything is cleaned up."""


class CleanupReason(StrEnum):
    """Reason of the condition `<operator>/CleanedUp`."""

    PENDING = "CleanupPending"
    """`on_delete` has not finished."""
    OBJECTS_REMAINING = "ObjectsRemaining"
    """Objects are being deleted."""
    ERROR = "Error"
    """A step failed; it is tried again."""
    SKIPPED = "CleanupSkipped"
    """A user asked to skip the clean-up, or there is no `on_delete` any more."""
    COMPLETED = "Completed"
    """Everything is deleted; another finalizer holds the owner."""


@dataclass(frozen=True, slots=True)
class CleanupPending:
    """Result of an `on_delete` that has not finished: it is called again, and the owner is held until then.

    Args:
        requeue_after: Time until the next call; an event may cause it earlier. An operator waits at least 100
            milliseconds.
        message: The progress, for the message of the condition `<operator>/CleanedUp`.

    Example:
        >>> CleanupPending(timedelta(seconds=10), "database shop is being dropped").message
        'database shop is being dropped'
    """

    requeue_after: timedelta
    message: str = ""


@dataclass(frozen=True, slots=True)
class FinalizerNames:
    """The names of the finalizers of one operator on its owners.

    Args:
        operator: Name of the operator.
        given: Name of the finalizer for external resources, as the author gives it; empty for that of the operator.
        former: Finalizers of a former operator, by name or pattern. They stand for the one for external resources.

    Example:
        >>> names = FinalizerNames("shops", "finalizer.shops.example.com", ("*.old.example.com/*",))
        >>> names.external, names.cleanup
        ('finalizer.shops.example.com', 'shops.ocf.dev/cleanup')
        >>> owner = {"metadata": {"finalizers": ["a.old.example.com/hold", "b.example.com/hold", "orphan"]}}
        >>> names.former_of(owner), names.own_of(owner)
        (('a.old.example.com/hold',), ())
    """

    operator: str
    given: str = ""
    former: tuple[str, ...] = ()

    @property
    def external(self) -> str:
        """The finalizer for external resources."""
        return self.given or external_finalizer(self.operator)

    @property
    def cleanup(self) -> str:
        """The finalizer for objects that the garbage collector leaves behind."""
        return cleanup_finalizer(self.operator)

    def former_of(self, owner: Manifest) -> tuple[str, ...]:
        """Return the former finalizers that an owner has; that of the operator is one if the author gives another."""
        replaced = {external_finalizer(self.operator)} - {self.external}
        current = {self.external, self.cleanup, *_OF_KUBERNETES}
        return tuple(
            name
            for name in finalizers_of(owner)
            if name in replaced or (name not in current and any(fnmatchcase(name, one) for one in self.former))
        )

    def external_of(self, owner: Manifest) -> tuple[str, ...]:
        """Return the finalizers of an owner that wait for `on_delete`."""
        return (*(name for name in finalizers_of(owner) if name == self.external), *self.former_of(owner))

    def own_of(self, owner: Manifest) -> tuple[str, ...]:
        """Return the finalizers of an owner that this operator has set, without those of a former one."""
        own = {self.external, self.cleanup, external_finalizer(self.operator)}
        return tuple(name for name in finalizers_of(owner) if name in own)

    def taken_from(self, other: FinalizerNames) -> tuple[str, ...]:
        """Return the finalizers of another operator that this one would take for its own or for former ones."""
        owner: Manifest = {"metadata": {"finalizers": [*dict.fromkeys((other.external, other.cleanup))]}}
        return (*self.own_of(owner), *self.former_of(owner))


def decide(owner: Manifest, names: FinalizerNames, *, external: bool) -> DeletionStep:
    """Return what the deletion state of an owner requires first.

    An owner that is being deleted cannot get a finalizer any more: the API server rejects it. So one that was deleted
    before its finalizer was set is not cleaned up, and does not have to be, because nothing was made for it. A former
    finalizer stands for the one that was not set.

    Example:
        >>> decide({"metadata": {"name": "corner"}}, FinalizerNames("shops"), external=True)
        <DeletionStep.HOLD: 'hold'>
    """
    held = bool(names.external_of(owner))
    if not is_ending(owner):
        if external:
            return DeletionStep.RECONCILE if names.external in finalizers_of(owner) else DeletionStep.HOLD
        return DeletionStep.RELEASE if held else DeletionStep.RECONCILE
    if not held and names.cleanup not in finalizers_of(owner):
        return DeletionStep.CLEANED
    if get_field(owner, ("metadata", "annotations", SKIP_CLEANUP)) == "true":
        return DeletionStep.SKIP
    return DeletionStep.CLEAN_UP if external or not held else DeletionStep.RELEASE


def finalizer_problems(operator: str, finalizer: str, former: Sequence[str]) -> Iterator[str]:
    """Yield why finalizers of an operator cannot be named in this way."""
    given: object = finalizer
    if not isinstance(given, str):
        yield f"finalizer must be a text, got {given!r:.60}"
    elif given in _OF_KUBERNETES:
        yield f'finalizer "{given}" is one of Kubernetes, which removes it itself: use a name with your own domain'
    elif is_of_framework(given) and given != external_finalizer(operator):
        yield f'finalizer "{given}" is a name that the framework uses itself: use a name with your own domain'
    elif given:
        yield from (f'finalizer "{given}": {problem}' for problem in qualified_name(given))
    option, example = "former_finalizers", "kopf.zalando.org/KopfFinalizerMarker"
    yield from pattern_problems(former, option=option, one="finalizer", example=example, separators="/.")
    names: object = former
    for one in names if isinstance(names, Iterable) else ():
        if isinstance(one, str) and one in _OF_KUBERNETES:
            yield f'{option}: "{one}" is one of Kubernetes, which removes it itself'


def is_of_framework(finalizer: str) -> bool:
    """Return whether a finalizer is one of those that the framework sets, for an operator of any name.

    Example:
        >>> [is_of_framework(name) for name in ("shops.ocf.dev/cleanup", "shops.ocf.dev/hold", "example.com/cleanup")]
        [True, True, False]
    """
    return finalizer.partition("/")[0].endswith(f".{PREFIX}")


def cleanup_finalizer(operator: str) -> str:
    """Return the finalizer that holds an owner until its objects without garbage collection are deleted.

    The operator is a label of its domain, so that every name of an operator gives a valid one.

    Args:
        operator: Name of the operator.

    Example:
        >>> cleanup_finalizer("shops")
        'shops.ocf.dev/cleanup'
    """
    return f"{operator}.{PREFIX}/cleanup"


def external_finalizer(operator: str) -> str:
    """Return the finalizer that holds an owner until the operator's `on_delete` has succeeded.

    Args:
        operator: Name of the operator.

    Example:
        >>> external_finalizer("shops")
        'shops.ocf.dev/cleanup-external'
    """
    return f"{cleanup_finalizer(operator)}-external"


def condition_type(operator: str) -> str:
    """Return the type of the condition of an owner whose deletion waits for the clean-up of an operator.

    Example:
        >>> condition_type("shops")
        'shops/CleanedUp'
    """
    return f"{operator}/CleanedUp"


def is_held(owner: Manifest) -> bool:
    """Return whether a controller holds an owner, and not only the garbage collector.

    Example:
        >>> [is_held({"metadata": {"finalizers": [name]}}) for name in ("foregroundDeletion", "finalizer.example.com")]
        [False, True]
    """
    return not _OF_KUBERNETES.issuperset(finalizers_of(owner))
