"""The objects of a database: a StatefulSet and a start configuration for each member, two Services, a password."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from ocf import component
from ocf.cluster import Propagation
from ocf.component import Component, Participation, ReconcileContext, Writes
from ocf.concepts import GuardStatus, StatusReport
from ocf.objects import Manifest
from ocf.primitives import configmap, pod, secret, service, statefulset
from tests.operators.primary.model import Database, Volume
from tests.operators.primary.roles import Roles, is_ready

__all__ = ["BeforeRestart", "component_of"]

BeforeRestart: TypeAlias = Callable[[Manifest, ReconcileContext], Awaitable[str | None]]

_DATABASE: Final = "primary.example.com/database"
_MEMBER: Final = "primary.example.com/member"
_ROLE: Final = "primary.example.com/role"
_PORT: Final = 5432


def component_of(
    database: Database, volume: Volume, roles: Roles, existing: Mapping[str, Manifest], before_restart: BeforeRestart
) -> Component:
    """Return the objects of a database.

    Args:
        volume: The volume of each member, as it was accepted.
        existing: The StatefulSets that exist, by the names of their members.
        before_restart: Called before the pod of a member is replaced.
    """
    name, spec = database.metadata.name, database.spec
    # What has failed is deleted; a suspended component deletes nothing, but must stop it.
    failed = () if spec.suspended else roles.failed
    can_follow = is_ready(existing.get(roles.primary)) and not roles.promoting
    waiting = [] if can_follow else [one for one in roles.replicas if one not in existing]
    members = [one for one in roles.members if one not in (*failed, *(waiting if spec.suspended else ()))]
    builder = (
        component.Builder("database", owner=database.key)
        .with_prune(while_blocked=True, propagation=Propagation.FOREGROUND)
        .with_grace_period(timedelta(seconds=spec.phase_seconds))
        .suspend(spec.suspended)
        .with_resource(_login(name), held_for_cleanup=True)
        .with_resource(service.Builder(_service(f"{name}-rw", {_MEMBER: roles.writable})))
        .with_resource(service.Builder(_service(f"{name}-ro", {_DATABASE: name, _ROLE: "replica"}, headless=True)))
    )
    for one in members:
        builder.with_resource(_configuration(one, name, roles))
        labels = {"metadata": {"name": f"{one}-0", "labels": {_ROLE: _role(one, roles)}}}
        builder.with_resource(
            pod.Builder(labels),
            writes=Writes.UPDATE_ONLY,
            ignore_if_absent=True,
            participation=Participation.AUXILIARY,
        )
    guard = _guard(roles.primary)
    made = {one: _member(one, database, volume) for one in members}
    started = [made[one].with_guard(guard) if one in waiting else made[one] for one in members]
    builder.with_rollout(started, before_update=before_restart)
    return builder.build()


def _guard(primary: str) -> Callable[[object], StatusReport[GuardStatus]]:
    return lambda _: StatusReport(GuardStatus.BLOCKED, f"waits for the primary {primary}")


def _role(member: str, roles: Roles) -> str:
    return "primary" if member == roles.primary else "replica"


def _login(name: str) -> secret.Builder:
    return secret.Builder({"metadata": {"name": f"{name}-login"}}).with_generated("password")


def _service(name: str, selector: Mapping[str, str], *, headless: bool = False) -> Manifest:
    address = {"clusterIP": "None"} if headless else {}
    return {"metadata": {"name": name}, "spec": {**address, "selector": {**selector}, "ports": [{"port": _PORT}]}}


def _configuration(member: str, database: str, roles: Roles) -> configmap.Builder:
    """Return what a member reads when it starts; a change of it restarts nothing."""
    role = _role(member, roles)
    follow = {} if role == "primary" else {"follow": f"{database}-rw:{_PORT}"}
    return configmap.Builder({"metadata": {"name": member}, "data": {"role": role, **follow}})


def _member(member: str, database: Database, volume: Volume) -> statefulset.Builder:
    name = database.metadata.name
    container: Manifest = {
        "name": "database",
        "image": database.spec.image,
        "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": f"{name}-login", "key": "password"}}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "start", "mountPath": "/start"}],
    }
    claim: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": volume.size}}}
    if volume.storage_class is not None:
        claim["storageClassName"] = volume.storage_class
    pods: Manifest = {"containers": [container], "volumes": [{"name": "start", "configMap": {"name": member}}]}
    spec = {
        "replicas": 1,
        "serviceName": f"{name}-ro",
        "selector": {"matchLabels": {_MEMBER: member}},
        "template": {"metadata": {"labels": {_DATABASE: name, _MEMBER: member}}, "spec": pods},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return statefulset.Builder({"metadata": {"name": member}, "spec": spec})
