"""Controller of node groups: creates machines for pods that do not fit, and removes nodes that are not needed."""

__all__: list[str] = []
