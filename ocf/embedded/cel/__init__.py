"""Rules in CEL, `x-kubernetes-validations`: what a definition may say, and what an object must be like.

They are read with the grammar of cel-python, which comes with `ocf[cel]`, and nothing of it is imported before the
first rule. Their types are checked and their expressions evaluated here: a server refuses a definition whose rules do
not fit its schema, counts their steps, and has its own words for what goes wrong, none of which the library does.
"""

from ocf.embedded.cel.compiler import Rules, compiled_rules
from ocf.embedded.cel.evaluator import broken_rules
from ocf.embedded.cel.rule_validation import rule_problems, rule_texts

__all__ = ["Rules", "broken_rules", "compiled_rules", "rule_problems", "rule_texts"]
