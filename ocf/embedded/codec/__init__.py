"""Decoding of objects that clients send, and the API's defaults."""

__all__: list[str] = []
