"""Providers: where the machines of a node group come from."""

__all__: list[str] = []
