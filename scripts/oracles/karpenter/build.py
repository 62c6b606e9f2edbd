"""Build of the program that is Karpenter's scheduling and disruption with its kwok provider, without a cluster.

`python -m scripts.oracles.karpenter.build` puts it where the benchmarks find it.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ocf.testing.envtest.build_plan import Origin, build_environment
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder

__all__ = ["KARPENTER", "build_oracle", "program_path"]

KARPENTER: Final = Origin("sigs.k8s.io/karpenter", "v1.14.0", PINNED.go, ())
"""The newest release that the Go of this checkout builds."""


def build_oracle(folder: Path) -> Path:
    """Build the program from Karpenter's module, with the versions that its go.mod requires.

    Args:
        folder: An empty folder for the module of the program.

    Returns:
        The program.

    Raises:
        ConfigError: If Go is missing or fails.
    """
    go = Go(build_environment(os.environ, Machine.here()))
    found = json.loads("\n".join(go.run(KARPENTER.listing, folder)))
    published = Path(found["GoMod"]).read_text(encoding="utf-8")
    (folder / "go.mod").write_text(KARPENTER.go_mod(published), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("main.go"), folder)
    program = folder / "karpenter_oracle"
    go.run(["build", "-mod=mod", "-trimpath", "-o", str(program), "."], folder)
    return program


def program_path(environ: Mapping[str, str]) -> Path:
    """Return where the benchmarks look for the program.

    Args:
        environ: The environment variables; they say where the cache is.
    """
    return cache_folder(environ).parent / f"karpenter-oracle-{KARPENTER.version}"


def main() -> None:
    """Build the program for the benchmarks."""
    target = program_path(os.environ)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(build_oracle(Path(folder)), target)
    print(target)


if __name__ == "__main__":
    main()
