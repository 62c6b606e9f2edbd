"""Lint: settings of an HPA that are valid, but harmful."""

__all__: list[str] = []
