"""CEL rules in `x-kubernetes-validations`: validation of the rules, and of objects by the rules.

The parser is lark, which the extra `ocf[cel]` installs, with the grammar in this package; lark is imported with the
first rule. This package checks types and evaluates expressions itself, because an API server rejects a
CustomResourceDefinition with rules that do not match its schema, limits the cost of rules, and has its own error texts.
"""

from typing import TYPE_CHECKING

from ocf.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ocf_server.cel.compiler import Rules, compiled_rules
    from ocf_server.cel.evaluator import broken_rules
    from ocf_server.cel.rule_validation import rule_problems, rule_texts

__all__ = ["Rules", "broken_rules", "compiled_rules", "rule_problems", "rule_texts"]

# Patterns of schemas need the module of regular expressions alone.
__getattr__ = lazy_exports(
    __name__,
    {
        "Rules": "compiler",
        "broken_rules": "evaluator",
        "compiled_rules": "compiler",
        "rule_problems": "rule_validation",
        "rule_texts": "rule_validation",
    },
)
