"""Situations in which volumes are attached to nodes whose CSI drivers have limits, for the record of the scheduler."""

from __future__ import annotations

import random
from typing import Any, Final

__all__ = ["attach_cases"]

Json = dict[str, Any]
_DRIVERS: Final = ("disk.example.com", "share.example.com")


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (situations of a test)
        self._claims: list[Json] = []
        self._volumes: list[Json] = []

    def make(self) -> Json:
        nodes = [f"n{number}" for number in range(self._random.randint(1, 3))]
        for number in range(self._random.randint(3, 8)):
            self._claim(f"c{number}")
        placed = [
            {**self._pod(f"placed-{number}"), "spec": {**self._spec(), "nodeName": self._random.choice(nodes)}}
            for number in range(self._random.randint(0, 6))
        ]
        return {
            "features": ["attach limits"],
            "nodes": [_node(name) for name in nodes],
            "csiNodes": [self._csi_node(name) for name in nodes if self._random.random() < 0.9],
            "namespaces": [{"metadata": {"name": "default"}}],
            "claims": self._claims,
            "volumes": self._volumes,
            "classes": [
                {
                    "metadata": {"name": driver.split(".")[0]},
                    "provisioner": driver,
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
                for driver in _DRIVERS
            ],
            "pods": placed,
            "pending": [{**self._pod(f"p{number}"), "spec": self._spec()} for number in range(3)],
        }

    def _csi_node(self, name: str) -> Json:
        drivers: list[Json] = []
        for driver in self._random.sample(_DRIVERS, self._random.randint(0, 2)):
            limit: Json = self._random.choice([{}, *[{"allocatable": {"count": count}} for count in (0, 1, 2, 3)]])
            drivers.append({"name": driver, "nodeID": name, **limit})
        return {"metadata": {"name": name}, "spec": {"drivers": drivers}}

    def _pod(self, name: str) -> Json:
        return {"metadata": {"name": name, "namespace": "default"}}

    def _spec(self) -> Json:
        used = self._random.sample(self._claims, self._random.randint(0, 3))
        volumes = [
            {"name": each["metadata"]["name"], "persistentVolumeClaim": {"claimName": each["metadata"]["name"]}}
            for each in used
        ]
        return {"containers": [{"name": "app", "image": "app:1"}], "volumes": volumes}

    def _claim(self, name: str) -> None:
        """Make a claim: bound to a volume of a driver or of none, or to be provisioned for its first pod."""
        driver = self._random.choice(_DRIVERS)
        spec: Json = {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": driver.split(".")[0],
        }
        claim: Json = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
            "status": {"phase": "Pending"},
        }
        self._claims.append(claim)
        if self._random.random() < 0.2:
            return
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["status"] = {"phase": "Bound"}
        spec["volumeName"] = f"v-{name}"
        # Two volumes may be one disk.
        handle = self._random.choice([f"v-{name}", f"v-{name}", "one-disk"])
        source: Json = {"csi": {"driver": driver, "volumeHandle": handle}}
        if self._random.random() < 0.1:
            source = {"nfs": {"server": "nfs.example.com", "path": f"/{name}"}}
        volume = {
            "capacity": {"storage": "1Gi"},
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": name},
        }
        self._volumes.append(
            {"metadata": {"name": f"v-{name}"}, "spec": {**volume, **source}, "status": {"phase": "Bound"}}
        )


def _node(name: str) -> Json:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable, "conditions": ready}}


def attach_cases(count: int, seed: int = 1) -> list[Json]:
    """Return situations; the same ones for the same seed."""
    return [_Maker(seed * 1_000_000 + number).make() for number in range(count)]
