"""HPAs of autoscaling/v1 with odd annotations, compared with the recorded answers of a real API server."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from ocf.autoscaling import admitted, validate
from ocf.autoscaling.api.v1_conversion import to_v1
from ocf.objects import Manifest
from ocf.schema.kubernetes import KUBERNETES_VERSION

CORPUS: Final = Path(__file__).with_name("data") / "hpa_v1.json.xz"
CREATED: Final = 201
REJECTED: Final = 422


class Row(NamedTuple):
    """What was sent, and the answer."""

    hpa: Manifest
    status: int
    answer: Any

    @property
    def sent(self) -> str:
        return json.dumps([self.hpa["metadata"]["annotations"], self.hpa["spec"]])


@cache
def table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lzma.decompress(CORPUS.read_bytes()).decode(errors="surrogatepass"))
    return found


@cache
def rows() -> tuple[Row, ...]:
    kind = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    return tuple(
        Row({**kind, "metadata": {"name": "web", "annotations": annotations}, "spec": spec}, status, answer)
        for annotations, spec, status, answer in table()["rows"]
    )


def test_the_table_is_large_enough() -> None:
    count = Counter(row.status for row in rows())

    assert table()["kubernetes"] == f"v{KUBERNETES_VERSION}"
    assert set(count) == {CREATED, REJECTED}
    assert min(count.values()) > 700


@pytest.mark.promise("hpa-validation", runs="more than 1 600 odd objects of autoscaling/v1")
def test_the_errors_are_those_of_the_server() -> None:
    wrong = []
    for row in rows():
        theirs = [] if row.status == CREATED else sorted(map(tuple, row.answer))
        ours = sorted((error.path, error.message) for error in validate(row.hpa, any_version=True))
        if theirs != ours:
            wrong.append((row.sent, theirs, ours))

    assert wrong == []


def test_the_stored_object_is_the_same() -> None:
    wrong = []
    for row in rows():
        if row.status == CREATED:
            stored = admitted(row.hpa, any_version=True)
            ours = {"annotations": stored["metadata"].get("annotations", {}), "spec": stored["spec"]}
            if ours != row.answer["v2"]:
                wrong.append((row.sent, row.answer["v2"], ours))

    assert wrong == []


def test_the_object_is_shown_in_autoscaling_v1_as_by_the_server() -> None:
    wrong = []
    for row in rows():
        if row.status == CREATED:
            stored = to_v1({**admitted(row.hpa, any_version=True), "apiVersion": "autoscaling/v2"})
            ours = {"annotations": stored["metadata"].get("annotations", {}), "spec": stored["spec"]}
            if ours != row.answer["v1"]:
                wrong.append((row.sent, row.answer["v1"], ours))

    assert wrong == []
