"""A reader who follows a page to the letter, in an empty folder: its files are written, its commands are run.

The page is a shell session. The line before a block says what the block is: "`name`:" names a file, "Add to `name`:"
goes to its end, and "in a second terminal" leaves the commands running. After a command in a block `console` comes what
it prints; `...` stands for anything, and ages are not compared. What a cluster takes a moment for is asked again.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from ocf.testing.envtest.binaries import find_programs
from tests.requirements import leave_out

__all__ = ["ROOT", "Reader", "environment_of", "is_as_shown", "reader_in", "steps"]

ROOT: Final = Path(__file__).parents[2]
BLOCK: Final = re.compile(r"^(?P<said>[^\n]*)\n+```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED: Final = re.compile(r"(?P<adding>^Add to )?`(?P<name>[\w.-]+)`:$")
AGE: Final = re.compile(r"\b\d+[smh](?:\d+s)?\b")
ATTEMPTS: Final = 5_000
REPEATED: Final = ("kubectl get", "kubectl events")


@dataclass(frozen=True, slots=True)
class Write:
    """A file of the reader's."""

    name: str
    text: str
    adding: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A command, and what it prints; None where the page does not say it."""

    command: str
    output: str | None
    stays: bool = False


Step: TypeAlias = Write | Run


def steps(page: str, *, every: bool = True, unshown: bool = False) -> Iterator[Step]:
    """Read the page as what is to be done, in order.

    Args:
        page: Its text.
        every: Whether each block has to be one; otherwise blocks without a name are only read.
        unshown: Whether commands are run as well of which the page does not say what they print, those of blocks `sh`.
    """
    for block in BLOCK.finditer(page):
        said, body = block["said"], block["body"]
        named = NAMED.search(said)
        if block["language"] == "console":
            yield from _commands(body, stays="second terminal" in said)
        elif block["language"] == "sh" and unshown:
            yield from (Run(command, None) for command in body.replace("\\\n", " ").splitlines())
        else:
            assert named or not every, f"the page does not say what to do with the block after {said!r}"
            if named is None:
                continue
            yield Write(named["name"], body, bool(named["adding"]))


def _commands(body: str, *, stays: bool) -> Iterator[Run]:
    whole = re.sub(r" \\\n *", " ", body)  # a command may go on in the next line
    for part in re.split(r"^\$ ", whole, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Run(command, output, stays)


def is_as_shown(shown: str, output: str) -> bool:
    """Compare outputs: space by space, but for ages and what `...` stands for."""
    pattern = ".*".join(re.escape(_plain(part)) for part in shown.split("..."))
    return re.fullmatch(pattern, _plain(output), re.DOTALL) is not None


def _plain(text: str) -> str:
    return "\n".join(" ".join(AGE.sub("<age>", line).split()) for line in text.splitlines())


@dataclass
class Reader:
    """A reader who does what the page says.

    Args:
        folder: Where they begin.
        environment: Their environment.
    """

    folder: Path
    environment: dict[str, str]
    terminals: list[subprocess.Popen[str]] = field(default_factory=list)

    def do(self, step: Step) -> None:
        if isinstance(step, Write):
            with (self.folder / step.name).open("a" if step.adding else "w", encoding="utf-8") as file:
                file.write(f"\n\n{step.text}" if step.adding else step.text)
        elif step.stays:
            self._leave_running(step)
        else:
            self._run(step)

    def _run(self, step: Run) -> None:
        """Run a command of the first terminal: it may change folder and environment, as `cd` and `export` do."""
        seen: list[str] = []
        for _ in range(ATTEMPTS if step.command.startswith(REPEATED) else 1):
            script = f'{step.command}\nstatus=$?\n{{ pwd; env -0; }} > "$STATE"\nexit $status'
            state = self.folder.parent / "state" if self.folder.exists() else self.folder
            done = subprocess.run(  # noqa: S603 (what our own page says)
                ["/bin/bash", "-c", script],
                cwd=self.folder,
                env={**self.environment, "STATE": str(state)},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            seen.append(done.stdout + done.stderr)
            if is_as_shown(step.output, seen[-1]) if step.output is not None else done.returncode == 0:
                self._remember(state)
                return
        said = "succeed" if step.output is None else f"print\n{step.output}"
        pytest.fail(f"$ {step.command}\nwas to {said}\nand printed\n{seen[-1]}", pytrace=False)

    def _remember(self, state: Path) -> None:
        folder, _, variables = state.read_text(encoding="utf-8").partition("\n")
        self.folder = Path(folder)
        pairs = (variable.partition("=") for variable in variables.split("\0") if variable)
        self.environment = {name: value for name, _, value in pairs if name != "STATE"}

    def _leave_running(self, step: Run) -> None:
        assert set(self.leave()) <= {0}
        process = subprocess.Popen(  # noqa: S603 (what our own page says)
            ["/bin/bash", "-c", f"exec {step.command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.terminals.append(process)
        assert process.stdout is not None
        shown = step.output or ""
        output = "".join(process.stdout.readline() for _ in shown.splitlines())
        assert is_as_shown(shown, output), output

    def leave(self) -> list[int]:
        """Press Ctrl-C in every other terminal; return how each ended."""
        for process in self.terminals:
            process.send_signal(signal.SIGINT)
        ended = []
        for process in self.terminals:
            process.communicate(timeout=600)
            ended.append(process.returncode)
        self.terminals = []
        return ended


def _kubectl() -> str:
    """Return the folder of kubectl; leave the test out where there is none."""
    programs = find_programs()
    if programs is not None and (programs.folder / "kubectl").exists():
        return str(programs.folder)
    found = shutil.which("kubectl")
    if found is None:
        leave_out("envtest", "kubectl is not installed: `make envtest` installs it")
    return str(Path(found).parent)


def reader_in(folder: Path) -> Reader:
    """Return a reader with an empty folder beside a clone."""
    (folder / "empty").mkdir()
    (folder / "ocf").symlink_to(ROOT)
    return Reader(folder / "empty", environment_of(folder))


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of a reader who installs what is installed here, and asks no index for it.

    All packages are there but `ocf`, which is installed as the page says.
    """
    packages = folder / "packages"
    packages.mkdir()
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if not each.name.startswith(("ocf-", "_ocf")):
            (packages / each.name).symlink_to(each)
    return {
        "HOME": str(folder),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), _kubectl(), "/usr/bin", "/bin"]),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as "no", which is to say: without isolation
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": str(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a reader has none
        "TERM": "dumb",
    }
