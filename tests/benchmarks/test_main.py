"""Which benchmarks are run, and what a missed limit does."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.figures import Case, Count, Suite
from benchmarks.report import with_figures
from benchmarks.timer import Measure, sample


def case(name: str, limit: float | None = None, against: str = "") -> Case:
    return Case(name=name, what="", measure=lambda calls: calls * 1_000_000, limit=limit, against=against)


@contextmanager
def suite() -> Iterator[Suite]:
    yield [
        case("one.base"),
        case("one.fast", limit=2_000_000, against="one.base"),
        case("one.slow", limit=500_000),
        Count(name="one.writes", what="", value=0, limit=0),
    ]


@pytest.fixture(autouse=True)
def _only_these(monkeypatch: pytest.MonkeyPatch) -> None:
    def sample_without_collecting(measure: Measure, calls: int, *, collect: bool) -> float:
        del collect  # it would walk all objects of the other tests before each sample
        return sample(measure, calls, collect=False)

    monkeypatch.setattr(command, "_SUITES", (suite,))
    monkeypatch.setattr(command, "_ROUNDS", 2)
    monkeypatch.setattr(command, "sample", sample_without_collecting)


def test_a_missed_limit_is_named_and_is_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 1
    assert "limit missed: one.slow\n" in capsys.readouterr().err


def test_a_measurement_that_never_ends_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait() -> int:
        signal.raise_signal(signal.SIGALRM)
        return 0

    @contextmanager
    def waiting() -> Iterator[Suite]:
        yield [Count(name="two.idle", what="", value=wait)]

    monkeypatch.setattr(command, "_SUITES", (waiting,))
    limit = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match=r"two\.idle has not ended within 900 s"):
        command.main([])
    assert signal.getsignal(signal.SIGALRM) is limit


def test_a_slow_machine_has_fewer_rounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "_ROUNDS", 15)
    monkeypatch.setattr(command, "_FOR_ROUNDS", -1)
    command.main(["-k", "one.fast", "-o", "json"])
    shown = capsys.readouterr()
    assert [line for line in shown.err.splitlines() if line.startswith("round")] == [
        f"round {number} of 15" for number in range(1, 6)
    ]
    assert {one["rounds"] for one in json.loads(shown.out)["figures"]} == {5}


def test_each_count_is_shown_as_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["-k", "one.writes"])
    assert "count one.writes\n" in capsys.readouterr().err


def test_limits_that_hold_end_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["-k", "one.fast", "-k", "one.writes"]) == 0
    assert "limit missed" not in capsys.readouterr().err


def test_a_chosen_benchmark_brings_its_yardstick(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["-k", "one.fast"])

    rows = capsys.readouterr().out
    assert ("one.base" in rows, "one.fast" in rows, "one.slow" in rows) == (True, True, False)


def test_a_suite_is_chosen_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["-k", "one"])

    assert "one.slow" in capsys.readouterr().out


def test_an_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["-k", "on"])

    assert stopped.value.code == 2
    assert 'no benchmark is called "on"; there are one.base, one.fast' in capsys.readouterr().err


def test_cases_with_several_turns_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever disturbs the machine for a moment meets both sides of a ratio, and the median leaves it out."""
    order: list[str] = []

    def measured(name: str, turns: int, against: str = "") -> Case:
        def measure(calls: int) -> int:
            order.append(name)
            return calls * 1_000_000

        return Case(name=name, what="", measure=measure, against=against, turns=turns)

    @contextmanager
    def turning() -> Iterator[Suite]:
        yield [measured("two.go", 3), measured("two.ours", 3, "two.go"), measured("two.other", 1)]

    monkeypatch.setattr(command, "_SUITES", (turning,))
    monkeypatch.setattr(command, "calls_for", lambda _measure: 1)

    assert command.main([]) == 0
    one_round = ["two.go", "two.ours", "two.other", "two.go", "two.ours", "two.go", "two.ours"]
    assert order == 2 * one_round


def test_a_time_is_printed_in_the_unit_that_suits_it(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["-k", "one.base"])

    assert "1.00 ms" in capsys.readouterr().out


def test_a_markdown_table_has_one_line_per_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["-o", "markdown"])

    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| one.")] == [
        "one.base",
        "one.fast",
        "one.slow",
        "one.writes",
    ]


def test_the_page_gets_the_figures_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(
        "Before.\n<!-- begin: figures -->\nstale figures\n<!-- end: figures -->\nAfter.\n", encoding="utf-8"
    )
    for _ in range(2):
        command.main(["-k", "one.writes", "--page", str(page)])
        before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- begin: figures -->\n")
        figures, _, after = rest.partition("<!-- end: figures -->\n")
        assert (before, bool(begin), after) == ("Before.\n", True, "After.\n")
        assert "stale figures" not in figures
        assert [line.split(" | ")[0] for line in figures.splitlines() if line.startswith("| one.")] == ["| one.writes"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="no markers"),
        pytest.param("<!-- end: figures -->\n<!-- begin: figures -->\n", id="in the wrong order"),
    ],
)
def test_a_page_without_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the page needs the lines <!-- begin: figures --> and <!-- end: figures -->"):
        with_figures(text, "figures")


def test_a_page_without_markers_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "performance.md"
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        command.main(["--page", str(page)])

    assert stopped.value.code == 2
    written = capsys.readouterr()
    assert "the page needs the lines" in written.err
    assert "round" not in written.err
