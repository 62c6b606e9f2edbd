"""What a run of the tests leaves out, and how to run it: tests without a program that they need, and cases of matrices.

A test says what it needs by `leave_out`; `OCF_REQUIRE` lists what has to be there. A reason for skipping a test that
starts with the name of a requirement, as those of `ocf.testing.envtest` do, counts as left out.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NoReturn, Protocol, TypeVar

import pytest

from ocf.testing.envtest.fixtures import REQUIRE

__all__ = ["LONG", "PROVIDED_BY", "Sampled", "leave_out", "required", "sample", "summary"]

LONG: Final = "long"
"""The marker of tests that take many times as long as others, and their name in `OCF_REQUIRE`."""

PROVIDED_BY: Final[Mapping[str, str]] = {
    "chromium": "the system's package chromium",
    "clients": "make clients",
    "cluster-api": "make cluster-api",
    "envtest": "make envtest",
    LONG: f"{REQUIRE}={LONG} make test",
    "playground": "make playground",
    "site": "make site",
}
"""What installs each requirement or runs these tests, by its name in `OCF_REQUIRE`."""

LEFT_OUT: Final = "left out"
"""The name of the property of a test that counts the cases that it has left out."""

_SHARE: Final = 10
_REASON: Final = re.compile(rf"({'|'.join(PROVIDED_BY)}): ")

Case = TypeVar("Case")


class Sampled(Protocol):
    """The fixture `sampled`: returns the cases of a matrix that this run has."""

    def __call__(self, cases: Sequence[Case], /) -> list[Case]:
        """Return the sample, or all cases in `make properties`."""
        ...


def required(name: str) -> bool:
    """Return whether `OCF_REQUIRE` lists the name."""
    return name in re.split(r"[,\s]+", os.environ.get(REQUIRE, ""))


def leave_out(name: str, message: str) -> NoReturn:
    """Skip the test, or fail it if `OCF_REQUIRE` lists what it needs.

    Args:
        name: The name in `OCF_REQUIRE`.
        message: What is missing, and how to get it.
    """
    assert name in PROVIDED_BY
    if required(name):
        pytest.fail(f"{message} ({REQUIRE} requires it)", pytrace=False)
    pytest.skip(f"{name}: {message}")


def sample(cases: Sequence[Case]) -> list[Case]:
    """Return one case in ten; a hash of a case decides, so that each run has the same ones."""
    return [case for case in cases if int.from_bytes(sha256(repr(case).encode()).digest()[:4]) % _SHARE == 0]


def summary(skipped: Iterable[Any], passed: Iterable[Any]) -> Iterator[str]:
    """Yield the lines that say what a run has left out.

    Args:
        skipped: The reports of skipped tests and modules.
        passed: The reports of tests that passed; their properties count the cases that they left out.
    """
    reasons = [str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped]
    counts = Counter(match[1] for match in map(_REASON.match, reasons) if match)
    if counts:
        each = ", ".join(f"{name} {counts[name]} ({PROVIDED_BY[name]})" for name in sorted(counts))
        missing = sorted(counts.keys() - {LONG})
        yield f"left out: {each}" + (f"; {REQUIRE}={','.join(missing)} makes that an error" if missing else "")
    properties = (pair for report in passed for pair in report.user_properties)
    if cases := sum(number for name, number in properties if name == LEFT_OUT):
        yield f"left out: {cases} cases of matrices; make properties runs them"
    others = Counter(reason for reason in reasons if not _REASON.match(reason))
    for reason, number in sorted(others.items()):
        yield f"skipped: {number}, {reason}"
