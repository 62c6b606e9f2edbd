"""Each fix of the linter, followed to the letter on a live target: the finding is gone, and the count is as before.

`tests/clients/test_fixes_on_live_objects.py` follows them with kubectl and Helm.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

from ocf.autoscaling.linter.findings import Code
from ocf.objects import Manifest, ObjectKey
from ocf_server import CustomKind, EmbeddedCluster
from tests.autoscaling.linter.fixes import CUSTOM_KINDS, FIXES, GOOD, LIVE, Fix, findings, placed, size

KINDS: Final = [CustomKind(*kind) for kind in CUSTOM_KINDS]


class Live:
    """The objects of a fix on the embedded server, applied by a user and scaled by a controller."""

    def __init__(self) -> None:
        self._cluster = EmbeddedCluster(namespaces=["shop"], kinds=KINDS)

    async def apply(self, objects: Iterable[Manifest]) -> None:
        for each in objects:
            # The user of such a fix scales it first, because the controller owns the field.
            if each["spec"].get("replicas") == 0:
                await self.scale(each, 0)
            await self._cluster.apply(placed(each, "shop"), field_manager="user")

    async def scale(self, manifest: Manifest, replicas: int = LIVE) -> None:
        found = await self._cluster.get(ObjectKey.of(placed(manifest, "shop")))
        await self._cluster.update({**found, "spec": {**found["spec"], "replicas": replicas}}, field_manager="scaler")

    async def delete(self, objects: Iterable[Manifest]) -> None:
        for each in objects:
            await self._cluster.delete(ObjectKey.of(placed(each, "shop")))

    async def size(self, objects: Iterable[Manifest]) -> int:
        return size([await self._cluster.get(ObjectKey.of(placed(each, "shop"))) for each in objects])


@pytest.mark.parametrize("fix", [pytest.param(fix, id=fix.name) for fix in FIXES])
async def test_the_fix_is_followed_on_a_live_target(fix: Fix) -> None:
    live, before = Live(), fix.before if fix.valid else [GOOD]
    found, remaining = (findings(objects, fix.gates) for objects in (fix.before, fix.after))
    assert fix.says in found[fix.code]
    await live.apply(before)
    for each in before:
        if each["kind"] == "Deployment":
            await live.scale(each)
    total = await live.size(before)

    await live.apply(fix.first())
    for each in fix.started():
        await live.scale(each)
    await live.apply(fix.after)
    await live.delete(fix.ended())

    assert await live.size(fix.after) >= total
    assert fix.code not in remaining
    assert set(remaining) <= set(found)


def test_each_code_has_a_fix_that_is_tried() -> None:
    # That of a rejected HPA is the message of the API server, which says what it allows.
    assert {fix.code for fix in FIXES} | {Code.FIXED_REPLICAS, Code.REJECTED_HPA} == set(Code)
