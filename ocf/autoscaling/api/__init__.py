"""The autoscaling API: decoding, defaulting, conversion from v1, and feature gates."""

__all__: list[str] = []
