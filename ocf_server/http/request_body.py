"""Reading of request bodies, with limits for size, depth and the expansion of YAML aliases.

The media type determines how a body is read. Creates, updates and deletes accept JSON, YAML and protobuf; the media
type of a patch also determines how the patch is applied.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from ocf.cluster.protocol import PatchType
from ocf.errors import ManifestError, api_error
from ocf.objects import Manifest
from ocf.objects.document_limits import MAX_DEPTH, is_nested_deeper
from ocf.objects.documents import load_documents
from ocf.objects.json_syntax import json_problem
from ocf_server.api.json_errors import UNREADABLE_HEAD, untyped_problem
from ocf_server.api.status_errors import bad_request, go_shape
from ocf_server.http.media import media_type
from ocf_server.http.protobuf import MEDIA_TYPE, ProtobufError, read_protobuf
from ocf_server.http.status import bad_body, unknown_body, unsupported_patch

__all__ = ["APPLY", "MAX_BYTES", "duplicates", "is_apply", "read_object", "read_options", "read_patch"]

MAX_BYTES: Final = 3 * 1024 * 1024
"""Maximum size of a body, as in a real API server."""

APPLY: Final = "application/apply-patch+yaml"
"""Media type of a server-side apply."""

_JSON: Final = ("application/json", "")
_YAML: Final = ("application/yaml",)
_PATCHES: Final = {patch_type.value: patch_type for patch_type in PatchType}


class _BodyError(ValueError):
    """A body cannot be read; the message contains the reason."""


class _NumberError(_BodyError):
    """A number in a body is larger than every floating-point number."""


def read_object(body: bytes, content_type: str, kind: str, version: str) -> Manifest:
    """Read the object of a create or an update.

    Raises:
        BadRequestError: If the media type is unknown, or the body is not an object.

    Example:
        >>> read_object(b"kind: Shop", "application/yaml", "Shop", "v1")
        {'kind': 'Shop'}
    """
    try:
        return _typed(body, content_type)
    except _NumberError as error:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from error
    except _BodyError as error:
        raise bad_body(kind, str(error), body) from error


def _typed(body: bytes, content_type: str) -> Manifest:
    """Return the object in a body; its kind and API version are strings, if they are there."""
    media = media_type(content_type)
    if media not in (*_JSON, *_YAML, MEDIA_TYPE):
        raise unknown_body()
    try:
        found = _READERS.get(media, _json)(body)
    except _NumberError:
        raise
    except _BodyError as error:
        raise _BodyError(f"{'' if media in _READERS else UNREADABLE_HEAD}{error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _BodyError(f"{UNREADABLE_HEAD}{untyped_problem(found)}")
    for field in ("apiVersion", "kind"):
        value = found.get(field, "")
        if value is None:
            del found[field]
        elif not isinstance(value, str):
            problem = f"json: cannot unmarshal {go_shape(value)} into Go struct field .{field} of type string"
            raise _BodyError(f"{UNREADABLE_HEAD}{problem}")
    return found


def is_apply(content_type: str) -> bool:
    """Return whether a patch of a content type is a server-side apply."""
    return media_type(content_type) == APPLY


def read_patch(body: bytes, content_type: str) -> tuple[PatchType | None, Any]:
    """Read a patch.

    Returns:
        The patch type (None for a server-side apply) and the patch.

    Raises:
        BadRequestError: If the patch type is unknown, or the patch cannot be read.
    """
    media = media_type(content_type)
    if media == APPLY:
        try:
            return None, _yaml(body)
        except _BodyError as error:
            with suppress(_BodyError):
                if (found := _json(body)) is not None and not isinstance(found, dict):
                    problem = (
                        f"json: cannot unmarshal {go_shape(found)} into Go value of type map[string]interface {{}}"
                    )
                    head = "error decoding YAML: error unmarshaling JSON: while decoding JSON"
                    raise bad_request(f"{head}: {problem}") from error
            message = f"error decoding YAML: error converting YAML to JSON: {error}"
            raise api_error(message, code=400, reason="BadRequest") from error
    if media not in _PATCHES:
        raise unsupported_patch()
    patch_type = _PATCHES[media]
    try:
        return patch_type, _json(body)
    except _BodyError as error:
        prefix = "" if patch_type is PatchType.STRATEGIC_MERGE else "error decoding patch: "
        problem = str(error)
        if patch_type is PatchType.JSON and isinstance(error, _NumberError):
            problem = problem.replace("Go value", "Go struct field jsonPatchOp.value")
        raise bad_request(f"{prefix}{problem}") from error


def read_options(body: bytes, content_type: str) -> Manifest | None:
    """Read the options in the body of a delete.

    Args:
        body: The body, which may be empty.

    Returns:
        The options; None if the body is empty.

    Raises:
        BadRequestError: If the media type is unknown, or the body is not an object.
    """
    if not body:
        return None
    try:
        return _typed(body, content_type)
    except _BodyError as error:
        raise bad_request(str(error)) from error


def _json(body: bytes) -> Any:
    # Bytes that are not UTF-8 are kept, so that an error can show them.
    text = body.decode(errors="surrogateescape")
    try:
        found = json.loads(text, parse_constant=_reject_constant, parse_int=_integer, parse_float=_float)
        if b"\\u" in body or _SURROGATE.search(text):
            found = _with_characters(found)
    except RecursionError as error:
        raise _BodyError("exceeded max depth") from error
    except json.JSONDecodeError as error:
        raise _BodyError(json_problem(body).message) from error
    _require_depth(found, body)
    return found


def _with_characters(found: Any) -> Any:
    """Replace what is not a character: bytes that are not UTF-8, and escapes of half of a surrogate pair."""
    text = json.dumps(found, ensure_ascii=False)
    replaced = _SURROGATE.sub("\ufffd", text)
    return found if replaced == text else json.loads(replaced)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# The largest floating-point number has 309 digits.
_LONGEST_FINITE: Final = 308


def _integer(text: str) -> int:
    if len(text) > _LONGEST_FINITE:
        # It is a number of 309 digits at most if its value is finite; Python converts no more than 4 300.
        _float(text)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _NumberError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise json.JSONDecodeError(constant, "", 0)


def _yaml(body: bytes) -> Any:
    try:
        documents = load_documents(body.decode())
    except UnicodeDecodeError as error:
        raise _BodyError("yaml: invalid UTF-8") from error
    except ManifestError as error:
        raise _BodyError(f"yaml: {error}") from error
    return documents[0] if documents else None


def _protobuf(body: bytes) -> Any:
    try:
        return read_protobuf(body)
    except ProtobufError as error:
        raise _BodyError(str(error)) from error


_READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {**dict.fromkeys(_YAML, _yaml), MEDIA_TYPE: _protobuf}


def _require_depth(value: Any, body: bytes) -> None:
    """Raise an error for a value too deep for the recursive functions that process it later."""
    # The count is fast, and nearly every body has fewer maps and lists than levels are allowed.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and is_nested_deeper(value, MAX_DEPTH):
        raise _BodyError(f"exceeded max depth of {MAX_DEPTH}")


def duplicates(body: bytes) -> list[str]:
    """Return the fields that occur more than once in a JSON body.

    Returns:
        Their paths, in the order of the body; an empty list if the body is not JSON.

    Example:
        >>> duplicates(b'{"data": {"a": 1, "a": 2}, "b": [{"c": 1, "c": 1}]}')
        ['data.a', 'b[0].c']
    """
    twice: list[int] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.append(len(pairs) - len(found))
        return found

    try:
        json.loads(body, object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return []
    # The paths cost a second decoding, which hardly any body needs.
    return _paths(json.loads(body, object_pairs_hook=_Pairs)) if twice else []


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object, including duplicates."""


def _paths(value: Any, prefix: str = "") -> list[str]:
    found: list[str] = []
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            path = f"{prefix}.{key}" if prefix else key
            if key in seen and path not in found:
                found.append(path)
            seen.add(key)
            found.extend(_paths(item, path))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found.extend(_paths(item, f"{prefix}[{number}]"))
    return found
