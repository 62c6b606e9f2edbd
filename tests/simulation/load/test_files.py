"""Loads from files."""

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ocf.simulation.input_errors import InputError
from ocf.simulation.load import LoadSeries, text_files, trace
from tests.simulation.load.support import series, steps

HEADED = "seconds,requests\n0,5\n15,8\n30,2\n"


def written(directory: Path, content: str | bytes | Any, name: str = "load.csv") -> Path:
    """Write a file."""
    path = directory / name
    data = content if isinstance(content, str | bytes) else json.dumps(content, indent=0)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def csv_load(directory: Path, content: str | bytes, name: str = "load.csv", **fields: Any) -> LoadSeries:
    """Return the load of a CSV file."""
    written(directory, content, name)
    return series(directory, {"type": "Csv", "path": name, **fields})


def problem_of(directory: Path, read: Callable[[], Any]) -> str:
    """Return the message of the error, without the folder."""
    with pytest.raises(InputError) as caught:
        read()
    return str(caught.value).replace(f"{directory}{os.sep}", "")


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        pytest.param(HEADED, {}, id="header"),
        pytest.param("0,5\n15,8\n30,2", {}, id="no header"),
        pytest.param(
            "\ufeff# a comment\n\n0, 5.0\r\n15,8e0\r\n30,2\r\n", {}, id="byte order mark, comment, blank line"
        ),
        pytest.param("n;at;rate\nx;0;5\nx;15;8\nx;30;2", {"time": "at", "value": "rate", "delimiter": ";"}, id="names"),
        pytest.param("5,x,100\n8,x,115\n2,x,130", {"time": 3, "value": 1}, id="positions"),
        pytest.param('"0","5"\n"15","8"\n"30","2"', {}, id="quotes"),
        pytest.param("1767225600,5\n1767225615,8\n1767225630,2", {}, id="seconds since 1970"),
        pytest.param("0,5\n15000,8\n30000,2", {"timeUnit": "Milliseconds"}, id="milliseconds"),
        pytest.param("1767225600000,5\n1767225615000,8\n1767225630000,2", {"timeUnit": "Milliseconds"}, id="epoch ms"),
        pytest.param("2026-01-01T00:00:00Z,5\n2026-01-01T01:00:15+01:00,8\n2026-01-01T00:00:30Z,2", {}, id="RFC 3339"),
        pytest.param(
            "2026-01-01 00:00,5\n2026-01-01 00:00:15,8\n2026-01-01 00:00:30,2", {"timeZone": "UTC"}, id="dates"
        ),
        pytest.param("0,300\n15,480\n30,120", {"unit": "PerMinute"}, id="per minute"),
        pytest.param("0,18000\n15,28800\n30,7200", {"unit": "PerHour"}, id="per hour"),
        pytest.param("0,75\n15,120\n30,30", {"unit": "PerStep"}, id="total of a step"),
        pytest.param("t,requests_per_minute\n0,300\n15,480\n30,120", {"unit": "PerMinute"}, id="unit of the header"),
        pytest.param("0,50\n15,80\n30,20", {"factor": 0.1}, id="scaled in height"),
        pytest.param("0,5\n60,8\n120,2", {"timeFactor": 0.25}, id="scaled in time"),
        pytest.param("0,9\n60,5\n75,8\n90,2\n105,9", {"from": "1m", "to": "105s", "gaps": "Hold"}, id="cut"),
        pytest.param("0,5\n70,8\n85,2\n100,9", {"from": "55s", "to": "1m40s", "gaps": "Hold"}, id="cut between rows"),
    ],
)
def test_a_csv_file_is_read(content: str, fields: dict[str, Any], tmp_path: Path) -> None:
    found = csv_load(tmp_path, content, **fields)

    assert list(found.times) == [0, 15, 30]
    assert list(found.rates) == pytest.approx([5, 8, 2])
    assert found.end == 45


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    found = csv_load(tmp_path, gzip.compress(HEADED.encode()), "load.csv.gz")

    assert steps(found) == [(0, 5), (15, 8), (30, 2)]


def test_a_file_may_be_cut_at_instants(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-01T00:{minute:02}:00Z,{minute}\n" for minute in range(60))

    found = csv_load(tmp_path, rows, **{"from": "2026-01-01T00:10:00Z", "to": "2026-01-01T01:12:00+01:00"})

    assert steps(found) == [(0, 10), (60, 11)]


def test_nothing_after_the_cut_is_read(tmp_path: Path) -> None:
    found = csv_load(tmp_path, "0,5\n15,8\n30,2\n45,not a number", to="30s")

    assert found.end == 30


def test_the_hour_that_summer_time_repeats_is_read_twice(tmp_path: Path) -> None:
    rows = "".join(
        f"2026-10-25 {time},{rate}\n"
        for rate, time in enumerate(("01:30", "02:00", "02:30", "02:00", "02:30", "03:00"))
    )

    found = csv_load(tmp_path, rows, timeZone="Europe/Berlin")

    assert [time / 60 for time in found.times] == [0, 30, 60, 90, 120, 150]


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        pytest.param("Hold", [(0, 4), (10, 8), (40, 2)], id="hold"),
        pytest.param("Zero", [(0, 4), (10, 8), (20, 0), (40, 2)], id="zero"),
        pytest.param("Interpolate", [(0, 4), (10, 8), (20, 6), (30, 4), (40, 2)], id="interpolate"),
    ],
)
def test_gaps_are_filled(gaps: str, expected: list[tuple[float, float]], tmp_path: Path) -> None:
    found = csv_load(tmp_path, "0,4\n10,8\n40,2\n50,2", gaps=gaps)

    assert list(found.times)[: len(expected)] == [time for time, _ in expected]
    assert list(found.rates)[: len(expected)] == pytest.approx([rate for _, rate in expected])


def test_the_total_of_a_step_before_a_gap_is_that_of_a_usual_step(tmp_path: Path) -> None:
    found = csv_load(tmp_path, "0,40\n10,80\n40,20\n50,20", gaps="Hold", unit="PerStep")

    assert found.rates.tolist() == [4, 8, 2, 2]


@pytest.mark.parametrize(
    ("content", "fields", "problem"),
    [
        pytest.param(
            "0,5\n15,-8", {}, "load.csv:2: column 2: must be a finite number of at least 0, got '-8'", id="negative"
        ),
        pytest.param(
            "t,rate\n0,5\n15,NaN",
            {"value": "rate"},
            "load.csv:3: rate: must be a finite number of at least 0, got 'NaN'; leave out rows without a value",
            id="not a number",
        ),
        pytest.param("0,5\n15,", {}, "load.csv:2: column 2: must be a finite number of at least 0, got ''", id="empty"),
        pytest.param("0,5\n15,inf", {}, "got 'inf'", id="infinite"),
        pytest.param("0,5\n15,1_000", {}, "got '1_000'", id="underscore"),
        pytest.param("0,5\n30,5\n15,5", {}, "load.csv:3: column 1: 15 comes 15 s before the row above", id="unsorted"),
        pytest.param("0,5\n15,5\n15,6", {}, "load.csv:3: column 1: 15 is there twice: add up or remove", id="doubled"),
        pytest.param(
            "0,5\n15,5\n60,5\n75,5\n90,5",
            {},
            "load.csv:3: column 1: a gap of 45 s above this row, where the usual step is 15 s: set `gaps` to Hold",
            id="gap",
        ),
        pytest.param("0,5", {}, "load.csv: there is only one row: a load needs at least two, or `to`", id="one row"),
        pytest.param("", {}, "load.csv: there are no rows", id="empty file"),
        pytest.param("0,5\n15,5", {"from": "1h"}, "`from` lies after the last row but one", id="cut after the end"),
        pytest.param("2026-01-01 00:00,5", {}, "'2026-01-01 00:00' has no offset: set `timeZone`", id="no time zone"),
        pytest.param(
            "2026-03-29 01:30,5\n2026-03-29 02:30,5",
            {"timeZone": "Europe/Berlin"},
            "load.csv:2: column 1: '2026-03-29 02:30' does not exist in Europe/Berlin",
            id="hour that summer time skips",
        ),
        pytest.param(
            "0,5\nsoon,5", {}, "must be a finite number, as the times before it, got 'soon'", id="other times"
        ),
        pytest.param("soon,5", {}, "must be seconds, or a time such as 2026-01-31T12:00:00Z", id="no time"),
        pytest.param(
            "1767225600000,5",
            {},
            "1767225600000' lies thousands of years after 1970: set `timeUnit: Milli",
            id="unit of time",
        ),
        pytest.param(
            "t,requests_per_minute\n0,5",
            {},
            "requests_per_minute: the name of the column means PerMinute, and `unit` is not set: write `unit: PerM",
            id="unit that is not set",
        ),
        pytest.param(
            "t,rps\n0,5", {"unit": "PerMinute"}, "means PerSecond, and `unit` is PerMinute", id="another unit"
        ),
        pytest.param(
            "a,b\n0,5", {"time": "c"}, "load.csv:1: time: there is no column 'c', the columns are: a, b", id="column"
        ),
        pytest.param(
            "a;b\n0;5", {}, "there is no column 2, the columns are: a;b; is `delimiter` another one?", id="delimiter"
        ),
        pytest.param(
            "0,5\n15", {}, "load.csv:2: a row has fewer columns than the others: column 2 is missing", id="short row"
        ),
        pytest.param('0,5\n"15,5', {}, "invalid CSV: unexpected end of data", id="open quote"),
        pytest.param(b"0,5\n\xff,5", {}, "load.csv:2: must be a text in UTF-8, got the byte 0xff", id="no text"),
        pytest.param(b"# \xc3\xa4\n" * 20_000 + b"\xe4", {}, "load.csv:20001: must be a text in UTF-8", id="late byte"),
        pytest.param(
            b"0,5\n15,\xc3", {}, "load.csv:2: must be a text in UTF-8, got the byte 0xc3", id="half character"
        ),
        pytest.param(
            "0,5\n15,5", {"from": "2026-01-01T00:00:00Z"}, "`from` is an instant, and the times", id="instant"
        ),
        pytest.param(
            "2026-01-02T00:00:00Z,5", {"from": "2026-01-01T00:00:00Z"}, "`from` lies before the first row", id="before"
        ),
        pytest.param("0,5\n15,5", {"to": "0s"}, "`to` lies 0 s before `from`, or the first row", id="empty cut"),
    ],
)
def test_an_invalid_file_is_rejected(
    content: str | bytes, fields: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    assert problem in problem_of(tmp_path, lambda: csv_load(tmp_path, content, **fields))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("missing.csv", "missing.csv: cannot be read: No such file or directory", id="missing"),
        pytest.param(".", "must be a file, not a folder, a pipe or a device", id="folder"),
        pytest.param("/dev/zero", "/dev/zero: must be a file, not a folder, a pipe or a device", id="device"),
        pytest.param("text.gz", "text.gz: must be a gzip file", id="not compressed"),
        pytest.param("half.gz", "half.gz: must be a gzip file", id="truncated"),
        pytest.param("latin.gz", "latin.gz:3: must be a text in UTF-8, got the byte 0xe4", id="other encoding"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(name: str, problem: str, tmp_path: Path) -> None:
    written(tmp_path, HEADED, "text.gz")
    written(tmp_path, gzip.compress(HEADED.encode() * 100)[:40], "half.gz")
    written(tmp_path, gzip.compress(b"a\nb\n\xe4"), "latin.gz")

    assert problem in problem_of(tmp_path, lambda: series(tmp_path, {"type": "Csv", "path": name}))


class TestLimits:
    def test_a_file_with_too_many_rows_is_not_read_to_its_end(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trace, "MAX_ROWS", 100)
        taken = 0

        def rows(*_: object) -> Iterator[tuple[int, str, str]]:
            nonlocal taken
            for number in count():
                taken = number
                yield number + 1, str(number), "1"

        monkeypatch.setattr(trace, "rows_of", rows)

        problem = problem_of(tmp_path, lambda: csv_load(tmp_path, ""))

        assert "load.csv:101: column 2: more than 100 rows: average over longer steps, or cut with `from`" in problem
        assert taken == 100

    def test_rows_before_the_cut_do_not_count(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trace, "MAX_ROWS", 10)
        rows = "".join(f"{number},{number}\n" for number in range(1000))

        found = csv_load(tmp_path, rows, **{"from": "990s"})

        assert steps(found)[0] == (0, 990)
        assert found.end == 10

    def test_a_line_that_is_too_long_is_not_read_to_its_end(self, tmp_path: Path) -> None:
        problem = problem_of(tmp_path, lambda: csv_load(tmp_path, gzip.compress(b"0" * 10**6), "load.csv.gz"))

        assert "load.csv.gz:1: longer than 65536 characters" in problem

    def test_a_large_json_file_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_files, "MAX_JSON_BYTES", 2**20)
        written(tmp_path, gzip.compress(b"[" + b" " * 2**21), "load.json.gz")

        problem = problem_of(tmp_path, lambda: series(tmp_path, {"type": "Json", "path": "load.json.gz"}))

        assert "longer than 1 MiB: write it as CSV or JSON Lines, which are read line by line" in problem


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"from": "1h", "to": "30m"}, "`to` must be after `from`: 0:30:00 is not after 1:00:00", id="cut"),
        pytest.param({"factor": 0}, "greater than 0", id="factor"),
        pytest.param({"from": "soon"}, "must be a duration like 1m30s", id="no place"),
        pytest.param({"unit": "PerDay"}, "'PerSecond', 'PerMinute', 'PerHour' or 'PerStep'", id="unit"),
    ],
)
def test_contradictory_fields_are_rejected(fields: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=problem):
        series(tmp_path, {"type": "Csv", "path": "load.csv", **fields})


def json_load(directory: Path, content: Any, name: str = "load.json", **fields: Any) -> LoadSeries:
    """Return the load of a JSON file."""
    written(directory, content, name)
    return series(directory, {"type": "Json", "path": name, **fields})


class TestJson:
    @pytest.mark.parametrize(
        ("content", "fields"),
        [
            pytest.param([[0, 5], [15, 8]], {}, id="pairs"),
            pytest.param([["2026-01-01T00:00:00Z", "5"], ["2026-01-01T00:00:15Z", "8"]], {}, id="texts"),
            pytest.param([{"time": 0, "value": 5}, {"time": 15, "value": 8}], {}, id="objects"),
            pytest.param([{"t": 0, "rps": 5}, {"t": 15, "rps": 8}], {"time": "t", "value": "rps"}, id="keys"),
            pytest.param([5, 8], {"step": "15s"}, id="numbers"),
            pytest.param([{"value": 5}, {"value": 8}], {"step": "15s"}, id="objects without times"),
            pytest.param({"data": {"points": [[0, 5], [15, 8]]}}, {"items": "data.points"}, id="list in an object"),
        ],
    )
    def test_is_read(self, content: Any, fields: dict[str, Any], tmp_path: Path) -> None:
        assert steps(json_load(tmp_path, content, **fields)) == [(0, 5), (15, 8)]

    @pytest.mark.parametrize("name", ["load.jsonl", "load.ndjson"])
    def test_lines_are_read_one_by_one(self, name: str, tmp_path: Path) -> None:
        content = '{"time": 0, "value": 5}\n\n{"time": 15, "value": 8}\n[20, 1]\n{"time": 30'

        assert steps(json_load(tmp_path, content, name, to="20s")) == [(0, 5), (15, 8)]

    @pytest.mark.parametrize(
        ("content", "fields", "problem"),
        [
            pytest.param(
                "[[0, 5],\n[15 8]]",
                {},
                "load.json:2: invalid JSON: invalid character '8' after array element in column 5",
                id="not JSON",
            ),
            pytest.param(
                "[[0, 5],\n[15, 8],\n]", {}, "load.json:3: invalid JSON: invalid character ']' looking for", id="comma"
            ),
            pytest.param(
                {"points": []}, {}, "must be a list of entries, got an object with 1 entries; `items`", id="object"
            ),
            pytest.param("[[0, 5],\n[15, -8]]", {}, "load.json:2: value: must be a finite number", id="negative"),
            pytest.param("[[0, 5],\n[15, NaN]]", {}, "load.json:2: value: must be a finite number", id="nan"),
            pytest.param("[[0, 5],\n\n[15]]", {}, "load.json:3: [1]: must be [time, value] or an object", id="short"),
            pytest.param('[{"t": 0}]', {}, "load.json:1: [0]: there is no 'time'; the keys are: t", id="key"),
            pytest.param("[5, 8]", {}, "got 5; with `step`, an entry may be a number", id="no times"),
            pytest.param(
                '[{"time": 0, "value": true}]', {}, "value: must be a number or a text, got true", id="boolean"
            ),
            pytest.param(
                '{"a": [0], "data":\n[[0, 5],\n[15, 8],\n[15, 9]]}',
                {"items": "data"},
                "load.json:4: time: 15 is",
                id="twice",
            ),
            pytest.param(
                '{"data":\n[[0, 5],\n[15, 8],\n[30, 8],\n[90, 9]]}',
                {"items": "data"},
                "load.json:5: time: a gap",
                id="gap",
            ),
            pytest.param("[" * 100_000, {}, "invalid JSON", id="nested"),
        ],
    )
    def test_an_invalid_file_is_rejected(
        self, content: Any, fields: dict[str, Any], problem: str, tmp_path: Path
    ) -> None:
        assert problem in problem_of(tmp_path, lambda: json_load(tmp_path, content, **fields))

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            pytest.param('[0, 5]\n{"time": 15', "load.jsonl:2: invalid JSON", id="not JSON"),
            pytest.param("[0, 5]\n\n[15, -1]", "load.jsonl:3: value: must be a finite number", id="negative"),
            pytest.param("[0, 5]\n7", "load.jsonl:2: must be [time, value] or an object with both, got 7", id="number"),
        ],
    )
    def test_an_invalid_line_is_rejected(self, content: str, problem: str, tmp_path: Path) -> None:
        assert problem in problem_of(tmp_path, lambda: json_load(tmp_path, content, "load.jsonl"))


def answer(*found: tuple[dict[str, str], list[list[Any]]]) -> dict[str, Any]:
    """Return an answer of Prometheus."""
    result = [{"metric": labels, "values": values} for labels, values in found]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


AT = 1767225600.5


def prometheus(directory: Path, content: Any, **fields: Any) -> LoadSeries:
    """Return the load of an answer of Prometheus."""
    written(directory, content, "answer.json")
    return series(directory, {"type": "Prometheus", "path": "answer.json", **fields})


class TestPrometheus:
    def test_one_series_is_read(self, tmp_path: Path) -> None:
        found = prometheus(tmp_path, answer(({}, [[AT, "5"], [AT + 15, "8.5"]])))

        assert steps(found) == [(0, 5), (15, 8.5)]

    def test_a_series_is_chosen_by_its_labels(self, tmp_path: Path) -> None:
        content = answer(({"job": "web", "pod": "a"}, [[AT, "5"], [AT + 15, "8"]]), ({"job": "db"}, [[AT, "1"]]))

        assert steps(prometheus(tmp_path, content, labels={"job": "web"})) == [(0, 5), (15, 8)]

    def test_several_series_are_added_up_at_each_time(self, tmp_path: Path) -> None:
        content = answer(
            ({"pod": "a"}, [[AT, "5"], [AT + 15, "8"]]),
            ({"pod": "b"}, [[AT + 15, "1"], [AT + 30, "2"]]),
        )

        assert steps(prometheus(tmp_path, content, sum=True)) == [(0, 5), (15, 9), (30, 2)]

    @pytest.mark.parametrize(
        ("content", "fields", "problem"),
        [
            pytest.param(
                {"status": "error", "error": "bad query"},
                {},
                "answer.json:2: status: the query failed: bad query",
                id="failed",
            ),
            pytest.param([], {}, "answer.json: status: not an answer of Prometheus", id="other JSON"),
            pytest.param(
                {"status": "success", "data": {"resultType": "vector", "result": []}},
                {},
                'data.resultType: must be matrix, the answer of /api/v1/query_range, got "vector"',
                id="instant query",
            ),
            pytest.param(answer(), {}, "no series has the labels {}; there are: none", id="no series"),
            pytest.param(
                answer(({"pod": "a"}, []), ({"pod": "b"}, [])),
                {},
                'there are 2 series: choose one by `labels`, or set `sum: true`; there are: {pod="a"}; {pod="b"}',
                id="several series",
            ),
            pytest.param(
                answer(({"pod": "a"}, [])),
                {"labels": {"pod": "b"}},
                'no series has the labels {pod="b"}',
                id="no such series",
            ),
            pytest.param(
                answer(({"__name__": "http_requests_total"}, [])),
                {},
                "http_requests_total is a counter, not a load: query rate(http_requests_total[1m])",
                id="counter",
            ),
            pytest.param(
                answer(({}, [[AT, "5"], [AT + 15, "NaN"]])),
                {},
                "answer.json:13: data.result[0].values[1]: must be a finite number of at least 0, got 'NaN'",
                id="nan",
            ),
            pytest.param(
                answer(({}, [[AT, 5]])), {}, "values[0]: must be [time, value], got [1767225600.5, 5]", id="number"
            ),
            pytest.param(
                {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "histograms": []}]}},
                {},
                "data.result[0]: required value: a list of samples; histograms are not supported",
                id="histogram",
            ),
            pytest.param(
                answer(({}, [[AT, "5"], [AT + 15, "5"], [AT + 90, "5"], [AT + 105, "5"]])),
                {},
                "a gap of 75 s",
                id="gap",
            ),
        ],
    )
    def test_an_invalid_answer_is_rejected(
        self, content: Any, fields: dict[str, Any], problem: str, tmp_path: Path
    ) -> None:
        assert problem in problem_of(tmp_path, lambda: prometheus(tmp_path, content, **fields))


@given(st.lists(st.tuples(st.integers(1, 14), st.floats(0, 1e9)), min_size=2, max_size=30), st.floats(0.1, 10))
def test_every_format_gives_the_same_load(rows: list[tuple[int, float]], factor: float) -> None:
    time, timed = 1767225600, []
    for step, value in rows:
        time += step
        timed.append((time, value))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options: dict[str, Any] = {"gaps": "Hold", "factor": factor}
        first = csv_load(folder, "".join(f"{time},{value!r}\n" for time, value in timed), **options)
        second = json_load(folder, timed, **options)
        third = prometheus(folder, answer(({}, [[time, repr(value)] for time, value in timed])), **options)

    assert first == second == third
