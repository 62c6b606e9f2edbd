"""Workflows of GitHub: their targets exist, their rights are the least, and what is published was tested."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ocf.scaffold import OperatorProject, render_operator
from ocf.schema import kubernetes
from ocf.testing.envtest import versions
from scripts.cached_environment import ENVIRONMENTS
from scripts.record.e2e_suite import build as e2e_suite
from tests.clients import go_programs
from tests.requirements import PROVIDED_BY

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PAGES: Final = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
ACTIONS: Final = [ROOT / "action.yml", ROOT / "simulate" / "action.yml"]
USES: Final = re.compile(r"^\s*(?:- )?uses:\s*(.*)$", re.MULTILINE)
PINNED: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+")
AT_NIGHT: Final = {"cluster-api"}
"""Requirements that take too long to build for each change."""
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
        program, *words = re.sub(r"\$\{\{.*?\}\}", "", line).partition(">>")[0].split()
        if program == "make":
            assert [word for word in words if "=" not in word and word not in targets] == []
        elif program != "echo":
            assert (ROOT / words[0]).is_file()


def generated() -> dict[str, str]:
    """Return the workflows of a new operator."""
    made = render_operator(OperatorProject(name="shop-operator"), requirement="ocf", locks={})
    return {path: text for path, text in made.items() if path.startswith(".github/")}


def test_every_action_is_pinned_to_a_commit() -> None:
    """A tag can be moved to other code: https://github.com/tj-actions/changed-files/issues/2463."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (*WORKFLOWS, *ACTIONS)} | generated()
    used = [(name, action) for name, text in texts.items() for action in USES.findall(text)]

    assert {name for name, _ in used} == {"ci.yml", "nightly.yml", "release.yml", ".github/workflows/ci.yaml"}
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


def test_a_schedule_is_in_a_workflow_of_its_own() -> None:
    """GitHub disables such a workflow after 60 days without activity, and with it the checks of pull requests.

    https://github.com/mattermost/mattermost-plugin-starter-template/issues/247
    """
    # YAML 1.1 reads the key `on` as true.
    events = {path.stem: {*dict[Any, Any](read(path))[True]} for path in WORKFLOWS}

    assert {name for name, given in events.items() if "schedule" in given} == {"nightly"}
    assert events["nightly"] == {"schedule", "workflow_dispatch"}


def made(workflow: str) -> list[str]:
    """Return the targets that a workflow makes."""
    jobs = read(ROOT / ".github" / "workflows" / f"{workflow}.yml")["jobs"].values()
    lines = [step["run"] for job in jobs for step in steps(job) if step.get("run", "").startswith("make ")]
    return [word for line in lines for word in line.split()[1:] if "=" not in word]


def test_what_a_run_leaves_out_runs_at_night() -> None:
    """A test that no workflow runs is as good as none: https://github.com/tya5/reyn/pull/3004."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in (".ci/run", "Makefile", "tests/requirements.py")]
    left_out = {target for text in texts for target in re.findall(r"[;(] ?make ([a-z-]+)\b", text)}

    assert left_out == {"test-wheel", "test-lowest", "properties"}
    assert left_out <= {*made("ci"), *made("nightly")}


def test_a_requirement_that_is_built_at_night_is_one_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {*made("nightly")} >= AT_NIGHT
    for name in AT_NIGHT:
        assert PROVIDED_BY[name] == f"make {name}"
        assert re.search(rf"^{name}:.*(\n\t.*)*\n\t@OCF_REQUIRE=[a-z,-]*\b{name} ", makefile, re.MULTILINE)


def test_pages_run_on_every_supported_python() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project))
    once = [
        step["with"]["python-version"]
        for step in steps(jobs_of("ci")["pages"])
        if "python-version" in step.get("with", {})
    ]

    assert {*once, *jobs_of("nightly")["pages"]["strategy"]["matrix"]["python"]} == named


def jobs_of(workflow: str) -> dict[str, Any]:
    jobs: dict[str, Any] = read(ROOT / ".github" / "workflows" / f"{workflow}.yml")["jobs"]
    return jobs


class TestRealServers:
    """The job with a real API server, clients of other projects and a browser."""

    @pytest.fixture
    def job(self) -> list[dict[str, Any]]:
        return steps(jobs_of("ci")["real"])

    def test_no_requirement_may_be_missing(self, job: list[dict[str, Any]]) -> None:
        [tests] = [step for step in job if step.get("run") == "make test"]

        assert {*tests["env"]["OCF_REQUIRE"].split(",")} == PROVIDED_BY.keys() - AT_NIGHT

    def test_what_provides_a_requirement_runs_before_the_tests(self, job: list[dict[str, Any]]) -> None:
        commands = (command for name, command in PROVIDED_BY.items() if name not in AT_NIGHT)
        wanted = {command.removeprefix("make ") for command in commands if command.startswith("make ")}
        lines = [step.get("run", "") for step in job]
        [build] = [place for place, line in enumerate(lines) if line.startswith("make envtest")]

        assert {*lines[build].split()[1:]} == wanted
        assert build < lines.index("make test")

    def test_a_failing_test_does_not_cost_the_next_run_its_programs(self, job: list[dict[str, Any]]) -> None:
        """A job that fails saves no cache in its last step: https://github.com/Joystream/joystream/pull/1492."""
        names = [step.get("uses", "").partition("@")[0] or step.get("run", "") for step in job]
        order = [names.index(each) for each in ("actions/cache/restore", "actions/cache/save", "make test")]

        assert order == sorted(order)
        assert "actions/cache" not in names

    def test_the_same_folder_is_saved_and_restored_and_a_key_once_only(self, job: list[dict[str, Any]]) -> None:
        """Entries are immutable: https://github.com/actions/cache/issues/1071."""
        restore, save = (
            next(each for each in job if f"cache/{name}@" in each.get("uses", "")) for name in ("restore", "save")
        )

        assert restore["with"]["path"] == save["with"]["path"] == "~/.cache/ocf"
        assert restore["id"] in save["with"]["key"]
        assert save["if"] == f"steps.{restore['id']}.outputs.cache-hit != 'true'"

    def test_the_key_has_every_file_that_names_a_folder_of_the_cache(self, job: list[dict[str, Any]]) -> None:
        [restore] = [each for each in job if "cache/restore@" in each.get("uses", "")]
        patterns = re.findall(r"'([^']+)'", restore["with"]["key"])
        covered = {path for pattern in patterns for path in ROOT.glob(pattern.replace("**", "**/*")) if path.is_file()}
        sources = [*(path for module in go_programs.MODULES for path in module.sources), e2e_suite.SOURCE]
        sources += [path for each in ENVIRONMENTS.values() for path in (each.lock, *each.sources)]
        sources += [Path(str(module.__file__)) for module in (versions, kubernetes)]

        assert all(any(ROOT.glob(pattern)) for pattern in patterns)
        assert [path for path in sources if path not in covered] == []
        assert "${{ runner.os }}-${{ runner.arch }}" in restore["with"]["key"]
