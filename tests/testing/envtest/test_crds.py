"""Installed kinds are served when the call returns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from ocf.cluster import Subresource
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.testing.envtest.crds import Installed, install_crds
from ocf.testing.envtest.http_probe import HttpProbe

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/d.example.com/v1"
LISTS = [f"{GROUP}/shops?limit=1", f"{GROUP}/shops?limit=1&resourceVersion=0"]


def found(*names: str) -> tuple[int, Manifest]:
    return 200, {"resources": [{"name": name} for name in names]}


def groups(*versions: str) -> tuple[int, Manifest]:
    return 200, {"groups": [{"versions": [{"groupVersion": each} for each in versions]}]}


SERVED = found("shops", "shops/status"), groups("apps/v1", "d.example.com/v1")


def definition(plural: str = "shops", *, served: bool = True) -> Manifest:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    versions = [version, *([] if served else [{**version, "name": "v2", "served": False, "storage": False}])]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.d.example.com"},
        "spec": {
            "group": "d.example.com",
            "names": {"kind": plural.capitalize(), "plural": plural},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


class Script:
    """A fake `HttpProbe` with scripted responses."""

    def __init__(self, **answers: list[tuple[int, Any]]) -> None:
        self.answers: dict[str, Iterator[tuple[int, Any]]] = {verb: iter(found) for verb, found in answers.items()}
        self.requests: list[tuple[str, str, Any]] = []

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self.requests.append((method, path, body))
        return next(self.answers[method])


class FakeTime:
    """A clock that advances by the waited time."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def defined(script: Script, *definitions: Manifest) -> FakeTime:
    clock = FakeTime()
    install_crds(cast("HttpProbe", script), *definitions, seconds=1, clock=clock, pause=clock.wait)
    return clock


def test_a_kind_that_is_not_found_or_not_ready_is_polled() -> None:
    script = Script(POST=[(201, {})], GET=[(404, {}), (429, {}), (200, {}), (429, {}), (200, {}), *SERVED])
    clock = defined(script, definition(served=False))
    assert [path for _, path, _ in script.requests[1:]] == [*LISTS[:1] * 3, *LISTS[1:] * 2, GROUP, "/apis"]
    assert clock.now == pytest.approx(0.06)


def test_an_existing_definition_is_replaced_despite_conflicts() -> None:
    live = [(200, {"metadata": {"resourceVersion": version}}) for version in ("1", "2")]
    script = Script(POST=[(409, {})], PUT=[(409, {}), (200, {})], GET=[*live, (200, {}), (200, {}), *SERVED])
    defined(script, definition())
    versions = [body["metadata"]["resourceVersion"] for verb, _, body in script.requests if verb == "PUT"]
    assert versions == ["1", "2"]


def live(**changed: Any) -> tuple[int, Manifest]:
    return 200, {"metadata": {"uid": "1", "generation": 1, "resourceVersion": "1", **changed}}


@pytest.mark.parametrize(
    ("found", "is_known"),
    [
        pytest.param(live(resourceVersion="2"), True, id="only its status was written"),
        pytest.param((404, {}), False, id="deleted"),
        pytest.param(live(uid="2"), False, id="created again"),
        pytest.param(live(generation=2), False, id="changed"),
        pytest.param(live(labels={"a": "b"}), False, id="labelled"),
        pytest.param(live(deletionTimestamp="2026-01-01T00:00:00Z"), False, id="being deleted"),
    ],
)
def test_what_is_installed_already_costs_one_request_unless_it_was_changed(
    found: tuple[int, Manifest], *, is_known: bool
) -> None:
    served: dict[str, Installed] = {}
    for number, answers in enumerate(([(200, {}), (200, {}), *SERVED], [found, (200, {}), (200, {}), *SERVED])):
        script = Script(POST=[(201, live()[1])], GET=answers)
        install_crds(cast("HttpProbe", script), definition(), served=served, pause=lambda _: None)
        if number and is_known:
            assert [path for _, path, _ in script.requests] == [f"{DEFINITIONS}/shops.d.example.com"]
        else:
            assert sum(verb == "POST" for verb, _, _ in script.requests) == 1


def test_another_definition_of_the_name_is_installed() -> None:
    served: dict[str, Installed] = {}
    for one in (definition(), definition(served=False)):
        script = Script(POST=[(201, live()[1])], GET=[(200, {}), (200, {}), *SERVED])
        install_crds(cast("HttpProbe", script), one, served=served, pause=lambda _: None)
        assert script.requests[0][0] == "POST"


def test_installation_waits_for_discovery() -> None:
    """The API server updates it separately from the storage, and clients use it to find a kind."""
    late = [(404, {}), found(), found("shops"), SERVED[0], groups(), groups("apps/v1", "d.example.com/v1beta1")]
    script = Script(POST=[(201, {})], GET=[(200, {}), (200, {}), *late, SERVED[1]])
    clock = defined(script, definition())
    assert [path for _, path, _ in script.requests[1:]] == [*LISTS, *[GROUP] * 4, *["/apis"] * 3]
    assert clock.now == pytest.approx(0.1)


def test_a_kind_that_discovery_does_not_list_in_time_is_an_error() -> None:
    script = Script(POST=[(201, {})], GET=[(200, {}), (200, {}), *[found("shops")] * 100])
    with pytest.raises(ConfigError, match=r"v1 is not served after 1 s: discovery does not list shops/status"):
        defined(script, definition())


def test_a_group_that_the_list_of_groups_lacks_is_an_error() -> None:
    script = Script(POST=[(201, {})], GET=[(200, {}), (200, {}), SERVED[0], *[groups("apps/v1")] * 100])
    with pytest.raises(ConfigError, match=r"/apis is not served after 1 s: discovery does not list d\.example\.com/v1"):
        defined(script, definition())


def test_a_rejected_definition_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"CRD shops.d.example.com not created: spec.scope: Required value"):
        defined(Script(POST=[(422, {"message": "spec.scope: Required value"})]), definition())


def test_a_kind_that_is_not_served_in_time_is_an_error() -> None:
    script = Script(POST=[(201, {})], GET=[(429, {"message": "storage is (re)initializing"})] * 100)
    with pytest.raises(ConfigError, match=r"shops\?limit=1 is not served after 1 s: storage is"):
        defined(script, definition())


async def test_an_installed_kind_can_be_used_immediately(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    plurals = [f"shops{letter}" for letter in "ab"]
    await asyncio.to_thread(envtest_plane.install_crds, *map(definition, plurals))
    for plural in plurals:
        shop = {"apiVersion": "d.example.com/v1", "kind": plural.capitalize(), "metadata": {"name": "corner"}}
        shop["metadata"] = {"name": "corner", "namespace": "default"}
        live = await envtest_cluster.create(shop, field_manager="t")
        live = await envtest_cluster.update(
            {**live, "status": {"open": True}}, field_manager="t", subresource=Subresource.STATUS
        )
        assert live["status"] == {"open": True}
        assert (await envtest_cluster.list("d.example.com/v1", plural.capitalize())).items == (live,)
    await asyncio.to_thread(envtest_plane.install_crds, *map(definition, plurals))
