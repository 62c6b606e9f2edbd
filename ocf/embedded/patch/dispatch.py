"""Dispatch of a patch to the implementation of its type."""

from typing import Any

from ocf.cluster.protocol import PatchType
from ocf.embedded.api.status_errors import bad_request, go_shape
from ocf.embedded.patch.json_patch import PatchError, json_patch, merge_patch
from ocf.embedded.patch.strategic_merge import MalformedPatchError, strategic_patch
from ocf.errors import InvalidError
from ocf.objects import Manifest
from ocf.schema.builtin import StructType

__all__ = ["patched"]


def patched(document: Manifest, change: Any, patch_type: PatchType, kind: StructType) -> Manifest:
    """Apply a patch to a document.

    Args:
        document: The document; it is not changed.
        change: The patch.
        patch_type: Type of the patch.
        kind: Type of the document.

    Returns:
        The patched document.

    Raises:
        BadRequestError: If the patch is malformed for its type.
        InvalidError: If it cannot be applied.
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
            raise InvalidError(str(error), code=500) from error
        message = "the server rejected our request due to an error in our request"
        raise InvalidError(message, code=422, reason="Invalid") from error
    if not isinstance(out, dict):
        raise bad_request("a patch must leave an object")
    return out


def _require_shape(change: Any, patch_type: PatchType) -> None:
    wanted = list if patch_type is PatchType.JSON else dict
    if isinstance(change, wanted):
        return
    if change is None:
        raise bad_request("Invalid JSON Patch")
    name = "[]handlers.jsonPatchOp" if patch_type is PatchType.JSON else "map[string]interface {}"
    prefix = "" if patch_type is PatchType.STRATEGIC_MERGE else "error decoding patch: "
    raise bad_request(f"{prefix}json: cannot unmarshal {go_shape(change)} into Go value of type {name}")


def _patch(document: Manifest, change: Any, patch_type: PatchType, kind: StructType) -> Any:
    if patch_type is PatchType.JSON:
        return json_patch(document, change)
    if patch_type is PatchType.STRATEGIC_MERGE:
        return strategic_patch(document, change, kind)
    return merge_patch(document, change)
