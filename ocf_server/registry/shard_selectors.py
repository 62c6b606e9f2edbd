"""Shard selectors of requests: the grammar and the errors of a real API server.

Source: `pkg/sharding/parser.go` of k8s.io/apiserver 1.36. The expression is CEL that is read and never evaluated.
"""

from collections.abc import Iterator
from typing import Any, Final

from ocf.errors import ApiError, api_error
from ocf.objects.shards import HASHES, SHARD_FIELDS, HashRange, ShardSelector
from ocf_server.api.status_errors import go_json
from ocf_server.cel.literals import RuleSyntaxError
from ocf_server.cel.parser import parse
from ocf_server.cel.syntax_tree import Call, Entries, Identifier, Listing, Literal, Node, Selection, Struct
from ocf_server.cel.values import Uint

__all__ = ["read_shard_selector"]

# The numbers of cel-go's ast.ExprKind, which are in the messages.
_KINDS: Final = {Call: 1, Identifier: 3, Listing: 4, Literal: 5, Entries: 6, Selection: 7, Struct: 8}
_GO_TYPES: Final = {bool: "bool", int: "int64", Uint: "uint64", float: "float64", bytes: "[]uint8"}
_DIGITS: Final = frozenset("0123456789abcdef")
_LENGTH: Final = 16
_END: Final = f"{HASHES:#x}"


class _ProblemError(Exception):
    """Why a text is not a shard selector."""


def read_shard_selector(text: str) -> ShardSelector:
    """Parse the shard selector of a request.

    Raises:
        ServerError: If it is malformed. A real API server responds with an internal error, although the request is at
            fault.
    """
    try:
        return _read(text.strip())
    except _ProblemError as problem:
        raise _internal_error(str(problem)) from None


def _internal_error(problem: str) -> ApiError:
    return api_error(f"invalid shard selector: {problem}", code=500)


def _read(text: str) -> ShardSelector:
    if not text:
        raise _ProblemError("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    try:
        found = [*_ranges(parse(text))]
    except RuleSyntaxError as error:
        raise _ProblemError(f"CEL parse error: {error.text}") from None
    except RecursionError:
        raise _ProblemError("CEL parse error: expression recursion limit exceeded: 250") from None
    field = found[0][0]
    for other, _ in found:
        if other != field:
            raise _ProblemError(f'all shard ranges must use the same field, got "{field}" and "{other}"')
    return ShardSelector(field, tuple(each for _, each in found))


def _ranges(node: Node) -> Iterator[tuple[str, HashRange]]:
    if not isinstance(node, Call):
        raise _ProblemError(f"unexpected expression kind {_kind(node)}; expected shardRange() call or || operator")
    if node.name == "_||_":
        for side in node.arguments:
            yield from _ranges(side)
    elif node.name == "shardRange":
        yield _range(node)
    else:
        raise _ProblemError(f'unsupported function "{node.name}"; only shardRange() and || are allowed')


def _range(call: Call) -> tuple[str, HashRange]:
    if len(call.arguments) != 3:  # noqa: PLR2004 (field, start and end)
        raise _ProblemError(f"shardRange() requires exactly 3 arguments, got {len(call.arguments)}")
    try:
        field = _path(call.arguments[0])
    except _ProblemError as problem:
        raise _ProblemError(f"shardRange() first argument: {problem}") from None
    if field not in SHARD_FIELDS:
        raise _ProblemError(f'unsupported field path "{field}"; supported: {", ".join(SHARD_FIELDS)}')
    start, end = _hash(call.arguments[1], "hexStart"), _hash(call.arguments[2], "hexEnd")
    if start >= end:
        raise _ProblemError(f"shard range start {start:#018x} must be less than end {end:#018x}")
    return field, HashRange(start, end)


def _path(node: Node) -> str:
    if isinstance(node, Identifier):
        return node.name
    if isinstance(node, Selection):
        if node.optional:
            raise RuleSyntaxError("unsupported syntax '.?'", node.at)
        return f"{_path(node.operand)}.{node.name}"
    raise _ProblemError(f"expected field path (e.g. object.metadata.uid), got expression kind {_kind(node)}")


def _hash(node: Node, name: str) -> int:
    if not isinstance(node, Literal):
        raise _ProblemError(f"{name} must be a string literal (e.g. '0xff'), got expression kind {_kind(node)}")
    value: Any = node.value
    if not isinstance(value, str):
        raise _ProblemError(f"{name} must be a string literal, got {_GO_TYPES.get(type(value), 'structpb.NullValue')}")
    digits = value.removeprefix("0x")
    if digits == value:
        raise _ProblemError(f"{name} must have '0x' prefix, got {go_json(value)}")
    if problem := _digit_problem(value, digits):
        raise _ProblemError(f"{name}{problem}")
    return int(digits, 16)


def _digit_problem(value: str, digits: str) -> str:
    """Return what is wrong with the digits of a hash, after its name; empty if nothing is."""
    if not digits:
        return ": hex value is required after '0x'"
    # Go counts bytes, not characters.
    length = len(digits.encode())
    if length > _LENGTH + 1:
        return f": hex value too long ({length} chars, max {_LENGTH + 1}): {go_json(digits)}"
    for letter in digits:
        if letter not in _DIGITS:
            return f": invalid hex character {go_json(letter)} in {go_json(value)}"
    if length == _LENGTH + 1 and value != _END:
        return f": 17-digit hex value must be '{_END}' (2^64), got {go_json(value)}"
    if length < _LENGTH:
        padded = f"0x{digits:0>{_LENGTH}}"
        return f' must be a 0x-prefixed 16-digit hex value, got {go_json(value)} (did you mean "{padded}"?)'
    return ""


def _kind(node: Node) -> int:
    return _KINDS[type(node)]
