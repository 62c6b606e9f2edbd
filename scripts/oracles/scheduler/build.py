"""Build of the program that is the scheduler of the pinned release of Kubernetes, without an API server."""

import json
import os
import shutil
from pathlib import Path

from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.build_plan import build_environment, origins
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine

__all__ = ["build_oracle"]


def build_oracle(folder: Path) -> Path:
    """Build the program from the same modules, with the same flags as kube-scheduler, so that Go's cache serves both.

    Args:
        folder: An empty folder for its module.

    Returns:
        The program.

    Raises:
        ConfigError: If Go is missing or fails.
    """
    go = Go(build_environment(os.environ, Machine.here()))
    origin = next(each for each in origins(PINNED) if Program.SCHEDULER in {build.program for build in each.builds})
    found = json.loads("\n".join(go.run(origin.listing, folder)))
    published = Path(found["GoMod"]).read_text(encoding="utf-8")
    (folder / "go.mod").write_text(origin.go_mod(published), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("main.go"), folder)
    program = folder / "scheduler_oracle"
    go.run(["build", "-mod=mod", "-trimpath", "-o", str(program), "."], folder)
    return program
