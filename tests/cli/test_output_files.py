"""Files that commands write are complete, or left as they were."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocf.cli.output_files import check_folder, write_file, written_file
from ocf.errors import ConfigError


def full_disk() -> Iterator[str]:
    yield "half"
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted() -> Iterator[str]:
    yield "half"
    raise KeyboardInterrupt


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    path.chmod(0o640)
    write_file(path, ["after", ", all of it"], "--report")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("after, all of it", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_file(tmp_path / "one", ["text"], "--report")
    (tmp_path / "other").write_text("text")
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("existing", [True, False], ids=["an old file", "no file"])
def test_a_full_disk_leaves_no_half_file(tmp_path: Path, existing: bool) -> None:
    path = tmp_path / "page.html"
    if existing:
        path.write_text("before")
    with pytest.raises(ConfigError, match=r"--report: .*page.html cannot be written: No space left on device"):
        write_file(path, full_disk(), "--report")
    assert [each.read_text() for each in tmp_path.iterdir()] == (["before"] if existing else [])


def test_a_folder_that_cannot_be_searched_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "is_dir", forbidden)
    with pytest.raises(ConfigError, match=r"^--report: page.html cannot be written: Permission denied$"):
        check_folder(Path("page.html"), "--report")


def test_an_interrupt_leaves_no_half_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "page.html", interrupted(), "--report")
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", ["after"], "--report")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_a_device_is_written_itself() -> None:
    with written_file(Path(os.devnull), "--csv") as path:
        assert path == Path(os.devnull)
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("missing/page.html", r"--csv: the folder .*/missing does not exist", id="no folder"),
        pytest.param("folder", r"--csv: .*/folder is a folder; write the name of a file", id="a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_rejected_early(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=message):
        check_folder(tmp_path / name, "--csv")
