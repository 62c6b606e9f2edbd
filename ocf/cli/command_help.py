"""Help texts of the commands, wrapped at 80 columns or the width of a narrower terminal.

A name, a choice or a word is never cut: what does not fit beside its description stands in a line of its own. The
docstring of a command is its description, and its last section, `Example:`, is printed as it is written.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from ocf.cli.exit_status import FAILED, FOUND, FOUND_BY, MEANINGS, SUCCESS

__all__ = ["Description", "command_help", "overview", "usage"]

_WIDEST: Final = 80
_NARROWEST: Final = 40
_INDENT: Final = "  "
_COLUMN: Final = 26
"""The column of descriptions."""
_EXAMPLE: Final = "\nExample:\n"


class Description:
    """The parts of a command's docstring.

    Attributes:
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


def usage(ctx: click.Context) -> str:
    """Return the usage line of a command."""
    arguments = (each for each in ctx.command.params if isinstance(each, click.Argument))
    return " ".join([f"Usage: {ctx.command_path} [OPTIONS]", *(_argument_usage(each) for each in arguments)])


def command_help(ctx: click.Context) -> str:
    """Return the help text of a command.

    Args:
        ctx: The context of the command; its description is `ctx.command.help`.
    """
    description = Description(ctx.command.help or "")
    parameters = ctx.command.get_params(ctx)
    arguments = [each for each in parameters if isinstance(each, click.Argument)]
    options = [each for each in parameters if isinstance(each, click.Option)]
    lines = [*_wrapped(usage(ctx), hanging="       ")]
    for paragraph in description.paragraphs:
        lines += ["", *_wrapped(paragraph)]
    sections = {
        "Arguments": [_entry([_shown_name(each)], _explained(each)) for each in arguments],
        "Options": [_entry(_option_names(each), _explained(each)) for each in options],
        "Exit status": [_entry([str(status)], meaning, column=6) for status, meaning in _statuses(ctx).items()],
    }
    for title, entries in sections.items():
        if entries:
            lines += ["", _heading(title), *(line for entry in entries for line in entry)]
    if description.example:
        # As a plugin of kubectl, the program has another name.
        program = ctx.find_root().info_name or ""
        shown = (re.sub(r"\bocf(?= )", program, each) for each in description.example)
        lines += ["", _heading("Example"), *(_INDENT + each for each in shown)]
    return "\n".join(lines)


def overview(ctx: click.Context, groups: Mapping[str, Mapping[str, str]]) -> str:
    """Return the help text of a group of commands, such as the program, by task.

    Args:
        ctx: The context of the group; its description is `ctx.command.help`.
    """
    usage_line = f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGUMENTS]..."
    lines = [*_wrapped(usage_line), "", *_wrapped(ctx.command.help or "")]
    width = max(len(name) for commands in groups.values() for name in commands)
    for title, commands in groups.items():
        lines += ["", _heading(title)]
        for name, docstring in commands.items():
            lines += _entry([name], Description(docstring).paragraphs[0], column=len(_INDENT) + width + 2)
    lines += ["", _heading("Options")]
    for each in ctx.command.get_params(ctx):
        lines += _entry(_option_names(each), each.help or "")
    more = f"`{ctx.command_path} COMMAND --help` describes a command and ends with an example."
    return "\n".join([*lines, "", *_wrapped(more)])


def _statuses(ctx: click.Context) -> Mapping[int, str]:
    """Return the meaning of each exit status of a command."""
    words = [ctx.info_name or ""]
    while ctx.parent is not None and ctx.parent.parent is not None:
        ctx = ctx.parent
        words.insert(0, ctx.info_name or "")
    found = FOUND_BY.get(" ".join(words))
    return {SUCCESS: MEANINGS[SUCCESS], **({FOUND: found} if found else {}), FAILED: MEANINGS[FAILED]}


def _heading(title: str) -> str:
    return click.style(f"{title}:", bold=True)


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


def _shown_name(argument: click.Argument) -> str:
    return argument.metavar or argument.name.upper()


def _argument_usage(argument: click.Argument) -> str:
    name = _shown_name(argument)
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _option_names(option: click.Parameter) -> list[str]:
    """Return the names of an option, short ones first, and the last one with its value."""
    names = [*sorted(option.opts, key=lambda name: name.startswith("--")), *option.secondary_opts]
    if isinstance(option, click.Option) and not option.is_flag:
        names[-1] += f" {option.metavar or _value(option.type)}"
    return names


def _value(of: click.ParamType[Any]) -> str:
    if isinstance(of, click.Choice):
        return "|".join(of.choices)
    return "NUMBER" if of is click.FLOAT or isinstance(of, click.IntRange) else "VALUE"


def _explained(parameter: click.Parameter) -> str:
    """Return the description of a parameter, with its choices, limits and default."""
    notes = "; ".join(_notes(parameter))
    return f"{parameter.help or ''} [{notes}]" if notes else parameter.help or ""


def _notes(parameter: click.Parameter) -> Iterator[str]:
    default = parameter.default
    if isinstance(parameter, click.Argument):
        if isinstance(parameter.type, click.Choice):
            yield f"one of {', '.join(parameter.type.choices)}"
    elif parameter.required:
        yield "required"
    if parameter.secondary_opts:
        yield f"default: {(parameter.opts if default else parameter.secondary_opts)[0]}"
    elif isinstance(default, str | int | float) and not isinstance(default, bool) and default != "":
        yield f"default: {default}"
