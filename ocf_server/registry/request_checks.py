"""Checks and decoding of requests that come before any verb."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ocf.cluster.protocol import Subresource
from ocf.errors import ApiError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.go_strings import go_quoted
from ocf.schema.builtin import ApiResource, StructType
from ocf_server.api.status_errors import bad_request, method_not_allowed, no_such_resource, not_found, stale
from ocf_server.api.write_options import FieldValidation, WriteOptions
from ocf_server.apiextensions import undeclared
from ocf_server.codec.decoding import unknown_fields
from ocf_server.codec.defaulting import set_defaults
from ocf_server.managedfields.typed import type_problems
from ocf_server.registry.object_parts import part_of
from ocf_server.registry.registry import decoded

__all__ = [
    "apply_error",
    "decode",
    "metadata_of",
    "precondition_failed",
    "report_unknown",
    "require_known",
    "require_same",
    "require_subresource",
    "require_typed",
    "require_verb",
]


def require_subresource(resource: ApiResource, name: str, subresource: Subresource | None) -> None:
    """Raise NotFoundError if a kind does not have a subresource."""
    served = subresource is None or resource.release.serves_part(resource.group, resource.kind, subresource)
    if served and (subresource is None or part_of(resource, subresource) is not None):
        return
    if subresource not in resource.subresources:
        # The handler of custom resources knows the object before it looks at the subresource; built-in routes do not
        # exist.
        raise not_found(resource.group_resource, name) if resource.custom else no_such_resource()


def decode(
    manifest: Manifest, resource: ApiResource, *, drop_nulls: bool = True, live: Manifest | None = None
) -> Manifest:
    """Return a manifest as the API server decodes it, with defaults.

    Raises:
        DecodeError: If a value is of a wrong JSON type.
    """
    return set_defaults(decoded(manifest, resource, drop_nulls=drop_nulls, live=live), resource.group)


def require_verb(resource: ApiResource, verb: str) -> None:
    """Raise ApiError if the kind does not support a verb: 405, or 404 if none of its objects has a path."""
    if verb not in resource.verbs:
        raise method_not_allowed() if "get" in resource.verbs else no_such_resource()


def require_known(
    manifest: Manifest,
    resource: ApiResource,
    options: WriteOptions,
    *,
    rejected: Callable[[str], ApiError],
    by_name: bool = False,
) -> None:
    """Check a request for unknown and duplicate fields.

    Args:
        options: Options of the request; its field validation ignores such fields, warns of them, or rejects them.
        by_name: Report the fields sorted by name, as for the result of a patch, where no client wrote them in an order.

    Raises:
        ApiError: The error that `rejected` builds, if the field validation is strict.
    """
    if options.validation is not FieldValidation.IGNORE:
        unknown = _unknown_fields(manifest, resource)
        if by_name:
            unknown.sort()
        report_unknown(unknown, options, rejected=rejected, custom=resource.custom)


# Go's strict decoder reports no more (sigs.k8s.io/json); it does not look for the unknown fields of custom kinds.
_MAX_STRICT_ERRORS: Final = 100


def report_unknown(
    unknown: Sequence[str], options: WriteOptions, *, rejected: Callable[[str], ApiError], custom: bool = False
) -> None:
    """Report unknown fields, and the duplicate fields of a request.

    Args:
        options: As for `require_known`.
        rejected: As for `require_known`.
        custom: Whether the kind is a custom one.

    Raises:
        ApiError: The error that `rejected` builds, if the field validation is strict.
    """
    if options.validation is FieldValidation.IGNORE:
        return
    # The decoder of a built-in kind skips unknown fields, with what they contain twice.
    skipped = () if custom else tuple(f"{path}{end}" for path in unknown for end in ("", ".", "["))
    duplicates = [
        path
        for path in options.duplicates
        if not any(path == start or (start[-1] in ".[" and path.startswith(start)) for start in skipped)
    ]
    found = [f"duplicate field {go_quoted(path)}" for path in duplicates[:_MAX_STRICT_ERRORS]]
    found += [f"unknown field {go_quoted(path)}" for path in unknown]
    if not custom:
        del found[_MAX_STRICT_ERRORS:]
    if found and options.validation is FieldValidation.STRICT:
        raise rejected(f"strict decoding error: {', '.join(found)}")
    for text in found:
        options.warn(text)


def _unknown_fields(manifest: Manifest, resource: ApiResource) -> list[str]:
    if resource.schema is None:
        return unknown_fields(manifest, resource.type)
    metadata = {"metadata": manifest.get("metadata")}
    return [
        *unknown_fields(metadata, StructType(resource.kind, fields=resource.type.fields)),
        *undeclared(manifest, resource.schema),
    ]


def metadata_of(manifest: Manifest) -> dict[str, Any]:
    """Return the metadata of a request; empty if it has none or they are not an object."""
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def require_same(sent: Manifest, key: ObjectKey) -> None:
    """Raise BadRequestError if a request changes the name or the namespace of the object."""
    metadata = metadata_of(sent)
    name = metadata.get("name")
    if name in (None, ""):
        raise bad_request(f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided")
    # Decoding rejects a name that is not a text.
    if isinstance(name, str) and name != key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
    if key.namespace and metadata.get("namespace") not in (None, "", key.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def precondition_failed(resource: ApiResource, key: ObjectKey, problem: str, *, dry_run: bool = False) -> ApiError:
    """Return the error for a write of another object than the stored one: a real server passes on a text of etcd."""
    folder = (
        f"{resource.group}/{resource.plural}" if resource.custom else _FOLDERS.get(resource.plural, resource.plural)
    )
    parts = ["" if dry_run else "/registry", folder, *filter(None, (key.namespace, key.name))]
    text = f"StorageError: invalid object, Code: 4, Key: {'/'.join(parts)}, ResourceVersion: 0, AdditionalErrorMsg: "
    return stale(resource.group_resource, key.name, f"{text}Precondition failed: {problem}")


# Resources whose path in etcd is not their name (the stores in `pkg/registry` of Kubernetes).
_FOLDERS: Final = {
    "apiservices": "apiregistration.k8s.io/apiservices",
    "customresourcedefinitions": "apiextensions.k8s.io/customresourcedefinitions",
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


def require_typed(config: Manifest, resource: ApiResource) -> None:
    """Raise ApiError if an applied manifest does not match the type of its kind."""
    metadata = metadata_of(config)
    if isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    problems = type_problems(config, resource.type)
    if problems:
        text = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise apply_error("failed to create typed patch object", metadata, resource, text)


def apply_error(
    what: str, metadata: dict[str, Any], resource: ApiResource, problem: str, *, after: str = ""
) -> ApiError:
    """Return the error for an applied manifest that does not match its type."""
    namespace, name = (text if isinstance(text := metadata.get(key), str) else "" for key in ("namespace", "name"))
    place = f"{namespace}/{name}"
    # A real API server responds with an internal error, although the client sent an invalid manifest.
    message = f"{what} ({place}; {resource.group}/{resource.version}, Kind={resource.kind}){after}: {problem}"
    return InvalidError(message, code=500)
