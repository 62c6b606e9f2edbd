"""The operator with controller-runtime, as its author tests it: its Go tests, with the fake client."""

import re
import subprocess

import pytest

from tests.clients.support import go_program


@pytest.mark.clients
def test_its_tests_pass() -> None:
    command = [str(go_program("controller.test")), "-test.v"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (our own program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall("^--- PASS: ", done.stdout, re.MULTILINE)) == 5
