"""Files of a new project that follow from its code: manifests, chart and goldens. Run in the project's folder."""

from __future__ import annotations

import sys

from ocf.cli.component_loader import import_by_name

__all__ = ["main"]


def main() -> None:
    """Write the files; the arguments are the package and the options of `ocf manifests`."""
    from ocf.cli.app import app

    package, *options = sys.argv[1:]
    for layout in (["--directory=deploy"], ["--directory=deploy/chart", "--format=helm"]):
        app(["manifests", package, *options, *layout], standalone_mode=False)
    for case in import_by_name("tests.matrix").MATRIX.cases():
        case.check(update=True)
