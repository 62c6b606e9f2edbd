"""Dispatch of a patch to the implementation of its type."""

from typing import Any, Final

from ocf.cluster.protocol import PatchType
from ocf.errors import ApiError, FieldProblem, InvalidError, api_error
from ocf.objects import Manifest
from ocf.schema.builtin import StructType
from ocf.schema.strategic_merge import MalformedPatchError, PatchError, strategic_patch
from ocf_server.api.json_errors import untyped_problem
from ocf_server.api.status_errors import bad_request, go_json, go_shape, go_text, invalid
from ocf_server.patch.json_patch import json_patch, merge_patch

__all__ = ["patched"]

_MAX_OPERATIONS: Final = 10_000
"""Maximum number of operations in a JSON patch, as in a real API server."""


def patched(document: Manifest, change: Any, patch_type: PatchType, kind: StructType) -> Manifest:
    """Apply a patch to a document.

    Args:
        document: The document; it is not changed.

    Raises:
        BadRequestError: If the patch is malformed for its type.
        InvalidError: If it cannot be applied.
        ApiError: If it is a JSON patch with more than 10 000 operations.
    """
    if change is None and patch_type is not PatchType.MERGE:
        # Go decodes null as a patch without changes.
        return document
    _require_shape(change, patch_type)
    try:
        out = _patch(document, change, patch_type, kind)
    except MalformedPatchError as error:
        raise bad_request(str(error)) from error
    except PatchError as error:
        if patch_type is PatchType.STRATEGIC_MERGE:
            # A real API server responds with an internal error to a valid patch that cannot be applied.
            text = str(error) % tuple(map(go_text, error.values)) if error.values else str(error)
            raise InvalidError(text, code=500) from error
        raise _inapplicable() from error
    if isinstance(out, list):
        problem = f"couldn't get version/kind; json parse error: {untyped_problem(out)}"
        raise invalid("", "", [FieldProblem("patch", f"Invalid value: {go_json(go_json(out))}: {problem}")])
    if not isinstance(out, dict):
        raise _inapplicable()
    return out


def _inapplicable() -> ApiError:
    """Return the error for a patch that cannot be applied; a real API server does not name the reason either."""
    message = "the server rejected our request due to an error in our request"
    return InvalidError(message, code=422, reason="Invalid")


def _require_shape(change: Any, patch_type: PatchType) -> None:
    if patch_type is PatchType.JSON and isinstance(change, list):
        _require_operations(change)
        return
    if patch_type is not PatchType.JSON and isinstance(change, dict):
        return
    if change is None:
        raise bad_request("Invalid JSON Patch")
    name = "[]handlers.jsonPatchOp" if patch_type is PatchType.JSON else "map[string]interface {}"
    prefix = "" if patch_type is PatchType.STRATEGIC_MERGE else "error decoding patch: "
    raise bad_request(f"{prefix}json: cannot unmarshal {go_shape(change)} into Go value of type {name}")


def _require_operations(operations: list[Any]) -> None:
    for operation in operations:
        # Go decodes null as an operation without fields.
        fields = {} if operation is None else operation
        if not isinstance(fields, dict):
            raise _undecodable(f"{go_shape(operation)} into Go value of type handlers.jsonPatchOp")
        for name in _TEXTS:
            value = fields.get(name)
            if not isinstance(value, str | None):
                raise _undecodable(f"{go_shape(value)} into Go struct field jsonPatchOp.{name} of type string")
    if len(operations) > _MAX_OPERATIONS:
        problem = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise api_error(f"Request entity too large: {problem}", code=413, reason="RequestEntityTooLarge")


_TEXTS: Final = ("op", "path", "from")


def _undecodable(problem: str) -> ApiError:
    return bad_request(f"error decoding patch: json: cannot unmarshal {problem}")


def _patch(document: Manifest, change: Any, patch_type: PatchType, kind: StructType) -> Any:
    if patch_type is PatchType.JSON:
        return json_patch(document, change)
    if patch_type is PatchType.STRATEGIC_MERGE:
        return strategic_patch(document, change, kind)
    return merge_patch(document, change)
