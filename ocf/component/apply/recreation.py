"""Recreation of an object: a field of it cannot be changed or must not be, or it is another run of a task.

The API server has no reason of its own for a field that cannot be changed: the pod template of a Job, the spec of a
Pod, a selector and a `roleRef` are rejected like any invalid value, and only the text of a cause differs.

Two processes that insist on different values, such as two versions of an operator, would delete the object of each
other for ever. So the recreation of an object is delayed like a write that another writer reverts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import Propagation
from ocf.cluster.retry import MOST_TRIES
from ocf.component.apply.apply_result import ApplyResult
from ocf.component.apply.deleter import OwnedObjectDeleter, kept_dependents
from ocf.component.model.ownership import finalizers_of, is_ending, uid_of
from ocf.component.model.resource_options import Conflicts
from ocf.component.model.write_backoff import record_revert, wait, written
from ocf.concepts import ApplyOperation
from ocf.concepts.recorder import Why
from ocf.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    InvalidError,
    ManifestError,
    NotFoundError,
    OcfError,
    ReconcileError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.json_equality import equal_json
from ocf.objects.paths import get_field
from ocf.objects.selectors import LabelSelector

if TYPE_CHECKING:
    from datetime import timedelta

    from ocf.component.context import ReconcileContext
    from ocf.component.model.resource_options import EffectiveOptions
    from ocf.component.status.results import Drift

__all__ = [
    "ANOTHER_RUN",
    "IMMUTABLE",
    "Cause",
    "Recreation",
    "immutable_fields",
    "named_cause",
    "orphaning_problem",
    "recreates_after",
    "waiting_text",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an object is recreated.

    Args:
        text: As it follows "because".
        dry_run: Whether a dry run of the create comes before the delete.
        propagation: What happens to the dependents of the object; None for what its resource says.
        keeps_conflicts: Whether fields of other field managers prevent it if the resource must not take them.
    """

    text: str
    dry_run: bool = True
    propagation: Propagation | None = None
    keeps_conflicts: bool = False


IMMUTABLE: Final = Cause("a changed field is immutable")
# Two runs never overlap.
ANOTHER_RUN: Final = Cause("it is another run of the task", propagation=Propagation.FOREGROUND)

_ABSENT: Final = object()
_REPLICAS: Final = ("spec", "replicas")
_CHANGED_WITH_STATUS: Final = frozenset({"managedFields", "resourceVersion"})
# The API server sets one of them for a delete with that policy, and the garbage collector removes it.
_HOLDERS: Final = {
    "foregroundDeletion": "the garbage collector deletes its dependents first, and waits for their finalizers",
    "orphan": "the garbage collector orphans its dependents first",
}
# Texts of the validation of Kubernetes 1.36, and that of a transition rule of a custom kind without a message, which
# quotes the rule. The addresses of a Service keep the family of the first one.
_TEXTS: Final = re.compile(
    r"immutable|may not change|may not be changed|cannot be changed|cannot change|for fields other than"
    r"|failed rule: .*oldSelf|expected an IPv[46] value as indicated by",
    re.IGNORECASE,
)


class Recreation:
    """Deletes an object of a component, so that a later reconcile creates the desired one in its place.

    Args:
        component: Name of the component.
        context: The reconcile of the owner.
        live: The object.
        desired: The object that is created in its place.
        digest: Digest of the desired object.
        options: The options of its resource.
    """

    def __init__(
        self,
        component: str,
        context: ReconcileContext,
        live: Manifest,
        desired: Manifest,
        digest: bytes,
        *,
        options: EffectiveOptions,
    ) -> None:
        self._deleter = OwnedObjectDeleter(component, context)
        self._cluster = context.cluster_of(component)
        self._elapsed = context.elapsed
        self._manager = context.owned_by.field_manager(component)
        self._memory = f"{self._manager}/recreated"
        self._options = options
        self._live = live
        self._key = ObjectKey.of(live)
        self._desired = desired
        self._digest = digest

    async def begin(self, cause: Cause, reasons: tuple[Drift, ...] = ()) -> ApplyResult:
        """Delete the object, unless that waits; the result has a message about what is waited for.

        Args:
            cause: Why it is recreated.
            reasons: The drift that was found.

        Raises:
            ConfigError: If it does not belong to the component, or its pods would be orphaned for good.
            OcfError: If the API server would not accept the new object, or the delete fails; then nothing is deleted.
        """
        waiting = waiting_text(self._live, cause.text)
        result = ApplyResult(self._live, ApplyOperation.NONE, Why.RECREATING, 0, reasons, waiting=waiting)
        if is_ending(self._live):
            return result
        rest = self._held_back()
        if rest is not None:
            waiting = f"{self._key} is replaced repeatedly by another client, and is created again later"
            return result._replace(why=Why.BACKING_OFF, retry_after=rest, waiting=waiting)
        await self.require_possible(cause)
        propagation = self._propagation(cause)
        await self._delete_as_judged(propagation)
        cache = self._cluster.apply_cache
        last = cache.last_write(self._key, self._memory)
        cache.note_write(self._key, self._memory, written(last, self._digest, self._elapsed))
        why = reasons[0].why if reasons else Why.CHANGED
        because = f"to be created again, because {cause.text}{kept_dependents(propagation)}"
        return result._replace(why=why, writes=1, deleted_because=because)

    def _held_back(self) -> timedelta | None:
        cache = self._cluster.apply_cache
        last = record_revert(cache.last_write(self._key, self._memory), self._digest, self._elapsed)
        if last is not None:
            cache.note_write(self._key, self._memory, last)
        return wait(last, self._digest, self._elapsed)

    def _propagation(self, cause: Cause) -> Propagation:
        return cause.propagation or self._options.propagation

    async def require_possible(self, cause: Cause) -> None:
        """Raise the errors of `begin` for an object that must not be deleted, or could not be created again."""
        propagation = self._propagation(cause)
        kept = self._deleter.reason_to_keep(self._live)
        if not kept and propagation is Propagation.ORPHAN:
            kept = orphaning_problem(self._live, self._desired)
        if kept:
            raise ConfigError(f"{self._key} is not deleted to be created again: {kept}")
        if cause.keeps_conflicts and self._options.on_conflict is Conflicts.FAIL:
            with suppress(InvalidError):
                await self._cluster.apply(self._desired, field_manager=self._manager, dry_run=True)
        if cause.dry_run:
            # The API server validates an object before it looks for one of the same name, so it accepts the new one.
            with suppress(AlreadyExistsError):
                await self._cluster.create(self._desired, field_manager=self._manager, dry_run=True)

    async def _delete_as_judged(self, propagation: Propagation) -> None:
        """Delete the object; the controller of a workload may have changed its status meanwhile, and nothing else."""
        live = self._live
        for tries_left in reversed(range(MOST_TRIES)):
            try:
                return await self._deleter.delete(live, propagation)
            except ReconcileError as error:
                if not (tries_left and isinstance(error.__cause__, ConflictError)):
                    raise
                try:
                    again = await self._cluster.get(self._key)
                except NotFoundError:
                    return None
                if _without_status(again) != _without_status(live):
                    raise
                live = again
        raise AssertionError("unreachable: the last try returns or raises")


def _without_status(live: Manifest) -> Manifest:
    metadata = {name: value for name, value in live["metadata"].items() if name not in _CHANGED_WITH_STATUS}
    return {**live, "metadata": metadata, "status": None}


def waiting_text(live: Manifest, why: str = "") -> str:
    """Return the message about an object that is created again once it is deleted, and what still holds it.

    Example:
        >>> ending = {"deletionTimestamp": "2026-01-31T12:00:00Z", "finalizers": ["example.com/hold"], "name": "web"}
        >>> waiting_text({"apiVersion": "v1", "kind": "Pod", "metadata": ending}).partition(" to be deleted; ")[2]
        'finalizer example.com/hold holds it until its controller, or a user if there is none any more, removes it'
    """
    because = f", because {why}" if why else ""
    holders = _holders(finalizers_of(live)) if is_ending(live) else ()
    return "; ".join((f"waiting for {ObjectKey.of(live)} to be deleted{because}", *holders))


def _holders(finalizers: Sequence[str]) -> Iterator[str]:
    yield from (text for name, text in _HOLDERS.items() if name in finalizers)
    others = sorted(set(finalizers) - _HOLDERS.keys())
    if others:
        yield (
            f"finalizer {others[0]} holds it until its controller, or a user if there is none any more, removes it"
            if len(others) == 1
            else f"finalizers {', '.join(others)} hold it until their controllers, or a user, remove them"
        )


def named_cause(
    reasons: Iterable[Drift], names: Iterable[str], desired: Manifest, live: Manifest | None
) -> Cause | None:
    """Return why an object is recreated instead of changed, because a named field differs; None if none does.

    Nothing is asked with a dry run if only named fields differ.

    Args:
        reasons: What differs.
        names: Fields as text. As keys may have dots, `metadata.labels.example.com/run`, a text fits the longest key.

    Example:
        >>> from ocf.component.status.results import Drift
        >>> reasons = [Drift("metadata.labels.example.com/run", Why.CHANGED, "2", "1")]
        >>> named_cause(reasons, ["metadata.labels.example.com/run"], {}, {})
        Cause(text='metadata.labels.example.com/run differs', dry_run=False, propagation=None, keeps_conflicts=True)
    """
    found = list(reasons)
    named = {name: _value_at(desired, name) for name in names} if live is not None else {}
    changed = [
        name for name, value in named.items() if any(_differs_at(drift, name, value, live or {}) for drift in found)
    ]
    if not changed:
        return None
    covered = all(any(_is_at(drift.path, name, named[name]) for name in changed) for drift in found)
    return Cause(
        f"{' and '.join(changed)} {'differs' if len(changed) == 1 else 'differ'}",
        dry_run=not covered,
        keeps_conflicts=True,
    )


def _differs_at(drift: Drift, name: str, value: Any, live: Manifest) -> bool:
    """Return whether a difference is one of a named field: of the field, of one below, or of what it is part of."""
    if _is_at(drift.path, name, value):
        # What only another field manager owns need not differ.
        return drift.why is not Why.NOT_OWNED or not equal_json(drift.sent, drift.stored)
    if not name.startswith(f"{drift.path}."):
        return False
    if drift.why is Why.NO_LONGER_DECLARED:
        return _value_at(live, name) is not _ABSENT
    rest = name.removeprefix(f"{drift.path}.")
    sent = _value_at(drift.sent, rest)
    return sent is not _ABSENT and not equal_json(sent, _value_at(drift.stored, rest))


def _is_at(path: str, name: str, value: Any) -> bool:
    """Return whether a path is that of a named field with this value, or of a part of it."""
    return path == name or (isinstance(value, dict | list) and path.startswith((f"{name}.", f"{name}[")))


def _value_at(value: Any, name: str) -> Any:
    """Return the value of a field whose keys may have dots."""
    fitting = [key for key in value if f"{name}.".startswith(f"{key}.")] if isinstance(value, dict) else []
    if not fitting:
        return _ABSENT
    key = max(fitting, key=len)
    return value[key] if key == name else _value_at(value[key], name.removeprefix(f"{key}."))


def orphaning_problem(live: Manifest, desired: Manifest) -> str:
    """Return why the new object would not keep the pods of the existing one; empty if it would, or has none.

    Example:
        >>> def workload(app):
        ...     template = {"metadata": {"labels": {"app": app}}}
        ...     return {"metadata": {}, "spec": {"selector": {"matchLabels": {"app": app}}, "template": template}}
        >>> orphaning_problem(workload("web"), workload("shop")).partition(",")[0]
        'its selector would be app=shop'
        >>> orphaning_problem(workload("web"), workload("web"))
        ''
    """
    labels = get_field(live, ("spec", "template", "metadata", "labels"))
    count = get_field(live, _REPLICAS)
    if isinstance(count, int) and count > 1 and get_field(desired, _REPLICAS) is None:
        return (
            f"its spec.replicas is {count}, and the resource sends none, so the new object would begin with the "
            f"default and delete the other pods: declare the number and switch its autoscaler off until it is "
            f"replaced, or register it with another propagation than {Propagation.ORPHAN}"
        )
    declared, existing = (_selector(each) for each in (desired, live))
    if not labels or existing is None:
        return ""
    if declared is not None:
        if declared.matches(labels):
            return ""
        what = f"its selector would be {declared}"
    elif uid_of(live) and uid_of(live) in labels.values():
        what = "its selector is generated anew"
    else:
        return ""
    pods = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return (
        f"{what}, which does not match the existing pods ({pods}), so they would run on beside the new ones: keep "
        f"their labels, or register it with another propagation than {Propagation.ORPHAN}"
    )


def _selector(manifest: Manifest) -> LabelSelector | None:
    """Return the selector of a workload; None if it has none, or one of another form."""
    selector = get_field(manifest, ("spec", "selector"))
    try:
        return LabelSelector.of(selector) if isinstance(selector, dict) else None
    except ManifestError:
        return None


def immutable_fields(error: OcfError) -> tuple[str, ...]:
    """Return the fields of a rejected update that cannot be changed; none if anything else is invalid as well.

    Example:
        >>> from ocf.errors import StatusCause
        >>> causes = (StatusCause("FieldValueInvalid", "Invalid value: {}: field is immutable", "spec.selector"),)
        >>> immutable_fields(InvalidError("invalid", causes=causes))
        ('spec.selector',)
    """
    if not isinstance(error, InvalidError) or not all(_TEXTS.search(cause.message) for cause in error.causes):
        return ()
    return tuple(dict.fromkeys(cause.field for cause in error.causes))


def recreates_after(error: OcfError, options: EffectiveOptions) -> bool:
    """Return whether an object whose update is rejected with this error is recreated."""
    return options.recreate_on_immutable_change and bool(immutable_fields(error))
