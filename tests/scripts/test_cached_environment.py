"""Environments of tools in the cache: their folder is named after what they are made of."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.cached_environment import ENVIRONMENTS, CachedEnvironment


@pytest.fixture
def environment(tmp_path: Path) -> CachedEnvironment:
    for name in ("locked", "source"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    return CachedEnvironment("tools", "tools", tmp_path / "locked", lambda _: True, (tmp_path / "source",))


def test_the_cache_is_found_again_in_a_new_checkout(environment: CachedEnvironment, tmp_path: Path) -> None:
    """A checkout gives its files the present time: https://github.com/actions/checkout/issues/968."""
    before = environment.folder()
    for name in ("locked", "source"):
        os.utime(tmp_path / name, (1, 1))

    assert environment.folder() == before


@pytest.mark.parametrize("name", ["locked", "source"])
def test_other_versions_have_another_folder(environment: CachedEnvironment, tmp_path: Path, name: str) -> None:
    before = environment.folder()
    (tmp_path / name).write_text("newer", encoding="utf-8")

    assert environment.folder() != before
    assert environment.folder().parent == before.parent


@pytest.mark.long
def test_what_is_complete_is_not_installed_again(
    environment: CachedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = _installed(environment)
    again = _installed(environment)

    assert (first, again) == (1, 0)
    assert environment.is_complete()
    assert capsys.readouterr().out.count("Installing tools into") == 1


@pytest.mark.long
def test_what_could_not_be_installed_is_tried_again(
    environment: CachedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    assert (_installed(environment, able=False), environment.is_complete()) == (1, False)
    assert (_installed(environment), environment.is_complete()) == (1, True)


def _installed(environment: CachedEnvironment, *, able: bool = True) -> int:
    """Install the environment, whose lock names no package; return how often."""
    environment.lock.write_text("", encoding="utf-8")
    folders: list[Path] = []

    def more(folder: Path) -> bool:
        folders.append(folder)
        return able

    replace(environment, more=more).install()
    return len(folders)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_source_exists_and_no_two_environments_share_a_folder(name: str) -> None:
    environment = ENVIRONMENTS[name]
    others = {each.folder().parent for each in ENVIRONMENTS.values() if each is not environment}

    assert all(path.is_file() for path in (environment.lock, *environment.sources))
    assert environment.folder().parent not in others
