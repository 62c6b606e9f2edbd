"""The writer of SVG elements: what it escapes, and the lines of an axis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling.explain.svg import element, picture, round_step, text


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(
            element("circle", class_="now", text_anchor="", r=2.50), '<circle class="now" r="2.5"/>', id="empty"
        ),
        pytest.param(element("circle", data_point=1_234_567), '<circle data-point="1234567"/>', id="whole number"),
        pytest.param(
            element("text", "<b/>", aria_label='"<'), '<text aria-label="&quot;&lt;"><b/></text>', id="attribute"
        ),
        pytest.param(
            text(1.0, 2, "<&", anchor="end"), '<text x="1" y="2" text-anchor="end">&lt;&amp;</text>', id="text"
        ),
    ],
)
def test_texts_and_attributes_are_escaped_and_numbers_are_short(written: str, expected: str) -> None:
    assert written == expected


def test_a_picture_is_named_by_its_title_and_description() -> None:
    drawn = picture(["<g/>"], title="A & B", description="a < b", identifier="chart0", role="img")
    assert drawn == (
        '<svg role="img" aria-labelledby="chart0-title chart0-text"><title id="chart0-title">A &amp; B</title>'
        '<desc id="chart0-text">a &lt; b</desc><g/></svg>'
    )


@given(length=st.floats(1e-9, 1e12), most=st.integers(1, 20))
def test_the_distance_between_lines_is_the_least_round_one(length: float, most: int) -> None:
    step = round_step(length, most)
    assert f"{step:.0e}"[0] in "125"
    assert step == pytest.approx(float(f"{step:.0e}"))
    assert length / most <= step * (1 + 1e-9)
    assert step <= 2.5 * length / most * (1 + 1e-9)


@given(length=st.integers(1, 2**31), most=st.integers(1, 20))
def test_a_whole_distance_is_at_least_one(length: int, most: int) -> None:
    step = round_step(length, most, whole=True)
    assert step == int(step) >= 1
