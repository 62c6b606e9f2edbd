"""The page of promises is what the tests prove, no less and no more."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
page: Final[Callable[..., str]] = runpy.run_path(str(ROOT / "scripts" / "generate" / "promises.py"))["page"]

PROMISES: Final = '[Quiet]\nno-write = "Nothing is written."\nno-read = "Nothing is read."\n'
PROVED: Final = """
import pytest

@pytest.mark.promise("no-write", runs="10 passes")
def test_nothing_is_sent(): ...

class TestReads:
    @pytest.mark.promise("no-write")
    @pytest.mark.promise("no-read")
    async def test_nothing_is_asked(self): ...
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "faults").mkdir(parents=True)
    (tmp_path / "tests" / "promises.toml").write_text(PROMISES)
    (tmp_path / "tests" / "faults" / "test_quiet.py").write_text(PROVED)
    return tmp_path / "tests"


def test_the_page_is_what_the_tests_prove() -> None:
    """When this fails, `python scripts/generate/promises.py` writes it anew."""
    assert (ROOT / "docs" / "project" / "promises.md").read_text(encoding="utf-8") == page()


def test_each_promise_is_followed_by_every_test_that_proves_it(tests: Path) -> None:
    rows = page(tests).splitlines()
    sent = "[nothing is sent](../../tests/faults/test_quiet.py): 10 passes"
    asked = "[nothing is asked](../../tests/faults/test_quiet.py)"
    assert rows[-2:] == [
        f"| Nothing is written. | {sent}<br>{asked} |",
        f"| Nothing is read. | {asked} |",
    ]


def test_a_promise_without_a_test_is_refused(tests: Path) -> None:
    (tests / "promises.toml").write_text(PROMISES + 'cheap = "It costs nothing."\n')
    with pytest.raises(ValueError, match='no test proves the promise "cheap"'):
        page(tests)


def test_a_proof_of_an_unknown_promise_is_refused(tests: Path) -> None:
    (tests / "promises.toml").write_text(PROMISES.replace("no-read", "no-get"))
    with pytest.raises(
        ValueError, match=r'tests/faults/test_quiet.py, TestReads::test_.*: no promise is called "no-read"'
    ):
        page(tests)


def test_a_marker_that_has_to_be_run_to_be_read_is_refused(tests: Path) -> None:
    (tests / "faults" / "test_quiet.py").write_text(PROVED.replace('"10 passes"', "str(10)"))
    with pytest.raises(ValueError, match="test_nothing_is_sent: a marker is"):
        page(tests)
