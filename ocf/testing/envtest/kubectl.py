"""Execution of kubectl, isolated from the user's home directory."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ocf.errors import ConfigError

__all__ = ["kubectl"]

_SECONDS: Final = 120.0


def kubectl(program: Path, arguments: Sequence[str], *, home: Path, kubeconfig: Path, stdin: str = "") -> str:
    """Run kubectl and return its output.

    Args:
        home: Its home directory, for its cache; the user's preferences are not read.
    """
    command = [str(program), *arguments]
    ours = {"HOME": str(home), "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(home / "cache"), "KUBERC": "off"}
    try:
        done = subprocess.run(  # noqa: S603 (a program of ours, with the caller's arguments)
            command,
            input=stdin,
            env={**os.environ, **ours},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"kubectl {' '.join(arguments)}: not done after {_SECONDS:g} s") from error
    except OSError as error:
        raise ConfigError(f"{program} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise ConfigError(f"kubectl {' '.join(arguments)}: code {done.returncode}: {done.stderr.strip()}")
    return done.stdout
