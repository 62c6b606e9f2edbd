"""Goldens of new kinds, which follow from their code. Run in the folder where the files are made."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Write the goldens; the arguments are the folder of the packages, and module, sample and golden of each kind."""
    from ocf.cli.component_loader import import_by_name
    from ocf.errors import OcfError
    from ocf.testing.goldens import refresh, serialize

    root, *rest = sys.argv[1:]
    sys.path.insert(0, str(Path(root).absolute()))
    for module, sample, golden in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        builder = import_by_name(module).Builder(Path(sample).read_text(encoding="utf-8"))
        try:
            refresh(Path(golden), serialize(builder.build()))
        except OcfError as error:
            sys.exit(f"the sample is not valid: {error}")
