"""Building the programs into the cache, wholly or not at all.

They are built in a folder beside the one that they are for, which is renamed when all of them are there. A build that
was killed leaves such a folder behind; the next one removes it. Two builds at once would do the same work twice, so
the second waits for the first.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.binaries import Programs
from ocf.testing.envtest.build_plan import Build, Origin, build_environment, origins
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.progress import Progress
from ocf.testing.envtest.versions import PINNED, Machine, Release, cache_folder

__all__ = ["build_programs"]

_UNFINISHED: Final = ".building-"
_SYSTEMS: Final = ("linux", "darwin")
_SECONDS: Final = 60.0  # a program that was just built may have to be read from a slow disk


def build_programs(
    environ: Mapping[str, str], progress: Progress, *, release: Release = PINNED, go: str = "go"
) -> Programs:
    """Build the programs of a release, unless the cache has them by then.

    Args:
        environ: The environment.
        progress: Where the work is told.
        release: What to build.
        go: The command of Go.

    Returns:
        The programs.

    Raises:
        ConfigError: If there is no Go, it is too old, it fails, or the cache cannot be written.
    """
    machine = Machine.here()
    if machine.system not in _SYSTEMS:
        raise ConfigError(f"the programs of a control plane do not run on {machine.system}; use Linux or macOS")
    cache = cache_folder(environ)
    target = Programs(cache / release.folder_name(machine), "cache")
    toolchain = Go(build_environment(environ, machine), go)
    try:
        with _alone(cache, progress.say):
            if target.missing:
                toolchain.check(release.go, cache)
                _build(toolchain, release, target.folder, progress)
    except OSError as error:
        raise ConfigError(f"{error.filename or cache}: {error.strerror}") from error
    return target


def _build(go: Go, release: Release, target: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=target.parent, ignore_cleanup_errors=True) as scratch:
        made = Path(scratch, "programs")
        made.mkdir()
        for origin in origins(release):
            module = _module(go, origin, Path(scratch), progress)
            for build in origin.builds:
                _build_one(go, build, module, made / build.program, progress)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)


def _module(go: Go, origin: Origin, scratch: Path, progress: Progress) -> Path:
    """Make a module of ours that depends on the one that programs are built from, and return its folder."""
    with progress.step(f"{origin.path} {origin.version}: looking up") as see:
        found = json.loads("\n".join(go.run(origin.listing, scratch, see)))
    folder = Path(tempfile.mkdtemp(prefix="module-", dir=scratch))
    published = Path(found["GoMod"]).read_text(encoding="utf-8")
    (folder / "go.mod").write_text(origin.go_mod(published), encoding="utf-8")
    return folder


def _build_one(go: Go, build: Build, module: Path, output: Path, progress: Progress) -> None:
    with progress.step(f"{build.program}: downloading its modules") as see:
        packages = go.run(build.listing, module, see)
    with progress.step(f"{build.program}: building", len(packages)) as see:
        go.run(build.command(str(output)), module, see)
    _try(output)


def _try(program: Path) -> None:
    """Run a program once, so that the cache never holds one that this machine refuses."""
    try:
        subprocess.run([program, "--help"], capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603 (just built)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{program.name} was built, and does not run: {error}") from error


@contextmanager
def _alone(cache: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until nobody else builds, keep others out, and remove what killed builds have left."""
    import fcntl

    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another build is running; waiting for its end ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
