"""Lists: order, selectors, and pages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ocf.cluster import Index, ListOptions

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

LABELS = {
    "a": "{app: web, tier: front}",
    "b": "{app: web, tier: back}",
    "c": "{app: db, tier: back}",
    "d": "{app: '', new: x}",
    "e": "{}",
}


async def filled(env: Env) -> None:
    made = (env.create("ConfigMap", f"metadata: {{labels: {labels}}}", name) for name, labels in LABELS.items())
    await asyncio.gather(*made)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("", "abcde", id="none"),
        pytest.param("app=web", "ab", id="equal"),
        pytest.param("app==web", "ab", id="doubly equal"),
        pytest.param("app!=web", "cde", id="not equal holds without the label"),
        pytest.param("app=web,tier=back", "b", id="both"),
        pytest.param("app in (web, db)", "abc", id="in"),
        pytest.param("app notin (web)", "cde", id="not in holds without the label"),
        pytest.param("app notin (web),app", "cd", id="not in and exists"),
        pytest.param("app", "abcd", id="exists"),
        pytest.param("!app", "e", id="does not exist"),
        pytest.param("app=", "d", id="empty"),
        pytest.param("app in (web,)", "abd", id="in, with the empty one"),
        pytest.param(" app = web , tier = front ", "a", id="with spaces"),
        pytest.param("nothing=x", "", id="nothing matches"),
    ],
)
async def test_label_selectors(env: Env, selector: str, expected: str) -> None:
    await filled(env)

    assert await env.names("ConfigMap", label_selector=selector) == list(expected)


@pytest.mark.parametrize("labels", ["weight: '5'", "weight: '50'"])
async def test_numbers_are_compared(env: Env, labels: str) -> None:
    await env.create("ConfigMap", f"metadata: {{labels: {{{labels}}}}}")
    heavy = labels.endswith("'50'")

    assert await env.names("ConfigMap", label_selector="weight>10") == (["demo"] if heavy else [])
    assert await env.names("ConfigMap", label_selector="weight<10") == ([] if heavy else ["demo"])


@pytest.mark.parametrize(
    ("kind", "selector", "expected"),
    [
        pytest.param("ConfigMap", "metadata.name=a", ["a"], id="name"),
        pytest.param("ConfigMap", "metadata.name!=a", ["b"], id="not that name"),
        pytest.param("ConfigMap", "metadata.name=a,metadata.name=b", [], id="two names at once"),
        pytest.param("ConfigMap", "metadata.namespace=elsewhere", [], id="namespace"),
        pytest.param("Secret", "type=Opaque", ["a", "b"], id="type of a Secret"),
        pytest.param("Service", "spec.type=ClusterIP", ["a", "b"], id="type of a Service"),
        pytest.param("Widget", "spec.colour=red", ["a"], id="field of a custom resource"),
        pytest.param("Widget", "spec.colour!=red", ["b"], id="field of a custom resource, not"),
    ],
)
async def test_field_selectors(env: Env, kind: str, selector: str, expected: list[str]) -> None:
    for name, colour in (("a", "red"), ("b", "green")):
        await env.create(kind, f"spec: {{colour: {colour}}}" if kind == "Widget" else None, name)

    assert await env.names(kind, field_selector=selector) == expected


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        pytest.param(
            "ConfigMap",
            {"field_selector": "data.a=1"},
            '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="a field that cannot be selected by",
        ),
        pytest.param(
            "Widget",
            {"field_selector": "spec.size=1"},
            "field label not supported: spec.size",
            id="a field of a custom resource that is not selectable",
        ),
        pytest.param(
            "Secret",
            {"field_selector": "data.a=1"},
            "field label not supported: data.a",
            id="an unknown field of a kind with selectable fields",
        ),
        pytest.param("ConfigMap", {"label_selector": "a in b"}, None, id="invalid label selector"),
        pytest.param("ConfigMap", {"label_selector": "-a=b"}, None, id="invalid label name"),
        pytest.param("ConfigMap", {"label_selector": "a>b"}, None, id="invalid number"),
        pytest.param("ConfigMap", {"field_selector": "metadata.name"}, None, id="invalid field selector"),
        pytest.param(
            "ConfigMap",
            {"limit": 1, "continue_token": "abc"},
            None,
            id="invalid token",
        ),
    ],
)
async def test_an_invalid_selector_is_rejected(
    env: Env, kind: str, options: dict[str, str], message: str | None
) -> None:
    with env.error(400, "BadRequest", message):
        await env.page(kind, **options)


class TestPages:
    @pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
    @pytest.mark.parametrize(
        ("limit", "sizes"),
        [
            pytest.param(1, [1, 1, 1, 1, 1], id="one by one"),
            pytest.param(2, [2, 2, 1], id="two and one"),
            pytest.param(5, [5], id="exactly all"),
            pytest.param(9, [5], id="more than there are"),
        ],
    )
    async def test_pages_contain_each_object_once(self, env: Env, kind: str, limit: int, sizes: list[int]) -> None:
        await asyncio.gather(*(env.create(kind, name=name) for name in LABELS))
        pages = [await env.page(kind, limit=limit)]
        while pages[-1].continue_token:
            pages.append(await env.page(kind, limit=limit, continue_token=pages[-1].continue_token))

        assert [len(page.items) for page in pages] == sizes
        remaining = [sum(sizes[number:]) or None for number in range(1, len(sizes) + 1)]
        assert [page.remaining_item_count for page in pages] == remaining
        assert [item["metadata"]["name"] for page in pages for item in page.items] == list(LABELS)

    async def test_all_pages_are_of_one_version(self, env: Env) -> None:
        """Later changes are not in the list; a watch from that version reports them."""
        await filled(env)
        first = await env.page("ConfigMap", limit=2)
        await env.delete("ConfigMap", "d")
        await env.create("ConfigMap", name="f")
        second = await env.page("ConfigMap", limit=9, continue_token=first.continue_token)

        assert [item["metadata"]["name"] for item in second.items] == ["c", "d", "e"]
        assert second.resource_version == first.resource_version
        events = await env.events("ConfigMap", after=first.resource_version, count=2)
        assert [each.object["metadata"]["name"] for each in events] == ["d", "f"]

    async def test_a_selector_applies_to_all_pages(self, env: Env) -> None:
        await filled(env)
        first = await env.page("ConfigMap", limit=1, label_selector="tier=back")
        second = await env.page("ConfigMap", limit=9, label_selector="tier=back", continue_token=first.continue_token)

        assert [item["metadata"]["name"] for page in (first, second) for item in page.items] == ["b", "c"]
        assert second.continue_token == ""


async def test_items_have_their_kind(env: Env) -> None:
    await env.create("ConfigMap")
    (item,) = (await env.page("ConfigMap")).items

    assert (item["apiVersion"], item["kind"]) == ("v1", "ConfigMap")


async def test_a_list_of_all_namespaces_is_sorted_by_namespace_and_name(env: Env) -> None:
    for name in ("b", "a"):
        await env.create("Lease", name=name)
    elsewhere = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    await env.cluster.create(
        {**elsewhere, "metadata": {"generateName": "z-", "namespace": "default"}}, field_manager="author"
    )
    found = (await env.cluster.list("coordination.k8s.io/v1", "Lease")).items
    places = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]

    assert places == sorted(places)
    assert {(env.namespace, "a"), (env.namespace, "b")} < set(places)


async def test_an_empty_list_has_a_version(env: Env) -> None:
    page = await env.page("ConfigMap")

    assert page.items == ()
    assert int(page.resource_version) > 0
    assert page.continue_token == ""


async def test_a_list_in_another_version_shows_that_version(env: Env) -> None:
    await env.create("Widget")
    (item,) = (
        await env.cluster.list("conformance.example.com/v2", "Widget", ListOptions(namespace=env.namespace))
    ).items

    assert item["apiVersion"] == "conformance.example.com/v2"


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize(
    ("option", "selected"), [("controller", ["child", "two"]), ("owner", ["child", "kept", "two"])]
)
async def test_only_what_an_owner_owns(env: Env, option: str, selected: list[str], limit: int) -> None:
    """By the uid alone, not by a name; a controller only by the owner reference that says so."""
    owner = await env.create("ConfigMap", name="owner")
    reference = f"apiVersion: v1, kind: ConfigMap, name: owner, uid: {owner['metadata']['uid']}"
    earlier = "apiVersion: v1, kind: ConfigMap, name: owner, uid: 00000000-0000-0000-0000-000000000000"
    references = {
        "child": f"{{{reference}, controller: true}}",
        "kept": f"{{{reference}}}",
        "other": f"{{{earlier}, controller: true}}",
        "two": f"{{{earlier}}}, {{{reference}, controller: true}}",
    }
    for name, text in references.items():
        await env.create("ConfigMap", f"metadata: {{labels: {{app: {name}}}, ownerReferences: [{text}]}}", name)

    uid, found, token = owner["metadata"]["uid"], [], ""
    while True:
        options = ListOptions(namespace=env.namespace, limit=limit, continue_token=token)
        page = await env.cluster.list("v1", "ConfigMap", replace(options, **{option: uid}))
        found += [one["metadata"]["name"] for one in page.items]
        token = page.continue_token
        if not token:
            break

    assert found == selected
    assert await env.names("ConfigMap", **{option: uid}, label_selector="app=two") == ["two"]
    assert await env.names("ConfigMap", **{option: "nothing"}) == []


async def test_only_what_has_a_key_in_an_index(env: Env) -> None:
    await filled(env)
    by_app = Index[str](lambda live: (live["metadata"].get("labels") or {}).get("app", ()))

    async def names(key: str, **more: str) -> list[str]:
        return await env.names("ConfigMap", index=by_app.at(key), **more)

    assert await names("web") == ["a", "b"]
    assert await names("web", label_selector="tier=back") == ["b"]
    assert (await names(""), await names("none")) == (["d"], [])
