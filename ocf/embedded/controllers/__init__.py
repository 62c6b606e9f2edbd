"""Controllers of the server: garbage collection of dependents, names of custom resources."""

__all__: list[str] = []
