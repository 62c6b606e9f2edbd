"""The command `ocf` itself."""

from importlib.metadata import version

from typer.testing import CliRunner

from ocf.cli.app import app


def test_it_prints_the_installed_version() -> None:
    answer = CliRunner().invoke(app, ["version"])
    assert (answer.exit_code, answer.stdout) == (0, f"{version('ocf')}\n")
