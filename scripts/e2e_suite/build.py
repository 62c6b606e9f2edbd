"""Build of Kubernetes' own end-to-end tests of the API machinery, for the pinned release."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ocf.testing.envtest.binaries import Program
from ocf.testing.envtest.build_plan import build_environment, origins
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder

__all__ = ["build_suite"]

SOURCE: Final = Path(__file__).with_name("suite_test.go")


def build_suite() -> Path:
    """Build the program unless it is in the cache, beside the programs of the control plane.

    Returns:
        The program.

    Raises:
        ConfigError: If Go is missing or fails.
    """
    target = cache_folder(os.environ).parent / f"e2e-{PINNED.kubernetes}"
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
