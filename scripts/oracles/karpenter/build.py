"""Build of the program that is Karpenter's scheduling and disruption with its kwok provider, without a cluster.

`python -m scripts.oracles.karpenter.build` puts it where the benchmarks find it.
"""

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError
from ocf.testing.envtest.build_plan import Origin, build_environment
from ocf.testing.envtest.go_toolchain import Go
from ocf.testing.envtest.versions import PINNED, Machine, cache_folder

__all__ = ["KARPENTER", "build_oracle", "program_path"]

KARPENTER: Final = Origin("sigs.k8s.io/karpenter", "v1.15.0", PINNED.go, ())
"""The release whose decisions are recorded."""

_GO_LINE: Final = re.compile(r"^go 1\.\d+(\.\d+)?$", re.MULTILINE)


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
    source = _source(go, folder, Path(found["GoMod"]).with_suffix(".zip"))
    # It requires the newest patch of a minor of Go, although any patch of that minor builds it.
    (source / "go.mod").write_text(_GO_LINE.sub(f"go {KARPENTER.go}", published), encoding="utf-8")
    replaced = f"\nreplace {KARPENTER.path} => ./{source.relative_to(folder)}\n"
    (folder / "go.mod").write_text(KARPENTER.go_mod(published) + replaced, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("main.go"), folder)
    program = folder / "karpenter_oracle"
    go.run(["build", "-mod=mod", "-trimpath", "-o", str(program), "."], folder)
    return program


def _source(go: Go, folder: Path, archive: Path) -> Path:
    """Return the folder with a copy of the source of Karpenter's module, which can be changed."""
    module = f"{KARPENTER.path}@{KARPENTER.version}"
    # An older patch of Go refuses the module once it has downloaded and verified it.
    with suppress(ConfigError):
        go.run(["mod", "download", "-json", module], folder)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    return folder / module


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
