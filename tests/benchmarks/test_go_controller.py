"""The real controller as a yardstick: the protocol with its program, and what happens where it was not built."""

import sys
from pathlib import Path

import pytest

from benchmarks.deciding import suite
from benchmarks.go_controller import go_controller, program_path

PROGRAM = """#!{python}
import json, sys
case = json.loads(sys.stdin.readline())
assert sys.argv[1:] == ["benchmark"]
for line in sys.stdin:
    print(int(line) * case["each"], flush=True)
"""


def test_the_program_is_given_the_case_once_and_then_numbers_of_reconciles(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    program = program_path(environ)
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)

    with go_controller({"each": 7}, environ=environ) as measure:
        assert measure is not None
        assert [measure(1), measure(3)] == [7, 21]


def test_without_the_program_the_row_is_left_out_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with suite() as cases:
        against = {case.name: case.against for case in cases}

    assert "deciding.go" not in against
    assert against["deciding.step"] == "deciding.sync"
    assert capsys.readouterr().err == (
        f"deciding.go is left out: scripts/oracles/hpa/build.sh builds {tmp_path}/ocf/hpa-oracle-1.36.3\n"
    )
