"""Command `python -m ocf.testing.envtest`, also run by `make envtest`: install the programs, print their folder."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from ocf.errors import ConfigError
from ocf.testing.envtest.binaries import ASSETS, Programs, find_programs
from ocf.testing.envtest.versions import PINNED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

    from rich.console import Console

__all__ = ["main", "provide"]

_INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The command-line arguments; None for those of the process.
    """
    import argparse

    from rich.console import Console

    description = (
        f"Provide etcd {PINNED.etcd}, kwok {PINNED.kwok}, and the kube-apiserver, kube-controller-manager, "
        f"kube-scheduler and kubectl of Kubernetes {PINNED.kubernetes}: those in the folder that "
        f"{ASSETS} names, else those in the cache; "
        f"what is missing there is built with Go {PINNED.go} or newer and stored in the cache."
    )
    argparse.ArgumentParser(prog="python -m ocf.testing.envtest", description=description).parse_args(arguments)
    signal.signal(signal.SIGTERM, _exit)  # so that a build cleans up
    return provide(os.environ, Console(), Console(stderr=True))


def provide(environ: Mapping[str, str], console: Console, errors: Console) -> int:
    """Find or build the programs."""
    from ocf.testing.envtest.build import build_programs
    from ocf.testing.envtest.progress import shown_on

    try:
        programs = find_programs(environ)
        if programs is None or (programs.cached and programs.missing):
            programs = build_programs(environ, shown_on(console))
    except ConfigError as error:
        errors.print(f"envtest: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        errors.print("envtest: interrupted; unfinished files are removed")
        return _INTERRUPTED
    console.print(_found(programs), markup=False, highlight=False, soft_wrap=True)
    return 0


def _found(programs: Programs) -> str:
    text = f"The programs of a control plane are in {programs.folder} ({programs.origin})."
    if programs.missing:
        text += f" Missing: {', '.join(programs.missing)}; tests that need them are skipped."
    return text


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
