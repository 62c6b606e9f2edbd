"""A link that leads nowhere is named, in a folder as well: a listing shows the file, so that its absence would mislead.

Emacs makes such a link for each file that is edited, which is hidden: https://github.com/dmlc/dmlc-core/issues/358.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ocf.cli.manifest_files import read_documents, read_manifests
from ocf.cli.nodegroups.providers import types_document
from ocf.errors import OcfError
from ocf.simulation.load.text_files import open_text
from tests.cli.conftest import ocf, operator_directory

__all__ = ["ocf", "operator_directory"]

PROBLEM = "cannot be read: it is a link to nowhere.yaml, which does not exist"


@pytest.fixture
def link(tmp_path: Path) -> str:
    path = tmp_path / "folder" / "link.yaml"
    path.parent.mkdir()
    path.symlink_to("nowhere.yaml")
    return str(path)


def opened(file: str) -> None:
    with open_text(Path(file)) as text:
        text.read()


def manifests(file: str) -> None:
    list(read_manifests([Path(file)]))


@pytest.mark.parametrize("read", [manifests, types_document, opened])
def test_a_broken_link_is_named(read: Callable[[str], object], link: str) -> None:
    with pytest.raises(OcfError, match=PROBLEM):
        read(link)


@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_a_broken_link_among_manifests_is_named(link: str, *, is_folder: bool) -> None:
    path = str(Path(link).parent) if is_folder else link
    (found,) = read_documents([path])
    assert (found.file, found.problem) == (link, PROBLEM)


def test_an_owner_that_is_a_broken_link_is_named(ocf: Callable[..., Result], link: str) -> None:
    answer = ocf("preview", "shop_operator:components", "--owner", link)
    assert (answer.exit_code, answer.stderr) == (2, f"error: {link} {PROBLEM}\n")


def test_the_lock_of_an_editor_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "corner.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    (tmp_path / ".#corner.yaml").symlink_to("jane@laptop.4711:1769860800")
    (found,) = read_documents([str(tmp_path)])
    assert found.file == str(tmp_path / "corner.yaml")
