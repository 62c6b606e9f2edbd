"""Providers: where the machines of a node group come from."""
