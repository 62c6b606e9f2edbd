"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396).

Neither changes the given document. A patch that cannot be applied raises `PatchError`; the caller converts it into the
response of the API server.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from ocf.objects import copy_json
from ocf.objects.document_limits import MAX_DEPTH, is_nested_deeper
from ocf.schema.strategic_merge import PatchError
from ocf_server.api.status_errors import go_json

__all__ = ["MAX_COPIED_BYTES", "PatchError", "PatchTestError", "json_patch", "merge_patch"]

MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""Maximum size of all values that the `copy` operations of a patch copy, as JSON; the default of a real API server.

Without it, thirty operations that copy a list into itself make gigabytes.
"""


class _MissingError(PatchError):
    """A path does not exist."""


class PatchTestError(PatchError):
    """A test in a JSON patch fails."""


def merge_patch(document: Any, patch: Any) -> Any:
    """Apply a JSON merge patch.

    Args:
        patch: The patch; null removes a member, and a list replaces a list.

    Returns:
        The patched document, which shares nothing with either.

    Example:
        >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": None}, "e": [4]})
        {'a': 1, 'b': {'d': 3}, 'e': [4]}
    """
    if not isinstance(document, dict):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        return copy_json(patch)
    out = {name: copy_json(value) for name, value in document.items() if name not in patch}
    for name, value in patch.items():
        if value is not None:
            out[name] = merge_patch(document.get(name), value)
    return out


def _without_nulls(value: Any) -> Any:
    """Drop null members, also those of objects in lists, which the RFC does not require but a real API server does."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def json_patch(document: Any, operations: list[Any]) -> Any:
    """Apply a JSON patch.

    Returns:
        The patched document, which shares nothing with the given one.

    Raises:
        PatchError: If an operation is malformed, a path does not exist, a test fails, or the operations copy more than
            `MAX_COPIED_BYTES`, or nest values too deeply.

    Example:
        >>> json_patch({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}])
        {'a': [1, 2]}
    """
    # The document is the member "" of an outer object, so that a replacement of the root needs no special case.
    root = {"": copy_json(document)}
    copied = 0
    for operation in operations:
        kind = operation.get("op") if isinstance(operation, dict) else operation
        apply = _OPERATIONS.get(kind) if isinstance(operation, dict) and isinstance(kind, str) else None
        if apply is None:
            raise PatchError(f"Unexpected kind: {kind}")
        copied += apply(root, operation) or 0
        if copied > MAX_COPIED_BYTES:
            problem = f"exceeds the limit of {MAX_COPIED_BYTES} bytes with {copied} bytes"
            raise PatchError(f"the total size of the copied values {problem}")
    if "" not in root:
        raise PatchError("the patch removes the document")
    if is_nested_deeper(root[""], MAX_DEPTH):
        raise PatchError(f"the patched document is nested more than {MAX_DEPTH} levels deep")
    return root[""]


def _tokens(pointer: Any) -> list[str]:
    # As in the API server, only the start up to the first slash is ignored, and an index may have a sign.
    if not isinstance(pointer, str) or (pointer and "/" not in pointer):
        raise PatchError(f"not a JSON pointer: {pointer!r}")
    return ["", *(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])]


_INDEX: Final = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)


def _index(token: str, *, size: int) -> int:
    """Return the index of an item; a negative one counts from the end, as in a real API server but in no RFC."""
    found = _INDEX.fullmatch(token)
    # The length is compared first: a conversion of thousands of digits is slow, and an error in Python.
    if found is None or len(found[2]) > len(str(size)):
        raise _MissingError(f"no such index: {token!r}")
    index = int(found[2])
    index = size - index if found[1] == "-" and index else index
    if not 0 <= index < size:
        raise _MissingError(f"no such index: {token!r}")
    return index


def _parent(root: Any, pointer: Any) -> tuple[Any, str]:
    *tokens, last = _tokens(pointer)
    parent = root
    for token in tokens:
        parent = _child(parent, token)
    if not isinstance(parent, dict | list):
        raise _MissingError(f"no such path: {pointer!r}")
    return parent, last


def _child(parent: Any, token: str) -> Any:
    if isinstance(parent, list):
        return parent[_index(token, size=len(parent))]
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    raise _MissingError(f"no such path: {token!r}")


def _member(parent: Any, token: str) -> Any:
    """Return an item or a member; the API server reads a missing member as null, which no RFC allows."""
    return parent.get(token) if isinstance(parent, dict) else _child(parent, token)


def _value(operation: Mapping[str, Any]) -> Any:
    # The API server reads a missing value as null.
    return copy_json(operation.get("value"))


def _put(root: Any, pointer: Any, value: Any) -> None:
    if pointer == "":
        raise _MissingError("the whole document can only be replaced")
    parent, last = _parent(root, pointer)
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(last, size=len(parent) + 1), value)
    else:
        parent[last] = value


def _take(root: Any, pointer: Any) -> Any:
    parent, last = _parent(root, pointer)
    if isinstance(parent, list):
        return parent.pop(_index(last, size=len(parent)))
    value = _child(parent, last)
    del parent[last]
    return value


def _named(run: Callable[[], Any], problem: str) -> Any:
    """Return a result; a missing path is reported with another text."""
    try:
        return run()
    except _MissingError:
        raise PatchError(f"{problem}: missing value") from None


def _require_parent(root: Any, pointer: Any, operation: str) -> tuple[Any, str]:
    where = "from path" if operation in ("move", "copy") else "path"
    shown = go_json(pointer) if operation in ("add", "remove") else pointer
    return cast(
        "tuple[Any, str]",
        _named(
            lambda: _parent(root, pointer), f"{operation} operation does not apply: doc is missing {where}: {shown}"
        ),
    )


def _add(root: Any, operation: Mapping[str, Any]) -> None:
    value = _value(operation)
    _require_parent(root, operation.get("path"), "add")
    _put(root, operation.get("path"), value)


def _remove(root: Any, operation: Mapping[str, Any]) -> None:
    pointer = operation.get("path")
    _, last = _require_parent(root, pointer, "remove")
    _named(
        lambda: _take(root, pointer), f"error in remove for path: '{pointer}': Unable to remove nonexistent key: {last}"
    )


def _replace(root: Any, operation: Mapping[str, Any]) -> None:
    pointer = operation.get("path")
    parent, last = _require_parent(root, pointer, "replace")
    # The RFC requires an existing member; a real API server also replaces a missing one.
    if isinstance(parent, list):
        problem = f"replace operation does not apply: doc is missing key: {pointer}"
        parent[_named(lambda: _index(last, size=len(parent)), problem)] = _value(operation)
    else:
        parent[last] = _value(operation)


def _move(root: Any, operation: Mapping[str, Any]) -> None:
    source = operation.get("from")
    if str(operation.get("path")).startswith(f"{source}/"):
        raise PatchError("a value cannot be moved into itself")
    _, last = _require_parent(root, source, "move")
    problem = f"error in move for path: '{last}': Unable to remove nonexistent key: {last}"
    _put(root, operation.get("path"), _named(lambda: _take(root, source), problem))


def _copy(root: Any, operation: Mapping[str, Any]) -> int:
    """Copy a value; return its size as JSON in bytes."""
    if operation.get("from") == "":
        # The RFC would allow it; a real API server takes it for a member without a name.
        raise PatchError("error in copy for from: '': missing value")
    parent, last = _require_parent(root, operation.get("from"), "copy")
    value = _member(parent, last)
    if is_nested_deeper(value, MAX_DEPTH):
        raise PatchError(f"the copied value is nested more than {MAX_DEPTH} levels deep")
    # The copy is measured, and not the value: the value may contain the copy afterwards.
    copied = copy_json(value)
    size = len(go_json(copied).encode())
    _put(root, operation.get("path"), copied)
    return size


def _text(value: Any) -> str:
    # The API server compares the texts of scalars: 1.0 does not equal 1.
    return json.dumps(value, sort_keys=True)


def _test(root: Any, operation: Mapping[str, Any]) -> None:
    if _text(_member(*_parent(root, operation.get("path")))) != _text(operation.get("value")):
        raise PatchTestError(f"testing value {operation.get('path')} failed")


_OPERATIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], int | None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
