"""Corpus of valid and invalid built-in objects, with the answers of a real API server.

`scripts/record/validation.py` records it: one gzip'd file of JSON lines for each kind in `recorded/`. A case is a base
object with edits, created with a dry run, or a stored object with edits, updated with a dry run. The same functions
send a case to the real API server and to the embedded one, so both get the same requests.
"""

import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ocf.cluster import Cluster, Subresource
from ocf.errors import ApiError
from ocf.objects import copy_json

__all__ = ["FOLDER", "REMOVED", "Answer", "Case", "Corpus", "NotApplicableError", "create_stored", "edited", "send"]

Json = dict[str, Any]
Edit = tuple[str, Any]
"""A path such as `spec.ports[0].port`, and the new value of the field."""

FOLDER: Final = Path(__file__).parent / "recorded"
REMOVED: Final = {"$removed": True}
"""Value of an edit that removes the field."""

_OK: Final = 200
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z| \+0000 UTC)?")
_PART: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_END: Final = "+"


class NotApplicableError(LookupError):
    """An edit names a list item, or removes a field, that the object does not have."""


@dataclass(frozen=True, slots=True)
class Case:
    """A request.

    Args:
        base: Name of the object that the edits start from.
        update: Whether the object is stored and updated; otherwise it is created.
        edits: The edits, in order.
    """

    base: str
    update: bool
    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        return f"{'update' if self.update else 'create'} {self.base} {json.dumps(self.edits)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict of an API server.

    Args:
        status: HTTP status; 200 for every success.
        message: Message of the Status; empty on success.
        causes: Reason, field and message of each cause of the Status.
    """

    status: int
    message: str = ""
    causes: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, error: ApiError, prefix: str) -> Self:
        """Return the answer of an error; uids, times and the end of a name generated from `prefix` are masked."""
        causes = tuple((cause.reason, cause.field, _masked(cause.message, prefix)) for cause in error.causes)
        return cls(error.code, _masked(error.message, prefix), causes)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The cases of one kind.

    Args:
        kubernetes: Version of the API server that answered.
        kind: The kind.
        bases: Objects to create, by name.
        stored: Objects that exist in the cluster and are updated, by name; their status is stored as well.
        rows: The cases and the answers.
    """

    kubernetes: str
    kind: str
    bases: Mapping[str, Json]
    stored: Mapping[str, Json]
    rows: Sequence[tuple[Case, Answer]]

    def save(self, folder: Path = FOLDER) -> None:
        """Write the file of the kind; the same cases and answers give the same bytes."""
        header = {"kubernetes": self.kubernetes, "kind": self.kind, "bases": self.bases, "stored": self.stored}
        lines = [header, *([*_fields(case), *_fields(answer)] for case, answer in self.rows)]
        text = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.kind}.jsonl.gz").write_bytes(gzip.compress(text.encode(errors="surrogatepass"), mtime=0))

    @classmethod
    def load(cls, kind: str, folder: Path = FOLDER) -> Self:
        """Read the file of a kind."""
        text = gzip.decompress((folder / f"{kind}.jsonl.gz").read_bytes()).decode(errors="surrogatepass")
        header, *rows = map(json.loads, text.splitlines())
        return cls(**header, rows=[_row(row) for row in rows])


def _fields(value: Case | Answer) -> list[Any]:
    return [getattr(value, name) for name in value.__slots__]


def _row(fields: list[Any]) -> tuple[Case, Answer]:
    base, update, edits, status, message, causes = fields
    case = Case(base, update, tuple((path, value) for path, value in edits))
    return case, Answer(status, message, tuple((reason, path, text) for reason, path, text in causes))


def edited(manifest: Json, edits: Iterable[Edit]) -> Json:
    """Return a copy of an object with edits.

    Args:
        manifest: The object.
        edits: The edits. A path is a dotted path with indexes and keys in brackets: `spec.ports[0].port`,
            `metadata.labels[a.b/c]`; `[+]` appends to a list. Missing maps are created.

    Raises:
        NotApplicableError: If a list item does not exist, or a removed field.
    """
    found: Json = copy_json(manifest)
    for path, value in edits:
        *parents, last = _parts(path)
        _assign(_descend(found, parents), last, value)
    return found


def _parts(path: str) -> list[str | int]:
    parts = [match[1] if match[1] is not None else match[2] for match in _PART.finditer(path)]
    return [int(part) if part.isdigit() else part for part in parts]


def _descend(node: Any, parents: Sequence[str | int]) -> Any:
    for part in parents:
        if isinstance(part, int):
            if not isinstance(node, list) or part >= len(node):
                raise NotApplicableError(part)
            node = node[part]
        elif isinstance(node, dict):
            node = node.setdefault(part, {})
        else:
            raise NotApplicableError(part)
    return node


def _assign(node: Any, last: str | int, value: Any) -> None:
    if value == REMOVED:
        if not isinstance(node, dict) or last not in node:
            raise NotApplicableError(last)
        del node[last]
    elif last == _END and isinstance(node, list):
        node.append(copy_json(value))
    elif isinstance(node, dict):
        node[str(last)] = copy_json(value)  # a client sends each key of a map as a text
    elif _has_item(node, last):
        node[last] = copy_json(value)
    else:
        raise NotApplicableError(last)


def _has_item(node: Any, index: str | int) -> bool:
    return isinstance(node, list) and isinstance(index, int) and index < len(node)


async def create_stored(cluster: Cluster, stored: Mapping[str, Json]) -> dict[str, Json]:
    """Create the objects that updates start from, with their status; return them as stored, by name."""
    found = {}
    for name, manifest in stored.items():
        live = await cluster.create(manifest, field_manager="corpus")
        if "status" in manifest:
            status = {**live, "status": manifest["status"]}
            live = await cluster.update(status, field_manager="corpus", subresource=Subresource.STATUS)
        found[name] = live
    return found


async def send(cluster: Cluster, corpus: Corpus, case: Case, stored: Mapping[str, Json]) -> Answer:
    """Send a case with a dry run.

    Args:
        cluster: The cluster.
        corpus: The corpus of the case.
        case: The request.
        stored: The stored objects of `create_stored`.

    Returns:
        The verdict.

    Raises:
        NotApplicableError: If an edit does not fit the object.
    """
    manifest = edited(stored[case.base] if case.update else corpus.bases[case.base], case.edits)
    try:
        if case.update:
            await cluster.update(manifest, field_manager="corpus", dry_run=True)
        else:
            await cluster.create(manifest, field_manager="corpus", dry_run=True)
    except ApiError as error:
        metadata = manifest["metadata"]
        return Answer.of(error, "" if metadata.get("name") else metadata.get("generateName", ""))
    return Answer(_OK)


def _masked(text: str, prefix: str) -> str:
    text = _TIME.sub("*", _UID.sub("*", text))
    return re.sub(f"{re.escape(prefix)}[a-z0-9]{{5}}\\b", f"{prefix}*", text) if prefix else text
