"""Karpenter as a yardstick: what its program answers, and what happens where it was not built."""

import sys
from pathlib import Path

import pytest

from benchmarks.figures import Case
from benchmarks.karpenter import small_suite
from scripts.oracles.karpenter.build import program_path

PROGRAM = """#!{python}
import json, sys
assert sys.argv[1:] == ["1"]
for line in sys.stdin:
    assert json.loads(line)["pods"]
    print(json.dumps({{"up": {{"seconds": 0.25}}, "down": {{"seconds": 0.75}}}}))
"""


def test_the_times_of_the_program_are_added_up(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    program = program_path(environ)
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)

    with small_suite(environ=environ) as suite:
        cases = {case.name: case for case in suite if isinstance(case, Case)}
        assert cases["karpenter.up"].against == "karpenter.up.go"
        assert cases["karpenter.down"].against == "karpenter.down.go"
        assert cases["karpenter.up.go"].measure(1) == 500_000_000
        assert cases["karpenter.down.go"].measure(1) == 1_500_000_000


def test_without_the_program_its_rows_are_left_out_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_suite(environ={"XDG_CACHE_HOME": str(tmp_path)}) as suite:
        assert [(case.name, case.against) for case in suite] == [("karpenter.up", ""), ("karpenter.down", "")]
    assert capsys.readouterr().err == (
        "karpenter.*.go is left out: python -m scripts.oracles.karpenter.build builds "
        f"{tmp_path}/ocf/karpenter-oracle-v1.15.0\n"
    )
