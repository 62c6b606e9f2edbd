"""Check a release, and with --tag make it: version, changelog, chart, commit and tag. Nothing is pushed.

make release VERSION=0.1.0          # checks and builds, and changes nothing
make release VERSION=0.1.0 TAG=1
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scripts.generate.charts import __main__ as charts
from scripts.release import address
from scripts.release.archives import archive_problems
from scripts.release.checks import Checkout, problems, released_changelog, released_project

ROOT: Final = Path(__file__).parents[2]
_PROJECT: Final = "pyproject.toml"
_CHANGELOG: Final = "CHANGELOG.md"
_CHARTS: Final = "charts"


def main(words: list[str], root: Path = ROOT) -> int:
    """Check a release, and make it on request; return the exit status."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--tag", action="store_true", help="commit and tag it")
    options = parser.parse_args(words)
    version: str = options.version
    found = list(problems(version, _checkout(root)))
    if not found:
        with tempfile.TemporaryDirectory() as name:
            found = list(_build_problems(root, Path(name), version))
    for each in found:
        print(f"error: {each}", file=sys.stderr)
    if found:
        return 1
    if not options.tag:
        print(f"ocf {version} can be released: run the same with TAG=1")
        return 0
    _write(root, version)
    _git(root, "add", "--", _CHARTS)
    _git(root, "commit", "--quiet", "--message", f"release: {version}", "--", _PROJECT, _CHANGELOG, _CHARTS)
    _git(root, "tag", "--annotate", f"v{version}", "--message", f"ocf {version}")
    print(f"tagged v{version}; publish it with: git push origin main v{version}")
    return 0


def _checkout(root: Path) -> Checkout:
    return Checkout(
        branch=_git(root, "rev-parse", "--abbrev-ref", "HEAD"),
        changes=[line[2:].strip() for line in _git(root, "status", "--porcelain").splitlines()],
        tags=_git(root, "tag", "--list").split(),
        changelog=(root / "CHANGELOG.md").read_text(encoding="utf-8"),
        has_address=address.is_filled_in(),
    )


def _build_problems(root: Path, folder: Path, version: str) -> Iterator[str]:
    """Build the release from a clone, so that only what is committed is in it, and check both archives."""
    clone, dist = folder / "clone", folder / "dist"
    _git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(clone))
    _write(clone, version)
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(dist)]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)  # noqa: S603 (ours)
    if done.returncode:
        yield f"the build failed: {done.stderr.strip() or done.stdout.strip()}"
        return
    yield from archive_problems(dist, version)


def _write(root: Path, version: str) -> None:
    project, changelog = root / _PROJECT, root / _CHANGELOG
    project.write_text(released_project(project.read_text(encoding="utf-8"), version), encoding="utf-8")
    day = datetime.now(UTC).date()
    changelog.write_text(released_changelog(changelog.read_text(encoding="utf-8"), version, day), encoding="utf-8")
    charts.write(root)


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)  # noqa: S603, S607
    return done.stdout.strip("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
