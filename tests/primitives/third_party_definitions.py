"""Definitions of custom resources of other projects, as `scripts/record/third_party_definitions.py` recorded them."""

import gzip
import json
from functools import cache

from ocf.objects import Manifest, copy_json
from scripts.record.third_party_definitions import FILE

__all__ = ["third_party_definitions"]


@cache
def _recorded() -> list[Manifest]:
    return [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


def third_party_definitions() -> list[Manifest]:
    """Return the definitions of HTTPRoute, ScaledObject, Certificate, ServiceMonitor and PrometheusRule."""
    definitions: list[Manifest] = copy_json(_recorded())
    return definitions
