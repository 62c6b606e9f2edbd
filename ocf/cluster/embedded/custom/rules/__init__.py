"""Rules in CEL, `x-kubernetes-validations`: what a definition may say, and what an object must be like.

They are read by cel-python, which comes with `ocf[cel]` and is imported with the first rule. Their types are checked
and their expressions evaluated here, since a server refuses a definition whose rules do not fit its schema, and counts
their steps.
"""

from ocf.cluster.embedded.custom.rules.compiling import Rules, compiled_rules
from ocf.cluster.embedded.custom.rules.defining import rule_problems, rule_texts
from ocf.cluster.embedded.custom.rules.evaluating import broken_rules

__all__ = ["Rules", "broken_rules", "compiled_rules", "rule_problems", "rule_texts"]
