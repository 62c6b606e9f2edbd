"""What a server demands of a request before it looks at what it asks for, and how it reads what was sent."""

from collections.abc import Callable
from typing import Any

from ocf.cluster.protocol import Subresource
from ocf.embedded.api.status_errors import bad_request, invalid, method_not_allowed, no_such_resource, not_found
from ocf.embedded.api.write_options import FieldValidation, WriteOptions
from ocf.embedded.apiextensions import undeclared
from ocf.embedded.codec.decoding import unknown_fields
from ocf.embedded.codec.defaulting import set_defaults
from ocf.embedded.managedfields.field_manager import APPLY
from ocf.embedded.managedfields.typed import type_problems
from ocf.embedded.registry.registry import decoded
from ocf.errors import ApiError, FieldProblem, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf.schema.builtin import ApiResource, StructType

__all__ = [
    "apply_error",
    "decode",
    "metadata_of",
    "require_known",
    "require_manager",
    "require_same",
    "require_subresource",
    "require_typed",
    "require_verb",
]

_LONGEST_MANAGER = 128


def require_manager(field_manager: str, *, operation: str) -> None:
    """Refuse a field manager that a server would refuse.

    Args:
        field_manager: Its name.
        operation: `Apply` demands one.

    Raises:
        InvalidError: If it is too long, or missing.
    """
    kind = "PatchOptions.meta.k8s.io"
    if operation == APPLY and not field_manager:
        raise invalid(kind, "", [FieldProblem("fieldManager", "Required value: is required for apply patch")])
    if len(field_manager.encode()) > _LONGEST_MANAGER:
        raise invalid(kind, "", [FieldProblem("fieldManager", "Too long: may not be more than 128 bytes")])


def require_subresource(resource: ApiResource, name: str, subresource: Subresource | None) -> None:
    """Refuse a subresource that the kind does not have."""
    if subresource is not None and subresource not in resource.subresources:
        raise not_found(resource.group_resource, name) if resource.custom else no_such_resource()


def decode(
    manifest: Manifest, resource: ApiResource, *, drop_nulls: bool = True, live: Manifest | None = None
) -> Manifest:
    """Return a manifest as the server's structs hold it, with defaults.

    Raises:
        DecodeError: If a value is of a wrong JSON type.
    """
    return set_defaults(decoded(manifest, resource, drop_nulls=drop_nulls, live=live), resource.group)


def require_verb(resource: ApiResource, verb: str) -> None:
    """Refuse what the kind cannot do."""
    if verb not in resource.verbs:
        raise method_not_allowed()


def require_known(
    manifest: Manifest,
    resource: ApiResource,
    options: WriteOptions,
    *,
    refused: Callable[[str], ApiError],
    by_name: bool = False,
) -> None:
    """Treat undeclared and doubled fields as the request wants it.

    Args:
        manifest: What was sent.
        resource: Its kind.
        options: Ignores them, warns of them, or refuses them.
        refused: Makes the refusal from what is wrong.
        by_name: Tell of the fields in the order of their names, as of an outcome that nobody has written down.

    Raises:
        ApiError: What `refused` makes, if the request is strict.
    """
    if options.validation is FieldValidation.IGNORE:
        return
    found = [f'duplicate field "{path}"' for path in options.duplicates]
    unknown = _unknown_fields(manifest, resource)
    found += [f'unknown field "{path}"' for path in (sorted(unknown) if by_name else unknown)]
    if found and options.validation is FieldValidation.STRICT:
        raise refused(f"strict decoding error: {', '.join(found)}")
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
    """Return the metadata that were sent; empty where they are none."""
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def require_same(sent: Manifest, key: ObjectKey) -> None:
    """Refuse a patch that renames the object."""
    metadata = metadata_of(sent)
    if metadata.get("name") != key.name:
        raise bad_request(
            f"the name of the object ({metadata.get('name') or ''}) does not match the name on the URL ({key.name})"
        )
    if (metadata.get("namespace") or "") != key.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def require_typed(config: Manifest, resource: ApiResource) -> None:
    """Refuse an applied manifest that does not fit the kind's type."""
    metadata = metadata_of(config)
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problems = type_problems(config, resource.type)
    if problems:
        text = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
        raise apply_error("failed to create typed patch object", metadata, resource, text)


def apply_error(
    what: str, metadata: dict[str, Any], resource: ApiResource, problem: str, *, after: str = ""
) -> ApiError:
    """Return the refusal of an apply that does not fit."""
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name')}"
    # A server answers with an internal error, although the fault is the caller's.
    message = f"{what} ({place}; {resource.group}/{resource.version}, Kind={resource.kind}){after}: {problem}"
    return InvalidError(message, code=500)
