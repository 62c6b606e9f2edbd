"""Commands that serve or watch raise the limit of open files before they do anything else."""

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.errors import ConfigError


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("serve --port 0", id="the embedded API server"),
        pytest.param("dev missing:operator", id="an operator with its server"),
        pytest.param("hpa-controller", id="the HPA controller"),
        pytest.param("nodegroups run --provider cluster-api", id="the controller of node groups"),
    ],
)
def test_a_process_that_runs_for_long_raises_its_limit(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def called() -> None:
        raise ConfigError("the limit was raised")

    monkeypatch.setattr("ocf.concepts.open_files.raise_open_files", called)
    result = CliRunner().invoke(app, command.split())

    assert "the limit was raised" in result.output
