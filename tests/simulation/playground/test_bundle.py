"""What the page of the playground brings along, without a browser."""

import json
import subprocess
import sys
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Final

import pytest

from scripts.generate import playground
from tests.simulation.test_browser import HPA, SCENARIO

PROGRAM: Final = """
import sys
sys.path[:0] = sys.argv[1:]
from ocf.simulation.browser import answer
print(answer(sys.stdin.read()))
"""


def test_the_archive_has_every_module_that_a_simulation_needs(tmp_path: Path) -> None:
    """The interpreter sees the archive, the compiled package, and the standard library; no time zones of the system."""
    archive, compiled = tmp_path / "ocf.zip", tmp_path / "site"
    with zipfile.ZipFile(archive, "w") as file:
        for name, path in playground.bundled():
            file.write(path, name)
    compiled.mkdir()
    (compiled / "pydantic_core").symlink_to(Path(str(distribution("pydantic-core").locate_file("pydantic_core"))))
    scenario = SCENARIO.replace(
        "{type: Noise", '{type: Daily, timeZone: Europe/Oslo, rates: {"00:00": 3}}, {type: Noise'
    )
    request = {"files": {"scenario.yaml": scenario, "hpa.yaml": HPA}, "output": "report"}
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(archive), str(compiled)]
    ran = subprocess.run(  # noqa: S603 (ours)
        command, input=json.dumps(request), capture_output=True, text=True, check=False, env={"PYTHONTZPATH": ""}
    )
    assert ran.stderr == ""
    assert json.loads(ran.stdout)["problems"] == []


def test_the_compiled_package_is_pinned_in_the_version_that_is_installed() -> None:
    lines = playground.pinned().splitlines()
    assert lines[0] == f"pydantic-core=={version('pydantic-core')} \\"
    assert len(lines) > 50
    assert {line.strip().split(":")[0] for line in lines[1:]} == {"--hash=sha256"}


def test_a_change_of_a_source_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("one")
    monkeypatch.setattr(playground, "ROOT", tmp_path)
    monkeypatch.setattr(playground, "PAGE", page)
    monkeypatch.setattr(playground, "SOURCES", ())
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    before = playground.built_folder(environ)
    assert before.parent == tmp_path / "ocf" / "playground"
    assert playground.built_folder(environ) == before
    (page / "index.html").write_text("two")
    assert playground.built_folder(environ) != before


def test_without_node_the_build_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(playground.BuildError, match=r"needs npm and node: install Node\.js 18 or newer"):
        playground.build({"XDG_CACHE_HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []
