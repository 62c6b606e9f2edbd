"""Pages of lists: together they are one list, whatever is written in between."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ocf.cluster import ListOptions, PatchOptions, PatchType
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

NAMES = st.sampled_from([f"{letter}{number}" for letter in "abc" for number in range(4)])
WRITES = st.lists(st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from(["shop", "other"]), NAMES), max_size=8)


async def write(cluster: EmbeddedCluster, what: str, namespace: str, name: str, value: str) -> None:
    key = ObjectKey("v1", "ConfigMap", name, namespace)
    known = {ObjectKey.of(item) for item in (await cluster.list("v1", "ConfigMap")).items}
    if what == "delete":
        if key in known:
            await cluster.delete(key)
    elif key in known:
        patch = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
        await cluster.patch(key, {"data": {"value": value}}, patch)
    else:
        metadata = {"name": name, "namespace": namespace, "labels": {"letter": name[0]}}
        created: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
        await cluster.create(created, field_manager="test")


@given(
    before=WRITES,
    between=st.lists(WRITES, max_size=4),
    limit=st.integers(1, 4),
    namespace=st.sampled_from(["", "shop"]),
    selector=st.sampled_from(["", "letter=a", "letter!=a"]),
)
def test_pages_are_the_list_at_the_version_of_the_first(
    before: list[tuple[str, str, str]],
    between: list[list[tuple[str, str, str]]],
    limit: int,
    namespace: str,
    selector: str,
) -> None:
    async def paged() -> tuple[list[Any], list[Any], list[int | None]]:
        cluster = EmbeddedCluster(namespaces=("shop", "other"))
        for number, (what, where, name) in enumerate(before):
            await write(cluster, what, where, name, f"before {number}")
        options: dict[str, Any] = {"namespace": namespace, "label_selector": selector}
        whole = await cluster.list("v1", "ConfigMap", ListOptions(**options))
        pages, left = [await cluster.list("v1", "ConfigMap", ListOptions(limit=limit, **options))], iter(between)
        while token := pages[-1].continue_token:
            for what, where, name in next(left, []):
                await write(cluster, what, where, name, "between")
            pages.append(
                await cluster.list("v1", "ConfigMap", ListOptions(limit=limit, continue_token=token, **options))
            )
        assert {page.resource_version for page in pages} == {whole.resource_version}
        assert all(len(page.items) == limit for page in pages[:-1])
        found = [item for page in pages for item in page.items]
        return found, list(whole.items), [page.remaining_item_count for page in pages]

    found, whole, remaining = asyncio.run(paged())
    assert found == whole
    rest = [len(whole) - limit * (at + 1) for at in range(len(remaining) - 1)]
    assert remaining == [*([None] * len(rest) if selector else rest), None]
