"""Values of a chart, declared once: values.yaml, its JSON schema, and a table for people."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ocf.manifests.helm_templates import SCHEMA, json_type
from ocf.objects import dump_document

__all__ = ["Entries", "Section", "Value", "value_rows", "values_schema", "values_yaml"]

_WIDTH: Final = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value.

    Args:
        default: Its default, which has its type; not null.
        description: Its meaning, for people.
        schema: What its JSON schema has beside type and description.
    """

    default: Any
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Values below one key; other keys are rejected.

    Args:
        description: Their meaning, for people.
        entries: The values, by key.
    """

    description: str
    entries: Entries


Entries: TypeAlias = "Mapping[str, Value | Section]"
"""Values and sections, by key."""


def values_yaml(entries: Entries) -> str:
    """Return the defaults as YAML, each after a comment with its description.

    Args:
        entries: The values.

    Example:
        >>> print(values_yaml({"replicas": Value(default=2, description="Number of pods.")}), end="")
        # Number of pods.
        replicas: 2
    """
    return "".join(f"{line}\n" for line in _lines(entries, ""))


def _lines(entries: Entries, indent: str) -> Iterator[str]:
    for key, entry in entries.items():
        yield from (f"{indent}# {line}" for line in textwrap.wrap(entry.description, _WIDTH - len(indent)))
        if isinstance(entry, Section):
            yield f"{indent}{key}:"
            yield from _lines(entry.entries, f"{indent}  ")
        else:
            yield from (f"{indent}{line}" for line in dump_document({key: entry.default}).splitlines())


def values_schema(entries: Entries, *, note: str) -> str:
    """Return the JSON schema of the values, which rejects unknown keys.

    Args:
        entries: The values.
        note: A comment for its first line.
    """
    schema = {"$comment": note, "$schema": SCHEMA, **_schema(Section(description="Values.", entries=entries))}
    schema["properties"]["global"] = {"type": "object", "description": "Set by charts that include this one."}
    return json.dumps(schema, indent=2) + "\n"


def _schema(entry: Value | Section) -> dict[str, Any]:
    if isinstance(entry, Value):
        return {"type": json_type(entry.default), "description": entry.description, **entry.schema}
    properties = {key: _schema(each) for key, each in entry.entries.items()}
    return {
        "type": "object",
        "description": entry.description,
        "additionalProperties": False,
        "properties": properties,
    }


def value_rows(entries: Entries, above: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, default as JSON, and description of each value.

    Args:
        entries: The values.
        above: The path of their section, with a dot at its end; empty at the top.
    """
    for key, entry in entries.items():
        if isinstance(entry, Section):
            yield from value_rows(entry.entries, f"{above}{key}.")
        else:
            yield f"{above}{key}", json.dumps(entry.default), entry.description
