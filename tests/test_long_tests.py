"""The list of long tests names tests that exist, and can be made anew."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests import long_tests

pytest_plugins = ["pytester"]

ROOT: Final = Path(__file__).parents[1]


def test_each_function_of_the_list_exists() -> None:
    """A test that was renamed would run in `make test` again."""
    lost = []
    for name in sorted(long_tests.listed()):
        file, *names = name.split("::")
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else ""
        if not all(re.search(rf"\b(?:def|class) {each}\b", text) for each in names):
            lost.append(name)
    assert lost == []


def test_a_run_lists_the_functions_that_take_long(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_tests, "LIST", pytester.path / "list.txt")
    pytester.makepyfile(
        test_both="""
        import pytest

        @pytest.mark.parametrize("case", "ab")
        def test_long(case): ...

        def test_short(): ...
        """
    )
    cpu_time = iter([0.0, 2.0, 3.0, 5.0, 6.0, 9.0])
    run = long_tests.LongTests(4.0, lambda: next(cpu_time))
    pytester.inline_run("-p", "no:randomly", "-p", "no:asyncio", plugins=[run]).assertoutcome(passed=3)
    assert long_tests.listed() == {"test_both.py::test_long"}
