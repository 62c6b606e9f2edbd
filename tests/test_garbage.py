"""The garbage collector in the process of the tests: a test that changes its pace slows all tests after it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("change", ["gc.set_threshold(1)", "gc.disable()"])
def test_a_test_that_leaves_the_collector_changed_fails_and_the_next_one_does_not(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """In a process of its own, whose collector it changes."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("from tests.conftest import pytest_collection, pytest_runtest_teardown")
    pytester.makepyfile(f"""
        import gc

        def test_changing():
            {change}

        def test_next():
            pass
    """)
    result = pytester.runpytest_subprocess("-q", "-p", "no:randomly", "-p", "no:asyncio")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*the test leaves the garbage collector with*", "ERROR *::test_changing*"])
