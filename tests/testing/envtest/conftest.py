"""Fake programs, a fake Go that builds them, and waiting for other processes."""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ocf.testing.envtest.binaries import Program

Eventually = Callable[[Callable[[], object]], None]
MakePrograms = Callable[[Path, Iterable[Program]], Path]

GO = """#!/bin/sh
# Fake Go: responds to the commands of the build, and writes fake programs.
echo "$1 $GOFLAGS" >> {folder}/asked
case "$1 $2" in
  "env GOVERSION") printf '%s\\n' "{version}" "{toolchain}" ;;
  "list -m") printf '{{"GoMod": "%s"}}\\n' {folder}/published.mod ;;
  "list "*) printf 'go: downloading example.com/a v1\\nfmt\\nexample.com/a\\n' ;;
  "build "*)
    {build}
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\n' > "$2"
    chmod +x "$2"
    printf 'fmt\\nexample.com/a\\n' ;;
esac
"""


def executable(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.fixture
def make_programs() -> MakePrograms:
    """Return a function that fills a folder with fake programs."""

    def make(folder: Path, programs: Iterable[Program]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            executable(folder / program)
        return folder

    return make


class FakeGo:
    """A script that is run instead of Go."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "published.mod").write_text("module published\n")
        self._folder = folder
        self.command = str(folder / "go")
        self.write()

    def write(self, *, version: str = "go1.26.8", toolchain: str = "local", build: str = ":") -> None:
        text = GO.format(folder=self._folder, version=version, toolchain=toolchain, build=build)
        executable(Path(self.command), text)

    @property
    def commands(self) -> list[str]:
        """The verb and the flags of each run, in order."""
        file = self._folder / "asked"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def fake_go(tmp_path: Path) -> FakeGo:
    return FakeGo(tmp_path / "go")


@pytest.fixture
def eventually() -> Eventually:
    """Return a function that waits until a condition holds in another process."""

    def wait(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + 600
        while not holds():
            assert time.monotonic() < deadline, "it did not come to hold within 10 minutes"
            threading.Event().wait(0.02)

    return wait


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Return a function that checks whether a process has ended or is a zombie."""

    def look(process: int) -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    return look
