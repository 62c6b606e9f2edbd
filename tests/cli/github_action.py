"""GitHub actions of this repository, run without GitHub."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).parents[2]


def run_action(file: Path, folder: Path, variables: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run the last step of an action in a folder.

    Args:
        file: The action.
        folder: The working directory; files of the runner are beside it.
        variables: Environment variables, which replace the defaults of the inputs.
    """
    action = yaml.safe_load(file.read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    names = {name: text.strip("${} ").removeprefix("inputs.") for name, text in step["env"].items()}
    assert set(names.values()) == set(action["inputs"])
    defaults = {name: action["inputs"][named].get("default", "") for name, named in names.items()}
    programs = folder.parent / "programs" / "ocf" / "bin"
    programs.mkdir(parents=True)
    (programs / "ocf").write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from ocf.cli import main; main()' \"$@\"\n")
    (programs / "ocf").chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(folder.parent / "programs")}
    return subprocess.run(  # noqa: S603 (the step of our own action)
        ["bash", "-euo", "pipefail", "-c", step["run"]],  # noqa: S607 (a workflow uses the first bash, too)
        cwd=folder,
        env={**environment, **defaults, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
