"""The cluster that components read in a command without a cluster: the objects of files.

Writes are dry runs, and nothing outside of the process is reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ocf.cli.component_loader import NO_UID, owner_name, with_stored_metadata
from ocf.cli.manifest_files import read_documents, read_manifests
from ocf.cli.operator_loader import ComponentSource, reject_together
from ocf.cli.output import echo
from ocf.cli.owner_check import apply_definitions
from ocf.cluster import InterceptingCluster, Request, Verb
from ocf.cluster.interceptor import key_of
from ocf.component.context import ReconcileContext
from ocf.component.dry_run_cluster import DryRunCluster
from ocf.component.model.ownership import DEFAULT_OPERATOR
from ocf.concepts import SystemClock
from ocf.errors import ApiError, ConfigError, NoKindMatchError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import split_api_version
from ocf.objects.owner_references import controller_of
from ocf.schema.builtin import CustomKind, builtin_resource
from ocf.schema.rest_mapping import rest_mapping

if TYPE_CHECKING:
    from pathlib import Path

    from ocf.cli.manifest_files import Document
    from ocf.component import Component
    from ocf.runtime.operator import Operator
    from ocf_server import EmbeddedCluster

__all__ = ["GivenCluster", "given_components"]

_DEFINITION: Final = "CustomResourceDefinition"


async def given_components(
    sources: Sequence[ComponentSource], owners: Sequence[Manifest], definitions: Sequence[Path], objects: Sequence[str]
) -> list[tuple[ComponentSource, Manifest, Sequence[Component]]]:
    """Return the components of owners, which read the objects of files instead of a cluster.

    Args:
        sources: The code that returns the components; an owner is passed to those that reconcile its kind.
        owners: The owners, as they were read from files.
        definitions: Files with CustomResourceDefinitions, beside those of the operators.
        objects: Files and folders with the objects.

    Returns:
        One entry for each owner and each source that reconciles its kind, in order of the owners.

    Raises:
        ConfigError: If the code fails, or no reconcile would accept its components together.
    """
    cluster: GivenCluster | None = None
    if any(source.takes_context for source in sources):
        known = [definition for source in sources for definition in source.definitions]
        cluster, owners = await GivenCluster.open(
            owners, read_documents(objects), [*known, *read_manifests(definitions)]
        )
    elif objects:
        target = sources[0].target
        raise ConfigError(f"--objects: the components of {target} read no cluster: they take nothing but the owner")
    found: list[tuple[ComponentSource, Manifest, Sequence[Component]]] = []
    try:
        for owner in owners:
            for source in sources:
                if source.reconciles(owner):
                    context = cluster.context(owner, source.operator) if cluster and source.takes_context else None
                    components = await source.components(owner, context)
                    if source.takes_owner:
                        reject_together(components, owner)
                    found.append((source, owner, components))
    finally:
        if cluster is not None:
            cluster.note_requests()
    return found


class GivenCluster:
    """A cluster with the objects of files, and one context for each owner.

    Args:
        cluster: The cluster; its objects are the given ones.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._reads: list[_Reads] = []

    @classmethod
    async def open(
        cls, owners: Sequence[Manifest], documents: Iterable[Document], definitions: Sequence[Manifest]
    ) -> tuple[GivenCluster, list[Manifest]]:
        """Return a cluster with owners and other objects, and the owners as they are stored in it.

        An owner that is among the objects has the uid and the status of that object. One that has no uid gets the one
        by which the given objects name it.

        Args:
            owners: The owners, as they were read from their file.
            documents: The documents with the other objects.
            definitions: The CustomResourceDefinitions.
        """
        from ocf_server import EmbeddedCluster

        objects = [*_objects(documents)]
        defined = [*definitions, *(one for one in objects if one["kind"] == _DEFINITION)]
        placed = [_placed(one, defined) for one in objects if one["kind"] != _DEFINITION]
        given = {ObjectKey.of(one): one for one in placed}
        merged = [_with_uid(_merged(_placed(owner, defined), given), given.values()) for owner in owners]
        given |= {ObjectKey.of(owner): owner for owner in merged}
        cluster = EmbeddedCluster(kinds=_undefined_kinds(given, defined))
        await apply_definitions(cluster, [_without_webhook(one) for one in defined])
        await cluster.restore(_namespaces(given))
        for key, manifest in given.items():
            try:
                await cluster.restore([manifest])
            except ApiError as error:
                raise ConfigError(f"{key} cannot be read as an object of the cluster: {error}") from error
        return cls(cluster), [await cluster.get(ObjectKey.of(owner)) for owner in merged]

    def context(self, owner: Manifest, operator: Operator[Any] | None) -> ReconcileContext:
        """Return a context for an owner. It is never closed, because objects may be rendered with it later.

        Args:
            owner: The owner, as `open` has returned it.
        """
        reads = _Reads(self._cluster, owner)
        self._reads.append(reads)
        name = operator.name if operator is not None else DEFAULT_OPERATOR
        context = ReconcileContext(owner, DryRunCluster(reads), SystemClock(), None, name)
        context.dry_run = True
        return context

    def note_requests(self) -> None:
        """Print what the components have requested since the last call, and what of it is missing."""
        for reads in self._reads:
            for note in reads.notes():
                echo(f"note: {note}", color="yellow", err=True)
        self._reads.clear()


class _Reads(InterceptingCluster):
    """Records what the components of one owner request."""

    def __init__(self, cluster: EmbeddedCluster, owner: Manifest) -> None:
        super().__init__(cluster)
        self._owner = owner
        self._found: dict[str, None] = {}
        self._missing: dict[str, None] = {}
        self._unserved: dict[str, None] = {}
        self._writes: dict[str, None] = {}

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        key = key_of(request)
        if not request.verb.is_read:
            self._missing.pop(str(key), None)
            self._writes[f"{request.verb} {key}"] = None
        try:
            answer = await send()
        except NoKindMatchError:
            self._unserved[f"{key.api_version} {key.kind}"] = None
            raise
        except NotFoundError:
            if request.verb is Verb.GET:
                self._missing[str(key)] = None
            raise
        if request.verb is Verb.LIST:
            where = f" in {key.namespace}" if key.namespace else ""
            self._found[f"{len(answer.items)} of {key.api_version} {key.kind}{where}"] = None
        elif request.verb is Verb.GET and key != ObjectKey.of(self._owner):
            self._found[str(key)] = None
        return answer

    def notes(self) -> Iterator[str]:
        """Yield one sentence for each way in which requests ended."""
        who = f"the components of {owner_name(self._owner)}"
        for names, text in (
            (self._found, "{who} have read {names}"),
            (self._missing, "{who} have looked for {names}, which no file has: give what exists with --objects FILE"),
            (self._unserved, "{who} have looked for objects of {names}, which no file defines: --crd FILE does"),
            (self._writes, "{who} write themselves: {names}"),
        ):
            if names:
                yield text.format(who=who, names=", ".join(names))


def _objects(documents: Iterable[Document]) -> Iterator[Manifest]:
    """Yield the objects of documents; raise an error about one that cannot be read."""
    for document in documents:
        manifest = document.manifest
        if manifest is None:
            raise ConfigError(f"{document.place} is not an object: {document.problem}")
        try:
            ObjectKey.of(manifest)
        except ConfigError as error:
            raise ConfigError(f"{document.place} is not an object: {error}") from error
        yield manifest


def _placed(manifest: Manifest, definitions: Sequence[Manifest]) -> Manifest:
    """Return an object in the namespace `default` if it names none and its kind has one, as kubectl applies it."""
    if manifest["metadata"].get("namespace"):
        return manifest
    try:
        namespaced = rest_mapping(manifest["apiVersion"], manifest["kind"], definitions).namespaced
    except ConfigError:
        return manifest
    metadata = {**manifest["metadata"], "namespace": "default"} if namespaced else manifest["metadata"]
    return {**manifest, "metadata": metadata}


def _merged(owner: Manifest, given: dict[ObjectKey, Manifest]) -> Manifest:
    stored = given.get(ObjectKey.of(owner))
    return owner if stored is None else with_stored_metadata(owner, stored)


def _with_uid(owner: Manifest, objects: Iterable[Manifest]) -> Manifest:
    """Return an owner with a uid: its own, or the one by which objects name their controller."""
    if owner["metadata"].get("uid"):
        return owner
    key = ObjectKey.of(owner)
    group, _ = split_api_version(key.api_version)
    found = {
        reference.uid
        for one in objects
        if (reference := controller_of(one)) is not None
        and (split_api_version(reference.api_version)[0], reference.kind, reference.name) == (group, key.kind, key.name)
        and key.namespace in {"", one["metadata"].get("namespace")}
    }
    if len(found) > 1:
        raise ConfigError(
            f"{owner_name(owner)} has no uid, and the given objects name it with several, {', '.join(sorted(found))}: "
            "give the owner as `kubectl get -o yaml` prints it"
        )
    return {**owner, "metadata": {**owner["metadata"], "uid": next(iter(found), NO_UID)}}


def _undefined_kinds(objects: Iterable[ObjectKey], definitions: Iterable[Manifest]) -> list[CustomKind]:
    """Return the kinds of objects that are neither built in nor defined."""
    defined = {(one["spec"]["group"], one["spec"]["names"]["kind"]) for one in definitions}
    found: dict[tuple[str, str, str], CustomKind] = {}
    for key in objects:
        group, version = split_api_version(key.api_version)
        if (group, key.kind) not in defined and builtin_resource(group, version, key.kind) is None:
            kind = CustomKind(group, version, key.kind, namespaced=bool(key.namespace))
            found[group, version, key.kind] = kind
    return list(found.values())


def _without_webhook(definition: Manifest) -> Manifest:
    """Return a definition without its conversion webhook, which does not run."""
    return {**definition, "spec": {name: value for name, value in definition["spec"].items() if name != "conversion"}}


def _namespaces(objects: Iterable[ObjectKey]) -> Iterator[Manifest]:
    """Yield the namespaces of objects."""
    for name in sorted({key.namespace for key in objects} - {""}):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}
