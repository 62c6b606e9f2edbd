"""Evaluation of a version gate.

A gate is evaluated whenever a resource is rendered, so it must cost next to nothing. The baseline is the minimum work
for a version given as a string: parsing it with the `semver` library.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from semver import Version

from benchmarks.autoscaler import VERSION
from benchmarks.figures import Case, Suite
from benchmarks.timer import each_call
from ocf.feature import Constraint, VersionGate

__all__ = ["suite"]

_LIMIT: Final = 2_000
_CONSTRAINT: Final = ">= 2.0.0, < 3"


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    constraint = Constraint(_CONSTRAINT)
    gate = VersionGate(VERSION, constraint)
    assert gate.enabled()
    yield [
        Case(name="gate.semver", what="semver.Version.parse", measure=each_call(lambda: Version.parse(VERSION))),
        Case(
            name="gate.check",
            what="asking a gate with a constraint",
            measure=each_call(gate.enabled),
            limit=_LIMIT,
            against="gate.semver",
        ),
        Case(
            name="gate.first",
            what="making a gate for a version and asking it",
            measure=each_call(lambda: VersionGate(VERSION, constraint).enabled()),
            against="gate.semver",
        ),
        Case(
            name="gate.constraint",
            what="reading a constraint",
            measure=each_call(lambda: Constraint(_CONSTRAINT)),
            against="gate.semver",
        ),
    ]
