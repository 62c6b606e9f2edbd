"""What runs an operator: its controller and work queue, leader election, webhooks, CRDs, RBAC, events, metrics."""

__all__: list[str] = []
