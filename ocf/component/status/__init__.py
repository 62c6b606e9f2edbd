"""Conditions of a component: reasons, aggregation over resources, results of a reconcile."""

__all__: list[str] = []
