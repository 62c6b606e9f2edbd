"""The operator of databases: it keeps one primary, and decides who takes its place.

Whatever is decided is stored in the status before it is done. What is done in the servers is asked for first, so that
a process that dies in between promotes no second member, and none twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from ocf import component
from ocf.cluster import Cluster
from ocf.component import CleanupPending, Component, ReconcileContext
from ocf.objects import Manifest, write_model
from ocf.runtime.operator import Operator, OwnerType
from tests.operators.primary.model import Database, Volume
from tests.operators.primary.objects import component_of
from tests.operators.primary.roles import Roles, is_ready
from tests.operators.primary.servers import Servers

__all__ = ["databases"]

_STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
_CONFIG_MAP: Final = ("v1", "ConfigMap")
_STORAGE_CLASS: Final = ("storage.k8s.io/v1", "StorageClass")
_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_AVAILABLE: Final = "PrimaryAvailable"
_PROMOTING: Final = "Promoting"
_POLL: Final = timedelta(seconds=10)


def databases(servers: Servers) -> Operator[Database]:
    """Return the operator of databases with the given servers."""
    reconciler = _Reconciler(servers)
    return Operator(
        name="databases",
        owner=OwnerType.of(Database),
        components=reconciler.components,
        on_delete=reconciler.back_up,
        published_conditions=[_AVAILABLE],
        abnormal_conditions=[_PROMOTING],
        reads=[_STATEFUL_SET, _CONFIG_MAP, _STORAGE_CLASS],
        patches_owner=True,
    )


@dataclass(frozen=True, slots=True)
class _Reconciler:
    """The functions of the operator."""

    servers: Servers

    async def components(self, database: Database, context: ReconcileContext) -> Component:
        """Decide upon the roles, store them, and return the objects."""
        found = {one["metadata"]["name"]: one for one in await context.children.list(*_STATEFUL_SET)}
        roles = Roles.read(database.metadata.name, context.status, await _existing_roles(context))
        volume = database.spec.volume
        if not context.is_ending:
            volume = await _accepted_volume(database, context)
            if database.spec.suspended:
                _suspend_time(context)
            else:
                roles = await self._with_a_primary(database, context, roles, found)
            roles = await self._sized(database, context, roles)
        return component_of(database, volume, roles, found, self._before_restart)

    async def back_up(self, database: Database, context: ReconcileContext, _: Cluster) -> CleanupPending | None:
        """Make the final backup before the objects of a database go."""
        primary = Roles.read(database.metadata.name, context.status, {}).primary
        try:
            if await self.servers.back_up(primary, f"final-{database.metadata.uid}"):
                return None
        except ConnectionError:
            return CleanupPending(
                _POLL, f"{primary} cannot be reached for the final backup: is the database suspended?"
            )
        return CleanupPending(_POLL, f"the final backup of {primary} is not complete")

    async def _before_restart(self, live: Manifest, _: ReconcileContext) -> str | None:
        try:
            return await self.servers.why_not_restart(live["metadata"]["name"])
        except ConnectionError:
            return "it cannot be reached, and is asked again"

    async def _sized(self, database: Database, context: ReconcileContext, roles: Roles) -> Roles:
        """Store the roles, with as many replicas as the spec wants; while a member is promoted, the others stay."""
        count = len(roles.replicas) if roles.promoting else database.spec.replicas
        last = roles.last_index
        roles = replace(roles, last_index=last + max(0, count - len(roles.replicas)))
        context.status.update(roles.to_status())
        try:
            await component.stored_names(
                context,
                "replicas",
                count=count,
                name=lambda number: f"{database.metadata.name}-{last + 1 + number}",
                remove=self.servers.least_useful,
            )
        except ConnectionError:
            context.requeue_after(_POLL)
        await context.write_status()
        return replace(roles, replicas=tuple(context.status["replicas"]))

    async def _with_a_primary(
        self, database: Database, context: ReconcileContext, roles: Roles, found: Mapping[str, Manifest]
    ) -> Roles:
        """Replace a primary that is lost, or that a user wants to be replaced."""
        roles = await _asked(database, context, roles)
        is_lost = _is_lost(database, context, roles, found)
        if is_lost and roles.primary not in roles.failed:
            # A replica that changes places with the primary already takes it alone.
            candidate = roles.promoting if roles.promoting in roles.replicas else await self._candidate(roles, found)
            if candidate is None:
                note = f"{roles.primary} is not available, and no replica can be promoted"
                context.set_condition(_PROMOTING, status="True", reason="NoCandidate", message=note)
                context.requeue_after(_POLL)
                return roles
            note = f"{roles.primary} is not available: {candidate} takes its place"
            roles = await _stored(context, roles.failing_over(candidate), "FailoverStarted", note)
        if roles.promoting:
            return await self._promoted(database, context, roles, found)
        context.remove_condition(_PROMOTING)
        return roles

    async def _candidate(self, roles: Roles, found: Mapping[str, Manifest]) -> str | None:
        names = roles.candidates([*found])
        try:
            return await self.servers.most_advanced(names) if names else None
        except ConnectionError:
            return None

    async def _promoted(
        self, database: Database, context: ReconcileContext, roles: Roles, found: Mapping[str, Manifest]
    ) -> Roles:
        """Promote the member that was chosen, once those that have failed are gone."""
        limit = timedelta(seconds=database.spec.phase_seconds)
        stopping = [one for one in roles.failed if one in found]
        note = f"waits until {', '.join(stopping)} is gone" if stopping else f"{roles.promoting} is promoted"
        context.set_condition(_PROMOTING, status="True", reason="Stopping" if stopping else "Asking", message=note)
        if context.dry_run or (stopping and not context.timed_out(_PROMOTING, limit)):
            return roles
        try:
            if not roles.failed and roles.primary != roles.promoting and await self.servers.is_primary(roles.primary):
                await self.servers.demote(roles.primary)
            if not await self.servers.is_primary(roles.promoting):
                await self.servers.promote(roles.promoting)
        except ConnectionError:
            return await self._not_promoted(context, roles, found, 2 * limit)
        note = f"{roles.promoting} has taken the place of {roles.primary}"
        roles = await _stored(context, roles.promoted(), "Promoted", note)
        _is_lost(database, context, roles, found)
        return roles

    async def _not_promoted(
        self, context: ReconcileContext, roles: Roles, found: Mapping[str, Manifest], limit: timedelta
    ) -> Roles:
        """Try again, and choose another member where that takes too long."""
        note = f"{roles.promoting} could not be promoted yet: a server cannot be reached"
        context.set_condition(_PROMOTING, status="True", reason="ServerUnreachable", message=note)
        context.requeue_after(_POLL)
        if not context.timed_out(_PROMOTING, limit):
            return roles
        if not roles.failed:
            note = f"{roles.promoting} could not be promoted: {roles.primary} stays the primary"
            return await _stored(context, roles.switching_over(roles.primary), "PromotionFailed", note)
        candidate = await self._candidate(roles, found)
        if candidate is None:
            return roles
        note = f"{roles.promoting} could not be promoted: {candidate} takes its place"
        return await _stored(context, roles.failing_over(candidate), "PromotionFailed", note)


def _is_lost(database: Database, context: ReconcileContext, roles: Roles, found: Mapping[str, Manifest]) -> bool:
    """Report whether the primary is available; return whether it has not been for too long."""
    is_up = is_ready(found.get(roles.primary))
    limit = timedelta(seconds=database.spec.failover_seconds)
    reason, note = (
        ("Available", f"{roles.primary} is ready") if is_up else ("NotReady", f"{roles.primary} is not ready")
    )
    context.set_condition(_AVAILABLE, status=str(is_up), reason=reason, message=note)
    if is_up or not context.timed_out(_AVAILABLE, limit, status="False"):
        return False
    note = f"{roles.primary} has not been ready for {database.spec.failover_seconds} seconds"
    context.set_condition(_AVAILABLE, status="False", reason="TimedOut", message=note)
    return True


def _suspend_time(context: ReconcileContext) -> None:
    """Let the time limits begin again when the database is resumed: it is down on purpose."""
    note = "the database is suspended"
    context.set_condition(_AVAILABLE, status="Unknown", reason="Suspended", message=note)
    if context.status.get("promoting"):
        context.set_condition(_PROMOTING, status="Unknown", reason="Suspended", message=note)


async def _asked(database: Database, context: ReconcileContext, roles: Roles) -> Roles:
    """Handle a change of the field with which a user asks for a promotion, once."""
    wanted = database.spec.promote
    async with context.handling("handledPromote", wanted) as changed:
        if not changed or wanted in (None, roles.primary):
            return roles
        if roles.promoting or wanted not in roles.replicas:
            why = f"{roles.promoting} is being promoted" if roles.promoting else "it is not a replica"
            context.event("PromotionRefused", f"{wanted} is not promoted: {why}", warning=True)
            return roles
        roles = roles.switching_over(wanted)
        context.status.update(roles.to_status())
        context.event("SwitchoverStarted", f"{wanted} changes places with {roles.primary}")
    return roles


async def _stored(context: ReconcileContext, roles: Roles, reason: str, note: str) -> Roles:
    """Store roles before anything is done because of them, with an event; the time limits begin again."""
    context.status.update(roles.to_status())
    context.remove_condition(_AVAILABLE)
    context.remove_condition(_PROMOTING)
    context.event(reason, note, action="Promote", warning=reason != "Promoted")
    await context.write_status()
    return roles


async def _existing_roles(context: ReconcileContext) -> dict[str, str]:
    """Return the roles that the members have by their configuration, for a database whose status was lost."""
    if "primary" in context.status:
        return {}
    found = await context.children.list(*_CONFIG_MAP)
    return {one["metadata"]["name"]: one["data"]["role"] for one in found}


async def _accepted_volume(database: Database, context: ReconcileContext) -> Volume:
    """Return the volume of the members: the one of the beginning, to which a later change of the spec is set back."""
    wanted, stored = database.spec.volume, context.status.get("volume")
    volume = Volume.model_validate(stored) if stored else await _with_default_class(wanted, context)
    if volume != wanted:
        fields = {"size": volume.size, "storageClass": volume.storage_class}
        if stored:
            context.event("ChangeUndone", "spec.volume cannot be changed, and is set back", warning=True)
        await context.patch_owner({"spec": {"volume": fields}})
    context.status["volume"] = write_model(volume)
    return volume


async def _with_default_class(volume: Volume, context: ReconcileContext) -> Volume:
    if volume.storage_class is not None:
        return volume
    classes = (await context.cluster.list(*_STORAGE_CLASS)).items
    default = [one for one in classes if (one["metadata"].get("annotations") or {}).get(_IS_DEFAULT) == "true"]
    return volume.model_copy(update={"storage_class": default[0]["metadata"]["name"]}) if default else volume
