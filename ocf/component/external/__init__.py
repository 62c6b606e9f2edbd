"""Records of external resources in the status of their owner, and calls of external systems."""

__all__: list[str] = []
