"""`.ci/run`: what it runs, what it leaves out and says so, and its status."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
RUN: Final = ROOT / ".ci" / "run"
# `make` of the test: writes down what it is to make, and fails for the targets that FAILING names.
MAKE: Final = """\
#!/usr/bin/env bash
echo "$OCF_REQUIRE|$PYTEST_ADDOPTS|$*" >>"$CALLS"
echo "output of $*"
[[ " $FAILING " != *" $1 "* ]]
"""
GIT: Final = ("git", "-c", "user.name=CI", "-c", "user.email=ci@example.com", "-c", "init.defaultBranch=main")


@dataclass
class Checkout:
    """A repository with the script, and programs that write down how they are called."""

    folder: Path
    calls: Path

    def git(self, *arguments: str, folder: Path | None = None) -> None:
        subprocess.run([*GIT, *arguments], cwd=folder or self.folder, check=True, capture_output=True)  # noqa: S603 (ours)

    def commit(self, **texts: str) -> None:
        """Commit the files, by their names without suffix."""
        for name, text in texts.items():
            (self.folder / f"{name}.toml").write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")

    def run(self, *failing: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(self.folder.parent / "bin"), os.environ["PATH"]]),
            "CALLS": str(self.calls),
            "FAILING": " ".join(failing),
            "PYTEST_ADDOPTS": "",
        }
        environment.pop("OCF_REQUIRE", None)
        script = (folder or self.folder) / ".ci" / "run"
        return subprocess.run([script], env=environment, capture_output=True, text=True, check=False)  # noqa: S603 (ours)

    def made(self) -> list[str]:
        """Return the targets, as they were asked for."""
        lines = self.calls.read_text(encoding="utf-8").splitlines()
        return [line.rpartition("|")[2] for line in lines]

    def ran_lowest(self) -> bool:
        return any(each.startswith("test-lowest ") for each in self.made())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("make", MAKE), ("chromium", "#!/bin/sh\n")):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    made = Checkout(tmp_path / "checkout", tmp_path / "calls")
    (made.folder / ".ci").mkdir(parents=True)
    shutil.copy(RUN, made.folder / ".ci")
    made.git("init", "--quiet")
    made.commit(pyproject="first")
    made.commit()
    return made


def test_everything_is_run_once(checkout: Checkout) -> None:
    done = checkout.run()

    assert done.returncode == 0, done.stderr
    made = checkout.made()
    assert made[:3] == [".venv/.ready-check", "envtest", "clients"], "before any job"
    assert sorted(each.partition(" ")[0] for each in made[3:]) == [
        *("check", "demo", "playground", "test", "test", "test-wheel"),
    ]
    assert re.fullmatch(r"\.ci/run: passed in \d+ s", done.stdout.splitlines()[-1])


def test_the_tests_in_front_ignore_only_what_the_job_beside_them_runs(checkout: Checkout) -> None:
    checkout.run()

    lines = [line.split("|") for line in checkout.calls.read_text(encoding="utf-8").splitlines()]
    [front] = [options for _, options, target in lines if re.fullmatch(r"test WORKERS=\d+", target)]
    [beside] = [target.partition(" TESTS=")[2] for _, _, target in lines if " TESTS=" in target]
    ignored = [option.removeprefix("--ignore=") for option in front.split()]
    assert ignored == beside.split()
    assert all((ROOT / folder).is_dir() for folder in ignored)


def test_nothing_that_a_test_needs_may_be_missing(checkout: Checkout) -> None:
    checkout.run()

    lines = [line.split("|") for line in checkout.calls.read_text(encoding="utf-8").splitlines()]
    required = {needed for needed, _, target in lines if target.startswith("test ")}
    assert required == {"envtest,clients,chromium,playground,site,long"}


@pytest.mark.parametrize("target", ["check", "playground", "test-wheel", "demo", "test"])
def test_a_failure_is_the_status_of_the_run_with_its_output(checkout: Checkout, target: str) -> None:
    """`wait` without a process ID returns 0, whatever failed: https://github.com/kubernetes-sigs/image-builder/pull/752."""
    done = checkout.run(target)

    assert done.returncode == 1
    assert f"output of {target}" in done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith(".ci/run: failed: ")
    assert "demo" in {each.partition(" ")[0] for each in checkout.made()}, "the other jobs run, too"


def test_no_job_runs_without_its_programs(checkout: Checkout) -> None:
    done = checkout.run("envtest")

    assert done.returncode != 0
    assert checkout.made() == [".venv/.ready-check", "envtest"]


class TestLowestVersions:
    """They are tested where a bound has changed, or where git cannot say so."""

    def test_they_are_left_out_where_nothing_has_changed_and_the_output_says_what_runs_them(
        self, checkout: Checkout
    ) -> None:
        done = checkout.run()

        assert not checkout.ran_lowest()
        assert re.search(r"left out: the lowest versions, .*; make test-lowest runs them", done.stdout)

    def test_an_earlier_commit_of_the_branch_counts(self, checkout: Checkout) -> None:
        """Comparing with the commit before misses it: https://github.com/cypress-io/cypress/pull/33597."""
        checkout.git("checkout", "--quiet", "-b", "feature")
        checkout.commit(pyproject="second")
        checkout.commit(other="third")
        checkout.run()

        assert checkout.ran_lowest()

    def test_what_the_main_branch_has_changed_since_does_not_count(self, checkout: Checkout) -> None:
        """https://github.com/geolens-io/geolens/pull/1095."""
        checkout.git("checkout", "--quiet", "-b", "feature")
        checkout.commit(other="second")
        checkout.git("checkout", "--quiet", "main")
        checkout.commit(pyproject="third")
        checkout.git("checkout", "--quiet", "feature")
        checkout.run()

        assert not checkout.ran_lowest()

    def test_the_last_commit_of_the_main_branch_counts(self, checkout: Checkout) -> None:
        checkout.commit(pyproject="second")
        checkout.run()

        assert checkout.ran_lowest()

    def test_a_change_that_is_not_committed_counts(self, checkout: Checkout) -> None:
        (checkout.folder / "pyproject.toml").write_text("second", encoding="utf-8")
        checkout.run()

        assert checkout.ran_lowest()

    def test_a_clone_without_history_runs_them(self, checkout: Checkout, tmp_path: Path) -> None:
        """Both the merge base and the commit before are missing: https://github.com/envoyproxy/envoy/pull/46463."""
        address = checkout.folder.as_uri()
        checkout.git("clone", "--quiet", "--depth=1", address, str(tmp_path / "shallow"), folder=tmp_path)
        done = checkout.run(folder=tmp_path / "shallow")

        assert done.returncode == 0, done.stderr
        assert checkout.ran_lowest()

    def test_a_folder_without_git_runs_them(self, checkout: Checkout) -> None:
        shutil.rmtree(checkout.folder / ".git")
        done = checkout.run()

        assert done.returncode == 0, done.stderr
        assert checkout.ran_lowest()

    def test_the_tests_with_them_exist(self) -> None:
        listed = re.search(r"^lowest=\((.*?)^\)", RUN.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        assert listed is not None
        paths = [word for line in listed[1].splitlines() for word in line.partition("#")[0].split()]

        assert paths
        assert [path for path in paths if not (ROOT / path).exists()] == []
