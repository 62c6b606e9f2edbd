"""Rules made ready: each of them checked, at the place in a schema where it holds.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocf.embedded.api.cel_usage import RULES, has_rules
from ocf.embedded.cel.checker import Checker
from ocf.embedded.cel.field_paths import field_path
from ocf.embedded.cel.literals import NOWHERE, RuleSyntaxError
from ocf.embedded.cel.parser import parse
from ocf.embedded.cel.runtime import Run
from ocf.embedded.cel.types import BOOL, STRING, Kind, schema_kind, with_head
from ocf.embedded.cel.unsupported import lacking, without_library

__all__ = ["Rule", "RuleError", "Rules", "compiled", "compiled_rules", "kind_of"]

_Schema = Mapping[str, Any]

_MODERN: Final = (".?", "[?", "{?", "`", ",]", ",}")
"""Syntax that the grammar lacks, and a real server has."""

_WIDE_DOT: Final = "\N{FULLWIDTH FULL STOP}"
_WIDE_MARK: Final = "\N{FULLWIDTH CIRCUMFLEX ACCENT}"


class RuleError(Exception):
    """A rule cannot be taken; its text is what a server says.

    Args:
        text: What is wrong.
        of: The part of the rule that is wrong: `rule` or `messageExpression`.
    """

    def __init__(self, text: str, of: str = "rule") -> None:
        super().__init__(text)
        self.text, self.of = text, of


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that is ready.

    Args:
        given: What the definition says.
        run: What evaluates it.
        message: What evaluates its message; None if that is fixed.
        uses_old: Whether it compares with what was before.
        path: Where a failure is reported, below the value; empty for the value itself.
    """

    given: Mapping[str, Any]
    run: Run
    message: Run | None
    uses_old: bool
    path: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules at a place in a schema, and below.

    Args:
        schema: The schema there, with the head of a whole object.
        here: The rules there.
        items: Those for the items of a list.
        extra: Those for the values of a map.
        fields: Those for the fields of an object.
    """

    schema: _Schema
    here: tuple[Rule, ...] = ()
    items: "Rules | None" = None
    extra: "Rules | None" = None
    fields: Mapping[str, "Rules"] = field(default_factory=dict)


def kind_of(schema: _Schema, *, root: bool = False) -> Kind | None:
    """Return the type of `self` at a place in a schema."""
    return schema_kind(with_head(schema) if root else schema)


def compiled_rules(schema: _Schema, *, root: bool = True) -> Rules | None:
    """Make the rules of a schema ready.

    Args:
        schema: A schema whose rules a definition was taken with.
        root: Whether it is that of a whole object.

    Returns:
        The rules; None if there are none.
    """
    if not has_rules(schema):
        return None
    items, extra = schema.get("items"), schema.get("additionalProperties")
    kind = kind_of(schema, root=root)
    seen = {name: compiled_rules(below, root=False) for name, below in (schema.get("properties") or {}).items()}
    return Rules(
        with_head(schema) if root or schema.get("x-kubernetes-embedded-resource") else schema,
        tuple(compiled(rule, schema, kind) for rule in schema.get(RULES) or ()) if kind else (),
        compiled_rules(items, root=False) if isinstance(items, dict) else None,
        compiled_rules(extra, root=False) if isinstance(extra, dict) else None,
        {name: below for name, below in seen.items() if below is not None},
    )


def compiled(given: Mapping[str, Any], schema: _Schema, kind: Kind) -> Rule:
    """Make a rule ready.

    Args:
        given: The rule.
        schema: The schema it belongs to.
        kind: The type of its `self`.

    Returns:
        The rule.

    Raises:
        RuleError: If it cannot be taken.
        BadRequestError: If it uses what only a real server knows.
    """
    if given.get("optionalOldSelf"):
        raise lacking("optionalOldSelf")
    run, uses_old = _expression(given["rule"], kind, BOOL)
    path = field_path(given.get("fieldPath") or "", schema) or ""
    said = given.get("messageExpression")
    if not said:
        return Rule(given, run, None, uses_old, path)
    try:
        message, _ = _expression(said, kind, STRING)
    except RuleError as error:
        raise RuleError(
            f"messageExpression {error.text.removeprefix('cel expression ')}", "messageExpression"
        ) from None
    return Rule(given, run, message, uses_old, path)


def _expression(text: str, kind: Kind, wanted: Kind) -> tuple[Run, bool]:
    checker = Checker({"self": kind, "oldSelf": kind})
    try:
        checked = checker.check(parse(text))
    except ImportError:
        raise without_library() from None
    except RuleSyntaxError as error:
        if error.text.startswith("Syntax error") and any(sign in text.replace(" ", "") for sign in _MODERN):
            raise lacking("optional values, trailing commas and quoted names") from None
        if error.at == NOWHERE:
            raise RuleError(f"program instantiation failed: {error.text}") from None
        raise RuleError(f"compilation failed: {_pointed(text, error)}") from None
    except RecursionError:
        raise RuleError("compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250") from None
    if checked.kind != wanted:
        raise RuleError(f"cel expression must evaluate to a {wanted}")
    return checked.run, "oldSelf" in checker.seen


def _pointed(text: str, error: RuleSyntaxError) -> str:
    """Write an error as servers do, with the line it is in."""
    before = text[: error.at]
    line, column = before.count("\n"), error.at - (before.rfind("\n") + 1)
    shown = text.split("\n")[line].replace("\t", " ")
    dots = "".join("." if char.isascii() else _WIDE_DOT for char in shown[:column])
    mark = "^" if shown[column : column + 1].isascii() else _WIDE_MARK
    return f"ERROR: <input>:{line + 1}:{column + 1}: {error.text}\n | {shown}\n | {dots}{mark}"
