"""Facts about Kubernetes: built-in kinds and their types, metric source types, and releases."""

__all__: list[str] = []
