"""Parser of YAML from untrusted sources: safe, limited, strict.

It builds values from the events of the library instead of using its constructor. Events need no recursion and have line
numbers, tags cannot create objects, and the values behind an alias are counted before they are copied: a text of a
kilobyte can expand to terabytes. Duplicate keys and keys that are not strings are errors, unless a text is read as
kubectl reads it. Scalars have the meaning they have in Kubernetes, see `ocf.objects.yaml_scalars`.
"""

import base64
import binascii
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import yaml

from ocf.errors import FieldProblem, ManifestError
from ocf.objects.document_limits import MAX_DEPTH, MAX_VALUES
from ocf.objects.manifest import copy_json
from ocf.objects.yaml_scalars import Scalar, read_plain

__all__ = ["read_yaml", "read_yaml_as_kubectl"]

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({"!", f"{_TAG}str"})
_SCALAR_TAGS: Final[dict[str, tuple[type, ...]]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}
_KUBECTL_TEXT_TAGS: Final = frozenset({*_TEXT_TAGS, f"{_TAG}timestamp"})
_BINARY: Final = f"{_TAG}binary"
_MERGE: Final = object()
_MAX_SHOWN: Final = 80


def read_yaml(text: str, subject: str) -> Iterator[Any]:
    """Parse the documents of a text one by one.

    Args:
        subject: Name of a document in errors; `{}` is replaced by its number, from 1.

    Raises:
        ManifestError: If the text cannot be parsed; the message contains the line.
    """
    reader = _Reader(subject)
    with _reader_errors(reader, text):
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.DocumentEndEvent):
                yield reader.finish()
            else:
                reader.take(event)


def read_yaml_as_kubectl(text: str, subject: str) -> tuple[Any, list[str]]:
    """Parse the first document of a text as kubectl does, and return what kubectl passes over in silence.

    The last one of duplicate keys counts, a key that is a number or a boolean becomes its text, tags of other programs
    are ignored, and what follows `...` is not read.
    """
    reader, document = _KubectlReader(subject), None
    with _reader_errors(reader, text):
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.DocumentEndEvent):
                document = reader.finish()
                if event.explicit and event.end_mark is not None and event.start_mark is not None:
                    reader.warn_of_rest(text[event.end_mark.index :], event.start_mark.line)
                    break
            else:
                reader.take(event)
    return document, reader.warnings


@contextmanager
def _reader_errors(reader: "_Reader", text: str) -> Iterator[None]:
    """Convert the errors of the library."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise reader.error_at(line, error.problem or "cannot be read") from None
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n")
        raise reader.error_at(line, f"{error.reason}: character {error.character!r}") from None


class _Anchored(NamedTuple):
    """The value of an anchor, with its size for each alias."""

    value: Any
    size: int
    height: int


class _Open:
    """A map or a list that is not complete yet."""

    __slots__ = ("anchor", "before", "height", "key", "merged", "value", "written")

    def __init__(self, value: Any, anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before
        self.key: Any = None
        self.height = 0
        self.merged = False
        self.written: dict[str, type] = {}

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)


class _Reader:
    """Builds documents from events."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._number = 1
        self._count = 0
        self._begin()

    def _begin(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._shares = False
        self._document: Any = None
        self._line = 0

    def take(self, event: yaml.Event) -> None:
        """Process the next event of a document."""
        self._line = event.start_mark.line if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._collection(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()

    def finish(self) -> Any:
        """Return the complete document, and start the next one."""
        document = copy_json(self._document) if self._shares else self._document
        self._number += 1
        self._begin()
        return document

    def error_at(self, line: int, detail: str) -> ManifestError:
        """Return the error for a line, counted from 0."""
        return ManifestError(self._subject.format(self._number), [FieldProblem("", f"line {line + 1}: {detail}")])

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._spend(1)
        parent = self._open[-1] if self._open else None
        if parent and parent.wants_key and event.value == "<<" and event.implicit[0] and event.tag is None:
            self._set_key(parent, _MERGE, "<<")
            return
        value = self._meaning(event)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1, 0)
        self._place(value, 0, event.value)

    def _meaning(self, event: yaml.ScalarEvent) -> Scalar:
        if event.tag in _TEXT_TAGS or (event.tag is None and not event.implicit[0]):
            return event.value
        value = read_plain(event.value)
        if event.tag is not None and type(value) not in _SCALAR_TAGS.get(event.tag, ()):
            raise self._error_at(f"the tag {_shown(event.tag)} is not supported for this value")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error_at(f"{event.value} is not a JSON number; put it in quotes if it is a text")
        return value

    def _collection(self, event: yaml.CollectionStartEvent) -> None:
        self._spend(1)
        is_map = isinstance(event, yaml.MappingStartEvent)
        self._check_tag(event.tag, is_map=is_map)
        if self._open and self._open[-1].wants_key:
            raise self._error_at(f"a key must be a text, not a {'map' if is_map else 'list'}")
        self._check_depth(1)
        self._open.append(_Open({} if is_map else [], event.anchor, self._count - 1))

    def _check_tag(self, tag: str | None, *, is_map: bool) -> None:
        if tag not in {None, "!", f"{_TAG}map" if is_map else f"{_TAG}seq"}:
            raise self._error_at(f"the tag {_shown(tag or '')} is not supported for this value")

    def _close(self) -> None:
        done = self._open.pop()
        height = done.height + 1
        if done.anchor:
            self._anchors[done.anchor] = _Anchored(done.value, self._count - done.before, height)
        self._place(done.value, height)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        anchored = self._anchors.get(name)
        if anchored is None:
            raise self._error_at(f"the alias *{_shown(name)} repeats nothing that ends before it")
        self._spend(anchored.size)
        self._check_depth(anchored.height)
        self._shares = True
        self._place(anchored.value, anchored.height, f"*{name}")

    def _place(self, value: Any, height: int, written: str = "") -> None:
        if not self._open:
            self._document = value
            return
        parent = self._open[-1]
        parent.height = max(parent.height, height)
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.key is None:
            self._set_key(parent, value, written)
        elif parent.key is _MERGE:
            self._merge(parent, value)
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _set_key(self, parent: _Open, key: Any, written: str) -> None:
        kind = type(key)
        key = key if key is _MERGE or isinstance(key, str) else self._key_text(key, written)
        if parent.merged if key is _MERGE else key in parent.written:
            self._repeated(written, equal=key is _MERGE or parent.written[key] is kind)
        if key is not _MERGE:
            parent.written[key] = kind
        parent.key = key

    def _key_text(self, key: Any, written: str) -> str:
        import json

        meaning = type(key).__name__ if isinstance(key, dict | list) else json.dumps(key)
        raise self._error_at(f"the key {_shown(written)} means {meaning}; a key must be a text, put it in quotes")

    def _repeated(self, written: str, *, equal: bool) -> None:
        """Raise for a key that is given twice.

        Args:
            equal: Whether the keys are equal; otherwise only their texts are, such as `1` and `"1"`.
        """
        del equal
        raise self._error_at(f"the key {_shown(written)} is given twice")

    def _merge(self, parent: _Open, value: Any) -> None:
        merged = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in merged):
            raise self._error_at("<< must be followed by a map, or a list of maps")
        self._shares = True
        # As in Kubernetes, a merged map replaces what stands before it, and what stands after it replaces its values.
        for each in reversed(merged):
            parent.value.update(each)
        parent.merged = True
        parent.key = None

    def _spend(self, count: int) -> None:
        self._count += count
        if self._count > MAX_VALUES:
            raise self._error_at(f"more than {MAX_VALUES} values, counting an alias as what it stands for")

    def _check_depth(self, height: int) -> None:
        if len(self._open) + height > MAX_DEPTH:
            raise self._error_at(f"nested more than {MAX_DEPTH} levels deep")

    def _error_at(self, detail: str) -> ManifestError:
        return self.error_at(self._line, detail)


class _KubectlReader(_Reader):
    """Accepts what kubectl accepts, and keeps a warning of what it passes over."""

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.warnings: list[str] = []

    def warn_of_rest(self, rest: str, line: int) -> None:
        """Keep a warning if a document is followed by anything but comments."""
        if any(each.strip() and not each.lstrip().startswith("#") for each in rest.splitlines()):
            self._line = line
            self._warn("kubectl does not read what follows `...`; write `---` in its place")

    def _meaning(self, event: yaml.ScalarEvent) -> Scalar:
        tag = event.tag
        if tag == _BINARY:
            try:
                return base64.b64decode("".join(event.value.split()), validate=True).decode(errors="replace")
            except binascii.Error:
                raise self._error_at("the value of !!binary is not base64") from None
        if tag in _KUBECTL_TEXT_TAGS or (tag is not None and not tag.startswith(_TAG)):
            return event.value
        return super()._meaning(event)

    def _check_tag(self, tag: str | None, *, is_map: bool) -> None:
        pass

    def _key_text(self, key: Any, written: str) -> str:
        if key is None or isinstance(key, dict | list):
            return super()._key_text(key, written)
        import json

        return json.dumps(key)

    def _repeated(self, written: str, *, equal: bool) -> None:
        if equal:
            self._warn(
                f"the key {_shown(written)} is given twice; kubectl takes the last one, other programs reject it"
            )
        else:
            # They are two keys of a map in Go, which has no order, until they become texts.
            self._warn(
                f"the key {_shown(written)} is the text of another key, of another type; kubectl takes one of the two, "
                "not always the same: remove one of them"
            )

    def _warn(self, detail: str) -> None:
        self.warnings.append(f"line {self._line + 1}: {detail}")


def _shown(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
