"""The journal: torn lines, other files, and a disk that is full."""

from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.simulation.tuning.evaluating import Evaluation
from ocf.simulation.tuning.journal import Journal

INPUTS = {"scenarios": "a", "settings": "b"}
FIRST = Evaluation(searched=({"pod_hours": 1.25},), held_out=({"pod_hours": 2.0},))
SECOND = Evaluation(problems=("spec.maxReplicas: too low",))


def written(path: Path) -> bytes:
    with Journal(path, INPUTS) as journal:
        journal.add("current", FIRST)
        journal.add("0,1", SECOND)
        journal.sync()
    return path.read_bytes()


def test_what_was_added_is_known_later(tmp_path: Path) -> None:
    written(tmp_path / "state")
    with Journal(tmp_path / "state", INPUTS) as journal:
        assert (journal.get("current"), journal.get("0,1"), journal.get("0,2"), len(journal)) == (
            FIRST,
            SECOND,
            None,
            2,
        )


def test_without_a_file_evaluations_are_known_in_this_run() -> None:
    with Journal(None, INPUTS) as journal:
        journal.add("current", FIRST)
        journal.sync()
        assert journal.get("current") == FIRST


@given(cut=st.integers(0, 400))
def test_a_file_that_is_cut_anywhere_is_completed_to_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "state"
    whole = written(path)
    end = cut % len(whole)
    path.write_bytes(whole[:end])
    with Journal(path, INPUTS) as journal:
        for key, each in (("current", FIRST), ("0,1", SECOND)):
            if journal.get(key) is None:
                journal.add(key, each)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"seconds,requests\n0,5\n", id="a table"),
        pytest.param(b'{"kind":"List"}\n', id="other JSON"),
        pytest.param(b"not a line", id="no line"),
        pytest.param(b"\xff\xfe\n", id="not text"),
    ],
)
def test_another_file_is_rejected_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is not the state of a search: name another file"):
        Journal(path, INPUTS)
    assert path.read_bytes() == content


def test_a_broken_line_in_the_middle_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "state"
    lines = written(path).splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{}\n" + lines[2])
    with pytest.raises(ConfigError, match="is not the state of a search"):
        Journal(path, INPUTS)


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    journal = Journal(path, INPUTS)
    journal.add("current", FIRST)
    kept = path.read_bytes()

    class Full:
        def write(self, _: bytes) -> int:
            raise OSError(ENOSPC, "No space left on device")

        def close(self) -> None:
            raise OSError(ENOSPC, "No space left on device")

    full: Any = Full()
    opened, journal._file = journal._file, full
    assert opened is not None
    opened.close()
    with pytest.raises(ConfigError, match=r"--state: .*state cannot be written: No space left on device; 2"), journal:
        journal.add("0,1", SECOND)
    assert path.read_bytes() == kept


def test_a_folder_is_not_a_state(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--state: .* cannot be written: Is a directory"):
        Journal(tmp_path, INPUTS)
