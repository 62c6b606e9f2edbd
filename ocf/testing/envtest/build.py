"""Build of the programs into the cache, atomically.

They are built in a temporary folder beside the target, and moved when all of them are complete: the folder is renamed,
or, if the cache has some of the programs already, each missing one is moved beside them. A killed build leaves its
temporary folder behind, and the next build removes it. A second build at the same time waits for the first, because it
would do the same work.
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
from ocf.testing.envtest.binaries import Programs, cached_programs
from ocf.testing.envtest.build_plan import Build, Origin, build_environment, origins
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.progress import Progress
from ocf.testing.envtest.versions import PINNED, Machine, Release

__all__ = ["build_programs"]

_UNFINISHED: Final = ".building-"
_SYSTEMS: Final = ("linux", "darwin")
_SECONDS: Final = 60.0  # a program that was just built may have to be read from a slow disk


def build_programs(
    environ: Mapping[str, str], progress: Progress, *, release: Release = PINNED, go: str = "go"
) -> Programs:
    """Build the programs of a release that the cache does not contain yet.

    Args:
        go: The `go` command.
    """
    machine = Machine.here()
    if machine.system not in _SYSTEMS:
        raise ConfigError(f"the programs of a control plane do not run on {machine.system}; use Linux or macOS")
    target = cached_programs(environ, release, machine)
    cache = target.folder.parent
    toolchain = Go(build_environment(environ, machine), go)
    try:
        with _locked(cache, progress.say):
            if target.missing:
                toolchain.check(release.go, cache)
                _build(toolchain, release, target, progress)
    except OSError as error:
        raise ConfigError(f"{error.filename or cache}: {error.strerror}") from error
    return target


def _build(go: Go, release: Release, target: Programs, progress: Progress) -> None:
    missing = target.missing
    cache = target.folder.parent
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=cache, ignore_cleanup_errors=True) as scratch:
        made = Path(scratch, "programs")
        made.mkdir()
        for origin in origins(release):
            builds = [build for build in origin.builds if build.program in missing]
            if not builds:
                continue
            module = _module(go, origin, Path(scratch), progress)
            for build in builds:
                _build_one(go, build, module, made / build.program, progress)
        if target.folder.exists():
            for program in missing:
                (made / program).replace(target.folder / program)
        else:
            made.rename(target.folder)


def _module(go: Go, origin: Origin, scratch: Path, progress: Progress) -> Path:
    """Write a module that depends on the module of the programs, and return its folder."""
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
    """Run a program once, so that the cache never contains one that does not run on this machine."""
    try:
        subprocess.run([program, "--help"], capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603 (just built)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{program.name} was built, but does not run: {error}") from error


@contextmanager
def _locked(cache: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Lock the cache after other builds have finished, and remove the temporary folders of killed builds."""
    import fcntl

    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another build is running; waiting for it to finish ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
