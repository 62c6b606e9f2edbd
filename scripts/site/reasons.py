"""The pages of events, conditions and errors: what is declared in the code, with what to do about it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from ocf import errors
from ocf.cli.exit_status import FOUND_BY, MEANINGS
from scripts.site.docstrings import plain, summary

__all__ = ["TABLES", "conditions_page", "errors_page", "event_names", "events_page", "public_errors", "table_of"]

TABLES: Final = Path(__file__).parents[2] / "docs" / "site"
_PROCESSES: Final = {
    "operator": "An operator",
    "hpa": "The HPA controller",
    "nodegroup": "The node-group controller",
}
_EVENTS: Final = """\
# Events

Every event that is posted, by process. `kubectl events --for KIND/NAME` shows those of an object. The events of an
operator are on the owner, with the object as `related`; an `event_formatter` may rewrite them.
[Events](../operators/observability.md#events) has when they are combined and dropped.
"""
_CONDITIONS: Final = """\
# Conditions

Every condition in a status, by process, with its reasons. An operator may set further ones itself.
"""
_ERRORS: Final = """\
# Errors and exit statuses

## Error classes

The classes of `ocf.errors`, each below its base class. Distinguish errors by class, never by message.
"""
_STATUSES: Final = """\
## Exit statuses

The exit statuses of all commands.
"""


def table_of(name: str) -> Mapping[str, Any]:
    """Return a table of `docs/site`.

    Args:
        name: `events`, `conditions` or `errors`.
    """
    found: Mapping[str, Any] = yaml.safe_load((TABLES / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def events_page() -> str:
    """Return the page of the events, in Markdown."""
    parts = [_EVENTS]
    for process, events in table_of("events").items():
        rows = ([f"`{reason}`", *map(plain, row)] for reason, row in events.items())
        parts += [f"## {_PROCESSES[process]}\n", _table(("reason", "type", "posted when", "what to do"), rows)]
    return "\n".join(parts)


def event_names() -> list[str]:
    """Return the reasons of all events."""
    return [reason for events in table_of("events").values() for reason in events]


def conditions_page() -> str:
    """Return the page of the conditions, in Markdown."""
    parts = [_CONDITIONS]
    for process, conditions in table_of("conditions").items():
        parts.append(f"## {_PROCESSES[process]}\n")
        for condition, declared in conditions.items():
            rows = ([f"`{reason}`", *map(plain, row)] for reason, row in declared["reasons"].items())
            table = _table(("reason", "status", "meaning", "what to do"), rows)
            parts += [f"### {condition}\n", f"{declared['meaning']}\n", table]
    return "\n".join(parts)


def errors_page() -> str:
    """Return the page of the errors and exit statuses, in Markdown."""
    actions = table_of("errors")
    shown = ([f"`{each.__name__}`", _base(each), summary(each), actions[each.__name__]] for each in public_errors())
    classes = _table(("class", "base", "meaning", "what to do"), shown)
    statuses = _table(("status", "meaning"), ([str(status), meaning] for status, meaning in MEANINGS.items()))
    found = _table(("command", "1 means"), ([f"`ocf {name}`", meaning] for name, meaning in FOUND_BY.items()))
    return f"{_ERRORS}\n{classes}\n{_STATUSES}\n{statuses}\n{found}"


def public_errors() -> Iterator[type[errors.OcfError]]:
    """Yield the public errors, each after its base class."""
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, errors.OcfError) and each.__name__ in errors.__all__:
            yield each


def _base(error: type[errors.OcfError]) -> str:
    return f"`{error.__bases__[0].__name__}`"


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = tuple(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
