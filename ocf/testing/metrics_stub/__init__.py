"""Stub of the metrics APIs for a control plane, or for the embedded cluster over HTTP.

A `MetricsStub` registers itself at the API server for `metrics.k8s.io`, `custom.metrics.k8s.io` and
`external.metrics.k8s.io`, and responds with what the test set on its `FakeMetricsClient`: to the real HPA controller,
to kubectl, and to any other client.
"""

from ocf.testing.metrics_stub.server import MetricsStub

__all__ = [
    "MetricsStub",
]
