"""Decoding of objects that clients send, and API defaults."""

__all__: list[str] = []
