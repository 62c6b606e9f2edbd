"""Thousands of HPAs get the verdict here that a real API server gave them.

The table was recorded by `scripts/record_hpa_corpus.py`; each row is a manifest, how it was sent, and the answer.
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from ocf.autoscaling import (
    FeatureGates,
    FieldError,
    admitted,
    decode,
    default,
    invalid_message,
    validate,
    validate_scale,
    validate_status,
)
from ocf.errors import ManifestError
from ocf.objects import Manifest, copy_json, format_path, parse_path

CORPUS: Final = Path(__file__).with_name("data") / "hpa_corpus.json.xz"
GATES: Final = (FeatureGates.for_release("1.36"), FeatureGates(scale_to_zero=True, configurable_tolerance=False))
UNDECODABLE, REFUSED, TAKEN = 400, 422, 200
ADDRESS: Final = re.compile("the name(space)? of the (provided )?object")
"""Begins the refusals of an object that does not fit the URL it was sent to; off-line there is no URL."""
LOSSY: Final = "1000E"
"""A quantity that the server stores without its suffix, which is not imitated."""
MADE_UP: Final = frozenset({"namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "managedFields"})


class Row(NamedTuple):
    """One request and its answer."""

    hpa: Any
    edits: list[list[Any]]
    send: str
    old: Manifest | None
    gates: FeatureGates
    status: int
    answer: Any

    @property
    def addressed(self) -> bool:
        return self.status == UNDECODABLE and ADDRESS.match(self.answer) is not None


@cache
def judged() -> tuple[tuple[Row, tuple[FieldError, ...] | ManifestError], ...]:
    """Return every row with what we make of it."""
    return tuple((row, outcome(row)) for row in rows())


def outcome(row: Row) -> tuple[FieldError, ...] | ManifestError:
    try:
        if row.send == "scale":
            return validate_scale(row.hpa)
        if row.send == "status" and row.old is not None:
            return validate_status(row.hpa, row.old)
        return validate(row.hpa, row.old, gates=row.gates)
    except ManifestError as error:
        return error


def verdict(found: tuple[FieldError, ...] | ManifestError) -> int:
    if isinstance(found, ManifestError):
        return UNDECODABLE
    return REFUSED if found else TAKEN


def refused() -> Iterator[tuple[Row, tuple[FieldError, ...]]]:
    for row, found in judged():
        if row.status == REFUSED and isinstance(found, tuple):
            yield row, found


def undecodable() -> Iterator[tuple[Row, ManifestError]]:
    for row, found in judged():
        if row.status == UNDECODABLE and isinstance(found, ManifestError):
            yield row, found


@cache
def table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lzma.decompress(CORPUS.read_bytes()).decode(errors="surrogatepass"))
    return found


@cache
def rows() -> tuple[Row, ...]:
    return tuple(_rows())


def _rows() -> Iterator[Row]:
    bases, olds = table()["bases"], table()["olds"]
    for base, edits, send, gated, status, answer in table()["rows"]:
        kind, _, old = send.partition(":")
        hpa = copy_json(bases[base])
        for path, *new in edits:
            edit(hpa, path, new)
        taken = TAKEN if status == 201 else status
        yield Row(hpa, edits, kind, olds.get(old), GATES[gated], taken, answer)


def edit(value: Any, path: list[str | int], new: list[Any]) -> None:
    """Put something into a manifest, or take it away; where it has no place, nothing happens."""
    *parents, last = path
    for part in parents:
        if isinstance(value, dict):
            value = value.setdefault(part, {})
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return
    if isinstance(value, dict):
        value.pop(last, None)
        if new:
            value[last] = copy_json(new[0])
    elif isinstance(value, list) and isinstance(last, int) and last < len(value):
        value[last : last + 1] = copy_json(new)


def shown(row: Row) -> str:
    return f"{row.send} {row.edits!r:.300}"


def test_the_table_is_worth_its_name() -> None:
    count = Counter((row.send, row.status) for row in rows())

    assert table()["kubernetes"] == "v1.36.3"
    assert len(rows()) > 5000
    assert count["create", UNDECODABLE] > 1000
    assert count["create", REFUSED] > 900
    assert count["create", TAKEN] > 900
    assert count["update", REFUSED] > 300
    assert count["update", TAKEN] > 300
    assert count["status", REFUSED] > 30
    assert count["scale", REFUSED] > 30


@pytest.mark.promise("hpa-validation", runs="more than 5 000 recorded answers")
def test_the_verdict_is_the_same() -> None:
    wrong = [
        (shown(row), row.status, str(found), row.answer)
        for row, found in judged()
        if verdict(found) != row.status and not row.addressed
    ]

    assert wrong == []


def test_an_object_that_changes_its_name_or_namespace_is_refused_too() -> None:
    """The server refuses it before it looks into it, because of the URL."""
    found = [(row, found) for row, found in judged() if row.addressed and row.send == "update"]

    assert len(found) > 50
    assert [shown(row) for row, errors in found if verdict(errors) == TAKEN] == []


def unordered(cause: tuple[str, str, str]) -> str:
    """Name the group in which the server has no order, since it walks a Go map."""
    if cause[0] in {"metadata.labels", "metadata.annotations"}:
        return cause[0]
    return cause[2] if cause[2] == "Forbidden: must populate the given metric source only" else ""


def steadied(causes: Iterator[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [each for group, found in groupby(causes, unordered) for each in (sorted(found) if group else found)]


@pytest.mark.promise("hpa-validation")
def test_the_causes_are_the_same_in_the_same_order() -> None:
    """Field, reason and text of each cause, repetitions included."""
    wrong = []
    for row, errors in refused():
        said = steadied((field, reason, message) for field, reason, message in row.answer[1])
        ours = steadied((error.path, error.type.value, error.message) for error in errors)
        if said != ours:
            wrong.append((shown(row), said, ours))

    assert wrong == []


def generated(start: str | None) -> str:
    return f"{start.encode()[:58].decode()}xxxxx" if start else ""


@pytest.mark.promise("hpa-validation")
def test_the_message_is_the_same() -> None:
    """Only where the server has an order."""
    wrong = []
    for row, errors in refused():
        if not any(unordered(tuple(cause)) for cause in row.answer[1]):
            metadata = row.hpa.get("metadata") or {}
            name = metadata.get("name") or generated(metadata.get("generateName"))
            kind = "Scale" if row.send == "scale" else "HorizontalPodAutoscaler"
            ours = invalid_message(name, errors, kind=kind)
            if ours != row.answer[0]:
                wrong.append((row.answer[0], ours))

    assert wrong == []


def test_what_cannot_be_decoded_names_the_field() -> None:
    """One of the problems is at a field that was changed, above it or below it."""
    wrong = []
    for row, error in undecodable():
        changed = [format_path(path) for path, *_ in row.edits]
        named = [problem.path for problem in error.problems]
        if not any(one.startswith(other) or other.startswith(one) for one in named for other in changed):
            wrong.append((shown(row), named))

    assert wrong == []


def test_unknown_fields_are_those_that_the_server_does_not_know() -> None:
    wrong = []
    for row, error in undecodable():
        if row.answer.startswith("strict decoding error"):
            told = set(re.findall(r'unknown field "([^"]*)"', row.answer))
            ours = {problem.path for problem in error.problems if problem.detail.startswith("unknown field")}
            if told != ours:
                wrong.append((shown(row), told, ours))

    assert wrong == []


def without_empty(value: Any) -> Any:
    """Return a value without what is empty: what of it the server prints depends on its structs."""
    if isinstance(value, dict):
        found = {key: without_empty(item) for key, item in value.items()}
        return {
            key: item
            for key, item in found.items()
            if item not in (None, "", []) and (item != {} or key in {"selector", "metadata"})
        }
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value


def parts(manifest: Manifest) -> Manifest:
    metadata = {key: item for key, item in manifest.get("metadata", {}).items() if key not in MADE_UP}
    if metadata.get("generateName"):
        metadata.pop("name", None)
    return without_empty({"metadata": metadata, "spec": manifest["spec"]})  # type: ignore[no-any-return]  # JSON


def taken() -> Iterator[Row]:
    for row in rows():
        if row.status == TAKEN and row.send in {"create", "update"} and LOSSY not in json.dumps(row.hpa):
            yield row


def test_what_is_stored_is_the_same() -> None:
    wrong = [
        (shown(row), parts(row.answer), parts(admitted(row.hpa, row.old, gates=row.gates)))
        for row in taken()
        if parts(row.answer) != parts(admitted(row.hpa, row.old, gates=row.gates))
    ]

    assert wrong == []


def test_decoding_and_defaulting_alone_give_the_stored_spec() -> None:
    """Where no feature gate takes something away."""
    wrong = [
        shown(row)
        for row in taken()
        if row.gates.configurable_tolerance
        and without_empty(default(decode(row.hpa))["spec"]) != parts(row.answer)["spec"]
    ]

    assert wrong == []


def test_an_object_that_is_taken_is_taken_again_as_stored() -> None:
    """Defaults and what the server makes up are no new mistakes."""
    wrong = []
    for row in taken():
        stored = admitted(row.hpa, row.old, gates=row.gates)
        if row.old is None and validate(stored, gates=row.gates):
            wrong.append(shown(row))
        if validate(stored, stored, gates=row.gates):
            wrong.append(f"as an update: {shown(row)}")

    assert wrong == []


def test_a_path_of_the_table_can_be_read() -> None:
    """So that a program can find what an error is about."""
    paths = {cause[0] for row in rows() if row.status == REFUSED for cause in row.answer[1]}

    assert {path for path in paths if not parse_path(re.sub(r"\[\d+\]", "", path))} == set()
