"""Objects that an owner controls, for the functions of an operator that decide upon all of a kind."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ocf.cluster import DeleteOptions, ListOptions, Propagation
from ocf.cluster.protocol import Preconditions
from ocf.component.model.ownership import is_ending, uid_of
from ocf.component.status.results import DRY_RUN, Action, ResourceOutcome, outcome_attributes, resource_span
from ocf.concepts.tracing import annotate_span, spanning
from ocf.errors import ConfigError, ConflictError, NotFoundError, OcfError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.owner_references import controller_of

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component.model.ownership import Owner
    from ocf.concepts import Recorder

__all__ = ["Children"]

_log: Final = logging.getLogger("ocf.component")
# How often an object that changes all the time is read and decided upon again.
_TRIES: Final = 5


class Children:
    """The objects that the owner of a reconcile controls, of whatever name: `context.children`.

    Args:
        require_running: Raises an error if the owner is paused.
        is_dry_run: Returns whether a write of the reconcile is a dry run.

    Attributes:
        outcomes: What was deleted in this reconcile, in order.
    """

    def __init__(
        self,
        cluster: Cluster,
        owner: Owner,
        recorder: Recorder,
        require_running: Callable[[], None],
        *,
        is_dry_run: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._owner = owner
        self._recorder = recorder
        self._require_running = require_running
        self._is_dry_run = is_dry_run
        self.outcomes: Final[list[ResourceOutcome]] = []

    async def list(self, api_version: str, kind: str) -> tuple[Manifest, ...]:
        """List the objects of a kind that the owner controls, by the uid in their owner references.

        Those of an owner in a namespace are in its namespace, those of a cluster-scoped one anywhere. An operator reads
        them from an index of its cache, and reconciles the owner again when one of them changes, appears or goes. Those
        that are being deleted are among them; those that only another operator of the owner applies are not.

        Args:
            api_version: Group and version.

        Returns:
            The objects, ordered by namespace and name.

        Raises:
            ConfigError: If the owner is in a namespace and the kind is cluster-scoped: it cannot control such objects.
            ApiError: If the objects cannot be read; `NoKindMatchError` if the API server does not serve the kind.

        Example:
            >>> import asyncio
            >>> from ocf.component import reconciling
            >>> from ocf_server import CustomKind, EmbeddedCluster
            >>> corner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}}
            >>> async def names() -> list[str]:
            ...     cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop", namespaced=False)])
            ...     owner = await cluster.create(corner, field_manager="demo")
            ...     reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "controller": True}
            ...     mine = {"ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}]}
            ...     for name, more in (("a", mine), ("b", {})):
            ...         manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **more}}
            ...         await cluster.create(manifest, field_manager="demo")
            ...     async with reconciling(owner, cluster) as context:
            ...         return [one["metadata"]["name"] for one in await context.children.list("v1", "Namespace")]
            >>> asyncio.run(names())
            ['a']
        """
        owner, home = self._owner, self._owner.key.namespace
        if home and not await self._cluster.is_namespaced(api_version, kind):
            raise ConfigError(
                f"{owner.key} is in a namespace, so it controls no {api_version} {kind}, which is cluster-scoped: list "
                "them with context.cluster.list"
            )
        options = ListOptions(namespace=home, controller=owner.uid)
        found = await self._cluster.list(api_version, kind, options)
        # A cluster of the user's own may not know the option.
        return tuple(live for live in found.selected_by(options).items if not self._other_operator(live))

    async def delete(
        self,
        child: Manifest,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        when: Callable[[Manifest], bool] | None = None,
    ) -> bool:
        """Delete an object that the owner controls, in the version that was read, and post an event on the owner.

        Args:
            child: The object as `list` returned it.
            propagation: `BACKGROUND` deletes its dependents after it, `FOREGROUND` before it, so that it stays until
                the pods of a Job, for example, are gone; `ORPHAN` keeps them.
            when: Decides again, with the object as it is then, if it has changed since it was read. Without it, an
                object that has changed is an error, and the next reconcile decides.

        Returns:
            Whether the deletion began here: False if the object is gone, is being deleted, or is kept by `when`.

        Raises:
            ConfigError: If the owner does not control the object, or only another operator of the owner applies it, or
                `when` returns no bool; nothing is deleted then.
            ReconcileError: If the owner is paused, or the API server refuses the deletion.
        """
        self._require_running()
        self._require_child(child)
        with spanning(resource_span, ObjectKey.of(child)):
            outcome = await self._delete(child, propagation, when)
            annotate_span(outcome_attributes, outcome)
        self.outcomes.append(outcome)
        return outcome.action is Action.DELETED

    async def _delete(
        self, live: Manifest, propagation: Propagation, when: Callable[[Manifest], bool] | None
    ) -> ResourceOutcome:
        key, uid = ObjectKey.of(live), uid_of(live)
        absent = ResourceOutcome(resource=str(key), action=Action.ABSENT)
        for tries_left in reversed(range(_TRIES)):
            if is_ending(live):
                return ResourceOutcome(resource=str(key), action=Action.UNCHANGED)
            try:
                await self._send(live, propagation)
                return self._deleted(key)
            except ConflictError as error:
                if when is None or not tries_left:
                    raise self._failed(key, "it was changed since it was read: ", error) from error
            except NotFoundError:
                return absent
            except OcfError as error:
                raise self._failed(key, "", error) from error
            again = await self._read_again(key)
            if again is None or uid_of(again) != uid or not self._is_child(again):
                return absent
            if not _answer(when, again):
                return ResourceOutcome(resource=str(key), action=Action.KEPT, detail="changed meanwhile")
            live = again
        raise AssertionError("unreachable: the last try returns or raises")

    async def _read_again(self, key: ObjectKey) -> Manifest | None:
        try:
            return await self._cluster.get(key)
        except NotFoundError:
            return None
        except OcfError as error:
            raise self._failed(key, "", error) from error

    async def _send(self, live: Manifest, propagation: Propagation) -> None:
        """Delete an object in the version that was read; a component that makes it again restores nothing by that."""
        key = ObjectKey.of(live)
        as_read = Preconditions(uid=uid_of(live), resource_version=live["metadata"].get("resourceVersion"))
        await self._cluster.delete(key, DeleteOptions(preconditions=as_read, propagation=propagation))
        for manager in ManagedFields.of(live).appliers:
            if self._is_ours(manager):
                self._cluster.apply_cache.forget_write(key, manager)

    def _deleted(self, key: ObjectKey) -> ResourceOutcome:
        note = f"Resource {key} deleted by operator {self._owner.operator}"
        _log.info(
            "%s%s",
            DRY_RUN if self._is_dry_run() else "",
            note,
            extra={"owner": str(self._owner.key), "resource": str(key)},
        )
        self._recorder.happened(self._owner.event(key, "ResourceDeleted", note, action="Delete"))
        return ResourceOutcome(resource=str(key), action=Action.DELETED, writes=1, detail="child deleted")

    def _failed(self, key: ObjectKey, why: str, error: OcfError) -> ReconcileError:
        problem = f"failed to delete resource {key}: {why}{error}"
        return ReconcileError(self._owner.operator, problem, resource=str(key))

    def _is_child(self, live: Manifest) -> bool:
        controller = controller_of(live)
        return controller is not None and controller.uid == self._owner.uid

    def _is_ours(self, manager: str) -> bool:
        return manager.startswith(f"{self._owner.operator}/")

    def _require_child(self, child: Manifest) -> None:
        key, owner = ObjectKey.of(child), self._owner
        if not self._is_child(child):
            raise ConfigError(
                f"{key} is not deleted: {owner.key} does not control it; pass what context.children lists"
            )
        other = self._other_operator(child)
        if other:
            raise ConfigError(f'{key} is not deleted: operator "{other}" of {owner.key} applies it')

    def _other_operator(self, live: Manifest) -> str:
        """Return the name of another operator of the owner that applies an object which this one does not apply."""
        appliers = ManagedFields.of(live).appliers
        if any(map(self._is_ours, appliers)):
            return ""
        return next(filter(None, map(self._owner.other_operator_of, appliers)), "")


def _answer(when: Callable[[Manifest], bool], live: Manifest) -> bool:
    """Return what the author's function decides; an answer that is no bool, a coroutine for example, is an error."""
    found: object = when(live)
    if inspect.iscoroutine(found):
        found.close()
    if not isinstance(found, bool):
        raise ConfigError(
            f"{ObjectKey.of(live)} is not deleted: `when` must be a plain function that returns True or False, and "
            f"returned a value of type {type(found).__name__}"
        )
    return found
