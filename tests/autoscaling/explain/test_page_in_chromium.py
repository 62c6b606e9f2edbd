"""The page in a browser: no sideways scrolling, readable text, and colours with contrast in both schemes."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ocf.autoscaling.explain import KnownHistory, explain_unknown, to_html
from ocf.autoscaling.explain.explanation import Explanation
from tests.autoscaling.algorithm.test_properties import NOON
from tests.autoscaling.explain.test_page import held
from tests.autoscaling.explain.test_uncertainty import status_with
from tests.browser import DARK, LIGHT, SUFFICIENT_CONTRAST, contrast, luminance, measured, run


def unknown() -> Explanation:
    status = status_with("ScaleDownStabilized", "DesiredWithinRange", 5, 5)
    snapshot = held().decision.snapshot
    named = replace(snapshot.autoscaler, name="web" * 21, target="w" * 63)
    return explain_unknown(replace(snapshot, autoscaler=named), KnownHistory(status, NOON), now=NOON)


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_nothing_scrolls_sideways_and_every_text_can_be_read(chromium: str, tmp_path: Path, width: int) -> None:
    found = measured(chromium, tmp_path, to_html(unknown()), width, LIGHT)
    # The frame has a bar for scrolling down.
    assert width - 20 < found["width"] <= width
    assert (found["scrolled"], found["outside"]) == (found["width"], [])
    assert len(found["texts"]) > 40
    assert min(each["size"] for each in found["texts"]) >= (10 if width >= 390 else 8)


@pytest.mark.parametrize(("scheme", "is_dark"), [(LIGHT, False), (DARK, True)], ids=["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(chromium: str, tmp_path: Path, scheme: str, *, is_dark: bool) -> None:
    found = measured(chromium, tmp_path, to_html(held()), 390, scheme)
    assert (luminance(found["paper"]) < 0.1) is is_dark
    faint = [each for each in found["texts"] if contrast(each["colour"], found["paper"]) < SUFFICIENT_CONTRAST]
    assert faint == []


def test_the_page_can_be_printed(chromium: str, tmp_path: Path) -> None:
    page, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(to_html(held()), encoding="utf-8")
    run(chromium, tmp_path, DARK, f"--print-to-pdf={printed}", page.as_uri())
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 4
