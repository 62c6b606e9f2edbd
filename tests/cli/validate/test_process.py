"""`ocf validate` as a process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

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
