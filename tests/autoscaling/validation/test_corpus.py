"""Thousands of HPAs get the result that a real API server returned.

The table was recorded by `scripts/record/hpa_corpus.py`; each row is a manifest, how it was sent, and the answer.
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
from ocf.objects import Manifest, copy_json
from ocf.objects.paths import format_path, parse_path
from ocf.schema.kubernetes import KUBERNETES_VERSION

CORPUS: Final = Path(__file__).with_name("data") / "hpa_corpus.json.xz"
GATES: Final = (FeatureGates.for_release("1.36"), FeatureGates(scale_to_zero=True, configurable_tolerance=False))
UNDECODABLE, REFUSED, TAKEN = 400, 422, 200
ADDRESS: Final = re.compile("the name(space)? of the (provided )?object")
"""Prefix of the errors for an object that does not match the URL of its request; offline validation has no URL."""
LOSSY: Final = "1000E"
"""A quantity that the API server stores without its suffix; that is not reproduced here."""
MADE_UP: Final = frozenset({"namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "managedFields"})


class Row(NamedTuple):
    """One request and its response."""

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
def checked_rows() -> tuple[tuple[Row, tuple[FieldError, ...] | ManifestError], ...]:
    """Return every row with its validation result."""
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


def status_code(found: tuple[FieldError, ...] | ManifestError) -> int:
    if isinstance(found, ManifestError):
        return UNDECODABLE
    return REFUSED if found else TAKEN


def rejected() -> Iterator[tuple[Row, tuple[FieldError, ...]]]:
    for row, found in checked_rows():
        if row.status == REFUSED and isinstance(found, tuple):
            yield row, found


def undecodable() -> Iterator[tuple[Row, ManifestError]]:
    for row, found in checked_rows():
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
        accepted = TAKEN if status == 201 else status
        yield Row(hpa, edits, kind, olds.get(old), GATES[gated], accepted, answer)


def edit(value: Any, path: list[str | int], new: list[Any]) -> None:
    """Set or remove a value of a manifest; nothing happens if its parent does not exist."""
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


def test_the_table_is_large_enough() -> None:
    count = Counter((row.send, row.status) for row in rows())

    assert table()["kubernetes"] == f"v{KUBERNETES_VERSION}"
    assert len(rows()) > 5000
    assert count["create", UNDECODABLE] > 1000
    assert count["create", REFUSED] > 900
    assert count["create", TAKEN] > 900
    assert count["update", REFUSED] > 300
    assert count["update", TAKEN] > 300
    assert count["status", REFUSED] > 30
    assert count["scale", REFUSED] > 30


@pytest.mark.promise("hpa-validation", runs="more than 5 000 recorded answers")
def test_the_result_is_the_same() -> None:
    wrong = [
        (shown(row), row.status, str(found), row.answer)
        for row, found in checked_rows()
        if status_code(found) != row.status and not row.addressed
    ]

    assert wrong == []


def test_an_object_that_changes_its_name_or_namespace_is_rejected_too() -> None:
    """The API server rejects it before validation, because of the URL."""
    found = [(row, found) for row, found in checked_rows() if row.addressed and row.send == "update"]

    assert len(found) > 50
    assert [shown(row) for row, errors in found if status_code(errors) == TAKEN] == []


def unordered(cause: tuple[str, str, str]) -> str:
    """Return the group in which the API server has no fixed order, because it iterates over a Go map."""
    if cause[0] in {"metadata.labels", "metadata.annotations"}:
        return cause[0]
    return cause[2] if cause[2] == "Forbidden: must populate the given metric source only" else ""


def in_fixed_order(causes: Iterator[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [each for group, found in groupby(causes, unordered) for each in (sorted(found) if group else found)]


@pytest.mark.promise("hpa-validation")
def test_the_causes_are_the_same_in_the_same_order() -> None:
    """Field, reason and text of each cause, repetitions included."""
    wrong = []
    for row, errors in rejected():
        theirs = in_fixed_order((field, reason, message) for field, reason, message in row.answer[1])
        ours = in_fixed_order((error.path, error.type.value, error.message) for error in errors)
        if theirs != ours:
            wrong.append((shown(row), theirs, ours))

    assert wrong == []


def generated(start: str | None) -> str:
    return f"{start.encode()[:58].decode()}xxxxx" if start else ""


@pytest.mark.promise("hpa-validation")
def test_the_message_is_the_same() -> None:
    """Only if the API server has a fixed order."""
    wrong = []
    for row, errors in rejected():
        if not any(unordered(tuple(cause)) for cause in row.answer[1]):
            metadata = row.hpa.get("metadata") or {}
            name = metadata.get("name") or generated(metadata.get("generateName"))
            kind = "Scale" if row.send == "scale" else "HorizontalPodAutoscaler"
            ours = invalid_message(name, errors, kind=kind)
            if ours != row.answer[0]:
                wrong.append((row.answer[0], ours))

    assert wrong == []


def test_a_decoding_error_names_the_field() -> None:
    """One of the problems is at a field that was changed, above it or below it."""
    wrong = []
    for row, error in undecodable():
        changed = [format_path(path) for path, *_ in row.edits]
        named = [problem.path for problem in error.problems]
        if not any(one.startswith(other) or other.startswith(one) for one in named for other in changed):
            wrong.append((shown(row), named))

    assert wrong == []


def test_unknown_fields_are_those_of_the_server() -> None:
    wrong = []
    for row, error in undecodable():
        if row.answer.startswith("strict decoding error"):
            named = set(re.findall(r'unknown field "([^"]*)"', row.answer))
            ours = {problem.path for problem in error.problems if problem.detail.startswith("unknown field")}
            if named != ours:
                wrong.append((shown(row), named, ours))

    assert wrong == []


def without_empty(value: Any) -> Any:
    """Return a value without empty values: whether the API server prints them depends on its structs."""
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
    return {"metadata": metadata, "spec": manifest["spec"]}


def accepted() -> Iterator[Row]:
    for row in rows():
        if row.status == TAKEN and row.send in {"create", "update"} and LOSSY not in json.dumps(row.hpa):
            yield row


def test_the_stored_object_is_the_same() -> None:
    wrong = [
        (shown(row), parts(row.answer), parts(admitted(row.hpa, row.old, gates=row.gates)))
        for row in accepted()
        if parts(row.answer) != parts(admitted(row.hpa, row.old, gates=row.gates))
    ]

    assert wrong == []


def test_decoding_and_defaulting_alone_give_the_stored_spec() -> None:
    """Only if no feature gate drops a field."""
    wrong = [
        shown(row)
        for row in accepted()
        if row.gates.configurable_tolerance
        and without_empty(default(decode(row.hpa))["spec"]) != without_empty(parts(row.answer)["spec"])
    ]

    assert wrong == []


def test_an_accepted_object_is_accepted_again_as_stored() -> None:
    """Defaults and generated fields cause no new errors."""
    wrong = []
    for row in accepted():
        stored = admitted(row.hpa, row.old, gates=row.gates)
        if row.old is None and validate(stored, gates=row.gates):
            wrong.append(shown(row))
        if validate(stored, stored, gates=row.gates):
            wrong.append(f"as an update: {shown(row)}")

    assert wrong == []


def test_the_paths_of_errors_can_be_parsed() -> None:
    """So that a program can find the field of an error."""
    paths = {cause[0] for row in rows() if row.status == REFUSED for cause in row.answer[1]}

    assert {path for path in paths if not parse_path(re.sub(r"\[\d+\]", "", path))} == set()
