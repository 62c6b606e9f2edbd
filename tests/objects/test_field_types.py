"""Field types of files that users write."""

import re
from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ocf.objects.field_types import Amount, FileModel, Milli, Period, PositivePeriod

PERIOD: TypeAdapter[timedelta] = TypeAdapter(Period)
POSITIVE: TypeAdapter[timedelta] = TypeAdapter(PositivePeriod)
MILLI: TypeAdapter[int] = TypeAdapter(Milli)
AMOUNT: TypeAdapter[str] = TypeAdapter(Amount)


class Pod(FileModel):
    """A model with a field of two words."""

    start_time: Period


@pytest.mark.parametrize(
    ("adapter", "written", "read"),
    [
        pytest.param(PERIOD, "1m30s", timedelta(seconds=90), id="duration"),
        pytest.param(PERIOD, "0", timedelta(), id="no duration"),
        pytest.param(PERIOD, 1.5, timedelta(seconds=1.5), id="seconds"),
        pytest.param(PERIOD, timedelta(hours=1), timedelta(hours=1), id="timedelta"),
        pytest.param(MILLI, "250m", 250, id="quantity in thousandths"),
        pytest.param(MILLI, "1Ki", 1_024_000, id="quantity with a binary suffix"),
        pytest.param(MILLI, 2, 2_000, id="number"),
        pytest.param(MILLI, "-1", -1_000, id="negative quantity"),
        pytest.param(AMOUNT, "0.5", "500m", id="text of a quantity"),
        pytest.param(AMOUNT, 2, "2", id="text of a number"),
    ],
)
def test_reads(adapter: TypeAdapter[Any], written: Any, read: Any) -> None:
    assert adapter.validate_python(written) == read


@pytest.mark.parametrize(
    ("adapter", "written", "problem"),
    [
        pytest.param(PERIOD, "1 hour", "must be a duration like 1m30s, not '1 hour'", id="other format"),
        pytest.param(PERIOD, -1, "at least 0s", id="negative duration"),
        pytest.param(POSITIVE, "0s", "more than 0s", id="no duration where one is needed"),
        pytest.param(MILLI, "5 m", "is not a quantity", id="no quantity"),
        pytest.param(MILLI, True, "must be a quantity such as 250m or 1Gi, not bool", id="boolean"),
    ],
)
def test_rejects(adapter: TypeAdapter[Any], written: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        adapter.validate_python(written)


def test_a_file_uses_the_spelling_of_the_api() -> None:
    read = Pod.model_validate({"startTime": "2s"}, by_alias=True, by_name=False)

    assert read == Pod(start_time=timedelta(seconds=2))
    with pytest.raises(ValidationError):
        Pod.model_validate({"start_time": "2s"}, by_alias=True, by_name=False)


@pytest.mark.parametrize(
    ("adapter", "accepted"),
    [
        pytest.param(PERIOD, ("0", "15s", "1h30m", "1.5h", "10ms"), id="durations"),
        pytest.param(MILLI, ("250m", "1Gi", "1e3", "-2", "0.5"), id="quantities"),
    ],
)
def test_the_pattern_for_editors_accepts_what_is_read(adapter: TypeAdapter[Any], accepted: tuple[str, ...]) -> None:
    (pattern,) = [each["pattern"] for each in adapter.json_schema()["anyOf"] if "pattern" in each]

    assert all(re.search(pattern, text) for text in accepted)
    assert not any(re.search(pattern, text) for text in ("", "soon", "1 s", "5 m"))
    for text in accepted:
        adapter.validate_python(text)


@pytest.mark.parametrize(
    ("adapter", "value"),
    [
        pytest.param(PERIOD, timedelta(hours=1, seconds=1.5), id="duration"),
        pytest.param(POSITIVE, timedelta(milliseconds=15), id="positive duration"),
        pytest.param(MILLI, 250, id="thousandths"),
        pytest.param(MILLI, 512 * 2**20 * 1000, id="whole number"),
        pytest.param(MILLI, -1500, id="negative quantity"),
    ],
)
def test_what_is_written_as_json_is_read_again(adapter: TypeAdapter[Any], value: Any) -> None:
    assert adapter.validate_json(adapter.dump_json(value)) == value
