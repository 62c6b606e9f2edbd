"""Admission webhooks: which configuration matches a request, the review sent, and its response."""

__all__: list[str] = []
