"""The page of the commands, from their help."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ocf.cli.app import GROUPS, load_command
from ocf.cli.command_help import Description

__all__ = ["page"]

_INTRODUCTION = """\
# Commands and their options

The commands of `ocf` with all their arguments and options, as `ocf COMMAND --help` prints them. As a plugin of kubectl,
the command is `kubectl ocf`. [Commands](commands.md) has them by task, with their exit statuses.
"""


def page() -> str:
    """Return the page, in Markdown."""
    commands = [(name, load_command(name)) for names in GROUPS.values() for name in names]
    rows = [
        f"| [`ocf {name}`](#ocf-{name.replace(' ', '-')}) | {Description(command.help or '').paragraphs[0]} |"
        for name, command in commands
    ]
    table = "\n".join(["| command | what it does |", "| --- | --- |", *rows])
    return "\n\n".join([_INTRODUCTION + "\n" + table, *(_command(name, command) for name, command in commands)]) + "\n"


def _command(name: str, command: Any) -> str:
    shown = command.params
    arguments = [each for each in shown if each.opts[0] == each.name]
    words = "".join(f" {_metavar(each)}" if each.required else f" [{_metavar(each)}]" for each in arguments)
    rows = [f"| {_names(each)} | {_meaning(each)} |" for each in shown]
    usage = f"```text\nocf {name} [OPTIONS]{words}\n```"
    table = "\n".join(["| argument or option | meaning |", "| --- | --- |", *rows]) if rows else "It has no options."
    description = Description(command.help)
    example = "\n".join(["```sh", *description.example, "```"])
    return "\n\n".join([f"## ocf {name}", usage, *description.paragraphs, table, example])


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper()


def _names(parameter: Any) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.opts[0] == parameter.name:
        return f"`{_metavar(parameter)}`"
    shown = ", ".join(f"`{name}`" for name in names)
    return f"{shown} `{parameter.metavar}`" if parameter.metavar else shown


def _meaning(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return " ".join([text, *_details(parameter)])


def _details(parameter: Any) -> Iterator[str]:
    if isinstance(parameter.type, click.Choice):
        yield f"One of {', '.join(f'`{each}`' for each in parameter.type.choices)}."
    if parameter.required:
        yield "Required."
    elif (
        isinstance(parameter.default, str | int | float | Path) and parameter.default and parameter.default is not True
    ):
        yield f"Default: `{parameter.default}`."
