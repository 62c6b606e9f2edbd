"""Description of the machine, without anything that identifies a single one."""

import os
import platform
from pathlib import Path

__all__ = ["describe"]


def describe() -> dict[str, str | int]:
    """Return CPU model, cores that this process may use, Python and platform."""
    return {
        "cpu": _cpu_model() or platform.processor() or platform.machine(),
        "cores": _cores(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _cpu_model() -> str:
    """Read the model's name where Linux writes it; the standard library does not know it there."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
