"""Help texts of the commands, wrapped at 80 columns or the width of a narrower terminal.

A name, a choice or a word is never cut: what does not fit beside its description stands in a line of its own. The
docstring of a command is its description, and its last section, `Example:`, is printed as it is written.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, get_args

__all__ = ["Description", "command_help", "overview", "usage"]

_WIDEST: Final = 80
_NARROWEST: Final = 40
_INDENT: Final = "  "
_COLUMN: Final = 26
"""The column of descriptions."""
_EXAMPLE: Final = "\nExample:\n"


class Description:
    """The parts of a command's docstring.

    Args:
        docstring: The docstring of the function.

    Attributes:
        paragraphs: The paragraphs before the example, each as one line.
        example: The lines of the example; empty without one.

    Example:
        >>> found = Description('''Print a file.
        ...
        ... Lines are kept
        ... as they are.
        ...
        ... Example:
        ...     ocf print web.yaml
        ... ''')
        >>> found.paragraphs, found.example
        (['Print a file.', 'Lines are kept as they are.'], ['ocf print web.yaml'])
    """

    def __init__(self, docstring: str) -> None:
        text, _, example = inspect.cleandoc(docstring).partition(_EXAMPLE)
        self.paragraphs = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
        self.example = textwrap.dedent(example).strip().splitlines()


def usage(ctx: Any, parameters: Sequence[Any]) -> str:
    """Return the usage line of a command.

    Args:
        ctx: The context of the command.
        parameters: Its parameters.
    """
    arguments = (each for each in parameters if each.param_type_name == "argument")
    return " ".join([f"Usage: {ctx.command_path} [OPTIONS]", *(_argument_usage(each) for each in arguments)])


def command_help(ctx: Any, parameters: Sequence[Any], hints: Mapping[str, Any], statuses: Mapping[int, str]) -> str:
    """Return the help text of a command.

    Args:
        ctx: The context of the command; its description is `ctx.command.help`.
        parameters: Its parameters, with the option for help.
        hints: The type of each parameter of the function by name.
        statuses: The meaning of each exit status.
    """
    description = Description(ctx.command.help or "")
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name == "option" and not each.hidden]
    lines = [*_wrapped(usage(ctx, parameters), hanging="       ")]
    for paragraph in description.paragraphs:
        lines += ["", *_wrapped(paragraph)]
    sections = {
        "Arguments": [_entry([_shown_name(each)], _explained(each, hints)) for each in arguments],
        "Options": [_entry(_option_names(each, hints), _explained(each, hints)) for each in options],
        "Exit status": [_entry([str(status)], meaning, column=6) for status, meaning in statuses.items()],
    }
    for title, entries in sections.items():
        if entries:
            lines += ["", _heading(title), *(line for entry in entries for line in entry)]
    if description.example:
        # As a plugin of kubectl, the program has another name.
        program = ctx.find_root().info_name
        shown = (re.sub(r"\bocf(?= )", program, each) for each in description.example)
        lines += ["", _heading("Example"), *(_INDENT + each for each in shown)]
    return "\n".join(lines)


def overview(
    ctx: Any, parameters: Sequence[Any], summary: str, groups: Mapping[str, Mapping[str, str]], example: str
) -> str:
    """Return the help text of the program: its commands by task.

    Args:
        ctx: The context of the program.
        parameters: Its options.
        summary: What the program does.
        groups: By title, the docstring of each command by name.
        example: How to go on from here.
    """
    lines = [*_wrapped(f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGUMENTS]..."), "", *_wrapped(summary)]
    width = max(len(name) for commands in groups.values() for name in commands)
    for title, commands in groups.items():
        lines += ["", _heading(title)]
        for name, docstring in commands.items():
            lines += _entry([name], Description(docstring).paragraphs[0], column=len(_INDENT) + width + 2)
    lines += ["", _heading("Options")]
    for each in parameters:
        lines += _entry(_option_names(each, {}), each.help or "")
    return "\n".join([*lines, "", *_wrapped(example)])


def _heading(title: str) -> str:
    import typer

    return typer.style(f"{title}:", bold=True)


def _width() -> int:
    import shutil

    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))


def _wrapped(text: str, *, indent: str = "", hanging: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _width(),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entry(names: Sequence[str], text: str, *, column: int = _COLUMN) -> list[str]:
    """Return the lines of names and their description, beside each other if the names are short enough."""
    # A metavar belongs to its name, so a line breaks between names only.
    joined = ", ".join(names).replace(" ", "\0").replace(",\0", ", ")
    left = [line.replace("\0", " ") for line in _wrapped(joined, indent=_INDENT, hanging=_INDENT * 2)]
    right = _wrapped(text, indent=" " * column)
    if right and len(left[-1]) < column - 1:
        right[0] = left.pop().ljust(column) + right[0][column:]
    return [*left, *right]


def _shown_name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _argument_usage(argument: Any) -> str:
    name = _shown_name(argument)
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _option_names(option: Any, hints: Mapping[str, Any]) -> list[str]:
    """Return the names of an option, short ones first, and the last one with its value."""
    names = [*sorted(option.opts, key=lambda name: name.startswith("--")), *option.secondary_opts]
    if not option.is_flag:
        names[-1] += f" {option.metavar or _value(hints[option.name])}"
    return names


def _value(hint: Any) -> str:
    choices = _choices(hint)
    return "|".join(choices) if choices else {int: "NUMBER", float: "NUMBER"}.get(hint, "VALUE")


def _choices(hint: Any) -> list[str]:
    types = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and issubclass(each, StrEnum)]
    return [choice.value for each in types for choice in each]


def _explained(parameter: Any, hints: Mapping[str, Any]) -> str:
    """Return the description of a parameter, with its choices, limits and default."""
    notes = [*_notes(parameter, hints)]
    return f"{parameter.help or ''} [{'; '.join(notes)}]" if notes else str(parameter.help or "")


def _notes(parameter: Any, hints: Mapping[str, Any]) -> Iterator[str]:
    is_option = parameter.param_type_name == "option"
    choices = _choices(hints.get(parameter.name))
    if choices and not is_option:
        yield f"one of {', '.join(choices)}"
    if is_option and parameter.required:
        yield "required"
    default = parameter.default
    if is_option and parameter.secondary_opts:
        yield f"default: {(parameter.opts if default else parameter.secondary_opts)[0]}"
    elif isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        yield f"default: {default}"
