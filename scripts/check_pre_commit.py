"""Run the hook of this repository with pre-commit in repositories of many layouts.

pre-commit is installed into an empty virtual environment, and itself installs the last commit of this checkout, as it
does for users. Each layout of `tests/cli/validate/test_layouts.py` becomes a repository; the hook has to fail in those
with an invalid autoscaler, and in no other. Some are also run with `pre-commit try-repo`, which installs the hook anew
each time.

    python -m scripts.check_pre_commit
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.progress import track

from tests.cli.validate.test_layouts import LAYOUTS, Layout

ROOT: Final = Path(__file__).parents[1]
HOOK: Final = "ocf-validate"
TRIED: Final = ("plain manifests", "an invalid autoscaler", "a Helm chart", "a GitHub workflow", "no autoscaler at all")
_CONFIG: Final = "repos:\n- repo: {repository}\n  rev: {revision}\n  hooks: [{{id: {hook}}}]\n"


def run(*command: str | Path, cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 (ours)


class Checker:
    """Runs pre-commit in repositories.

    Args:
        folder: An empty folder for everything.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        identity = {f"GIT_{who}_{what}": "check" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.environ = {**os.environ, **identity, "PRE_COMMIT_HOME": str(folder / "cache")}
        self.source = folder / "source"
        self.expect(run("git", "clone", "--quiet", ROOT, self.source, cwd=folder, environ=self.environ))
        venv.create(folder / "venv", with_pip=True)
        self.program = folder / "venv" / "bin" / "pre-commit"
        self.expect(self._pip("install", "--quiet", "pre-commit"))

    def expect(self, done: subprocess.CompletedProcess[str]) -> str:
        """Return the output of a command that has succeeded; end this script if it has not."""
        if done.returncode:
            raise SystemExit(f"{done.args}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def repository(self, layout: Layout) -> Path:
        """Return a new repository with the files of a layout."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        revision = self.expect(run("git", "rev-parse", "HEAD", cwd=self.source, environ=self.environ))
        config = _CONFIG.format(repository=self.source, revision=revision, hook=HOOK)
        files = {**layout.files, ".pre-commit-config.yaml": config}
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for arguments in (("init", "--quiet"), ("add", "--all", "--force"), ("commit", "--quiet", "--message=files")):
            self.expect(run("git", *arguments, cwd=folder, environ=self.environ))
        return folder

    def problem(self, layout: Layout, *arguments: str) -> str:
        """Return what is wrong with the result of pre-commit in a layout; empty if nothing is."""
        repository = self.repository(layout)
        done = run(self.program, *arguments, "--all-files", cwd=repository, environ=self.environ)
        shutil.rmtree(repository)
        expected = min(layout.invalid, 1)
        return "" if done.returncode == expected else f"exit code {done.returncode}, not {expected}\n{done.stdout}"

    def _pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        python = self.folder / "venv" / "bin" / "python"
        return run(python, "-m", "pip", "--disable-pip-version-check", *arguments, cwd=self.folder, environ=os.environ)


def main() -> None:
    """Check all layouts, and print those that fail."""
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder))
        runs = [(name, ("run",)) for name in LAYOUTS]
        tried = [(name, ("try-repo", str(checker.source), HOOK)) for name in TRIED]
        wrong = {
            f"{arguments[0]}: {name}": problem
            for name, arguments in track([*runs, *tried], description="pre-commit")
            if (problem := checker.problem(LAYOUTS[name], *arguments))
        }
    for name, problem in wrong.items():
        print(f"{name}: {problem}", file=sys.stderr)
    print(f"{len(runs)} layouts with `pre-commit run`, {len(tried)} with `try-repo`: {len(wrong)} differ")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
