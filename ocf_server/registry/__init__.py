"""Storage of objects and the verbs on them: strategies, validation, subresources."""

__all__: list[str] = []
