"""Reading the bodies of requests: bounded in size, in depth, and in what aliases of YAML multiply.

A body is read as what its media type says. What is sent to create, replace or delete is JSON, YAML or protobuf; of a
patch the type also says how it is applied.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

from ocf.cluster.protocol import PatchType
from ocf.embedded.http.content_negotiation import media_type
from ocf.embedded.http.protobuf import MEDIA_TYPE, ProtobufError, read_protobuf
from ocf.embedded.http.status import bad_body, refused_patch, unknown_body
from ocf.errors import ManifestError, api_error
from ocf.objects import Manifest, load_documents
from ocf.objects.document_limits import MAX_DEPTH

__all__ = ["APPLY", "MAX_BYTES", "duplicates", "read_object", "read_options", "read_patch"]

MAX_BYTES: Final = 3 * 1024 * 1024
"""How long a body may be, as on a real server."""

APPLY: Final = "application/apply-patch+yaml"
"""The media type of a server-side apply."""

_JSON: Final = ("application/json", "")
_YAML: Final = ("application/yaml",)
_PATCHES: Final = {patch_type.value: patch_type for patch_type in PatchType}


_HEAD: Final = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


class _BodyError(ValueError):
    """A body cannot be read; says why."""


def read_object(body: bytes, content_type: str, kind: str) -> Manifest:
    """Read the object of a create or an update.

    Args:
        body: The body.
        content_type: Its `Content-Type`.
        kind: Kind that it should be of, for messages.

    Returns:
        The object.

    Raises:
        BadRequestError: If it is in an unknown form, or no object.

    Example:
        >>> read_object(b"kind: Shop", "application/yaml", "Shop")
        {'kind': 'Shop'}
    """
    media = media_type(content_type)
    if media not in (*_JSON, *_YAML, MEDIA_TYPE):
        raise unknown_body()
    try:
        found = _READERS.get(media, _json)(body)
    except _BodyError as error:
        prefix = "" if media in _READERS else "couldn't get version/kind; json parse error: "
        raise bad_body(kind, f"{prefix}{error}", body) from error
    if not isinstance(found, dict):
        problem = f"couldn't get version/kind; json parse error: json: cannot unmarshal {_shape(found)} into {_HEAD}"
        raise bad_body(kind, problem, body)
    return found


def read_patch(body: bytes, content_type: str) -> tuple[PatchType | None, Any]:
    """Read a patch.

    Args:
        body: The body.
        content_type: Its `Content-Type`.

    Returns:
        How it is applied, None for a server-side apply; and the patch.

    Raises:
        BadRequestError: If it is of an unknown type, or cannot be read.
    """
    media = media_type(content_type)
    if media == APPLY:
        try:
            return None, _yaml(body)
        except _BodyError as error:
            message = f"error decoding YAML: error converting YAML to JSON: {error}"
            raise api_error(message, code=400, reason="BadRequest") from error
    if media not in _PATCHES:
        raise refused_patch()
    try:
        return _PATCHES[media], _json(body)
    except _BodyError as error:
        raise api_error(f"error decoding patch: {error}", code=400, reason="BadRequest") from error


def read_options(body: bytes, content_type: str) -> Manifest:
    """Read the options that a delete may carry.

    Args:
        body: The body, which may be empty.
        content_type: Its `Content-Type`.

    Returns:
        The options, or an empty object.
    """
    return read_object(body, content_type, "DeleteOptions") if body else {}


def _json(body: bytes) -> Any:
    try:
        found = json.loads(body, parse_constant=_refuse_constant)
        if b"\\u" in body:
            # Half of a surrogate pair can be written as an escape, but is no character.
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise _BodyError("exceeded max depth") from error
    except UnicodeError as error:
        raise _BodyError("invalid UTF-8") from error
    except json.JSONDecodeError as error:
        raise _BodyError(_go_problem(error, body)) from error
    _demand_depth(found, body)
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise _BodyError(f"invalid character '{constant[0]}' looking for beginning of value")


def _go_problem(error: json.JSONDecodeError, body: bytes) -> str:
    text = error.doc
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated") or not body.strip():
        return "unexpected end of JSON input"
    return f"invalid character '{text[error.pos]}': {error.msg} at byte {error.pos}"


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


def _demand_depth(value: Any, body: bytes) -> None:
    """Refuse what later steps, which recurse, could not walk through."""
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for container in level for item in _containers(container)]
        if not level:
            return
    raise _BodyError(f"exceeded max depth of {MAX_DEPTH}")


def _containers(value: Any) -> Iterator[Any]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (item for item in items if isinstance(item, dict | list))


def _shape(value: Any) -> str:
    shapes = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return shapes.get(type(value), "null")


def duplicates(body: bytes) -> list[str]:
    """Find fields that a JSON body gives twice.

    Args:
        body: The body.

    Returns:
        Their paths, in the order in which their objects end; nothing if the body is no JSON.

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
    return _paths(json.loads(body, object_pairs_hook=_Pairs)) if twice else []


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, also those given twice."""


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
