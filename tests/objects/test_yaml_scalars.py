"""Unquoted scalars mean what Kubernetes' tools take them for."""

import math

import pytest

from ocf.objects.yaml_scalars import Scalar, read_plain, whole


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param("y Y yes Yes YES true True TRUE on On ON", True, id="true"),
        pytest.param("n N no No NO false False FALSE off Off OFF", False, id="false"),
        pytest.param("~ null Null NULL", None, id="null"),
        pytest.param("0 -0 +0 00 0x0 0b0 0o0 0. -0.0 0e5", 0, id="zero"),
        pytest.param("1 +1 01 1. 1.0 1_ 0_1 1e0 10e-1 0x1 0X1 0b1 0B1 0o1", 1, id="one"),
        pytest.param("0755 0o755 0O755 493 4_93 +0755 0x1ed 0x1_ED 4.93e2", 493, id="octal, hexadecimal, grouped"),
        pytest.param("-0755 -0o755 -493 -0x1ED -0b111101101", -493, id="negative"),
        pytest.param("789 0789 00789 789.0", 789, id="no octal digits"),
        pytest.param("1000 1e3 1E3 1e+3 1.e3 0.1e4 1_000 1_000.0", 1000, id="exponent without a point"),
        pytest.param("0.5 .5 +.5 5e-1 0.5_0", 0.5, id="fraction"),
        pytest.param("-9223372036854775808", -(2**63), id="smallest of 64 bits"),
        pytest.param("18446744073709551615 0xffffffffffffffff", 2**64 - 1, id="largest of 64 bits"),
        pytest.param("1e22 10000000000000000000000", 1e22, id="beyond 64 bits"),
    ],
)
def test_words_and_numbers(texts: str, expected: Scalar) -> None:
    for text in texts.split():
        value = read_plain(text)
        assert (value, isinstance(value, bool)) == (expected, isinstance(expected, bool)), text


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param("tRue nULL yEs oN", id="words in other cases"),
        pytest.param("2001-12-14 2001-12-14T21:59:43Z 2001-12-14t21:59:43.10-05:00", id="dates"),
        pytest.param("12:30:45 190:20:30.15 1:1", id="sexagesimal numbers"),
        pytest.param("1e400 -1e400 .5e999", id="numbers beyond a double"),
        pytest.param("0o8 0b2 0x 0xg 0b 1e 1e3.5 1.5.5 .e1 . .. - + _1 e3 --1 1-1", id="nearly numbers"),
        pytest.param("NaN nan Infinity inf", id="words of other languages"),
        pytest.param("= << <<x", id="YAML's own signs"),
        pytest.param("500m 1Gi 10.0.0.0/8 v1 1.2.3 100% ٣", id="other texts that begin with a digit"),
    ],
)
def test_texts(texts: str) -> None:
    for text in texts.split():
        assert read_plain(text) == text


def test_nothing_is_null() -> None:
    assert read_plain("") is None


@pytest.mark.parametrize("text", [".inf", ".Inf", "+.INF", "-.inf", ".nan", ".NaN", ".NAN"])
def test_infinities_and_nan_are_distinguished(text: str) -> None:
    """The reader refuses it: JSON has no such number."""
    value = read_plain(text)

    assert isinstance(value, float)
    assert not math.isfinite(value)


@pytest.mark.parametrize("text", ["9" * 1_000_000, "0x" + "f" * 1_000_000, "1" + "_" * 1_000_000 + "x"], ids=len)
def test_a_number_of_a_million_digits_is_a_text(text: str) -> None:
    """It is never turned into an integer, which would take minutes."""
    assert read_plain(text) == text


@pytest.mark.parametrize(
    ("number", "expected", "kind"),
    [
        pytest.param(1.0, 1, int, id="whole"),
        pytest.param(-2e20, -200000000000000000000, int, id="large whole"),
        pytest.param(1e21, 1e21, float, id="written with an exponent"),
        pytest.param(0.5, 0.5, float, id="fraction"),
    ],
)
def test_a_whole_number_has_no_fraction(number: float, expected: float, kind: type) -> None:
    assert (whole(number), type(whole(number))) == (expected, kind)
