"""`python -m ocf.testing.envtest`, which is what `make envtest` runs: provide the programs, and say where they are."""

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
        arguments: Of the command line; None takes those of the process.

    Returns:
        The exit code.
    """
    import argparse

    from rich.console import Console

    description = (
        f"Provide etcd {PINNED.etcd} and the kube-apiserver, kube-controller-manager and kubectl of Kubernetes "
        f"{PINNED.kubernetes}: those in the folder that {ASSETS} names, else those in the cache; "
        f"else they are built with Go {PINNED.go} or newer and kept in the cache."
    )
    argparse.ArgumentParser(prog="python -m ocf.testing.envtest", description=description).parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)  # so that a build ends in order
    return provide(os.environ, Console(), Console(stderr=True))


def provide(environ: Mapping[str, str], console: Console, errors: Console) -> int:
    """Find or build the programs.

    Args:
        environ: The environment.
        console: Where the work and the result are told.
        errors: Where it is told what went wrong.

    Returns:
        The exit code.
    """
    from ocf.testing.envtest.build import build_programs
    from ocf.testing.envtest.progress import shown_on

    try:
        programs = find_programs(environ) or build_programs(environ, shown_on(console))
    except ConfigError as error:
        errors.print(f"envtest: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        errors.print("envtest: interrupted; what was unfinished is removed")
        return _INTERRUPTED
    console.print(_found(programs), markup=False, highlight=False, soft_wrap=True)
    return 0


def _found(programs: Programs) -> str:
    text = f"The programs of a control plane are in {programs.folder} ({programs.origin})."
    if programs.missing:
        text += f" Not there: {', '.join(programs.missing)}; tests that need that are left out."
    return text


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
