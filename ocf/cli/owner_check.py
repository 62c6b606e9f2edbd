"""Checks of custom resources by their CustomResourceDefinitions, before a command uses them.

The embedded API server checks them, so the rules are those of the API server: the schema with its defaults, CEL rules
and metadata. Fields that it would drop are errors, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ocf.cli.output import echo
from ocf.errors import ApiError, BadRequestError, ConfigError, FieldProblem
from ocf.objects.manifest import SERVER_METADATA
from ocf.schema.rest_mapping import rest_mapping

if TYPE_CHECKING:
    from pathlib import Path

    from ocf.cli.manifest_files import Document
    from ocf.cli.operator_loader import ComponentSource
    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster

__all__ = ["InvalidObjectsError", "apply_definitions", "check_objects", "checked_owners", "load_owners"]

_MANAGER: Final = "ocf"
_DEFINITION: Final = "CustomResourceDefinition"
_NAMESPACE: Final = "default"
"""Namespace in which an object is checked: it always exists."""
_RULES: Final = "x-kubernetes-validations"
_UNSUPPORTED: Final = "CEL expressions"
"""Part of the message of every error about a rule that the embedded cluster does not support."""
_RULES_SKIPPED: Final = "some validation rules were not checked"
"""Part of what the API server adds to the causes if they kept it from checking CEL rules; not a cause itself."""


class InvalidObjectsError(ConfigError):
    """Objects of files do not match their CustomResourceDefinitions.

    Args:
        problems: The problems, each with file, line, object and field; at least one.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))

    @property
    def messages(self) -> tuple[str, ...]:
        """The problems, each in a line of its own."""
        return self.problems


async def load_owners(
    sources: Sequence[ComponentSource],
    files: Sequence[str],
    changes: Sequence[str] = (),
    definitions: Sequence[Path] = (),
) -> list[Manifest]:
    """Load the owners, which are checked before the code that returns their components sees them.

    Objects of other kinds than those of the operators are passed over, with a note unless they are in a folder; it is
    an error if there is nothing else.

    Args:
        sources: The code that returns the components.
        files: Files of the owners, folders, or `-` for the standard input; empty for no owner.
        changes: Fields to set in each owner, or only in those of the kinds that have the field if others have not.
        definitions: Files with CustomResourceDefinitions, beside those of the operators.
    """
    from ocf.cli.component_loader import read_owners
    from ocf.cli.manifest_files import read_manifests

    documents = [document for file in files for document in read_owners(file)]
    found = [one for one in documents if any(each.reconciles(one.manifest or {}) for each in sources)]
    others = [f"{_place_of_kind(one)}: {_other_kind(one, sources)}" for one in documents if one not in found]
    if others and not found:
        raise InvalidObjectsError(others)
    for one in documents:
        if one not in found and one.file in _named(files):
            echo(f"note: {_place_of_kind(one)}: {_other_kind(one, sources)}: passed over", color="yellow", err=True)
    defined = [definition for source in sources for definition in source.definitions]
    known = {one["metadata"]["name"]: one for one in (*defined, *read_manifests(definitions))}
    changed = _with_changes(found, changes, list(known.values()))
    return await checked_owners(changed, list(known.values()), changes=changes)


def _with_changes(
    owners: Sequence[Document], changes: Sequence[str], definitions: Sequence[Manifest]
) -> Sequence[Document]:
    """Return owners with their changed fields; a field that only some kinds have is set in the owners of these."""
    from ocf.cli.component_loader import with_change

    for change in changes:
        changed = [one._replace(manifest=with_change(one.manifest or {}, change)) for one in owners]
        lacking = [_lacks(*pair, definitions) for pair in zip(owners, changed, strict=True)]
        if all(lacking):
            # The check names the field.
            lacking = [False] * len(owners)
        kinds = sorted({(one.manifest or {})["kind"] for one, lacks in zip(owners, lacking, strict=True) if lacks})
        if kinds:
            note = f"note: --set {change}: {' and '.join(kinds)} has no such field: passed over"
            echo(note, color="yellow", err=True)
        owners = [old if lacks else new for old, new, lacks in zip(owners, changed, lacking, strict=True)]
    return owners


def _lacks(before: Document, after: Document, definitions: Sequence[Manifest]) -> bool:
    """Return whether the kind of an owner does not have the field that was changed."""
    schema = _schema_of(before.manifest or {}, definitions)
    if schema is None:
        return False
    from ocf_server.apiextensions import undeclared

    return not {*undeclared(after.manifest or {}, schema)} <= {*undeclared(before.manifest or {}, schema)}


def _schema_of(manifest: Manifest, definitions: Sequence[Manifest]) -> Mapping[str, Any] | None:
    """Return the schema of an object; None if no definition has one for its version."""
    specs = [one["spec"] for one in definitions if one.get("kind") == _DEFINITION]
    spec = next((one for one in specs if (one["group"], one["names"]["kind"]) == _group_kind(manifest)), None)
    version = str(manifest.get("apiVersion")).rpartition("/")[2]
    return _schemas(spec).get(version) if spec is not None else None


def _schemas(spec: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of a definition by version."""
    return {one["name"]: (one.get("schema") or {}).get("openAPIV3Schema") or {} for one in _served(spec)}


def _named(files: Sequence[str]) -> Collection[str]:
    """Return the names of files as documents have them."""
    return {*files, "the standard input"}


def _place_of_kind(document: Document) -> str:
    from ocf.cli.validate.places import find_place

    return f"{document.file}:{find_place(document, 'kind').line}"


def _other_kind(document: Document, sources: Sequence[ComponentSource]) -> str:
    """Return why an object is not an owner."""
    manifest = document.manifest or {}
    reconciled = " and ".join(
        f"operator {each.operator.name} reconciles {each.operator.owner.kind} of {each.operator.owner.api_version}"
        for each in sources
        if each.operator is not None
    )
    return f"{reconciled}, got {manifest.get('kind')} of {manifest.get('apiVersion')}"


async def checked_owners(
    documents: Iterable[Document], definitions: Sequence[Manifest], *, changes: Sequence[str] = ()
) -> list[Manifest]:
    """Return the owners of files, checked by definitions; without any, nothing is checked."""
    documents = list(documents)
    if definitions:
        from ocf_server import EmbeddedCluster

        embedded = EmbeddedCluster()
        await apply_definitions(embedded, definitions)
        await check_objects(documents, embedded, changes=changes)
    return [_in_scope(each.manifest, definitions) for each in documents if each.manifest is not None]


def _in_scope(owner: Manifest, definitions: Iterable[Manifest]) -> Manifest:
    """Return an owner without a namespace if its kind is cluster-scoped, as kubectl and the API server store it."""
    found = [one for one in definitions if one.get("kind") == _DEFINITION]
    try:
        namespaced = rest_mapping(owner["apiVersion"], owner["kind"], found).namespaced
    except ConfigError:
        return owner
    metadata = owner["metadata"]
    kept = metadata if namespaced else {name: value for name, value in metadata.items() if name != "namespace"}
    return {**owner, "metadata": kept}


async def check_objects(documents: Iterable[Document], embedded: Cluster, *, changes: Sequence[str] = ()) -> None:
    """Check the custom resources of files. Nothing is stored.

    Args:
        documents: The documents; those of other kinds than the custom kinds of the cluster are not checked.
    """
    found = await embedded.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    known = {(one["spec"]["group"], one["spec"]["names"]["kind"]): one["spec"] for one in found.items}
    problems = [
        f"{_place(document, problem.path, changes)}: {_name(manifest)}: {problem}"
        for document in documents
        if (manifest := document.manifest) is not None and (spec := known.get(_group_kind(manifest))) is not None
        for problem in await _problems(embedded, manifest, spec)
    ]
    if problems:
        raise InvalidObjectsError(problems)


async def apply_definitions(embedded: EmbeddedCluster, definitions: Iterable[Manifest]) -> None:
    """Apply definitions; without their CEL rules, and with a note, if the embedded cluster does not support one."""
    from ocf_server.http.preload import load_manifests

    supported = [await _without_unsupported_rules(embedded, definition) for definition in definitions]
    await load_manifests(embedded, supported, field_manager=_MANAGER)


async def _without_unsupported_rules(embedded: Cluster, definition: Manifest) -> Manifest:
    """Remove the CEL rules from a definition if the embedded cluster rejects one of them, and print a note."""
    stripped = cast("Manifest", _without_rules(definition))
    if stripped == definition:
        return definition
    try:
        await embedded.create(definition, field_manager=_MANAGER, dry_run=True)
    except BadRequestError as error:
        if _UNSUPPORTED in error.message:
            name = definition.get("metadata", {}).get("name")
            note = f"note: the CEL rules ({_RULES}) of {name} are not evaluated: {error.message}"
            echo(note, color="yellow", err=True)
            return stripped
    except ApiError:
        # The actual create will report the error.
        pass
    return definition


def _without_rules(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_rules(below) for name, below in value.items() if name != _RULES}
    return [_without_rules(below) for below in value] if isinstance(value, list) else value


def _group_kind(manifest: Manifest) -> tuple[str, str]:
    from ocf.objects.manifest import split_api_version

    return split_api_version(str(manifest.get("apiVersion", "")))[0], str(manifest.get("kind", ""))


async def _problems(embedded: Cluster, manifest: Manifest, spec: Mapping[str, Any]) -> Sequence[FieldProblem]:
    """Return the fields of an object that are unknown or invalid."""
    from ocf.objects.manifest import split_api_version

    group, version = split_api_version(manifest["apiVersion"])
    schemas = _schemas(spec)
    if version not in schemas:
        names = ", ".join(f"{group}/{name}" for name in schemas)
        return [FieldProblem("apiVersion", f"{manifest['apiVersion']} is not served, only {names}")]
    found = [*_unknown(manifest, schemas[version])]
    metadata = {key: value for key, value in (manifest.get("metadata") or {}).items() if key not in SERVER_METADATA}
    if spec["scope"] == "Namespaced":
        metadata["namespace"] = _NAMESPACE
    try:
        await embedded.create({**manifest, "metadata": metadata}, field_manager=_MANAGER, dry_run=True)
    except ApiError as error:
        causes = [FieldProblem(cause.field.removeprefix("<nil>"), cause.message) for cause in error.causes]
        found += [each for each in causes if _RULES_SKIPPED not in each.detail] or [FieldProblem("", str(error))]
    return found


def _served(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (one for one in spec["versions"] if one.get("served"))


def _unknown(manifest: Manifest, schema: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Yield the fields that the API server would drop, each with the nearest known name."""
    from ocf.objects.yaml_places import split_path
    from ocf.schema.builtin import struct
    from ocf_server.apiextensions import undeclared

    metadata = struct("meta.v1.ObjectMeta").fields
    for name in manifest.get("metadata") or {}:
        if name not in metadata:
            yield _unknown_field(f"metadata.{name}", name, metadata)
    head = {"apiVersion", "kind", "metadata"}
    for path in undeclared(manifest, schema):
        *above, last = split_path(path)
        known = _declared(schema, above)
        yield _unknown_field(path, str(last), known if above else {*known, *head})


def _unknown_field(path: str, name: str, known: Iterable[str]) -> FieldProblem:
    from ocf.objects.suggestions import nearest

    found = nearest(name, known)
    hint = f', did you mean "{found}"?' if found else f"; known fields: {', '.join(sorted(known)) or 'none'}"
    return FieldProblem(path, f"unknown field{hint}")


def _declared(schema: Mapping[str, Any], path: Sequence[str | int]) -> Iterable[str]:
    """Return the names of the fields that a schema declares at a path."""
    for step in path:
        properties = schema.get("properties") or {}
        below = schema.get("items") if isinstance(step, int) else properties.get(step)
        schema = below or schema.get("additionalProperties") or {}
        if not isinstance(schema, Mapping):
            return ()
    return tuple(schema.get("properties") or ())


def _place(document: Document, path: str, changes: Sequence[str]) -> str:
    """Return where the user wrote a field: file and line, or the option."""
    from ocf.cli.validate.places import find_place

    for change in reversed(changes):
        changed, _, _ = change.partition("=")
        if changed and (path == changed or path.startswith((f"{changed}.", f"{changed}["))):
            return f"--set {change}"
    return f"{document.file}:{find_place(document, path).line}"


def _name(manifest: Manifest) -> str:
    """Return kind and name of an object, which may be incomplete."""
    metadata = manifest.get("metadata") or {}
    return f"{manifest.get('kind')} {metadata.get('name') or metadata.get('generateName') or 'without a name'}"
