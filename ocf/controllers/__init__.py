"""Controllers: loops that carry out on a cluster what the pure packages decide."""

__all__: list[str] = []
