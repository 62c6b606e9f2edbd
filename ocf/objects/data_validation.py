"""Validation of ConfigMaps and Secrets, with the messages of the API server.

Source: `ValidateConfigMap` and `ValidateSecret` in `pkg/apis/core/validation/validation.go` of Kubernetes, and the
decoder of `encoding/base64` of Go. No message contains a value.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Final

from ocf.objects.field_errors import FieldError, invalid, required, too_long
from ocf.objects.manifest import Manifest
from ocf.objects.name_validation import config_key

__all__ = ["base64_errors", "config_map_errors", "decode_base64", "secret_errors", "secret_type_errors"]

_LARGEST: Final = 1024 * 1024
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DIGITS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS: Final = b"\r\n"
_PAD: Final = ord("=")
_REDACTED: Final = "<secret contents redacted>"


def decode_base64(text: str) -> bytes:
    """Decode base64 as the API server does: padded, in the standard alphabet, ignoring line breaks.

    Args:
        text: Base64.

    Raises:
        ValueError: If the text is not base64; with the message of the API server.

    Example:
        >>> decode_base64("c2hvcA==")
        b'shop'
        >>> decode_base64("shop!")
        Traceback (most recent call last):
        ValueError: illegal base64 data at input byte 4
    """
    plain = text.replace("\n", "").replace("\r", "")
    if _BASE64.fullmatch(plain):
        return b64decode(plain)
    raise ValueError(f"illegal base64 data at input byte {_first_illegal(text.encode(errors='surrogatepass'))}")


def _first_illegal(text: bytes) -> int:
    """Return the position that Go names: of the illegal byte, or of the first byte of the incomplete group."""
    # Line breaks are skipped, but counted.
    content = [(at, byte) for at, byte in enumerate(text) if byte not in _BREAKS]
    for start in range(0, len(content), 4):
        group = content[start : start + 4]
        digits = next((n for n, (_, byte) in enumerate(group) if byte not in _DIGITS), len(group))
        if digits == len(group) == 4:  # noqa: PLR2004 (a group has four bytes)
            continue
        if digits == len(group):
            return len(text) - digits
        at, byte = group[digits]
        if byte != _PAD or digits < 2:  # noqa: PLR2004 (a byte takes two digits)
            return at
        return _illegal_padding(content, start, digits, len(text))
    return len(text)


def _illegal_padding(content: list[tuple[int, int]], start: int, digits: int, length: int) -> int:
    end = start + digits + 1
    if digits == 2:  # noqa: PLR2004 (a group of two digits ends in two signs)
        if end == len(content):
            return length
        if content[end][1] != _PAD:
            return content[end][0] - 1
        end += 1
    return content[end][0]


def config_map_errors(manifest: Manifest) -> Iterator[FieldError]:
    """Yield the errors in the entries of a ConfigMap whose `binaryData` is base64.

    Example:
        >>> [str(error) for error in config_map_errors({"data": {"a": "1"}, "binaryData": {"a": "MQ=="}})]
        ['data[a]: Invalid value: "a": duplicate of key present in binaryData']
    """
    texts, binaries = manifest.get("data") or {}, manifest.get("binaryData") or {}
    yield from _key_errors("data", texts, binaries, "binaryData")
    yield from _key_errors("binaryData", binaries, {}, "")
    if sum(map(_size, texts.values())) + _decoded_size(binaries) > _LARGEST:
        yield too_long("[]", _LARGEST)


def secret_errors(manifest: Manifest) -> Iterator[FieldError]:
    """Yield the errors in the entries of a Secret whose `data` is base64.

    Args:
        manifest: The Secret, without `stringData`: the API server moves its entries to `data` before it validates.
    """
    data = manifest.get("data") or {}
    yield from _key_errors("data", data, {}, "")
    if _decoded_size(data) > _LARGEST:
        yield too_long("data", _LARGEST)


def secret_type_errors(manifest: Manifest) -> Iterator[FieldError]:
    """Yield the errors in what the type of a Secret requires.

    Args:
        manifest: The Secret, without `stringData`; its `data` is base64.

    Example:
        >>> [str(error) for error in secret_type_errors({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}})]
        ['data[tls.key]: Required value']
    """
    kind = str(manifest.get("type") or "").removeprefix("kubernetes.io/")
    data = manifest.get("data") or {}
    if kind == "service-account-token":
        name = "kubernetes.io/service-account.name"
        if not (manifest["metadata"].get("annotations") or {}).get(name):
            yield required(f"metadata.annotations[{name}]")
    elif kind in _JSON_KEYS:
        yield from _json_errors(_JSON_KEYS[kind], data)
    elif kind == "basic-auth" and not {"username", "password"} & data.keys():
        yield from (required("data[username]"), required("data[password]"))
    elif kind == "ssh-auth" and not data.get("ssh-privatekey"):
        yield required("data[ssh-privatekey]")
    elif kind == "tls":
        yield from (required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)


_JSON_KEYS: Final = {"dockercfg": ".dockercfg", "dockerconfigjson": ".dockerconfigjson"}


def _json_errors(key: str, data: Mapping[str, str]) -> Iterator[FieldError]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    text = decode_base64(data[key])
    try:
        content = json.loads(text)
    except ValueError:
        # For most texts, the message of the API server shows a character of the content.
        problem = "must be a JSON object" if text.strip() else "unexpected end of JSON input"
        yield invalid(f"data[{key}]", _REDACTED, problem)
        return
    if content is not None and not isinstance(content, dict):
        shape = {str: "string", bool: "bool", list: "array"}.get(type(content), "number")
        problem = f"json: cannot unmarshal {shape} into Go value of type map[string]interface {{}}"
        yield invalid(f"data[{key}]", _REDACTED, problem)


def base64_errors(manifest: Manifest, field: str) -> Iterator[FieldError]:
    """Yield the entries of a map of base64 texts that are not base64.

    Args:
        field: `data` of a Secret, `binaryData` of a ConfigMap.
    """
    for key, text in sorted((manifest.get(field) or {}).items()):
        try:
            decode_base64(text)
        except ValueError as error:
            yield invalid(f"{field}[{key}]", _REDACTED, f"must be base64: {error}")


def _key_errors(
    field: str, entries: Mapping[str, str], others: Mapping[str, str], other_field: str
) -> Iterator[FieldError]:
    for key in sorted(entries):
        for problem in config_key(key):
            yield invalid(f"{field}[{key}]", key, problem)
        if key in others:
            yield invalid(f"{field}[{key}]", key, f"duplicate of key present in {other_field}")


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _decoded_size(entries: Mapping[str, str]) -> int:
    return sum((len(text) - sum(map(text.count, "=\r\n"))) * 3 // 4 for text in entries.values())
