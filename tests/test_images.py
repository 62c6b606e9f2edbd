"""The image file of the HPA controller: each step is possible with what the steps before it give."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
STEPS: Final = [
    (step, words)
    for line in (ROOT / "images/hpa-controller/Dockerfile").read_text(encoding="utf-8").splitlines()
    for step, _, words in [line.partition(" ")]
    if step and step != "#"
]


def of(step: str) -> list[str]:
    return [words for found, words in STEPS if found == step]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Copy what the first part of the image copies, and nothing else, and build what it installs."""
    folder = tmp_path_factory.mktemp("src")
    for words in of("COPY"):
        *sources, target = words.split()
        if sources[0].startswith("--from"):
            continue
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, folder / target)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 (the build of this project)
    return zipfile.ZipFile(next((folder / "dist").glob("*.whl")))


def test_the_copied_files_build_the_whole_package(wheel: zipfile.ZipFile) -> None:
    ours = {
        str(path.relative_to(ROOT)) for path in (ROOT / "ocf").rglob("*") if path.suffix != ".pyc" and path.is_file()
    }
    assert {name for name in wheel.namelist() if name.startswith("ocf/")} == ours


def test_the_entry_point_is_a_command_of_the_package_in_the_path(wheel: zipfile.ZipFile) -> None:
    (entry_points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    scripts = ConfigParser()
    scripts.read_string(wheel.read(entry_points).decode())
    (command, *_) = json.loads(of("ENTRYPOINT")[0])
    assert command in scripts["console_scripts"]

    (run,) = of("RUN")
    (home,) = re.findall(r"python -m venv (\S+)", run)
    assert f"{home}/bin/pip install" in run
    assert f"--from=build {home} {home}" in of("COPY")
    assert f"PATH={home}/bin:$PATH" in of("ENV")[0].split()


def test_both_parts_have_the_same_python(wheel: zipfile.ZipFile) -> None:
    """A virtual environment names the interpreter that made it."""
    bases = [words.partition(" AS ")[0] for words in of("FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
    (lowest,) = re.findall(r"^Requires-Python: >=3\.(\d+)$", wheel.read(metadata).decode(), re.MULTILINE)
    (minor,) = re.findall(r"^python:3\.(\d+)-slim$", bases[0])
    assert int(minor) >= int(lowest)


def test_the_user_is_a_number_other_than_roots() -> None:
    """The kubelet cannot check `runAsNonRoot` for a name, and USER comes after all steps that need root."""
    assert int(of("USER")[0]) > 0
    assert [step for step, _ in STEPS][-2:] == ["USER", "ENTRYPOINT"]
