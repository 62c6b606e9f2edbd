"""Options for the built-in controllers of commands that serve a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from ocf.embedded import ControllerSettings, EmbeddedCluster

__all__ = ["ControllersOption", "NodesOption", "ReadyAfterOption", "controller_settings", "running_controllers"]

_PANEL = "Built-in controllers"

ControllersOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--controllers",
        metavar="NAME",
        help="Built-in controllers to run: all, or names of kube-controller-manager such as deployment-controller, "
        "separated by commas; repeatable. Default: none.",
        rich_help_panel=_PANEL,
    ),
]
NodesOption: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Simulated nodes to create, with --controllers.", rich_help_panel=_PANEL)
]
ReadyAfterOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="Delay until a pod on a node is ready, such as 500ms or 10s, with --controllers.",
        rich_help_panel=_PANEL,
    ),
]


def controller_settings(names: Sequence[str] | None, *, nodes: int, ready_after: str) -> ControllerSettings | None:
    """Return the settings of the options; None if no controller runs.

    Args:
        names: Values of `--controllers`.
        nodes: Value of `--nodes`.
        ready_after: Value of `--ready-after`.

    Raises:
        ConfigError: If a name or the delay is invalid.
    """
    chosen = [name.strip() for value in names or () for name in value.split(",") if name.strip()]
    if not chosen:
        return None
    from ocf.embedded import ControllerSettings

    return ControllerSettings(names=chosen, nodes=nodes, ready_after=_delay(ready_after))


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
        cluster: The cluster.
        settings: The settings; None runs no controller.
    """
    return nullcontext() if settings is None else cluster.controllers(settings).running()
