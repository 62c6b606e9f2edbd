"""Simulated controllers: garbage collection of dependents, acceptance of the names of custom kinds."""

__all__: list[str] = []
