"""Edits of the text of a metric of autoscaling/v2beta1: its fields move to other places, with their comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ocf.objects.documents import dump_document

__all__ = ["Edit", "added_field", "aliases_in", "comments_in", "source_edits"]

_OLD_NAMES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("metric", "name"): ("metricName",),
    ("metric", "selector"): ("selector", "metricSelector"),
    ("target", "value"): ("targetValue",),
    ("target", "averageValue"): ("targetAverageValue", "averageValue"),
    ("target", "averageUtilization"): ("targetAverageUtilization",),
    ("current", "value"): ("currentValue",),
    ("current", "averageValue"): ("currentAverageValue", "averageValue"),
    ("current", "averageUtilization"): ("currentAverageUtilization",),
}
_STEP: Final = 2
_COMMENT: Final = re.compile(r"#[^\r\n]*")
_COMMENT_OF_BLOCK_SCALAR: Final = re.compile(r"[|>][-+\d]*[^\S\n]+(#[^\r\n]*)")
_COMMENT_LINE: Final = re.compile(r"( *)#[^\n]*(?:\n|$)")
_INDENT: Final = re.compile(r"[^\S\n]*")
_ANCHOR: Final = re.compile(r"&\S+\s+")


class Edit(NamedTuple):
    """A replacement of a part of the text of a document."""

    start: int
    end: int
    text: str


class _Field(NamedTuple):
    """A field of a source in lines of its own: comments before it, its key, and the rest with its comments."""

    start: int
    key: int
    rest: int
    end: int


def comments_in(text: str) -> list[str]:
    """Return the comments of a text; none if it cannot be parsed."""
    return [text[start:end] for start, end in _comments(text)]


def _comments(text: str) -> list[tuple[int, int]]:
    import yaml

    found, last = list[tuple[int, int]](), 0
    try:
        for token in yaml.scan(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            start, end = token.start_mark.index, token.end_mark.index
            found += _in_gap(text, last, start)
            header = _COMMENT_OF_BLOCK_SCALAR.match(text, start)
            if header is not None and getattr(token, "style", None) in ("|", ">"):
                found.append(header.span(1))
            last = max(last, end)
    except yaml.YAMLError:
        return []
    return [*found, *_in_gap(text, last, len(text))]


def _in_gap(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the comments between two tokens."""
    return [each.span() for each in _COMMENT.finditer(text, start, end)]


def source_edits(
    text: str, node: Any, metric: int, change: tuple[Mapping[str, Any], Mapping[str, Any]], *, whole: bool
) -> Iterator[Edit]:
    """Yield the edits of a source of a metric: the first field that moves becomes the new ones, others are removed.

    Comments of a field move with it. Those that have no field of their own afterwards become lines before the metric.

    Args:
        text: The text of the document.
        node: The node of the source.
        metric: Where the metric begins.
        change: The source before and after.
        whole: Write the new fields as they are; all comments of the old ones become lines before the metric.
    """
    old, new = change
    newline = "\r\n" if "\r\n" in text else "\n"
    if node.flow_style:
        anchor = _ANCHOR.match(text, node.start_mark.index)
        spans = [(anchor.end() if anchor else node.start_mark.index, node.end_mark.index)]
        yield Edit(*spans[0], json.dumps(new, ensure_ascii=False))
    else:
        fields = _fields(text, node)
        moved = {name: field for name, field in fields.items() if name not in new or new[name] != old.get(name)}
        block = _Block(text, node.value[0][0].start_mark.column, newline, old, {} if whole else moved)
        added = {name: value for name, value in new.items() if name not in old or old[name] != value}
        instead = "".join(block.group(name, value) for name, value in added.items())
        for field in moved.values():
            # The last line of a document may have no end.
            ended = text[field.start : field.end].endswith("\n")
            yield Edit(field.start, field.end, instead if ended else instead.removesuffix(newline))
            instead = ""
        spans = [(field.start, field.end) for name, field in moved.items() if name not in block.used]
    lost = [text[start:end] for start, end in _comments(text) if any(a <= start < b for a, b in spans)]
    if lost:
        at = text.rfind("\n", 0, metric) + 1
        indent = _INDENT.match(text, at)
        yield Edit(at, at, "".join(f"{indent[0] if indent else ''}{each}{newline}" for each in lost))


def added_field(text: str, node: Any, name: str, value: Any) -> Edit:
    """Return the edit that adds a field at the end of a map.

    Args:
        text: The text of the document.
        node: The node of the map, which is not empty.
    """
    if node.flow_style:
        end = node.end_mark.index - 1
        return Edit(end, end, f", {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    newline = "\r\n" if "\r\n" in text else "\n"
    end = _end(node)
    end = end if text[end - 1] == "\n" else _next_line(text, end)
    added = _Block(text, node.value[0][0].start_mark.column, newline, {}, {}).group(name, value)
    return Edit(end, end, added if text[end - 1] == "\n" else f"{newline}{added}")


def aliases_in(text: str) -> dict[str, int]:
    """Return the aliases of a text with the lines on which each is first used, from 1; none if it cannot be parsed."""
    import yaml

    found = dict[str, int]()
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.AliasEvent) and event.anchor and event.start_mark:
                found.setdefault(event.anchor, event.start_mark.line + 1)
    except yaml.YAMLError:
        return {}
    return found


def _fields(text: str, node: Any) -> dict[str, _Field]:
    fields, column, last = dict[str, _Field](), node.value[0][0].start_mark.column, 0
    for key, value in node.value:
        start = at = text.rfind("\n", 0, key.start_mark.index) + 1
        while start > last:
            before = text.rfind("\n", 0, start - 1) + 1
            if before < last or text[before:start].strip()[:1] not in {"", "#"}:
                break
            start = before
        end = _end(value)
        if text[end - 1] != "\n":
            end = _next_line(text, end)
        # A comment that is further to the right belongs to what is above it.
        while (deeper := _COMMENT_LINE.match(text, end)) and len(deeper[1]) > column:
            end = deeper.end()
        fields[key.value] = _Field(start if start >= last else at, key.start_mark.index, key.end_mark.index, end)
        last = end
    return fields


def _next_line(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


class _Block:
    """The new fields of a source as text.

    Attributes:
        used: The old fields whose text is used.
    """

    def __init__(
        self, text: str, column: int, newline: str, old: Mapping[str, Any], moved: Mapping[str, _Field]
    ) -> None:
        self._text = text
        self._column = column
        self._newline = newline
        self._old = old
        self._moved = moved
        self.used: set[str] = set()

    def group(self, name: str, value: Any) -> str:
        """Return the lines of a new field, such as `target`."""
        if name == "describedObject" and self._is("target", value):
            return self._moved_text("target", name, 0)
        if not isinstance(value, Mapping) or not value:
            return self._dumped({name: value}, 0)
        parts = [self._child(name, each, part) for each, part in value.items()]
        return "".join((f"{' ' * self._column}{name}:{self._newline}", *parts))

    def _child(self, group: str, name: str, value: Any) -> str:
        for old in _OLD_NAMES.get((group, name), ()):
            if self._is(old, value):
                return self._moved_text(old, name, _STEP)
        return self._dumped({name: value}, _STEP)

    def _is(self, old: str, value: Any) -> bool:
        return old in self._moved and old not in self.used and self._old[old] == value

    def _dumped(self, value: dict[str, Any], shift: int) -> str:
        lines = dump_document(value).splitlines()
        return "".join(f"{' ' * (self._column + shift)}{line}{self._newline}" for line in lines)

    def _moved_text(self, old: str, name: str, shift: int) -> str:
        self.used.add(old)
        field = self._moved[old]
        before = self._text[field.start : field.key].split("\n")[:-1]
        lines = [f"{' ' * (self._column + shift)}{line.strip()}{self._newline}" for line in before if line.strip()]
        rest = f"{' ' * self._column}{name}{self._text[field.rest : field.end]}".removesuffix("\n").removesuffix("\r")
        lines += (f"{' ' * shift if line.strip() else ''}{line}\n" for line in rest.split("\n"))
        return f"{''.join(lines)[:-1]}{self._newline}"


def _end(node: Any) -> int:
    """Return where the text of a value ends; the node of a block ends where the next one begins."""
    while node.id != "scalar" and not node.flow_style and node.value:
        node = node.value[-1][1] if node.id == "mapping" else node.value[-1]
    return int(node.end_mark.index)
