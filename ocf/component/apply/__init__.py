"""Writes of one resource: drift detection, server-side apply, field handover, write backoff, deletion."""

__all__: list[str] = []
