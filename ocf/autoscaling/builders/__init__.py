"""Authoring of HPAs: autoscalers in one call, and factories for metrics and behavior."""

__all__: list[str] = []
