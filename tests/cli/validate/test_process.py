"""`ocf validate` as a process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

HPA: Final = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 0, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""


def test_an_error_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["validate", "--kubernetes-version", "2.0", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: Kubernetes 2.0 is not known here")
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_ends_the_run_without_a_message(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("---\n".join([HPA] * 2000))
    reading, writing = os.pipe()
    program = "from ocf.cli import main; main()"
    with subprocess.Popen(  # noqa: S603 (ours)
        [sys.executable, "-c", program, "validate", str(file)], stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        os.close(reading)
        _, err = process.communicate()
    assert (process.returncode, err) == (128 + 13, b"")


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        pytest.param({}, "\x1b[31mspec.maxReplicas: ", id="colors"),
        pytest.param({"NO_COLOR": "1"}, "spec.maxReplicas: ", id="NO_COLOR"),
        # Only a value that is not empty counts: https://no-color.org
        pytest.param({"NO_COLOR": ""}, "\x1b[31mspec.maxReplicas: ", id="an empty NO_COLOR"),
    ],
)
def test_a_terminal_shows_severities_in_colors(tmp_path: Path, environment: dict[str, str], shown: str) -> None:
    (tmp_path / "web.yaml").write_text(HPA)
    here, there = os.openpty()
    given = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | environment
    command = [sys.executable, "-c", "from ocf.cli import main; main()", "validate", "web.yaml"]
    done = subprocess.run(  # noqa: S603 (ours)
        command, cwd=tmp_path, env=given, stdout=there, stderr=there, check=False
    )
    os.close(there)
    printed = os.read(here, 10_000).decode()
    os.close(here)
    assert done.returncode == 1
    assert f": web: {shown}" in printed
