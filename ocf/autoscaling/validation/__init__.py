"""Validation of HPAs with the API server's rules and texts."""

__all__: list[str] = []
