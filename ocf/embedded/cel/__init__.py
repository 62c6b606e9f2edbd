"""Rules in CEL, `x-kubernetes-validations`: what a definition may say, and what an object must be like.

Expressions are parsed by lark, which comes with `ocf[cel]`, with a grammar of our own; lark is not imported before the
first rule. Types are checked and expressions evaluated here, because an API server refuses a definition whose rules do
not fit its schema, counts the steps of a rule, and has its own error messages.
"""

from ocf.embedded.cel.compiler import Rules, compiled_rules
from ocf.embedded.cel.evaluator import broken_rules
from ocf.embedded.cel.rule_validation import rule_problems, rule_texts

__all__ = ["Rules", "broken_rules", "compiled_rules", "rule_problems", "rule_texts"]
