"""The command line as a whole: which commands there are, and that one costs no other."""

import subprocess
import sys

from typer.testing import CliRunner

from ocf.cli.app import app


def test_the_overview_names_every_command() -> None:
    answer = CliRunner().invoke(app, ["--help"])
    assert answer.exit_code == 0
    assert "Print the version of ocf." in answer.stdout


def test_a_misspelt_command_is_refused_with_the_nearest() -> None:
    answer = CliRunner().invoke(app, ["verson"])
    assert answer.exit_code == 2
    assert "No such command 'verson'. Did you mean 'version'?" in answer.stderr


def test_a_word_that_is_no_choice_is_refused_with_those_there_are() -> None:
    answer = CliRunner().invoke(app, ["validate", "--output", "xml", "web.yaml"])
    assert answer.exit_code == 2
    assert "Invalid value for '--output': must be one of text, json, github, got 'xml'" in answer.stderr


def test_a_command_loads_nothing_of_the_others() -> None:
    """Of `ocf version`, typer is the whole cost: nothing that only other commands need is loaded."""
    program = "import sys\nfrom ocf.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, "version"], capture_output=True, text=True, check=True)  # noqa: S603 (ours)
    loaded = set(done.stdout.splitlines()[1].split())
    assert {name for name in loaded if name.startswith("ocf.")} == {"ocf.cli", "ocf.cli.app", "ocf.cli.version"}
    assert loaded.isdisjoint({"kubernetes", "pydantic", "rich", "yaml"})
