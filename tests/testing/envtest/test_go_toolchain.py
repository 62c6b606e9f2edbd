"""Checks of the Go version, and running Go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ocf.errors import ConfigError
from ocf.testing.envtest.go_toolchain import Go, problem

if TYPE_CHECKING:
    from tests.testing.envtest.conftest import Eventually


@pytest.fixture
def go(tmp_path: Path) -> Path:
    return tmp_path / "go"


def script(file: Path, text: str) -> Go:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return Go({"PATH": "/usr/bin:/bin"}, str(file))


@pytest.mark.parametrize(
    ("version", "toolchain"),
    [
        pytest.param("go1.26.0", "local", id="just new enough"),
        pytest.param("go1.27rc1", "local", id="a release candidate of a newer one"),
        pytest.param("go1.26.8 X:nocoverageredesign", "local", id="with experiments"),
        pytest.param("go2.0.1", "local", id="a higher major"),
        pytest.param("devel +abc", "local", id="built by its user"),
        pytest.param("go1.25.3", "auto", id="older, but downloads a newer one"),
        pytest.param("go1.21.0", "go1.21.0+auto", id="the oldest that downloads"),
    ],
)
def test_an_accepted_go(version: str, toolchain: str) -> None:
    assert problem(version, toolchain, "1.26") == ""


@pytest.mark.parametrize(
    ("version", "toolchain"),
    [
        pytest.param("go1.25.9", "local", id="older"),
        pytest.param("go1.9.7", "local", id="older, compared as numbers"),
        pytest.param("go1.20.4", "auto", id="too old to download"),
    ],
)
def test_a_go_that_is_too_old(version: str, toolchain: str) -> None:
    assert problem(version, toolchain, "1.26") == (
        f"the programs need Go 1.26 or newer to be built, and this one is {version.removeprefix('go')}; "
        "install it from https://go.dev/dl, or let KUBEBUILDER_ASSETS name a folder that setup-envtest filled"
    )


def test_no_go(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        Go({}, str(tmp_path / "go")).check("1.26", tmp_path)
    assert "cannot be run; install it from https://go.dev/dl" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_go_without_the_setting_gotoolchain(go: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"or newer to be built, and .* is older"):
        script(go, "echo; echo").check("1.26", tmp_path)


def test_lines_are_reported_immediately_and_returned_without_gos_messages(go: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    lines = script(go, "echo fmt; echo; echo 'go: downloading a v1' >&2; echo io").run([], tmp_path, seen.append)
    assert lines == ["fmt", "io"]
    assert seen == ["fmt", "go: downloading a v1", "io"]


def test_a_failure_shows_the_end_of_the_output(go: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        script(go, "for i in $(seq 100); do echo line $i; done; exit 3").run(["build", "x"], tmp_path)
    assert str(raised.value).splitlines() == ["go build failed with code 3:", *(f"line {i}" for i in range(81, 101))]


def test_an_interruption_ends_the_compilers_too(
    go: Path, tmp_path: Path, eventually: Eventually, gone: Callable[[int], bool]
) -> None:
    """A compiler that continues after its build was interrupted would keep the machine busy."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script(go, "sleep 600 & echo $! > compiler; echo fmt; wait").run(["build"], tmp_path, interrupt)
    compiler = int((tmp_path / "compiler").read_text())
    eventually(lambda: gone(compiler))
