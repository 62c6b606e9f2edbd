"""Which tests take long: those of `long_tests.txt` have the marker `long`, as those that have it in their code.

`OCF_REQUIRE=long python -m pytest -p no:xdist --list-long=0.4` makes the list anew: it lists each function whose cases
together take so many seconds of CPU time, with those of the programs that they start.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import pytest

__all__ = ["LIST", "LongTests", "function", "listed"]

LIST: Final = Path(__file__).with_suffix(".txt")


def listed() -> frozenset[str]:
    """Return the functions of the list, as `tests/cli/test_dev.py::test_it_runs`."""
    return frozenset(LIST.read_text(encoding="utf-8").split())


def function(node: str) -> str:
    """Return the function of a test, from its node id with the case."""
    return node.partition("[")[0]


class LongTests:
    """Measures the tests of a run, and writes the list.

    Args:
        seconds: CPU time from which a function is listed.
        cpu_time: Returns that of this process, and of the programs that it has waited for.
    """

    def __init__(self, seconds: float, cpu_time: Callable[[], float] = lambda: sum(os.times()[:4])) -> None:
        self._seconds = seconds
        self._cpu_time = cpu_time
        self._taken: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure a test with its fixtures."""
        before = self._cpu_time()
        try:
            return (yield)
        finally:
            self._taken[function(item.nodeid)] += self._cpu_time() - before

    def pytest_sessionfinish(self) -> None:
        """Write the list."""
        found = sorted(name for name, taken in self._taken.items() if taken >= self._seconds)
        LIST.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")
