"""Build of Kubernetes' own end-to-end tests of the API machinery, for the pinned release."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.build_plan import build_environment, origins
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder

__all__ = ["build_suite", "suite"]

SOURCE: Final = Path(__file__).with_name("suite_test.go")
DIGITS: Final = 12


def suite(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the program of the current source is, beside those of the control plane; it may not be built yet."""
    digest = sha256(SOURCE.read_bytes()).hexdigest()[:DIGITS]
    machine = Machine.here()
    name = f"e2e-{PINNED.kubernetes}-{digest}-{machine.system}-{machine.architecture}"
    return cache_folder(environ).with_name(name)


def build_suite() -> Path:
    """Build the program unless it is in the cache.

    What it shares with the programs of Kubernetes is in Go's cache after they were built with the same flags.

    Returns:
        The program.

    Raises:
        ConfigError: If Go is missing or fails.
    """
    target = suite()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    go = Go(build_environment(os.environ, Machine.here()))
    origin = next(each for each in origins(PINNED) if Program.API_SERVER in {build.program for build in each.builds})
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch)
        found = json.loads("\n".join(go.run(origin.listing, folder)))
        published = Path(found["GoMod"]).read_text(encoding="utf-8")
        (folder / "go.mod").write_text(origin.go_mod(published), encoding="utf-8")
        shutil.copy(SOURCE, folder)
        program = folder / "e2e"
        go.run(["test", "-c", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "."], folder)
        program.rename(target)
    return target
