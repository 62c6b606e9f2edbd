"""Quantities are read, rounded, compared and printed as the API server does it."""

import json
import pickle
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError, QuantityError
from ocf.objects.quantity import Quantity

ROWS: list[list[Any]] = json.loads(Path(__file__).with_name("quantities.json").read_text(encoding="utf-8"))["rows"]
ACCEPTED = [pytest.param(*row, id=ascii(row[0])) for row in ROWS if row[1] is not None]
REFUSED = [pytest.param(row[0], id=ascii(row[0])) for row in ROWS if row[1] is None]

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
NANO = 10**9
FACTORS = {
    **{
        suffix: Fraction(1000) ** power
        for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}

whole_numbers = st.integers(0, 10**24)
decimals = st.tuples(st.sampled_from(["", "-", "+"]), whole_numbers, st.text("0123456789", max_size=12)).map(
    lambda parts: f"{parts[0]}{parts[1]}.{parts[2]}"
)
suffixes = st.sampled_from(list(FACTORS)) | st.integers(-30, 30).map(lambda exponent: f"e{exponent}")
texts = st.tuples(decimals | whole_numbers.map(str), suffixes).map("".join)
quantities = texts.map(Quantity.parse)


def away_from_zero(number: Fraction) -> int:
    return ceil(number) if number >= 0 else floor(number)


class TestReference:
    """The table was computed by the Kubernetes implementation that it names."""

    @pytest.mark.parametrize(("text", "printed", "nano", "value", "milli"), ACCEPTED)
    def test_reads_and_prints_as_the_reference(
        self, text: str, printed: str, nano: int, value: int | None, milli: int | None
    ) -> None:
        """A row without `value` or `milli` is one where the reference overflows."""
        quantity = Quantity.parse(text)
        end = INT64_MAX if nano > 0 else INT64_MIN

        assert (str(quantity), quantity.nano) == (printed, nano)
        assert (quantity.value, quantity.milli) == (end if value is None else value, end if milli is None else milli)

    @pytest.mark.parametrize("text", REFUSED)
    def test_rejects_what_the_reference_rejects(self, text: str) -> None:
        with pytest.raises(QuantityError):
            Quantity.parse(text)


class TestParse:
    @pytest.mark.parametrize(
        ("number", "printed"),
        [
            pytest.param(1, "1", id="integer"),
            pytest.param(-3000, "-3k", id="negative integer"),
            pytest.param(0.25, "250m", id="fraction"),
            pytest.param(1000.0, "1k", id="whole float"),
            pytest.param(1e-7, "100e-9", id="small float, written with an exponent"),
            pytest.param(1e22, "10e21", id="large float, written with an exponent"),
        ],
    )
    def test_numbers_are_read_as_json_writes_them(self, number: float, printed: str) -> None:
        assert str(Quantity.parse(number)) == printed

    @pytest.mark.parametrize(
        "value", [True, False, None, b"1", [1], float("nan"), float("inf"), float("-inf")], ids=repr
    )
    def test_other_values_are_rejected(self, value: Any) -> None:
        with pytest.raises(QuantityError, match="is not a quantity"):
            Quantity.parse(value)

    @pytest.mark.parametrize("text", ["m", "Ki", "-", "+", ".", "-.", ".Mi", "e3", "-e3", "E", "Ti", "n", "e-9"])
    def test_a_text_without_a_digit_is_zero(self, text: str) -> None:
        """It is probably a mistake, but the API server accepts it, so rejecting it would be a different result."""
        assert (Quantity.parse(text).nano, str(Quantity.parse(text))) == (0, "0")

    @pytest.mark.parametrize("text", ["Pi", "Ei", "-Ei", ".Pi", "e-10", "e", "-e", ""])
    def test_not_every_text_without_a_digit_is(self, text: str) -> None:
        """The server's short cut ends before these suffixes, and the long way wants digits."""
        with pytest.raises(QuantityError):
            Quantity.parse(text)

    @pytest.mark.parametrize(
        "value",
        [
            pytest.param("9" * 1_000_000, id="long number"),
            pytest.param("0" * 1_000_000 + "x", id="long number with a bad end"),
            pytest.param("1." + "0" * 1_000_000, id="long fraction"),
            pytest.param("1" + "E" * 1_000_000, id="long suffix"),
            pytest.param(10**100_000, id="huge integer"),
            pytest.param("1e1025", id="exponent above the limit"),
            pytest.param("1e-1025", id="exponent below the limit"),
            pytest.param("1e" + "9" * 500, id="exponent of many digits"),
        ],
    )
    def test_input_that_costs_time_or_memory_is_rejected(self, value: str | int) -> None:
        with pytest.raises(QuantityError) as caught:
            Quantity.parse(value)

        assert len(str(caught.value)) < 200

    @pytest.mark.parametrize("value", ["0" * 1023 + "7", "1e1024", "1e-1024", 2**3072 - 1])
    def test_what_lies_at_the_limits_is_read(self, value: str | int) -> None:
        assert Quantity.parse(str(Quantity.parse(value))) == Quantity.parse(value)

    def test_the_error_names_the_value_and_the_allowed_form(self) -> None:
        with pytest.raises(QuantityError, match=r"^'1 Gi' is not a quantity: write digits .* Ki Mi Gi") as caught:
            Quantity.parse("1 Gi")

        assert isinstance(caught.value, ConfigError)

    @given(st.text(max_size=20))
    def test_any_text_is_parsed_or_rejected(self, text: str) -> None:
        """No text leads to another error, and what is read starts with a sign, a digit, a point or a suffix."""
        try:
            Quantity.parse(text)
        except QuantityError:
            return
        assert text[0] in "+-.0123456789eEnumkMGTPK"

    @given(decimals, st.sampled_from(list(FACTORS)))
    def test_the_number_is_the_written_one_rounded_up_to_billionths(self, number: str, suffix: str) -> None:
        expected = away_from_zero(Fraction(number.rstrip(".")) * FACTORS[suffix] * NANO)
        if suffix.endswith("i"):
            expected = max(-INT64_MAX * NANO, min(expected, INT64_MAX * NANO))

        assert Quantity.parse(number + suffix).nano == expected


class TestPrint:
    @given(quantities)
    def test_printing_keeps_the_number(self, quantity: Quantity) -> None:
        assert Quantity.parse(str(quantity)) == quantity

    @given(quantities)
    def test_what_was_printed_prints_the_same_again(self, quantity: Quantity) -> None:
        assert str(Quantity.parse(str(quantity))) == str(quantity)

    @pytest.mark.parametrize("text", ["1000E", "-5000E", "1000000E"])
    def test_large_decimals_keep_their_suffix(self, text: str) -> None:
        """The API server drops it, and with it eighteen digits."""
        assert str(Quantity.parse(text)) == text

    def test_repr_can_be_evaluated(self) -> None:
        assert repr(Quantity.parse("1024Mi")) == "Quantity.parse('1Gi')"


class TestFromMilli:
    @pytest.mark.parametrize(
        ("milli", "binary", "printed"),
        [
            pytest.param(0, False, "0", id="zero"),
            pytest.param(0, True, "0", id="binary zero"),
            pytest.param(250, False, "250m", id="fraction"),
            pytest.param(1_000_000, False, "1k", id="thousand"),
            pytest.param(-1500, False, "-1500m", id="negative"),
            pytest.param(1_000_000, True, "1k", id="binary below 1024 is decimal"),
            pytest.param(1024_000, True, "1Ki", id="binary"),
            pytest.param(1024_500, True, "1024500m", id="binary with a fraction is decimal"),
            pytest.param(3 * 2**30 * 1000, True, "3Gi", id="binary gibi"),
            pytest.param(-(2**20) * 1000, True, "-1Mi", id="negative binary"),
        ],
    )
    def test_prints_in_the_notation_asked_for(self, milli: int, *, binary: bool, printed: str) -> None:
        quantity = Quantity.from_milli(milli, binary=binary)

        assert (str(quantity), quantity.milli) == (printed, milli)


class TestRounding:
    @given(quantities)
    def test_value_and_milli_round_away_from_zero_and_stay_within_64_bits(self, quantity: Quantity) -> None:
        exact = Fraction(quantity.nano, NANO)

        assert quantity.value == max(INT64_MIN, min(away_from_zero(exact), INT64_MAX))
        assert quantity.milli == max(INT64_MIN, min(away_from_zero(exact * 1000), INT64_MAX))

    @pytest.mark.parametrize(("text", "value", "milli"), [("-0.1Ki", -103, -102_400), ("-1.00001", -2, -1001)])
    def test_negative_numbers_too(self, text: str, value: int, milli: int) -> None:
        quantity = Quantity.parse(text)

        assert (quantity.value, quantity.milli) == (value, milli)


class TestComparison:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("0.1", "100m"),
            ("1e3", "1k"),
            ("-0", "0"),
            ("0.5Ki", "512"),
            ("0.1n", "1n"),
        ],
    )
    def test_equal_numbers_are_equal_and_hash_alike(self, one: str, other: str) -> None:
        assert Quantity.parse(one) == Quantity.parse(other)
        assert hash(Quantity.parse(one)) == hash(Quantity.parse(other))

    @given(quantities, quantities)
    def test_order_is_that_of_the_numbers(self, one: Quantity, other: Quantity) -> None:
        assert (one < other, one <= other, one == other) == (
            one.nano < other.nano,
            one.nano <= other.nano,
            one.nano == other.nano,
        )

    def test_a_text_is_not_a_quantity(self) -> None:
        text: object = "1"

        assert Quantity.parse("1") != text


def test_a_quantity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Quantity.parse("1").nano = 2


def test_a_quantity_survives_pickling() -> None:
    """Sweeps send specs to other processes."""
    quantity = Quantity.parse("1024Mi")

    assert str(pickle.loads(pickle.dumps(quantity))) == "1Gi"  # noqa: S301 - our own bytes


class TestSums:
    """Exact, unlike sums of `milli`, which is limited to 64 bits: from 8Pi on, 1 000 times a number does not fit.

    https://github.com/kubernetes/kubernetes/pull/141305: a projection of each summand saturates, or wraps.
    """

    @given(st.lists(st.integers(-(10**15), 10**15), max_size=6), st.booleans())
    def test_a_sum_is_that_of_the_numbers(self, numbers: list[int], binary: bool) -> None:
        total = sum((Quantity.from_milli(one, binary=binary) for one in numbers), Quantity.parse(0))
        assert total == Quantity.from_milli(sum(numbers))
        assert Quantity.parse(str(total)) == total

    @given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
    def test_a_difference_undoes_a_sum(self, first: int, second: int) -> None:
        one, other = Quantity.from_milli(first), Quantity.from_milli(second, binary=True)
        assert one + other - other == one

    @pytest.mark.parametrize(
        ("left", "right", "text"),
        [
            pytest.param("1Gi", "500M", "1573741824", id="binary, which is not a whole number of kibibytes"),
            pytest.param("500M", "1Gi", "1573741824", id="decimal"),
            pytest.param("0", "1Gi", "1Gi", id="the notation of the other one, if this is zero"),
            pytest.param("512Mi", "512Mi", "1Gi", id="canonical"),
            pytest.param("1e3", "1e3", "2e3", id="exponents"),
            pytest.param("100m", "900m", "1", id="whole"),
            pytest.param("7Pi", "900Ti", "8068Ti", id="beyond the range of thousandths"),
            pytest.param("9E", "1E", "10E", id="decimal, beyond 64 bits"),
        ],
    )
    def test_the_notation_is_that_of_the_left_one(self, left: str, right: str, text: str) -> None:
        assert str(Quantity.parse(left) + Quantity.parse(right)) == text

    @pytest.mark.parametrize(("left", "right"), [("7Ei", "1Ei"), ("7Ei", "9E")])
    def test_what_the_api_would_cut_is_an_error(self, left: str, right: str) -> None:
        with pytest.raises(QuantityError, match=r"is more than the API allows with a binary suffix, 2\^63-1"):
            _ = Quantity.parse(left) + Quantity.parse(right)

    @pytest.mark.parametrize("other", [1, 0.5, "1Gi", None])
    def test_nothing_else_is_added(self, other: Any) -> None:
        with pytest.raises(TypeError):
            _ = Quantity.parse(1) + other
        with pytest.raises(TypeError):
            _ = Quantity.parse(1) - other
