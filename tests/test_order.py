"""Tests are shuffled, and each process begins with a share of the long ones."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.long_tests import in_shares

pytest_plugins = ["pytester"]


def test_long_tests_begin_first_in_any_order(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeini("[pytest]\nmarkers = long")
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(9))
        def test_short(number): ...

        @pytest.mark.long
        def test_long(): ...

        class TestOthers:
            @pytest.mark.long
            @pytest.mark.parametrize("number", range(2))
            def test_long_in_class(self, number): ...
    """)
    monkeypatch.setenv("OCF_REQUIRE", "long")
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)  # that of the run that this test is in
    for seed in ("1", "2"):
        result = pytester.runpytest_inprocess("-p", "no:asyncio", f"--randomly-seed={seed}", "--collect-only", "-q")
        names = [line.rpartition("::")[2] for line in result.outlines if "::" in line]
        assert {name.partition("[")[0] for name in names[:3]} == {"test_long", "test_long_in_class"}
        assert {name.partition("[")[0] for name in names[3:]} == {"test_short"}
        assert len(names) == 12


@pytest.mark.parametrize(
    ("files", "short", "processes", "parts"),
    [
        pytest.param("aabbc", 10, 1, ["aabbc----------"], id="one process"),
        pytest.param("aabbc", 10, 2, ["aac----", "bb------"], id="two processes"),
        pytest.param("aabbc", 10, 3, ["aa---", "bb---", "c----"], id="three processes"),
        pytest.param("ab", 4, 4, ["a", "b", "--", "--"], id="fewer files than processes"),
        pytest.param("aaaab", 1, 3, ["aa", "aa", "b-"], id="one file of many"),
        pytest.param("", 4, 3, ["-", "-", "--"], id="no long test"),
        pytest.param("abc", 0, 2, ["a", "cb"], id="no short test"),
    ],
)
def test_each_process_begins_with_a_share(files: str, short: int, processes: int, parts: list[str]) -> None:
    """The parts are those of pytest-xdist: a process gets the tests that are left, divided by the processes left."""
    ordered = in_shares([list(tests) for _, tests in groupby(files)], "-" * short, processes)
    found, begin = [], 0
    for left in range(processes, 0, -1):
        end = begin + (len(ordered) - begin) // left
        found.append("".join(ordered[begin:end]))
        begin = end
    assert found == parts
