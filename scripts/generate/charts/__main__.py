"""Write the chart and the kustomization of the controllers into charts/; with --check only compare.

python -m scripts.generate.charts --check
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ocf.manifests import differences
from scripts.generate.charts.chart import chart_files, charted
from scripts.generate.charts.kustomization import kustomization_files
from scripts.generate.charts.notes import CHART

__all__ = ["outdated", "write"]

ROOT: Final = Path(__file__).parents[3]
_OURS: Final = "ci"
"""The folder of the chart with values for `helm lint`, which is not generated."""


def wanted(root: Path) -> dict[str, str]:
    """Return all generated files, by their path in charts/."""
    controllers = charted()
    chart = chart_files(controllers, root / "pyproject.toml")
    kustomization = kustomization_files(controllers)
    return {
        **{f"{CHART}/{path}": text for path, text in chart.items()},
        **{f"kustomize/{path}": text for path, text in kustomization.items()},
    }


def outdated(root: Path = ROOT) -> Iterator[str]:
    """Yield each difference between the generated files and what they should be."""
    files, found = wanted(root), dict(_present(root))
    yield from map(str, differences(files, found))
    yield from (f"{path} is not generated any more" for path in found if path not in files)


def write(root: Path = ROOT) -> None:
    """Write the generated files, and remove those that are not generated any more."""
    files = wanted(root)
    for path in [path for path, _ in _present(root) if path not in files]:
        (root / "charts" / path).unlink()
    for path, text in files.items():
        target = root / "charts" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _present(root: Path) -> Iterator[tuple[str, str]]:
    folder = root / "charts"
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if file.is_file() and _OURS not in path.parts:
            yield path.as_posix(), file.read_text(encoding="utf-8")


def main(words: list[str]) -> int:
    """Write or compare; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.generate.charts", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail on a difference")
    if not parser.parse_args(words).check:
        write()
        return 0
    found = list(outdated())
    for each in found:
        print(each, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
