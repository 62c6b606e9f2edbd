"""Operators of `ocf.runtime.operator` inside a process of kopf: `kopf run -m shop.operator`. Needs `ocf[kopf]`."""

from ocf.runtime.kopf.adapter import attach

__all__ = ["attach"]
