"""The commands of `ocf`.

A command's module is imported when the command is looked up, and for the overview of all commands, so each command
starts as fast as possible. typer converts every value with pydantic, even text to text, and loading pydantic would
nearly double the time of `ocf validate`. So values that need no conversion are used without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, ClassVar, Final, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ocf.cli.exit_status import FAILED, FOUND, FOUND_BY, MEANINGS, SUCCESS

__all__ = ["GROUPS", "app", "load_command"]

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Write an operator": ("new operator", "new kind", "preview", "manifests"),
    "Try and test it": ("dev", "serve", "diff"),
    "Run controllers": ("hpa-controller", "nodegroups"),
    "Autoscaling": ("validate", "default", "explain", "record", "simulate", "tune"),
    "Shell": ("completion",),
}
"""The commands by task, as in the overview. Each is a function in a module of the same name, with `_` for the rest."""

_COMMANDS: Final = tuple(name for names in GROUPS.values() for name in names)
_SUMMARIES: Final = {
    "": "Author, check and run components of Kubernetes operators.",
    "new": "Write a project of an operator, or a kind of another project.",
}
"""The program, and the words that begin several commands, each with what these do."""
_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
_TEXT: Final = (str, str | None)
_TEXTS: Final = (list[str], list[str] | None)
_ANY_NUMBER: Final = -1


class _Command(TyperCommand):
    """A command with its own help text, whose option `--help` has a default."""

    path: str
    hints: Mapping[str, Any]

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        from ocf.cli.command_help import usage

        formatter.write(usage(ctx, self.params))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from ocf.cli.command_help import command_help

        found = FOUND_BY.get(self.path)
        statuses = {SUCCESS: MEANINGS[SUCCESS], **({FOUND: found} if found else {}), FAILED: MEANINGS[FAILED]}
        formatter.write(command_help(ctx, self.get_params(ctx), self.hints, statuses))


class _Commands(TyperGroup):
    """The group of all commands that begin with some words; each is loaded when it is looked up."""

    path: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Only the names matter here: for the overview, and for suggestions for a misspelled name.
        self.commands = {name.split()[0]: TyperCommand(name.split()[0]) for name in _below(self.path)}
        for parameter in self.params:
            _convert_on_demand(parameter, bool)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 (given by the base class)
        return load_command(f"{self.path} {cmd_name}".strip()) if cmd_name in self.commands else None

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from ocf.cli.command_help import overview

        groups = {
            title: {name: _function(f"{self.path} {name}".strip()).__doc__ or "" for name in _below(self.path, names)}
            for title, names in GROUPS.items()
        }
        shown = {title: docstrings for title, docstrings in groups.items() if docstrings}
        more = f"`{ctx.command_path} COMMAND --help` describes a command and ends with an example."
        formatter.write(overview(ctx, self.get_params(ctx), _SUMMARIES[self.path], shown, more))


class _NewCommands(_Commands):
    """The commands of `ocf new`."""

    path = "new"


def _below(path: str, names: Sequence[str] = _COMMANDS) -> list[str]:
    """Return the commands that begin with a path, without it."""
    start = f"{path} " if path else ""
    return [name.removeprefix(start) for name in names if name.startswith(start)]


def _off(option: Any) -> Any:
    """Set the default of the option; without one, None would be converted."""
    if option is not None:
        option.default = False
    return option


def _function(name: str) -> Callable[..., object]:
    module = name.replace("-", "_").replace(" ", "_")
    function: Callable[..., object] = getattr(import_module(f"ocf.cli.{module}"), module)
    return function


def load_command(name: str) -> Any:
    """Import a command, or a group of commands that begin with the same word.

    Args:
        name: Its words, `new operator`.
    """
    if name not in _COMMANDS:
        return _group(_NewCommands)
    function = _function(name)
    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=_SETTINGS
    )
    single.command(name.rpartition(" ")[2], cls=_Command)(function)
    command: Any = get_command(single)
    command.path = name
    command.hints = get_type_hints(function)
    for parameter in command.params:
        if parameter.callback is None:  # it is called after the conversion, and by it
            _convert_on_demand(parameter, command.hints[parameter.name])
    return command


def _group(group: type[_Commands]) -> Any:
    commands = _program(group, group.path)
    commands.callback(help=_SUMMARIES[group.path])(lambda: None)
    return get_command(commands)


def _convert_on_demand(parameter: Any, hint: Any) -> None:
    """Let a parameter accept its default, text and names of choices without a conversion by typer.

    Args:
        parameter: The parameter; changed in place.
        hint: The type that the function expects.
    """
    convert = parameter.process_value
    several = parameter.multiple or parameter.nargs == _ANY_NUMBER
    choices = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and issubclass(each, StrEnum)]

    def process_value(ctx: Any, value: Any) -> Any:
        if value is parameter.default and not parameter.required:
            return () if value is None and several else value
        if isinstance(value, str) and choices:
            return _chosen(choices[0], value, ctx, parameter)
        is_text = isinstance(value, str) and hint in _TEXT
        are_texts = isinstance(value, list | tuple) and len(value) > 0 and hint in _TEXTS
        return value if is_text or are_texts else converted(ctx, value)

    def converted(ctx: Any, value: Any) -> Any:
        try:
            return convert(ctx, value)
        except typer.BadParameter as error:
            if isinstance(value, str):
                error.message = f"{error.message}, got {value!r}"
            raise

    parameter.process_value = process_value


def _chosen(choices: type[StrEnum], value: str, ctx: Any, parameter: Any) -> StrEnum:
    if value not in set(choices):
        raise typer.BadParameter(f"must be one of {', '.join(choices)}, got {value!r}", ctx=ctx, param=parameter)
    return choices(value)


def _program(group: type[_Commands], name: str) -> typer.Typer:
    return typer.Typer(
        name=name,
        cls=group,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_SETTINGS,
    )


app = _program(_Commands, "ocf")


@app.callback(invoke_without_command=True, help=_SUMMARIES[""])
def _commands(*, version: Annotated[bool, typer.Option("--version", help="Print the version of ocf.")] = False) -> None:
    if version:
        import ocf

        typer.echo(ocf.__version__)
        raise typer.Exit
