"""Files of `ocf explain --picture`: the page, or the chart alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ocf.autoscaling.explain import standalone_svg, to_html
from ocf.autoscaling.explain.explanation import Explanation
from ocf.autoscaling.explain.text import Section
from ocf.autoscaling.explain.timeline import bounded_timelines
from ocf.cli.output_files import check_folder, write_file
from ocf.errors import ConfigError

__all__ = ["check", "save", "write"]

_FORMATS: Final = (".html", ".svg")


def check(path: Path, formats: Sequence[str] = _FORMATS) -> None:
    """Reject a file that cannot be written."""
    if path.suffix not in formats:
        raise ConfigError(f"--picture must end in {' or '.join(formats)}, got {path.name!r}")
    check_folder(path, "--picture")


def save(explanation: Explanation, path: Path, *, reported: Sequence[Section] = ()) -> None:
    """Write the page or the chart into a file.

    Args:
        path: The file; its suffix selects the format.
    """
    write(to_html(explanation, reported=reported) if path.suffix == ".html" else _chart(explanation), path)


def write(content: str, path: Path) -> None:
    """Write a picture into a file."""
    write_file(path, [content], "--picture")


def _chart(explanation: Explanation) -> str:
    """Return the chart; of a range, that of the end with the most replicas, which shows what holds them."""
    drawn = list(bounded_timelines(explanation))
    if not drawn:
        raise ConfigError("--picture: the metrics were not evaluated, so there is no recommendation window to draw")
    title, window = drawn[-1]
    autoscaler = explanation.decision.snapshot.autoscaler
    return standalone_svg(window, f"{autoscaler.namespace}/{autoscaler.name}: {title}")
