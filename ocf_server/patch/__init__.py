"""Patches: JSON patch, merge patch, strategic merge patch."""

__all__: list[str] = []
