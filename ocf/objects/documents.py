"""Manifests as text: parsing of YAML and JSON within limits, and serialization as YAML.

JSON is parsed by the JSON parser first, which is faster and supports the escapes of JSON for characters beyond the
first 65536, unlike YAML. A text that it rejects is parsed again by the YAML parser, whose errors contain the line.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.document_limits import MAX_DEPTH, MAX_VALUES
from ocf.objects.manifest import Manifest
from ocf.objects.yaml_scalars import read_plain

__all__ = ["dump_document", "load_as_kubectl", "load_document", "load_documents"]

_MAX_BYTES: Final = 3 * 2**20
_SUBJECT: Final = "document"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def load_document(text: str) -> Manifest:
    r"""Parse a YAML or JSON text with one document.

    Args:
        text: YAML or JSON; at most 3 MiB.

    Returns:
        The document. Aliases and merge keys are resolved, and its values share no dicts or lists.

    Raises:
        ManifestError: If the text does not contain exactly one document, the document is not a map, or the text cannot
            be parsed; the message contains the line.

    Example:
        >>> load_document("kind: ConfigMap\ndata: {since: 2001-12-14, mode: 0755, port: '80'}")
        {'kind': 'ConfigMap', 'data': {'since': '2001-12-14', 'mode': 493, 'port': '80'}}
    """
    documents = tuple(_load(text, _SUBJECT))
    if len(documents) != 1:
        raise _refusal(_SUBJECT, f"the text holds {len(documents)} documents, exactly one is expected")
    return documents[0]


def load_documents(text: str) -> tuple[Manifest, ...]:
    r"""Parse all documents of a YAML or JSON text.

    Args:
        text: YAML with `---` between the documents, or JSON; at most 3 MiB.

    Returns:
        The documents in order, each as `load_document` returns it; empty ones are skipped.

    Raises:
        ManifestError: If a document is not a map or cannot be parsed; the message contains the number of the document,
            from 1, and the line.

    Example:
        >>> [document["kind"] for document in load_documents("kind: Service\n---\n---\nkind: Deployment")]
        ['Service', 'Deployment']
    """
    return tuple(_load(text, f"{_SUBJECT} {{}}"))


def load_as_kubectl(text: str) -> tuple[Manifest | None, tuple[str, ...]]:
    r"""Parse a text with one document as kubectl does, which accepts more than `load_document`.

    Args:
        text: YAML or JSON; at most 3 MiB. kubectl splits a stream into its documents first.

    Returns:
        The document, None if it is empty, and warnings of what kubectl passes over in silence: each with the line in
        YAML, and without it in JSON.

    Raises:
        ManifestError: If kubectl could not parse it, or it is not a map.

    Example:
        >>> load_as_kubectl("kind: Service\nkind: ConfigMap")[0]
        {'kind': 'ConfigMap'}
    """
    from ocf.objects.yaml_reader import read_yaml_as_kubectl

    _check_size(text, _SUBJECT)
    warnings: list[str] = []

    def last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            names = [key for key, _ in pairs]
            twice = next(key for key in names if names.count(key) > 1)
            warnings.append(f"the key {twice:.80} is given twice; kubectl takes the last one, other programs reject it")
        return result

    values = _read_json(text, _SUBJECT, last, warnings)
    value, warnings = read_yaml_as_kubectl(text, _SUBJECT) if values is None else (values[0], warnings)
    if value is not None and not isinstance(value, dict):
        raise _refusal(_SUBJECT, f"a map with keys is expected, not a {type(value).__name__}")
    return value, tuple(warnings)


def dump_document(manifest: Manifest) -> str:
    r"""Serialize a manifest as YAML.

    Args:
        manifest: JSON values.

    Returns:
        Readable YAML, always the same for the same manifest: keys in the given order, one per line, strings of several
        lines as blocks, strings in quotes if a parser could read them as another type.

    Raises:
        ManifestError: If it contains a value that is not a JSON value; the message contains the fields.

    Example:
        >>> print(dump_document({"kind": "ConfigMap", "data": {"on": "yes", "motd": "Hello\nworld\n"}}), end="")
        kind: ConfigMap
        data:
          'on': 'yes'
          motd: |
            Hello
            world
    """
    # The library is imported on first use: a process that only uses JSON, such as most servers, starts without it.
    from ocf.objects.yaml_writer import write_yaml

    return write_yaml(manifest, _SUBJECT)


def _load(text: str, subject: str) -> Iterator[Manifest]:
    _check_size(text, subject)
    values = _read_json(text, subject)
    for number, value in enumerate(_read_yaml(text, subject) if values is None else values, 1):
        if isinstance(value, dict):
            yield value
        elif value is not None:
            raise _refusal(subject.format(number), f"a map with keys is expected, not a {type(value).__name__}")


def _read_yaml(text: str, subject: str) -> Iterator[Any]:
    from ocf.objects.yaml_reader import read_yaml

    return read_yaml(text, subject)


def _check_size(text: str, subject: str) -> None:
    try:
        size = len(text) if len(text) > _MAX_BYTES else len(text.encode())
    except UnicodeEncodeError as error:
        raise _refusal(subject.format(1), f"character {error.start + 1} is half of a surrogate pair") from None
    if size > _MAX_BYTES:
        raise _refusal(subject.format(1), f"longer than {_MAX_BYTES} bytes")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is given twice")
    return result


def _read_json(
    text: str,
    subject: str,
    pairs_hook: Callable[[list[tuple[str, Any]]], dict[str, Any]] = _unique,
    warnings: list[str] | None = None,
) -> list[Any] | None:
    """Return one valid JSON object; None if the text is anything else.

    Args:
        warnings: The list to which a warning of half of a surrogate pair is added; without a list it is not valid.
    """

    def refuse(constant: str) -> NoReturn:
        found = re.search(rf"(?<![\w\"]){constant}(?![\w\"])", text)
        line = "" if found is None else f"line {text.count(chr(10), 0, found.start()) + 1}: "
        raise _refusal(subject.format(1), f"{line}{constant} is not a JSON number")

    if not text.lstrip().startswith("{"):
        return None
    import json

    try:
        value = json.loads(
            text, object_pairs_hook=pairs_hook, parse_int=read_plain, parse_float=read_plain, parse_constant=refuse
        )
        if "\\u" in text:
            # Half of a surrogate pair can be written as an escape, but is not a character.
            written = json.dumps(value, ensure_ascii=False)
            half = _SURROGATE.search(written)
            if half is not None and warnings is not None:
                warnings.append(f"\\u{ord(half[0]):x} is half of a surrogate pair; kubectl replaces it by U+FFFD")
                value = json.loads(_SURROGATE.sub("\ufffd", written), parse_int=read_plain, parse_float=read_plain)
            elif half is not None:
                return None
    except (ValueError, RecursionError):
        return None
    _check_bounds(value, subject)
    return [value]


def _check_bounds(value: object, subject: str) -> None:
    count = 0
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        count += 1
        if isinstance(item, dict | list):
            count += len(item) if isinstance(item, dict) else 0
            children = item.values() if isinstance(item, dict) else item
            waiting.extend((child, depth + 1) for child in children)
            if depth > MAX_DEPTH:
                raise _refusal(subject.format(1), f"nested more than {MAX_DEPTH} levels deep")
        if count > MAX_VALUES:
            raise _refusal(subject.format(1), f"more than {MAX_VALUES} values")


def _refusal(subject: str, detail: str) -> ManifestError:
    return ManifestError(subject, [FieldProblem("", detail)])
