"""Linter: settings of an HPA that the API server accepts and that cause problems in production."""

__all__: list[str] = []
