"""Templates: text with variables and conditional lines.

`@{name}` stands for a variable. A line `%% if FLAG` or `%% if not FLAG` begins a part that is rendered under a
condition, `%% else` its alternative, `%% end` ends it; parts may be nested. There are no expressions and no loops.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ocf.errors import ConfigError

__all__ = ["render_template"]

_MARK: Final = "%% "
_VARIABLE: Final = re.compile(r"@\{(\w+)\}")


def render_template(text: str, variables: Mapping[str, str], flags: Mapping[str, bool]) -> str:
    r"""Render a template.

    Args:
        text: The template.
        variables: Name to value.
        flags: Name to whether the condition holds.

    Raises:
        ConfigError: If a variable or a flag is unknown, or a part is not ended.

    Example:
        >>> render_template("%% if loud\nHELLO\n%% else\nhello @{name}\n%% end\n", {"name": "Ann"}, {"loud": False})
        'hello Ann\n'
    """
    lines: list[str] = []
    shown: list[bool] = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.startswith(_MARK):
            if all(shown):
                lines.append(line)
            continue
        match line.split()[1:]:
            case ["if", flag] if flag in flags:
                shown.append(flags[flag])
            case ["if", "not", flag] if flag in flags:
                shown.append(not flags[flag])
            case ["else"] if shown:
                shown[-1] = not shown[-1]
            case ["end"] if shown:
                shown.pop()
            case _:
                raise ConfigError(f"line {number} of the template: invalid condition {line.strip()!r}")
    if shown:
        raise ConfigError("a conditional part of the template is not ended: write `%% end`")
    try:
        return _VARIABLE.sub(lambda found: variables[found[1]], "".join(lines))
    except KeyError as error:
        raise ConfigError(f"the template has an unknown variable, {error}") from None
