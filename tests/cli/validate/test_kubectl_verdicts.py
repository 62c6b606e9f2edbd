"""Files as kubectl reads them, compared with what kubectl did with each of them: `kubectl apply --dry-run=server`.

Public reports of what the rows rebuild: duplicate keys (https://github.com/kubernetes/kubernetes/issues/14791,
https://github.com/kubernetes/kubernetes/issues/99286), byte order marks and UTF-16
(https://github.com/helm/helm/issues/6081, https://github.com/kubernetes/kubernetes/pull/39008,
https://github.com/kubernetes/kubernetes/pull/140549), bytes that are not UTF-8
(https://github.com/prometheus-community/helm-charts/issues/5659), misspelt kinds that other checkers skip
(https://github.com/opendatahub-io/odh-dashboard/pull/9658).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.schema.kubernetes import KUBERNETES_VERSION
from ocf.testing.envtest.binaries import Program, Programs
from ocf.testing.envtest.fixtures import Envtest
from scripts.record.kubectl_verdicts import TABLE, applied, of_autoscalers

DIFFERENT: Final = {
    **dict.fromkeys(
        ("empty file", "blank file", "only comment", "only separators", "scalar number doc"), "it has no autoscaler"
    ),
    **dict.fromkeys(("List items null", "List no items", "List items map"), "it has no autoscaler"),
    **dict.fromkeys(("List dotted group", "List meta"), "a custom resource may have a group with a dot"),
    **dict.fromkeys(("tagged set", "null label"), "a client-side apply drops nulls, which mean empty texts"),
    "two docs no sep json yaml": "kubectl applies the first object twice and loses the second one",
    "items in hpa with hpa": "kubectl applies the items and loses the object that has them",
    "big int key": "the key is valid with the digits that the user wrote",
    "dots json": "kubectl parses what begins with JSON as JSON only",
}
"""Rows in which our verdict is another one, with the reason."""


class Row(NamedTuple):
    """A file, and the autoscalers that kubectl applied; None if it failed."""

    id: str
    data: bytes
    applied: list[Any] | None


@cache
def rows() -> tuple[Row, ...]:
    return tuple(Row(name, text.encode("latin-1"), applied) for name, text, applied in _table()["rows"])


def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def our_verdict(file: Path) -> list[Any] | None:
    validated = CliRunner().invoke(app, ["validate", str(file)], catch_exceptions=False)
    if validated.exit_code != 0:
        return None
    answer = CliRunner().invoke(app, ["default", "--output", "json", str(file)], catch_exceptions=False)
    return of_autoscalers(json.loads(answer.stdout)["items"])


def test_the_table_is_of_the_supported_release() -> None:
    assert _table()["kubectl"] == f"v{KUBERNETES_VERSION}"
    assert len(rows()) > 250
    assert set(DIFFERENT) <= {row.id for row in rows()}


def test_the_verdict_is_that_of_kubectl(tmp_path: Path) -> None:
    wrong = []
    for row in rows():
        file = tmp_path / "hpa.yaml"
        file.write_bytes(row.data)
        ours = our_verdict(file)
        if (ours != row.applied) != (row.id in DIFFERENT):
            wrong.append((row.id, row.applied, ours))

    assert wrong == []


@pytest.mark.matrix
def test_kubectl_still_has_this_verdict(
    envtest: Envtest,
    envtest_programs: Programs,
    tmp_path: Path,
    sampled: Callable[[Sequence[Row]], Sequence[Row]],
) -> None:
    kubectl = envtest_programs.path(Program.KUBECTL)
    wrong = []
    for row in sampled(rows()):
        file = tmp_path / "hpa.yaml"
        file.write_bytes(row.data)
        found = applied(kubectl, envtest.kubeconfig, file)
        if found != row.applied:
            wrong.append((row.id, row.applied, found))

    assert wrong == []


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        pytest.param("  maxReplicas: 2\n  maxReplicas: 3\n", "line 7: the key maxReplicas is given twice", id="key"),
        pytest.param("  maxReplicas: 3\n...\nkind: Service\n", "line 7: kubectl does not read what follows", id="dots"),
        pytest.param("  maxReplicas: 3\n# caf\xe9\n", "line 7: not UTF-8; kubectl replaces the bytes", id="Latin-1"),
        pytest.param("  maxReplicas: 3\n...\n# end\n", None, id="a comment after dots"),
        pytest.param("  maxReplicas: 3\n# caf\ufffd\n", None, id="a replacement character of the user"),
    ],
)
def test_what_kubectl_passes_over_is_a_note(tmp_path: Path, text: str, warning: str | None) -> None:
    head = (
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n"
        "  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
    )
    file = tmp_path / "hpa.yaml"
    file.write_bytes((head + text).encode("utf-8" if "\ufffd" in text else "latin-1"))
    answer = CliRunner().invoke(app, ["validate", str(file)], catch_exceptions=False)
    notes = [line for line in answer.stderr.splitlines() if line.startswith("note: ")]
    assert answer.exit_code == 0
    assert [note.removeprefix(f"note: {file}: ").startswith(warning or "?") for note in notes] == [True] * bool(warning)
