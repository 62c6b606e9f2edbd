"""Why an owner is not ready: a function of a snapshot of objects and events, with a tree and the most specific cause.

The code of the operator is not needed, and no cluster: `ocf explain KIND/NAME` reads the snapshot with the rights of a
reader. The owner may be of any kind, and of any operator.
"""

from ocf.ownership.explanation import explain_owner
from ocf.ownership.snapshot import OwnerSnapshot, UnreadKind
from ocf.ownership.tree import CauseStep, OwnerExplanation, State, TreeNode

__all__ = ["CauseStep", "OwnerExplanation", "OwnerSnapshot", "State", "TreeNode", "UnreadKind", "explain_owner"]
