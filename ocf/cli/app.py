"""The commands of `ocf`.

A command's module is imported when the command is looked up, and for the overview of all commands, so each command
starts as fast as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

import click

from ocf.cli.command import Command, unknown_options

__all__ = ["COMPLETION_VARIABLE", "GROUPS", "app", "load_command"]

COMPLETION_VARIABLE: Final = "_OCF_COMPLETE"
"""The environment variable by which the script of a shell asks for completions."""

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Write an operator": ("new operator", "new kind", "preview", "manifests"),
    "Try and test it": ("dev", "serve", "envtest-assets", "diff"),
    "Run controllers": ("run", "hpa-controller", "nodegroups"),
    "Autoscaling": ("validate", "default", "explain", "record", "simulate", "tune"),
    "Shell": ("completion",),
}
"""The commands by task, as in the overview. Each is in a module or package of its name; its first word is a folder."""

_COMMANDS: Final = tuple(name for names in GROUPS.values() for name in names)
_SUMMARIES: Final = {
    "": "Author, check and run components of Kubernetes operators.",
    "new": "Write a project of an operator, or a kind of another project.",
}
"""The program, and the words that begin several commands, each with what these do."""


class _Commands(click.Group):
    """The commands that begin with some words; each is loaded when it is looked up.

    Args:
        path: The words; empty for all commands.
    """

    def __init__(self, path: str = "", *, params: list[click.Parameter] | None = None) -> None:
        self._path = path
        # Only the names matter here.
        names = {name.split()[0]: click.Command(name.split()[0]) for name in _below(path)}
        super().__init__(
            path or "ocf",
            names,
            params=params,
            help=_SUMMARIES[path],
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (of the base class)
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (likewise)
        return load_command(f"{self._path} {cmd_name}".strip()) if cmd_name in self.commands else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with unknown_options():
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; click suggests names for an unknown one that have the same letters, but are not likely."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            from ocf.objects.suggestions import nearest

            near = nearest(name, self.commands)
            ctx.fail(f"No such command {name!r}.{f' Did you mean {near!r}?' if near else ''}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from ocf.cli.command_help import overview

        groups = {
            title: {name: load_command(f"{self._path} {name}".strip()).help or "" for name in _below(self._path, names)}
            for title, names in GROUPS.items()
        }
        shown = {title: docstrings for title, docstrings in groups.items() if docstrings}
        formatter.write(overview(ctx, shown))


def _below(path: str, names: Sequence[str] = _COMMANDS) -> list[str]:
    """Return the commands that begin with a path, without it."""
    start = f"{path} " if path else ""
    return [name.removeprefix(start) for name in names if name.startswith(start)]


def load_command(name: str) -> click.Command:
    """Import a command, or a group of commands that begin with the same word."""
    if name not in _COMMANDS:
        return _Commands(name)
    identifier = name.replace("-", "_")
    module = import_module(f"ocf.cli.{identifier.replace(' ', '.')}")
    command: Command = getattr(module, identifier.replace(" ", "_"))
    return command


def _print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 (of a callback)
    if value and not ctx.resilient_parsing:
        import ocf

        click.echo(ocf.__version__)
        ctx.exit()


_VERSION: Final = click.Option(
    ["--version"], is_flag=True, expose_value=False, callback=_print_version, help="Print the version of ocf."
)
app: Final = _Commands(params=[_VERSION])
