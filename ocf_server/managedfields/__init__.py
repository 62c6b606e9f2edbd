"""Server-side apply: field sets, typed comparison and merge, and the managers of an object's fields."""

__all__: list[str] = []
