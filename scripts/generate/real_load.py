"""Write the section "A real load" of docs/autoscaling/simulate.md from a run: the summary, and the picture.

The scenario is the one of the page. Its load is not part of this project; the page names where it can be had.

    python -m scripts.generate.real_load FOLDER

FOLDER holds the load under the name that the scenario gives it.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ocf.simulation import load_series, parse_scenario, simulate
from ocf.simulation.report import Reported
from ocf.simulation.report.series import part_means
from ocf.simulation.report.text import summary_lines
from ocf.simulation.result import SimulationResult

__all__ = ["PAGE", "PICTURE", "of_page", "render"]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "autoscaling" / "simulate.md"
PICTURE: Final = ROOT / "docs" / "pictures" / "real-load.svg"

_SECTION: Final = re.compile(r"^## A real load$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_YAML: Final = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXT: Final = re.compile(r"(?<=^```text\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 640, 110, 44, 24, 56
_POINTS: Final = 360
_HOUR: Final = 3_600
_DAY: Final = 24 * _HOUR
_DETAIL: Final = 7
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#333}path{fill:none;stroke:#c2410c}"
    "path.fill{fill:#2563eb;fill-opacity:.55;stroke:none}line{stroke:#8884}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}path{stroke:#fb923c}path.fill{fill:#60a5fa}}"
)


def of_page(page: str) -> tuple[str, str]:
    """Return the scenario of the section, and the summary that it shows.

    Args:
        page: The page.

    Raises:
        ValueError: If there is no such section.
    """
    section = _SECTION.search(page)
    if section is None:
        raise ValueError("the page has no section `A real load`")
    return _YAML.findall(section[0])[0], _TEXT.findall(section[0])[0]


def render(scenario: str, folder: Path) -> tuple[str, str]:
    """Return the summary and the picture of a run.

    Args:
        scenario: The scenario.
        folder: The folder with its load.
    """
    read = parse_scenario(scenario, directory=folder)
    result = simulate(read, load_series(read, folder))
    summary = "\n".join(line.rstrip() for line in summary_lines(Reported.of(result, read)))
    return f"{summary}\n", "\n".join(_svg(result)) + "\n"


def _svg(result: SimulationResult) -> Iterator[str]:
    height = _TOP + 2 * _HEIGHT + _GAP + 40
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 24} {height}" role="img"'
        ' aria-labelledby="title text">'
    )
    yield '<title id="title">A real load, and the capacity of the pods that serve it</title>'
    yield '<desc id="text">Capacity follows the load of each day; peaks of each half hour rise faster than it.</desc>'
    yield f"<style>{_STYLE}</style>"
    days = range(0, int(result.duration // _DAY) + 1, 7)
    labels = {day * _DAY: f"day {day}" for day in days}
    yield from _panel(result, (0.0, result.duration), "22 days, means", labels, _TOP)
    begin = _DETAIL * _DAY
    labels = {begin + hour * _HOUR: f"{hour}:00" for hour in range(7)}
    title = f"the first hours of day {_DETAIL}"
    yield from _panel(result, (begin, begin + 6 * _HOUR), title, labels, _TOP + _HEIGHT + _GAP)
    yield "</svg>"


def _panel(
    result: SimulationResult, span: tuple[float, float], title: str, labels: Mapping[int, str], top: float
) -> Iterator[str]:
    """Yield a chart of load and capacity between two times."""
    begin, end = span
    columns, bottom = result.columns, top + _HEIGHT
    load, capacity = (
        part_means(columns.time, values, begin, end, _POINTS) for values in (columns.load, columns.capacity)
    )
    highest = max(*load, *capacity)

    def points(values: Sequence[float]) -> str:
        placed = ((number * _WIDTH / len(values), value / highest * _HEIGHT) for number, value in enumerate(values))
        return "L".join(f"{_LEFT + x:.1f} {bottom - y:.1f}" for x, y in placed)

    yield f'<text x="{_LEFT}" y="{top - 8}">{title}: load and, as a line, capacity in requests per second</text>'
    for value, y in ((highest, top), (0.0, bottom)):
        yield f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.0f}</text>'
    yield f'<path class="fill" d="M{_LEFT} {bottom}L{points(load)}L{_LEFT + _WIDTH} {bottom}z"/>'
    yield f'<path d="M{points(capacity)}"/>'
    for time, label in labels.items():
        x = _LEFT + (time - begin) / (end - begin) * _WIDTH
        yield f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{label}</text>'


def main() -> None:
    """Write the summary and the picture."""
    parser = argparse.ArgumentParser(
        description="Write the section `A real load` of the page on simulations from a run."
    )
    parser.add_argument("folder", type=Path, help="the folder with the load")
    page = PAGE.read_text(encoding="utf-8")
    scenario, shown = of_page(page)
    summary, picture = render(scenario, parser.parse_args().folder)
    PAGE.write_text(page.replace(shown, summary), encoding="utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
