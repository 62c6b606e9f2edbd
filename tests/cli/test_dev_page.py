"""What `ocf dev` adds to the page: explanations of all that the API server has, and specs written once shown.

A public report that is rebuilt here: https://github.com/OctopusDeploy/Issues/issues/652 (a page that is sent every
second, whether anything has changed or not).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from ocf.cli.dev_page import DevEditor
from ocf.cluster import Subresource
from ocf.cluster.client import ApiServerCluster
from ocf.errors import ConfigError, OcfError
from ocf.objects import ObjectKey
from ocf.objects.timestamps import format_time
from ocf.runtime.operator import Operator
from ocf.runtime.page.options import SpecText
from ocf.testing import VirtualClock
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.runtime.operator.conftest import (
    DEFINITION,
    NAMESPACE,
    SECOND,
    SHOPS,
    components_of,
    key_of,
    settings_of,
    shop,
)

OPERATOR: Final = Operator(name="shops", owner=SHOPS, components=components_of)


@asynccontextmanager
async def working(folder: Path, clock: VirtualClock | None = None) -> AsyncIterator[tuple[EmbeddedCluster, DevEditor]]:
    """Yield a cluster with a shop, and the editor that reads it over HTTP."""
    clock = clock or VirtualClock()
    cluster = EmbeddedCluster(namespaces=[NAMESPACE], now=clock.now)
    await cluster.apply(DEFINITION, field_manager="kubectl")
    await cluster.create(shop(), field_manager="kubectl")
    async with serving(cluster) as server:
        path = folder / "kubeconfig"
        write_kubeconfig(server.kubeconfig(), path)
        async with await ApiServerCluster.connect(path) as client:
            yield cluster, DevEditor([OPERATOR], client, clock)


async def test_a_plan_shows_what_the_reconcile_after_an_edit_would_write(tmp_path: Path) -> None:
    async with working(tmp_path) as (cluster, editor):
        spec = await editor.spec(key_of())
        (plan,) = await editor.planned(key_of(), SpecText("motto: closed", spec.generation))
        unchanged = await cluster.get(key_of())
    assert unchanged["spec"].get("motto", "open") == "open"
    made = {one.resource: one.after or {} for one in plan.objects}
    assert made[str(settings_of())]["data"] == {"motto": "closed"}


async def test_an_edit_is_written_unless_the_spec_has_changed_meanwhile(tmp_path: Path) -> None:
    async with working(tmp_path) as (cluster, editor):
        first = await editor.spec(key_of())
        # A status, which changes no generation, is no reason to reject an edit.
        live = await cluster.get(key_of())
        await cluster.update({**live, "metadata": {**live["metadata"], "labels": {"a": "b"}}}, field_manager="kubectl")
        await editor.write(key_of(), SpecText("motto: mine\n", first.generation))
        with pytest.raises(ConfigError, match="has changed meanwhile: load the page again"):
            await editor.write(key_of(), SpecText("motto: late", first.generation))
        stored = await cluster.get(key_of())
        shown = (await editor.spec(key_of())).text
    assert (stored["spec"]["motto"], stored["metadata"]["labels"]) == ("mine", {"a": "b"})
    assert "motto: mine\n" in shown


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a", "must be one map of fields"),
        ("a: 1\n---\nb: 2", "must be one map of fields"),
        ("motto: [", "the spec"),
        ("motto: {a: b}", "motto"),
        ("!!python/object:os.system {}", "the spec"),
    ],
)
@pytest.mark.parametrize("writes", [True, False], ids=["write", "plan"])
async def test_what_is_not_a_spec_is_rejected_before_anything_is_written(
    tmp_path: Path, text: str, problem: str, *, writes: bool
) -> None:
    async with working(tmp_path) as (cluster, editor):
        before = await cluster.get(key_of())
        edited = SpecText(text, (await editor.spec(key_of())).generation)
        with pytest.raises(OcfError, match=problem):
            await (editor.write(key_of(), edited) if writes else editor.planned(key_of(), edited))
        assert await cluster.get(key_of()) == before


async def test_an_owner_is_explained_from_objects_that_the_operator_does_not_watch(tmp_path: Path) -> None:
    async with working(tmp_path) as (cluster, editor):
        uid = (await cluster.get(key_of()))["metadata"]["uid"]
        owner = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "uid": uid}
        metadata = {"name": "till", "namespace": NAMESPACE, "ownerReferences": [owner]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        await cluster.create({**pod, "spec": {"containers": [{"name": "a", "image": "a"}]}}, field_manager="kubectl")
        found = await editor.explain(key_of())
        with pytest.raises(OcfError):
            await editor.explain(ObjectKey("example.com/v1", "Shop", "absent", NAMESPACE))
    assert [one.name for one in found.root.children] == ["Pod till"]


async def test_an_explanation_changes_when_something_did_and_not_by_the_second(tmp_path: Path) -> None:
    clock = VirtualClock()
    metadata = {"name": "other", "namespace": NAMESPACE}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    async with working(tmp_path, clock) as (cluster, editor):
        found = [await editor.explain(key_of())]
        for holder in ("a", "b"):
            # What another process renews has nothing to do with the owner.
            await cluster.apply({**lease, "spec": {"holderIdentity": holder}}, field_manager="kubectl")
            clock.advance(SECOND)
            found.append(await editor.explain(key_of()))
        live = await cluster.get(key_of())
        ready = {"type": "Ready", "status": "False", "reason": "Broken", "message": "no flour"}
        ready["lastTransitionTime"] = format_time(clock.now())
        await cluster.update(
            {**live, "status": {"conditions": [ready]}}, field_manager="kubectl", subresource=Subresource.STATUS
        )
        clock.advance(SECOND)
        after = [await editor.explain(key_of()), await editor.explain(key_of())]
        clock.advance(30 * SECOND)
        later = await editor.explain(key_of())
    assert found == [found[0]] * 3
    assert "no flour" in after[0].sentence
    assert after == [after[0]] * 2
    assert later.sentence != after[0].sentence
