"""The source of the data of a PersistentVolumeClaim."""

from typing import Any

import pytest

from ocf_server.registry.kind_hooks import set_sources

SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
OTHER = {"apiGroup": "example.com", "kind": "Backup", "name": "b"}


@pytest.mark.parametrize(
    ("spec", "live", "stored"),
    [
        pytest.param({"dataSource": SNAPSHOT}, {}, {"dataSource": SNAPSHOT, "dataSourceRef": SNAPSHOT}, id="old field"),
        pytest.param({"dataSourceRef": OTHER}, {}, {"dataSource": OTHER, "dataSourceRef": OTHER}, id="new field"),
        pytest.param({"dataSource": OTHER}, {}, {}, id="unknown kinds in the old field are dropped"),
        pytest.param(
            {"dataSource": OTHER},
            {"dataSource": OTHER},
            {"dataSource": OTHER, "dataSourceRef": OTHER},
            id="unknown kinds that are stored are kept",
        ),
        pytest.param(
            {"dataSourceRef": {**SNAPSHOT, "namespace": "shop"}},
            {},
            {"dataSourceRef": {**SNAPSHOT, "namespace": "shop"}},
            id="the old field has no namespace",
        ),
        pytest.param({}, {}, {}, id="no source"),
    ],
)
def test_both_fields_name_the_same_source(spec: dict[str, Any], live: dict[str, Any], stored: dict[str, Any]) -> None:
    claim = {"spec": spec}
    set_sources(claim, live)

    assert claim["spec"] == stored
