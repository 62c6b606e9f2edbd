"""The image file: each step is possible with what the steps before it give, and images run as the Deployments say.

Locked packages are installed from an index, so that step alone is not run: the locks are checked instead.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ocf.runtime.pod_objects import USER

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "images" / "Dockerfile"
HOME: Final = "/opt/ocf"
IMAGES: Final = {
    "controllers": (["ocf"], "controllers"),
    "hpa-controller": (["ocf", "hpa-controller"], "controllers"),
    "nodegroup-controller": (["ocf", "nodegroups"], "controllers"),
    "serve": (["ocf", "serve"], "serve"),
    "operator-base": (["python"], "operator"),
}
"""The command and the lock of each image."""
EXTRAS: Final = {"controllers": (), "serve": ("cel",), "operator": ("admission", "kopf")}


@dataclass
class Stage:
    """A stage of the image file, with the instructions of its parents before its own."""

    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def of(self, step: str) -> list[str]:
        return [words for found, words in self.steps if found == step]


def stages() -> dict[str, Stage]:
    text = re.sub(r"^#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", "")
    found: dict[str, Stage] = {}
    current = Stage("")
    for line in filter(None, text.splitlines()):
        step, _, words = line.partition(" ")
        if step == "FROM":
            parent, _, name = words.partition(" AS ")
            inherited = found[parent].steps if parent in found else [(step, parent)]
            current = found[name] = Stage(name, list(inherited))
        else:
            current.steps.append((step, words))
    return found


STAGES: Final = stages()


def copied() -> Iterator[str]:
    """Yield the sources that are copied from the context."""
    for stage in STAGES.values():
        for words in stage.of("COPY"):
            *sources, _ = words.split()
            if not sources[0].startswith("--from"):
                yield from sources


def copy(stage: Stage, folder: Path) -> None:
    """Copy what a stage copies from the context."""
    for words in stage.of("COPY"):
        *sources, target = words.split()
        for source in sources if not sources[0].startswith("--from") else []:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (folder / target).mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, folder / target)


def run(command: str, root: Path) -> None:
    """Run a command of the file with a folder in place of the root, and the Python of the tests."""
    words = [word.replace("/wheels", f"{root}/wheels").replace(HOME, f"{root}{HOME}") for word in shlex.split(command)]
    assert words[0] == "python"
    if words[-1].endswith("*.whl"):
        words[-1] = str(next((root / "wheels").glob("*.whl")))
    done = subprocess.run([sys.executable, *words[1:]], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 (of our file)
    assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root in which every step was run, but for the installation of locked packages."""
    root = tmp_path_factory.mktemp("root")
    for name in ("wheel", "environment"):
        copy(STAGES[name], root)
        for command in STAGES[name].of("RUN"):
            if "--require-hashes" not in command:
                run(command, root)
    (site,) = (root / "opt/ocf/lib").glob("python3.*/site-packages")
    # The locked packages are those of the environment of the tests.
    (site / "locked.pth").write_text(sysconfig.get_path("purelib"))
    return root


@pytest.mark.long
def test_the_copied_files_build_the_whole_package(built: Path) -> None:
    (site,) = (built / "opt/ocf/lib").glob("python3.*/site-packages")
    packages = ("ocf", "ocf_server")
    ours = {str(path.relative_to(ROOT)) for each in packages for path in (ROOT / each).rglob("*") if path.is_file()}
    installed = {
        str(path.relative_to(site)) for each in packages for path in (site / each).rglob("*") if path.is_file()
    }
    assert {path for path in installed if "__pycache__" not in path} == {
        path for path in ours if "__pycache__" not in path
    }


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.long
def test_the_command_of_the_image_runs_without_writing(built: Path, image: str) -> None:
    stage = STAGES[image]
    command = json.loads(stage.of("ENTRYPOINT")[-1]) if stage.of("ENTRYPOINT") else ["python"]
    assert command == IMAGES[image][0]
    (settings,) = [words for words in stage.of("ENV") if "PATH=" in words]
    environment = dict(each.split("=", 1) for each in settings.split())
    assert environment.pop("PATH") == f"{HOME}/bin:$PATH"
    program = built / HOME.lstrip("/") / "bin" / command[0]
    before = sorted(path for path in built.rglob("*") if "site-packages" not in path.parts)

    done = subprocess.run(  # noqa: S603 (of our file)
        [program, *command[1:], "--help"],
        cwd="/",
        env={**environment, "PATH": str(program.parent), "HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert sorted(path for path in built.rglob("*") if "site-packages" not in path.parts) == before


@pytest.mark.long
def test_the_bytecode_is_in_the_image(built: Path) -> None:
    """A read-only file system keeps none, and each start would compile everything."""
    (site,) = (built / "opt/ocf/lib").glob("python3.*/site-packages")
    assert list((site / "ocf" / "__pycache__").glob("__init__.*.pyc")) != []


@pytest.mark.parametrize("image", IMAGES)
def test_the_image_has_the_environment_with_its_packages(image: str) -> None:
    ((source, *folders),) = [words.split() for words in STAGES[image].of("COPY")]
    environment = STAGES[source.removeprefix("--from=")]
    installed = [command for command in environment.of("RUN") if "--require-hashes" in command]
    assert folders == [HOME, HOME]
    assert installed[-1].endswith(f"--requirement requirements/{IMAGES[image][1]}.lock")
    assert all("--only-binary :all:" in command for command in installed)


@pytest.mark.parametrize("image", IMAGES)
def test_the_user_is_the_number_of_the_pods(image: str) -> None:
    """The kubelet cannot check `runAsNonRoot` for a name. Nothing runs as root after this instruction."""
    steps = [step for step, _ in STAGES[image].steps]
    assert STAGES[image].of("USER") == [f"{USER}:{USER}"]
    assert "RUN" not in steps[steps.index("USER") :]
    assert steps.count("FROM") == 1


def test_every_stage_has_the_pinned_base_and_its_python_is_supported() -> None:
    """A virtual environment names the interpreter that made it."""
    bases = {words for stage in STAGES.values() for words in stage.of("FROM")}
    assert len(bases) == 1
    (minor,) = re.findall(r"/python:3\.(\d+)-slim\$\{PYTHON_DIGEST:\+@\$\{PYTHON_DIGEST\}\}$", bases.pop())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (lowest,) = re.findall(r"^>=3\.(\d+)$", project["requires-python"])
    assert int(minor) >= int(lowest)


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    lines = (FILE.parent / f"{FILE.name}.dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == set(copied())
    assert all((ROOT / source).exists() for source in copied())


def test_images_have_the_labels_of_the_specification() -> None:
    """The names are those of https://specs.opencontainers.org/image-spec/annotations/."""
    (labels,) = STAGES["runtime"].of("LABEL")
    (arguments,) = STAGES["runtime"].of("ARG")
    names = re.findall(r"org\.opencontainers\.image\.(\w+)=", labels)
    assert sorted(names) == ["description", "licenses", "revision", "source", "title", "version"]
    assert set(re.findall(r"\$\{(\w+)\}", labels)) == set(re.findall(r"(\w+)=", arguments))


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    found = (re.match(r"(\S+)==(\S+)", entry) for entry in entries)
    return {canonicalize_name(each[1]): each[2] for each in found if each}


def closure(requirement: Requirement, locked: Mapping[str, str], seen: set[str]) -> None:
    """Add what a requirement needs here, as those packages of this environment say that have the locked version."""
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return
    name = canonicalize_name(requirement.name)
    if name not in seen:
        seen.add(name)
        package = distribution(name)
        for each in (package.requires or ()) if package.version == locked.get(name) else ():
            closure(Requirement(each), locked, seen)


@pytest.mark.parametrize("lock", EXTRAS)
def test_each_lock_has_all_that_its_image_needs(lock: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [
        *project["dependencies"],
        *(each for extra in EXTRAS[lock] for each in project["optional-dependencies"][extra]),
        *(["trustme"] if lock == "serve" else []),
    ]
    found, needed = pins(lock), set[str]()
    for text in texts:
        closure(Requirement(text), found, needed)

    assert needed <= set(found), f"{lock}.lock lacks some: run `make lock`"
    for text in texts:
        requirement = Requirement(text)
        assert requirement.specifier.contains(found[canonicalize_name(requirement.name)])


def test_the_locks_agree_on_versions() -> None:
    """Images with more packages add them to the environment of the controllers."""
    tested, core = pins("test"), pins("controllers")
    assert all(pins(lock).items() <= tested.items() for lock in (*EXTRAS, "build"))
    assert all(core.items() <= pins(lock).items() for lock in EXTRAS)
    assert "hatchling" in pins("build")
