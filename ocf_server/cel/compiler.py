"""Compiler of the rules of a schema.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ocf_server.api.cel_usage import RULES, has_rules
from ocf_server.cel.expressions import ExpressionError, checked_expression
from ocf_server.cel.field_paths import field_path
from ocf_server.cel.runtime import Run
from ocf_server.cel.types import BOOL, STRING, CelType, optional_of, schema_kind, with_head

__all__ = ["CompiledRule", "RuleError", "Rules", "compiled", "compiled_rules", "kind_of"]

_Schema = Mapping[str, Any]


class RuleError(Exception):
    """A rule is invalid.

    Args:
        text: The error text of a real API server.
        of: The invalid part of the rule: `rule` or `messageExpression`.
    """

    def __init__(self, text: str, of: str = "rule") -> None:
        super().__init__(text)
        self.text, self.of = text, of


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A compiled rule.

    Args:
        message: The compiled message expression; None if the rule has none.
        uses_old: Whether the expression uses `oldSelf`.
        path: Path of the reported field, below the value; empty for the value itself.
    """

    given: Mapping[str, Any]
    run: Run
    message: Run | None
    uses_old: bool
    path: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of a schema and of the schemas in it.

    Args:
        schema: The schema; for the root of an object with apiVersion, kind and metadata.
        items: The rules for the items of a list.
        extra: The rules for the values of a map.
        fields: The rules for the fields of an object.
    """

    schema: _Schema
    here: tuple[CompiledRule, ...] = ()
    items: "Rules | None" = None
    extra: "Rules | None" = None
    fields: Mapping[str, "Rules"] = field(default_factory=dict)


def kind_of(schema: _Schema, *, root: bool = False) -> CelType | None:
    """Return the type of `self` in the rules of a schema; None if rules cannot use such a value."""
    return schema_kind(with_head(schema) if root else schema)


def compiled_rules(schema: _Schema, *, root: bool = True) -> Rules | None:
    """Compile the rules of a schema.

    Args:
        schema: The schema, with valid rules.
        root: Whether it is the schema of a whole object.

    Returns:
        The rules; None if the schema has none.
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


def compiled(given: Mapping[str, Any], schema: _Schema, kind: CelType) -> CompiledRule:
    """Compile a rule.

    Args:
        kind: The type of `self`.

    Returns:
        The compiled rule.

    Raises:
        RuleError: If the rule is invalid.
        BadRequestError: If the rule uses a feature that the embedded cluster does not support.
    """
    old = optional_of(kind) if given.get("optionalOldSelf") else kind
    run, uses_old = _expression(given["rule"], kind, old, BOOL)
    path = field_path(given.get("fieldPath") or "", schema) or ""
    message_expression = given.get("messageExpression")
    if not message_expression:
        return CompiledRule(given, run, None, uses_old, path)
    try:
        message, _ = _expression(message_expression, kind, old, STRING)
    except RuleError as error:
        raise RuleError(
            f"messageExpression {error.text.removeprefix('cel expression ')}", "messageExpression"
        ) from None
    return CompiledRule(given, run, message, uses_old, path)


def _expression(text: str, kind: CelType, old: CelType, wanted: CelType) -> tuple[Run, bool]:
    try:
        expression = checked_expression(text, {"self": kind, "oldSelf": old})
    except ExpressionError as error:
        raise RuleError(error.text) from None
    if expression.checked.kind != wanted:
        raise RuleError(f"cel expression must evaluate to a {wanted}")
    if expression.program_problem:
        raise RuleError(expression.program_problem)
    return expression.checked.run, "oldSelf" in expression.used
