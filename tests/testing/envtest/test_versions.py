"""The cache folder, and the folder name of a release."""

from pathlib import Path

import pytest

from ocf.testing.envtest.versions import PINNED, Machine, Release, cache_folder


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HOME": "/home/me"}, "/home/me/.cache/ocf/envtest", id="below the home"),
        pytest.param({"HOME": "/home/me", "XDG_CACHE_HOME": "/c"}, "/c/ocf/envtest", id="in XDG_CACHE_HOME"),
        pytest.param({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/ocf/envtest", id="empty is unset"),
        pytest.param({"HOME": "/h", "XDG_CACHE_HOME": "c"}, "/h/.cache/ocf/envtest", id="a relative path is ignored"),
    ],
)
def test_the_cache_is_outside_the_checkout(environ: dict[str, str], expected: str) -> None:
    assert cache_folder(environ) == Path(expected)


def test_a_home_is_found_without_the_variable() -> None:
    assert cache_folder({}).is_absolute()


def test_every_version_and_machine_has_its_own_folder() -> None:
    linux, mac = Machine("linux", "amd64"), Machine("darwin", "arm64")
    releases = [
        PINNED,
        Release("1.36.4", PINNED.etcd, go=PINNED.go, kwok=PINNED.kwok),
        Release(PINNED.kubernetes, "3.7.4", go=PINNED.go, kwok=PINNED.kwok),
    ]
    assert len({release.folder_name(machine) for release in releases for machine in (linux, mac)}) == 6


def test_the_machine_is_named_as_go_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr("sys.platform", "darwin")
    assert Machine.here() == Machine("darwin", "arm64")
