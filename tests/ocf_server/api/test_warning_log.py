"""Warnings of an embedded cluster that is used without HTTP."""

import logging

import pytest

from ocf.objects import Manifest
from ocf_server import EmbeddedCluster


async def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster = EmbeddedCluster(namespaces=["shop"])
    spec = {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": [{"name": "a", "image": "a"}]}
    with caplog.at_level(logging.WARNING):
        for name in ("one", "two"):
            metadata = {"name": name, "namespace": "shop"}
            pod: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            await cluster.create(pod, field_manager="user")
    warning = 'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    assert [record.getMessage() for record in caplog.records] == [f"the embedded API server warns: {warning}"]
