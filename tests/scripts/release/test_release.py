"""`make release`: it changes nothing unless it is asked to, and tags what it has built."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.release import __main__ as release
from scripts.release import address
from scripts.release.archives import archive_problems

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "ocf"
version = "0.1.0.dev0"
readme = "README.md"
requires-python = ">=3.11"
license-files = ["LICENSE"]
[project.scripts]
ocf = "ocf.cli:main"
[tool.hatch.build.targets.wheel]
packages = ["ocf", "ocf_server"]
"""


def git(root: Path, *words: str) -> str:
    settings = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    command = ["git", *settings, *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603 (git)
    return done.stdout.strip()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a repository with a package."""
    monkeypatch.setattr(address, "REPOSITORY", "town/ocf")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "test")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "test@example.com")
    root = tmp_path / "ocf"
    texts = {
        "pyproject.toml": PROJECT,
        "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n* A command.\n",
        **dict.fromkeys(
            ("README.md", "LICENSE", "SECURITY.md", "ocf/py.typed", "ocf_server/py.typed", "tests/test_all.py"), ""
        ),
        "ocf/cli/__init__.py": "",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "first")
    return root


def test_it_changes_nothing_without_being_asked_to(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["0.1.0"], root) == 0
    assert capsys.readouterr().out == "ocf 0.1.0 can be released: run the same with TAG=1\n"
    assert (git(root, "status", "--porcelain"), git(root, "tag")) == ("", "")


def test_it_commits_and_tags_the_version(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["0.1.0", "--tag"], root) == 0
    assert "git push origin main v0.1.0" in capsys.readouterr().out
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "log", "-1", "--format=%s %D") == "release: 0.1.0 HEAD -> main, tag: v0.1.0"
    assert 'version = "0.1.0"\n' in (root / "pyproject.toml").read_text()
    assert "\n## Unreleased\n\n## 0.1.0 - 2" in (root / "CHANGELOG.md").read_text()
    assert "\nappVersion: 0.1.0\n" in (root / "charts/ocf-controllers/Chart.yaml").read_text()


def test_it_names_what_is_in_the_way(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "README.md").write_text("changed")
    git(root, "tag", "v0.1.0")
    assert release.main(["0.1.0", "--tag"], root) == 1
    shown = capsys.readouterr().err
    assert "error: changes that are not committed: README.md" in shown
    assert "error: version 0.1.0: must be above 0.1.0" in shown
    assert (root / "README.md").read_text() == "changed"


def test_it_checks_what_was_built_from_what_is_committed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(root, "rm", "--quiet", "ocf/py.typed")
    git(root, "commit", "--quiet", "--message", "second")
    assert release.main(["0.1.0"], root) == 1
    assert "error: ocf-0.1.0-py3-none-any.whl lacks ocf/py.typed" in capsys.readouterr().err


def test_the_archives_of_another_version_are_refused(tmp_path: Path) -> None:
    info = "ocf-0.1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "ocf-0.1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "Version: 0.2.0\n\n")
        wheel.writestr("tests/test_all.py", "")
    with tarfile.open(tmp_path / "ocf-0.1.0.tar.gz", "w:gz"):
        pass
    found = list(archive_problems(tmp_path, "0.1.0"))
    assert "ocf-0.1.0-py3-none-any.whl contains tests; must contain ocf and ocf_server alone" in found
    assert "ocf-0.1.0-py3-none-any.whl has version 0.2.0, must be 0.1.0" in found
    assert "ocf-0.1.0.tar.gz lacks pyproject.toml" in found
    assert list(archive_problems(tmp_path, "0.2.0")) == [
        "built ocf-0.1.0-py3-none-any.whl, ocf-0.1.0.tar.gz; must be ocf-0.2.0-py3-none-any.whl and ocf-0.2.0.tar.gz"
    ]


def test_the_program_is_a_module() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "scripts.release", "--help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    assert "commit and tag it" in done.stdout
