"""`ocf explain KIND/NAME`: why an owner is not ready, from a cluster or from files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ocf.cli.explain.owner_answer import OwnerAnswer
from ocf.errors import ConfigError, ManifestError
from ocf.objects import ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.ownership import OwnerSnapshot
from ocf.ownership.explanation import explain_owners

if TYPE_CHECKING:
    from ocf.cli.explain.follow import FollowEnd
    from ocf.cli.explain.owner_snapshot import OwnerReading
    from ocf.cli.explain.question import OwnerQuestion
    from ocf.objects import Manifest

__all__ = [
    "check_picture",
    "followed_answer",
    "newest",
    "owner_answer",
    "owners_in_files",
    "read_objects",
    "save_picture",
]

_T = TypeVar("_T")

_MOST_NAMES: Final = 10
_EVENT_GROUPS: Final = frozenset({"", "events.k8s.io"})


def owner_answer(question: OwnerQuestion, now: datetime | None) -> OwnerAnswer:
    """Explain an owner, or all of a kind.

    Args:
        now: The time of the files; None for the current time.
    """
    if question.files:
        return _answer(question, _of_files(question, now))
    return asyncio.run(_of_cluster(question, lambda read: read()))


def followed_answer(
    question: OwnerQuestion, show: Callable[[str], None], limit: timedelta | None
) -> tuple[FollowEnd, OwnerAnswer]:
    """Explain an owner, or all of a kind, again and again until each is ready; see `follow`."""
    from ocf.cli.explain.follow import follow
    from ocf.concepts import SystemClock

    return asyncio.run(
        _of_cluster(question, lambda read: follow(read, show, clock=SystemClock(), limit=limit)),
    )


def _answer(question: OwnerQuestion, reading: OwnerReading) -> OwnerAnswer:
    found = tuple(explain_owners(reading.snapshot, reading.owners))
    return OwnerAnswer(found, reading.snapshot.now, bool(question.name))


def check_picture(question: OwnerQuestion, path: Path) -> None:
    """Reject a picture that cannot be drawn or written."""
    from ocf.cli.explain.picture import check

    if not question.name:
        raise ConfigError("--picture shows one owner: write KIND/NAME in place of --all")
    check(path)


def save_picture(answer: OwnerAnswer, path: Path) -> None:
    """Write the picture of an owner, or a page with its explanation and the picture."""
    from ocf.cli.explain.picture import write
    from ocf.ownership.diagram import diagram_of
    from ocf.ownership.picture import standalone_svg, to_html

    diagram = diagram_of(answer.found[0])
    if answer.following is not None:
        from ocf.runtime.component_diagram import with_declared

        diagram = with_declared(diagram, answer.following.diagram)
    write(to_html(diagram, answer.lines()) if path.suffix == ".html" else standalone_svg(diagram), path)


async def _of_cluster(
    question: OwnerQuestion, use: Callable[[Callable[[], Awaitable[OwnerAnswer]]], Awaitable[_T]]
) -> _T:
    """Call a function with one that reads and explains, while there is a connection."""
    from ocf.cli.autoscaler_clients import context_namespace
    from ocf.cli.explain.owner_snapshot import WantedOwners, read_owners
    from ocf.cli.explain.served_kinds import resolve_kind, served_kinds
    from ocf.cluster.client import ApiServerCluster
    from ocf.concepts import SystemClock

    namespace = question.namespace or context_namespace(question.kubeconfig, question.context)
    async with await ApiServerCluster.connect(question.kubeconfig, context=question.context) as cluster:

        async def read() -> OwnerAnswer:
            served = await served_kinds(cluster)
            kind = resolve_kind(question.kind, served)
            wanted = WantedOwners(kind, namespace, question.name)
            # The clocks of this machine and of the cluster may differ.
            now = cluster.server_time or SystemClock().now()
            reading = await read_owners(cluster, wanted, served, now)
            answer = _answer(question, reading)
            if not question.components:
                return answer
            from ocf.cli.explain.next_reconcile import next_reconcile

            following = await next_reconcile(question.components, reading.owners[0], cluster)
            return replace(answer, following=following)

        return await use(read)


def _of_files(question: OwnerQuestion, now: datetime | None) -> OwnerReading:
    from ocf.cli.explain.owner_snapshot import OwnerReading
    from ocf.concepts import SystemClock

    objects = read_objects(question.files)
    events = [one for one in objects if _is_event(one)]
    others = newest(one for one in objects if not _is_event(one))
    with_status = {place for place, one in _definitions(others) if _serves_status(one)}
    snapshot = OwnerSnapshot(objects=others, now=now or SystemClock().now(), events=events, with_status=with_status)
    return OwnerReading(snapshot, tuple(owners_in_files(question, others)))


def read_objects(files: Sequence[str]) -> list[Manifest]:
    """Return the objects of files.

    Raises:
        ConfigError: If a file cannot be read, or holds something else.
    """
    from ocf.cli.manifest_files import read_documents

    objects: list[Manifest] = []
    for document in read_documents(files):
        if document.manifest is None:
            raise ConfigError(f"{document.place}: {document.problem}")
        objects.append(document.manifest)
    return objects


def owners_in_files(question: OwnerQuestion, objects: Sequence[Manifest]) -> list[ObjectKey]:
    """Return the owners among the objects of files.

    Raises:
        ConfigError: If there is none, or one name is that of several.
    """
    keys = [*_owners(question, objects)]
    if not keys:
        known = _shortened(sorted({f"{key.kind} {key.name}" for key in _keys(objects)})) or "no objects"
        wanted = f"{question.kind} {question.name}".strip()
        place = f" in namespace {question.namespace}" if question.namespace else ""
        raise ConfigError(f"no file has {wanted}{place}; they have {known}")
    if question.name and len(keys) > 1:
        places = _shortened(sorted(key.namespace for key in keys))
        wanted = f"{question.kind} {question.name}"
        raise ConfigError(f"{wanted} is in several namespaces: write --namespace, one of {places}")
    return keys


def _owners(question: OwnerQuestion, objects: Sequence[Manifest]) -> Iterator[ObjectKey]:
    name, _, group = question.kind.lower().partition(".")
    short = _defined_names(objects)
    for key in _keys(objects):
        own_group, version = split_api_version(key.api_version)
        names = {*_spellings(key.kind), *short.get((own_group, key.kind), ())}
        groups = {"", own_group.lower(), f"{version}.{own_group}".lower()}
        is_named = not question.name or key.name == question.name
        if name in names and group in groups and is_named and question.namespace in {None, key.namespace}:
            yield key


def _spellings(kind: str) -> Iterator[str]:
    """Yield how a kind may be written without its definition."""
    from ocf.schema.rest_mapping import guessed_mapping

    yield kind.lower()
    yield guessed_mapping("v1", kind).plural
    # The guess for Gateway is gatewaies.
    yield f"{kind.lower()}s"


def _defined_names(objects: Sequence[Manifest]) -> dict[tuple[str, str], set[str]]:
    """Return the names of the kinds that definitions among the objects define."""
    from ocf.ownership import values

    found: dict[tuple[str, str], set[str]] = {}
    for place, one in _definitions(objects):
        names = values.mapping(one, "spec", "names")
        short = names.get("shortNames")
        listed = [names.get("plural"), names.get("singular"), *(short if isinstance(short, list) else ())]
        found[place] = {str(each).lower() for each in listed if each}
    return found


def _definitions(objects: Sequence[Manifest]) -> Iterator[tuple[tuple[str, str], Manifest]]:
    """Yield the definitions among objects, with group and kind of what they define."""
    from ocf.ownership import values

    for one in objects:
        if values.group_kind(one) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
            yield (values.text(one, "spec", "group"), values.text(one, "spec", "names", "kind")), one


def _serves_status(definition: Manifest) -> bool:
    from ocf.ownership import values

    versions = values.members(definition, "spec", "versions")
    return any(isinstance(values.field(one, "subresources", "status"), dict) for one in versions)


def newest(objects: Iterable[Manifest]) -> list[Manifest]:
    """Return objects, each once: the one with the highest resource version, or that of the last file."""
    from ocf.ownership import values

    found: dict[object, Manifest] = {}
    for number, one in enumerate(objects):
        key = next((key.unversioned for key in _keys([one])), number)
        versions = [values.text(each, "metadata", "resourceVersion") for each in (found.get(key), one)]
        is_older = all(each.isdecimal() for each in versions) and int(versions[0]) > int(versions[1])
        if not is_older:
            found[key] = one
    return list(found.values())


def _shortened(names: Sequence[str]) -> str:
    """Return names, and of many the first ones with the number of the others."""
    more = len(names) - _MOST_NAMES
    return ", ".join([*names[:_MOST_NAMES], *([f"and {more} more"] if more > 0 else [])])


def _keys(objects: Sequence[Manifest]) -> Iterator[ObjectKey]:
    for one in objects:
        try:
            yield ObjectKey.of(one)
        except ManifestError:
            continue


def _is_event(manifest: Manifest) -> bool:
    from ocf.ownership import values

    group, kind = values.group_kind(manifest)
    return kind == "Event" and group in _EVENT_GROUPS
