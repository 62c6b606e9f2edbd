"""Structs and their differences as the API server prints them in messages.

The API server validates internal types, which have no JSON names. Its messages therefore show the names of Go fields,
all of them, in the order of the source. `scripts/generate/structs.py` generates the table of the structs from that
source; it is loaded on first use.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import cache
from importlib import resources
from typing import Any, Final

from ocf.objects.quantity import Quantity
from ocf_server.validation.fields import shown_selector

__all__ = ["go_diff", "go_struct"]

_ZEROS: Final[Mapping[str, Any]] = {"b": False, "i": 0, "s": "", "q": "0", "x": 0, "l": {}, "m": {}}
_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
_HOST_FIELDS: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of the spec of a pod that are internally fields of its security context."""

_HEADER_LINES: Final = 2
_ESCAPES: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


@cache
def _table() -> Mapping[str, Sequence[tuple[str, str, str]]]:
    packed = resources.files("ocf_server.validation").joinpath("structs.json.gz").read_bytes()
    table: Mapping[str, Sequence[tuple[str, str, str]]] = json.loads(gzip.decompress(packed))
    return table


def go_struct(name: str, value: Mapping[str, Any] | None) -> Any:
    """Return a struct with the names of its Go fields, in their order.

    Args:
        name: Name of the Go type, `DeploymentStrategy`.
        value: The value in a manifest; None for a nil pointer.

    Example:
        >>> go_struct("DeploymentStrategy", {"type": "Recreate"})
        {'Type': 'Recreate', 'RollingUpdate': None}
    """
    return None if value is None else _struct(name, value)


def go_diff(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the unified diff of two structs, printed as indented JSON."""
    lines = unified_diff(_lines(go_struct(name, old)), _lines(go_struct(name, new)))
    return "".join(list(lines)[_HEADER_LINES:])


def _lines(value: Any) -> list[str]:
    text = json.dumps(value, ensure_ascii=False, indent=1).translate(_ESCAPES)
    return f"{text}\n".splitlines(keepends=True)


def _struct(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if name == "PodSpec":
        host = {field: value[field] for field in _HOST_FIELDS if field in value}
        if host or "securityContext" in value:
            value = {**value, "securityContext": {**value.get("securityContext", {}), **host}}
    shown: dict[str, Any] = {}
    for field, key, code in _table()[name]:
        if field:
            shown[field] = _value(code, value.get(key or _host_key(field)))
        elif code == "m":
            shown |= _metadata(value.get("metadata") or {})
        else:
            shown |= _struct(code, value)
    return shown


def _host_key(field: str) -> str:
    return field[0].lower() + field[1:]


def _value(code: str, value: Any) -> Any:
    if code.startswith("*"):
        return None if value is None else _value(code[1:], value)
    if code.startswith("[]"):
        return None if value is None else [_value(code[2:], item) for item in value]
    if code.startswith("{}"):
        return None if value is None else {key: _value(code[2:], value[key]) for key in sorted(value)}
    if code not in _ZEROS:
        return _struct(code, value or {})
    if value is None:
        return _ZEROS[code]
    return _scalar(code, value)


def _scalar(code: str, value: Any) -> Any:
    if code == "q":
        return str(Quantity.parse(value))
    if code == "l":
        return shown_selector(value)
    return _metadata(value) if code == "m" else value


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    return {name: dict(sorted(value.items())) if isinstance(value, dict) else value for name, value in shown.items()}
