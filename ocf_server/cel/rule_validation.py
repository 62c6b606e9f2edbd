"""Validation of the rules in a CustomResourceDefinition."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocf.errors import FieldProblem
from ocf_server.api.cel_usage import RULES
from ocf_server.api.status_errors import go_json
from ocf_server.cel.compiler import RuleError, compiled, compiled_rules, kind_of
from ocf_server.cel.evaluator import default_problems
from ocf_server.cel.field_paths import field_path
from ocf_server.cel.types import CelType

__all__ = ["rule_problems", "rule_texts"]

_Schema = Mapping[str, Any]

_NO_TYPE: Final = (
    "internal error: failed to construct type information for x-kubernetes-validations rules: "
    "unable to convert structural schema to CEL declarations"
)
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_SHOWN: Final = {
    "rule": ("Rule", ""),
    "message": ("Message", ""),
    "messageExpression": ("MessageExpression", ""),
    "reason": ("Reason", None),
    "fieldPath": ("FieldPath", ""),
    "optionalOldSelf": ("OptionalOldSelf", None),
}


def rule_texts(schema: _Schema, path: str) -> list[FieldProblem]:
    """Validate the fields of rules without their expressions.

    Returns:
        The violations; empty if the rules are valid.

    Example:
        >>> print(*rule_texts({"x-kubernetes-validations": [{"rule": " "}]}, "schema"))
        schema.x-kubernetes-validations[0].rule: Required value: rule is not specified
    """
    return [
        FieldProblem(f"{where}.{RULES}[{index}].{name}", detail)
        for where, below, _ in _places(schema, path)
        for index, rule in enumerate(below.get(RULES) or ())
        for name, detail in _texts(rule, below)
    ]


def rule_problems(schema: _Schema, path: str) -> list[FieldProblem]:
    """Validate the expressions of rules, and the defaults by the rules.

    Args:
        schema: The schema of a version, otherwise valid.

    Returns:
        The violations; empty if the rules are valid.

    Raises:
        BadRequestError: If an expression uses a feature that the embedded cluster does not support.
    """
    problems: list[FieldProblem] = []
    for where, below, apart in _places(schema, path):
        rules = below.get(RULES) or ()
        kind = kind_of(below, root=where == path) if rules else None
        if rules and kind is None:
            problems.append(FieldProblem(f"{where}.{RULES}", f"Internal error: {_NO_TYPE}"))
        elif kind is not None:
            for index, rule in enumerate(rules):
                problems.extend(_expressions(rule, below, kind, f"{where}.{RULES}[{index}]", apart))
    return problems or [*_defaults(schema, path)]


def _defaults(schema: _Schema, path: str) -> Iterator[FieldProblem]:
    """Evaluate the rules, which are all valid, for the defaults of the schema."""
    for where, below, _ in _places(schema, path):
        default = below.get("default")
        rules = None if default is None else compiled_rules(below, root=False)
        if rules is not None:
            yield from default_problems(rules, default, f"{where}.default")


def _places(schema: _Schema, path: str, apart: str = "") -> Iterator[tuple[str, _Schema, str]]:
    """Yield path and schema of all parts of a schema, and the path of the outermost list with uncorrelatable items."""
    yield path, schema, apart
    items, extra = schema.get("items"), schema.get("additionalProperties")
    if isinstance(extra, dict):
        yield from _places(extra, f"{path}.additionalProperties", apart)
    for name, below in (schema.get("properties") or {}).items():
        yield from _places(below, f"{path}.properties[{name}]", apart)
    if isinstance(items, dict):
        keyed = schema.get("x-kubernetes-list-type") == "map"
        yield from _places(items, f"{path}.items", apart or ("" if keyed else path))


def _texts(rule: Mapping[str, Any], schema: _Schema) -> Iterator[tuple[str, str]]:
    texts = {name: str(rule.get(name) or "") for name in ("rule", "message", "messageExpression", "fieldPath")}
    expression, message = texts["rule"].strip(), texts["message"].strip()
    if not expression:
        yield "rule", "Required value: rule is not specified"
    elif texts["message"] and not message:
        yield "message", f"Invalid value: {go_json(texts['message'])}: must be non-empty if specified"
    elif _has_lines(message):
        yield "message", f"Invalid value: {go_json(texts['message'])}: must not contain line breaks"
    elif _has_lines(expression) and not message:
        yield "message", "Required value: message must be specified if rule contains line breaks"
    if texts["messageExpression"] and not texts["messageExpression"].strip():
        yield "messageExpression", "Required value: messageExpression must be non-empty if specified"
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        listed = ", ".join(map(go_json, _REASONS))
        yield "reason", f"Unsupported value: {go_json(reason)}: supported values: {listed}"
    yield from _paths(texts["fieldPath"], schema)


def _paths(path: str, schema: _Schema) -> Iterator[tuple[str, str]]:
    wrong = {
        "must be non-empty if specified": not path.strip(),
        "must not contain line breaks": _has_lines(path),
        "must be a valid path": field_path(path, schema) is None,
    }
    if path:
        yield from (("fieldPath", f"Invalid value: {go_json(path)}: {text}") for text, is_so in wrong.items() if is_so)


def _in_html(text: str) -> str:
    """Escape the characters of HTML in JSON, as Go does."""
    return re.sub("[<>&]", lambda found: f"\\u{ord(found.group()):04x}", text)


def _has_lines(text: str) -> bool:
    return re.search(r"[\n\r]", text) is not None


def _expressions(
    given: Mapping[str, Any], schema: _Schema, kind: CelType, path: str, apart: str
) -> Iterator[FieldProblem]:
    try:
        rule = compiled(given, schema, kind)
    except RuleError as error:
        shown = {go_name: given.get(name, empty) for name, (go_name, empty) in _SHOWN.items()}
        yield FieldProblem(f"{path}.{error.of}", f"Invalid value: {_in_html(go_json(shown))}: {error.text}")
        if error.of == "rule":
            yield from _optional_problems(given, path)
        return
    if rule.uses_old and apart:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {apart}"
        yield FieldProblem(f"{path}.rule", f"Invalid value: {go_json(given['rule'])}: {text}")
    if not rule.uses_old:
        yield from _optional_problems(given, path)


def _optional_problems(given: Mapping[str, Any], path: str) -> Iterator[FieldProblem]:
    if given.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        yield FieldProblem(f"{path}.optionalOldSelf", f"Invalid value: {go_json(given['optionalOldSelf'])}: {text}")
