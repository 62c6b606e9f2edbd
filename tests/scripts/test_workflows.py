"""Workflows of GitHub: their targets exist, their rights are the least, and what is published was tested."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ocf.scaffold import OperatorProject, render_operator

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
ACTIONS: Final = [ROOT / "action.yml", ROOT / "simulate" / "action.yml"]
USES: Final = re.compile(r"^\s*(?:- )?uses:\s*(.*)$", re.MULTILINE)
PINNED: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+")
OURS: Final = re.compile(r"[\w.-]+/ocf(?:/simulate)?@main")
"""Our own actions in pages, which name no release yet."""


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps(job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = job["steps"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_target_and_script_of_a_step_exists(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    lines = [step["run"] for job in read(path)["jobs"].values() for step in steps(job) if "run" in step]
    assert lines != []
    for line in lines:
        program, word, *_ = line.split()
        if program == "echo":
            continue
        assert word in targets if program == "make" else (ROOT / word).is_file()


def generated() -> dict[str, str]:
    """Return the workflows of a new operator."""
    made = render_operator(OperatorProject(name="shop-operator"), requirement="ocf", locks={})
    return {path: text for path, text in made.items() if path.startswith(".github/")}


def test_every_action_is_pinned_to_a_commit() -> None:
    """A tag can be moved to other code: https://github.com/tj-actions/changed-files/issues/2463."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (*WORKFLOWS, *ACTIONS)} | generated()
    used = [(name, action) for name, text in texts.items() for action in USES.findall(text)]

    assert {name for name, _ in used} == {"ci.yml", "release.yml", ".github/workflows/ci.yaml"}
    assert [each for each in used if not each[1].startswith("./") and not PINNED.fullmatch(each[1])] == []
    commits: dict[str, set[str]] = {}
    for _, action in used:
        commits.setdefault(action.partition("@")[0], set()).add(action)
    assert [versions for versions in commits.values() if len(versions) > 1] == [], "one version of each action"


def test_pages_pin_the_actions_of_others() -> None:
    used = [(path.name, action) for path in PAGES for action in USES.findall(path.read_text(encoding="utf-8"))]

    assert used
    assert [each for each in used if not OURS.fullmatch(each[1]) and not PINNED.fullmatch(each[1])] == []


def test_a_generated_workflow_may_only_read_and_keeps_no_token_in_the_checkout() -> None:
    for text in generated().values():
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {"contents": "read"}
        checkouts = [
            step
            for job in workflow["jobs"].values()
            for step in steps(job)
            if step.get("uses", "").startswith("actions/checkout@")
        ]
        assert checkouts
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_keeps_no_token_in_the_checkout(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in steps(job):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_all_tests_run_and_the_wheel_is_tried_on_every_supported_python() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project))
    for name, job in (("ci", "test"), ("ci", "wheel"), ("release", "test")):
        matrix = read(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"][job]["strategy"]["matrix"]
        assert named <= set(matrix["python"])


def test_only_what_was_tested_is_attested_and_published() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    used = [step["uses"].partition("@")[0] for step in steps(jobs["publish"])]
    assert jobs["test"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "test"
    assert used == ["actions/download-artifact", "actions/attest-build-provenance", "pypa/gh-action-pypi-publish"]
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish", "images", "chart"]


def test_images_are_built_in_ci_and_published_after_the_tests_with_their_origin() -> None:
    targets = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "images/Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    built = read(ROOT / ".github/workflows/ci.yml")["jobs"]["images"]
    released = read(ROOT / ".github/workflows/release.yml")["jobs"]
    for job in (built, released["images"]):
        assert set(job["strategy"]["matrix"]["target"]) < set(targets)
        assert steps(job)[-1]["uses"].partition("@")[0] == "docker/build-push-action"
        assert steps(job)[-1]["with"]["file"] == "images/Dockerfile"
    assert (released["images"]["needs"], released["chart"]["needs"]) == ("test", "images")
    assert "github.repository }}/" not in str(released), "the registry has no upper-case names"
    given = steps(released["images"])[-1]["with"]
    assert (given["sbom"], given["provenance"]) == (True, "mode=max")
    arguments = re.findall(r"^(\w+)=", given["build-args"], re.MULTILINE)
    assert sorted(arguments) == ["PYTHON_DIGEST", "REVISION", "SOURCE", "VERSION"]
    for name in ("images", "chart"):
        assert released[name]["permissions"] == {"contents": "read", "packages": "write"}
