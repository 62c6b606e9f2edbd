"""Kubernetes' built-in kinds: their types, the resources that serve them, and the releases that have them."""

__all__: list[str] = []
