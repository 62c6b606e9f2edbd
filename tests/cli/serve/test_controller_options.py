"""Options for the built-in controllers: their defaults, and errors that say what to do."""

from datetime import timedelta

import pytest

from ocf.cli.serve.controller_options import controller_settings
from ocf.errors import ConfigError
from ocf_server import ControllerSettings


def test_no_controller_runs_without_the_option() -> None:
    assert controller_settings([]) is None


def test_other_options_default_to_those_of_the_settings() -> None:
    assert controller_settings(["all"]) == ControllerSettings(names=["all"])


def test_names_are_separated_by_commas_or_repeated() -> None:
    chosen = controller_settings(["job-controller, namespace-controller", "all"], nodes=3, ready_after="1m")
    names = ["job-controller", "namespace-controller", "all"]
    assert chosen == ControllerSettings(names=names, nodes=3, ready_after=timedelta(minutes=1))


@pytest.mark.parametrize(
    ("names", "nodes", "ready_after", "problem"),
    [
        pytest.param(
            ["deployment-controller,nodes"],
            None,
            None,
            '--controllers: unknown controller "nodes": must be one of all, daemonset-controller, ',
            id="unknown name",
        ),
        pytest.param([" ,"], None, None, "--controllers names no controller: choose all, or ", id="no name"),
        pytest.param(
            ["all"], None, "soon", "--ready-after: must be a duration like 1m30s, not 'soon'", id="malformed delay"
        ),
        pytest.param([], 1, None, "--nodes has no effect without --controllers: add --controllers all", id="nodes"),
        pytest.param([], None, "1s", "--ready-after has no effect without --controllers: add", id="delay"),
    ],
)
def test_invalid_options_are_rejected(
    names: list[str], nodes: int | None, ready_after: str | None, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        controller_settings(names, nodes=nodes, ready_after=ready_after)
    assert str(caught.value).startswith(problem)
