"""A plain command line of `ocf validate` means the same with and without the library of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ocf.cli import validate as command
from ocf.cli.app import app
from ocf.cli.validation_run import Request, main, plain_request

HPA: Final = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: MOST, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""
WORDS: Final = (
    *(
        "web.yaml",
        "deploy",
        "-",
        "--",
        "--lint",
        "--severity",
        "--severity=info",
        "info",
        "error",
        "warning",
        "--fail-on",
    ),
    *(
        "--fail-on=warning",
        "--disable",
        "--disable=slow-drain",
        "slow-drain",
        "--update-from",
        "--update-from=old.yaml",
    ),
    *("--kubernetes-version", "1.34", "--kubernetes-version=", "--feature-gate", "HPAScaleToZero=true", "--output"),
    *(
        "json",
        "--output=sarif",
        "--output=xml",
        "--outputs",
        "--help",
        "-h",
        "--traceback",
        "-o",
        "--lint=true",
        "",
        "---",
    ),
)


def by_the_library(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Request | None:
    """Return what the library of the command line makes of the words."""
    seen: list[Request] = []

    def run(request: Request) -> bool:
        seen.append(request)
        return True

    monkeypatch.setattr(command, "run", run)
    CliRunner().invoke(app, ["validate", *words])
    return seen[0] if seen else None


def comparable(request: Request | None) -> list[object]:
    parts = [] if request is None else [getattr(request, name) for name in Request._fields]
    return [list(part) if isinstance(part, list | tuple) else part for part in parts]


@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_a_plain_command_line_means_the_same(words: list[str]) -> None:
    plain = plain_request(words)
    if plain is not None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert comparable(by_the_library(words, monkeypatch)) == comparable(plain)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["web.yaml"], id="a file"),
        pytest.param(["--output", "json", "-"], id="an option"),
        pytest.param(["--output=github", "--lint", "--severity", "info", "--fail-on=warning", "a", "b"], id="choices"),
        pytest.param(["--disable", "a", "--disable=b", "--feature-gate", "X=true", "a"], id="several"),
        pytest.param(["--update-from", "old", "--kubernetes-version", "1.34", "--", "--a"], id="after two dashes"),
    ],
)
def test_these_are_plain(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain_request(words) is not None
    assert comparable(by_the_library(words, monkeypatch)) == comparable(plain_request(words))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["a", "-h"],
        ["a", "--output", "xml"],
        ["a", "--output"],
        ["a", "--disable", "--lint"],
        ["a", "--x"],
    ],
)
def test_any_other_one_is_left_to_the_library(words: list[str]) -> None:
    assert plain_request(words) is None
    assert main(words) is None


@pytest.mark.parametrize(("most", "status"), [("3", 0), ("0", 1)])
def test_the_exit_status_is_that_of_the_command(most: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(HPA.replace("MOST", most))
    assert main([str(file)]) == status


def test_an_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kubernetes-version", "2.0", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: Kubernetes 2.0 is not known here")
    assert err.count("\n") == 1


def test_a_closed_pipe_ends_the_run_without_a_message(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("---\n".join([HPA.replace("MOST", "0")] * 2000))
    reading, writing = os.pipe()
    program = "from ocf.cli import main; main()"
    with subprocess.Popen(  # noqa: S603 (ours)
        [sys.executable, "-c", program, "validate", str(file)], stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        os.close(reading)
        _, err = process.communicate()
    assert (process.returncode, err) == (128 + 13, b"")
