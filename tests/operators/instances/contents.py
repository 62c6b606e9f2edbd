"""The operators of folders, sources and dashboards: each is in the servers of the instances that it selects."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from aiohttp import ClientSession
from kubernetes.client import V1ConfigMap, V1Secret
from pydantic import SecretStr

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.errors import ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, external, secret, unstructured
from ocf.runtime.operator import Operator, OwnerType, Relation, any_of, field_changed, labels_changed, spec_changed
from tests.operators.instances.instances import SECRET, SESSION
from tests.operators.instances.model import API_VERSION, Content, Dashboard, Entry, Folder, Instance, Source
from tests.operators.instances.servers import (
    Boards,
    BoardState,
    Folders,
    FolderState,
    Nothing,
    Pages,
    Server,
    Sources,
    SourceState,
    instance_key,
    place_of,
    server_of,
)

__all__ = [
    "Places",
    "dashboard_component",
    "dashboards",
    "folder_component",
    "folders",
    "source_component",
    "sources",
    "uid_of",
]

ContentT = TypeVar("ContentT", Folder, Source, Dashboard)
TextT = TypeVar("TextT", bound=str | bytes)

_INSTANCE: Final = (API_VERSION, Instance.kind)
_FOLDER: Final = (API_VERSION, Folder.kind)
_TEXT: Final = Data[str]("content")
_PASSWORD: Final = Data[str]("password")
_PLACED: Final = "Placed"
# What another client has put into a server in place of a thing blocks it, and is not watched.
_POLL: Final = timedelta(minutes=1)


def _relation(kind: str) -> Relation:
    return Relation((API_VERSION, kind), _INSTANCE, "spec.instances", across_namespaces="spec.everywhere")


_FOLDERS: Final = _relation(Folder.kind)


@dataclass(frozen=True, slots=True)
class Places:
    """Where a thing is.

    Args:
        targets: The instances in which it is to be.
        servers: The servers of these, and of those in which it is still; None for one without credentials. One that
            is missing was never ready, or is gone.
        folder: The folder of a dashboard; None if it has none, or that does not exist.
    """

    targets: tuple[str, ...]
    servers: Mapping[str, Server | None]
    folder: Folder | None = None


def folders() -> Operator[Folder]:
    """Return the operator of folders."""
    return _operator("folders", Folder, folder_component)


def sources() -> Operator[Source]:
    """Return the operator of sources."""
    return _operator("sources", Source, source_component)


def dashboards() -> Operator[Dashboard]:
    """Return the operator of dashboards."""
    return _operator("dashboards", Dashboard, dashboard_component)


def folder_component(folder: Folder, places: Places, session: ClientSession | None) -> Component:
    """Return a folder in its places."""
    client = Folders(places.servers, session, _resync(folder))
    wanted = external.Builder(client, name=uid_of(folder), desired=FolderState(title=folder.spec.title))
    wanted.with_targets(*places.targets).with_guard(client.ready_at)
    return _builder(folder).with_resource(wanted).build()


def source_component(source: Source, places: Places, session: ClientSession | None) -> Component:
    """Return a source in its places."""
    client, spec = Sources(places.servers, session, _resync(source)), source.spec
    builder = _builder(source)

    def state() -> SourceState:
        password = SecretStr(_PASSWORD.require()) if spec.password else None
        return SourceState(title=spec.title, url=spec.url, password=password)

    wanted = external.Builder(client, name=uid_of(source), desired=state)
    wanted.with_targets(*places.targets).with_guard(client.ready_at)
    if spec.password is not None:
        stored = secret.Builder(_named(spec.password)).extract_into(_PASSWORD, partial(_password, entry=spec.password))
        builder.with_resource(stored, read_only=True, block_on_absence=True)
        wanted.with_data_guard(_PASSWORD)
    return builder.with_resource(wanted).build()


def dashboard_component(board: Dashboard, places: Places, session: ClientSession | None) -> Component:
    """Return a dashboard in its places."""
    client, spec, folder = Boards(places.servers, session, _resync(board)), board.spec, places.folder
    builder = _builder(board)
    if spec.folder is not None:
        metadata = {"name": spec.folder, "namespace": board.metadata.namespace}
        there = unstructured.StaticBuilder({"apiVersion": _FOLDER[0], "kind": _FOLDER[1], "metadata": metadata})
        builder.with_resource(there, read_only=True, block_on_absence=True)
    if spec.config_map is not None:
        stored = configmap.Builder(_named(spec.config_map)).extract_into(_TEXT, partial(_text, entry=spec.config_map))
        builder.with_resource(stored, read_only=True, block_on_absence=True)
    if spec.url is not None:
        pages = Pages(spec.url, session, None, _resync(board))
        page = external.Builder(pages, name=spec.url, desired=Nothing()).with_targets(pages.host)
        builder.with_resource(page.extract_into(_TEXT, json.dumps), read_only=True, block_on_absence=True)

    def state() -> BoardState:
        text = _TEXT.require() if spec.inline is None else spec.inline
        return BoardState(folder=uid_of(folder) if folder else None, content=_canonical(text))

    def ready_at(target: str) -> StatusReport[GuardStatus]:
        if folder is None or _is_at(folder, target):
            return client.ready_at(target)
        return StatusReport(GuardStatus.BLOCKED, f"the folder {folder.metadata.name} is not in {target} yet")

    wanted = external.Builder(client, name=uid_of(board), desired=state)
    wanted.with_targets(*places.targets).with_guard(ready_at)
    return builder.with_resource(wanted if spec.inline is not None else wanted.with_data_guard(_TEXT)).build()


def uid_of(owner: Content) -> str:
    """Return the uid of a thing, which is the same in all servers."""
    return owner.spec.uid or owner.metadata.uid


def _operator(
    name: str, kind: type[ContentT], build: Callable[[ContentT, Places, ClientSession | None], Component]
) -> Operator[ContentT]:
    relation = _relation(kind.kind)

    async def components(owner: ContentT, context: ReconcileContext) -> Component:
        places = await _places(owner, context, relation)
        note = f"{len(places.targets)} instances are selected"
        context.set_condition(_PLACED, status=str(bool(places.targets)), reason="Selected", message=note)
        return build(owner, places, context.values.get(SESSION))

    return Operator(
        name=name,
        owner=OwnerType.of(kind),
        components=components,
        published_conditions=[_PLACED],
        watches=[relation],
        # The pods of an instance, and other things in it, do not concern a thing; nor does where a folder failed.
        triggers={
            _INSTANCE: any_of(labels_changed, spec_changed, field_changed("status.url")),
            _FOLDER: any_of(spec_changed, field_changed("status.external")),
        },
        reads=[SECRET, _FOLDER],
    )


async def _places(owner: Content, context: ReconcileContext, relation: Relation) -> Places:
    """Return the places of a thing; a dashboard is only where its folder is, too."""
    selected, folder = await relation.selected(context), None
    if isinstance(owner, Dashboard) and owner.spec.folder is not None:
        live = await _found(ObjectKey(*_FOLDER, owner.spec.folder, owner.metadata.namespace), context)
        selected = [one for one in selected if live is not None and not _ends(live) and _FOLDERS.relates(live, one)]
        folder = Folder.model_validate(live) if live is not None else None
    targets = tuple(place_of(one) for one in selected if not _ends(one))
    records = owner.status.external if owner.status else {}
    servers: dict[str, Server | None] = {}
    for place in sorted({*targets, *(one.target for one in records.values() if one.kind == owner.kind)}):
        live = await _found(instance_key(place), context)
        if live is None:
            continue
        instance = Instance.model_validate(live)
        server, was_ready = await server_of(instance, context), instance.status is not None and instance.status.url
        # Nothing is where a server was never ready. One of ours ends with its instance, and one of others is given up
        # with an instance whose credentials are gone.
        if was_ready and (not _ends(live) or (server is not None and instance.spec.external is not None)):
            servers[place] = server
    return Places(targets, servers, folder)


async def _found(key: ObjectKey, context: ReconcileContext) -> Manifest | None:
    with suppress(NotFoundError):
        return await context.cluster.get(key)
    return None


def _ends(live: Manifest) -> bool:
    return "deletionTimestamp" in live["metadata"]


def _builder(owner: Content) -> component.Builder:
    return component.Builder("content", owner=owner.key).with_prune(while_blocked=True).with_poll_interval(_POLL)


def _resync(owner: Content) -> timedelta:
    return timedelta(minutes=owner.spec.resync_minutes)


def _is_at(folder: Folder, target: str) -> bool:
    """Return whether a folder was put into a server as it is called now."""
    records = folder.status.external.values() if folder.status else ()
    return any((one.name, one.target) == (uid_of(folder), target) and one.applied for one in records)


def _canonical(text: str) -> str:
    """Return JSON in the one form that servers are compared in."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:
        raise ConfigError("the content of the dashboard is not JSON") from None


def _named(entry: Entry) -> Manifest:
    return {"metadata": {"name": entry.name}}


def _text(live: V1ConfigMap, entry: Entry) -> str:
    return _entry(live.data, entry)


def _password(live: V1Secret, entry: Entry) -> str:
    return b64decode(_entry(live.data, entry)).decode()


def _entry(data: Mapping[str, TextT] | None, entry: Entry) -> TextT:
    if entry.key not in (data or {}):
        raise ConfigError(f"{entry.name} has no entry {entry.key}")
    return (data or {})[entry.key]
