"""Tasks that can run once: the key of a run in a label, and the time to live of its object.

A kind declares the field with which its objects expire. It is not part of the applied object: a component sets it once
the owner remembers the finished run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from ocf.feature import Mutation
from ocf.objects.field_errors import FieldError, forbidden
from ocf.objects.manifest import PREFIX
from ocf.objects.name_validation import label_value
from ocf.objects.paths import format_path, get_field
from ocf.primitives.builder import TaskBuilder
from ocf.primitives.kind import ModelT, MutatorT
from ocf.primitives.resource import TaskResource

if TYPE_CHECKING:
    from ocf.concepts import CompletionStatus
    from ocf.objects import Manifest
    from ocf.primitives.resource import Definition

__all__ = ["SingleRunBuilder", "SingleRunResource", "expiry_errors"]

_RUN: Final = f"{PREFIX}/run"
"""Label of an object whose task runs once: the key of its run."""
# Conditions of a Job (API reference, `JobStatus`) that end it for good.
_ENDS: Final = frozenset({"Complete", "Failed"})


def expiry_errors(path: tuple[str, ...], manifest: Manifest) -> Iterator[FieldError]:
    """Yield an error for a task that a controller would delete, so that the next reconcile would run it again."""
    if get_field(manifest, path) is not None:
        yield forbidden(
            format_path(path),
            "the finished object would be deleted, and the next reconcile would create it and run it again; set the "
            "time with run_once(key, ttl=...) of the builder, which remembers the finished run, or use a CronJob",
        )


class SingleRunResource(TaskResource[ModelT, MutatorT]):
    """A task that runs once for each key, if it has one.

    Args:
        definition: Its settings, as its builder has checked them.
        run_key: The key of its run; empty for a task that runs again whenever its object does not exist.
        expiry: The field of the time to live, and its value; None keeps the object.
    """

    def __init__(
        self,
        definition: Definition[ModelT, MutatorT, CompletionStatus],
        run_key: str = "",
        expiry: tuple[tuple[str, ...], int] | None = None,
    ) -> None:
        marked: tuple[Mutation[MutatorT], ...] = ()
        if run_key:
            marked = (Mutation("run-once", partial(_mark, run_key)),)
        super().__init__(replace(definition, mutations=(*definition.mutations, *marked)))
        self._run_key = run_key
        self._expiry = expiry

    @property
    def run_key(self) -> str:
        """The key of its run; empty for a task that runs again whenever its object does not exist."""
        return self._run_key

    @property
    def expiry(self) -> tuple[tuple[str, ...], int] | None:
        """The field of the time to live and its value, for the object of a finished run; None keeps it."""
        return self._expiry

    def run_of(self, live: Manifest) -> str:
        """Return the key of the run that a live object is; empty if it was created without one.

        Args:
            live: The object as the API server returned it.
        """
        return str(get_field(live, ("metadata", "labels", _RUN), ""))

    def has_finished(self, live: Manifest) -> bool:
        """Return whether the run has ended for good, with success or not.

        Args:
            live: The object as the API server returned it.
        """
        conditions = get_field(live, ("status", "conditions"), [])
        return any(one.get("type") in _ENDS and one.get("status") == "True" for one in conditions)


def _mark(run_key: str, mutator: Any) -> None:
    mutator.edit_object_metadata(lambda metadata: metadata.ensure_label(_RUN, run_key))


class SingleRunBuilder(TaskBuilder[ModelT, MutatorT]):
    """Builds a task that can run once."""

    expiry_field: tuple[str, ...]
    """The field of the kind with the time to live in seconds."""

    _run: tuple[str, timedelta | None] | None = None

    def run_once(self, key: str, *, ttl: timedelta | None = None) -> Self:
        """Run the task once, and again only if the key changes.

        A run that has finished, with success or not, is remembered in a condition of the owner, of the type
        `<operator>/Completed_<namespace>_<name>_<key>`. While the condition is there, the object is not created again,
        whichever client deletes it. The object of another key is deleted with its pods, also while it runs, and created
        again.

        Args:
            key: The key of the run, such as the version that is migrated to: a label value.
            ttl: The time after which the object of a finished run is deleted, `ttlSecondsAfterFinished` of a Job; it is
                set once the finished run is remembered. None, the default, keeps the object.
        """
        self._run = (key, ttl)
        return self

    def build(self) -> SingleRunResource[ModelT, MutatorT]:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(self._resource)

    def _resource(
        self, definition: Definition[ModelT, MutatorT, CompletionStatus]
    ) -> SingleRunResource[ModelT, MutatorT]:
        key, ttl = self._run or ("", None)
        expiry = None if ttl is None else (self.expiry_field, int(ttl.total_seconds()))
        return SingleRunResource(definition, key, expiry)

    def _problems(self) -> Iterator[str]:
        yield from super()._problems()
        if self._run is None:
            return
        key: object = self._run[0]
        ttl: object = self._run[1]
        if not (isinstance(key, str) and key):
            yield f"the key of run_once must be a text that is not empty, got {key!r:.60}"
        else:
            yield from (
                f"the key of run_once must be a label value, got {key!r:.80}: {one}" for one in label_value(key)
            )
        if ttl is not None and not (isinstance(ttl, timedelta) and ttl >= timedelta(0)):
            yield f"the ttl of run_once must be a timedelta that is not negative, got {ttl!r:.60}"
