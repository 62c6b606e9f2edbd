"""Options for the built-in controllers of commands that serve a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ocf.cli.command import Number

if TYPE_CHECKING:
    from ocf_server import ControllerSettings, EmbeddedCluster

__all__ = ["controller_settings", "controllers_option", "nodes_option", "ready_after_option", "running_controllers"]

controllers_option = click.option(
    "--controllers",
    multiple=True,
    metavar="NAME",
    help="Built-in controllers to run: all, or names of kube-controller-manager such as deployment-controller, "
    "separated by commas; repeatable. Default: none.",
)
nodes_option = click.option(
    "--nodes", type=Number(0), metavar="VALUE", help="Simulated nodes to create, with --controllers; default: 1."
)
ready_after_option = click.option(
    "--ready-after",
    metavar="DURATION",
    help="Delay until a pod on a node is ready, such as 500ms or 10s, with --controllers; default: 1s.",
)


def controller_settings(
    names: Sequence[str], *, nodes: int | None = None, ready_after: str | None = None
) -> ControllerSettings | None:
    """Return the settings of the options; None if no controller runs.

    Args:
        names: Values of `--controllers`; empty if the option is not given.
        nodes: Value of `--nodes`; None if the option is not given.
        ready_after: Value of `--ready-after`; None if the option is not given.
    """
    from ocf.errors import ConfigError

    if not names:
        for option, value in (("--nodes", nodes), ("--ready-after", ready_after)):
            if value is not None:
                raise ConfigError(f"{option} has no effect without --controllers: add --controllers all, or remove it")
        return None
    from ocf_server import ControllerSettings

    chosen = [name.strip() for value in names for name in value.split(",") if name.strip()]
    if not chosen:
        raise ConfigError("--controllers names no controller: choose all, or remove the option")
    given: dict[str, Any] = {"names": chosen}
    if nodes is not None:
        given["nodes"] = nodes
    if ready_after is not None:
        given["ready_after"] = _delay(ready_after)
    try:
        return ControllerSettings(**given)
    except ConfigError as error:
        raise ConfigError(f"--controllers: {error}") from error


def _delay(text: str) -> timedelta:
    from ocf.errors import ConfigError
    from ocf.objects.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"--ready-after: {error}") from error


def running_controllers(
    cluster: EmbeddedCluster, settings: ControllerSettings | None
) -> AbstractAsyncContextManager[Any]:
    """Run the controllers of a cluster for the duration of a block.

    Args:
        settings: The settings; None runs no controller.
    """
    return nullcontext() if settings is None else cluster.controllers(settings).running()
