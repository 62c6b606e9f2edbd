"""`ocf explain` with a recording."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from tests.simulation.recording.recordings import write


def explain(*words: str) -> str:
    """Return the output of the command."""
    return CliRunner().invoke(app, ["explain", *words]).output


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        pytest.param((), ("2026-01-31 12:01:00", "4 replicas"), id="last instant"),
        pytest.param(("--now", "2026-01-31T12:00:20Z"), ("2026-01-31 12:00:20", "2 replicas"), id="instant in between"),
        pytest.param(("--now", "2026-01-31T11:00:00Z"), ("2026-01-31 11:00:00", "2 replicas"), id="before the start"),
    ],
)
def test_it_explains_an_instant(now: tuple[str, ...], lines: tuple[str, ...], tmp_path: Path) -> None:
    text = explain("-f", str(write(tmp_path)), *now)

    assert "shop/web" in text
    assert all(line in text for line in lines), text


def test_an_invalid_recording_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, '{"kind": "Recording"}\n')

    assert "web.jsonl:1: name: required value" in explain("-f", str(path)).replace("\n", " ")


def test_other_json_lines_are_objects(tmp_path: Path) -> None:
    path = write(tmp_path, '{"apiVersion": "v1", "kind": "Pod"}\n{"apiVersion": "v1", "kind": "Pod"}\n')

    assert "found: none" in explain("-f", str(path))
