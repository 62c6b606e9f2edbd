"""One reconcile of a component: its resources in order, suspension, pruning, prerequisites, reports."""

__all__: list[str] = []
