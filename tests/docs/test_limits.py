"""The limits that the page of limits claims are there, and none that was lifted is left in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from ocf import component
from ocf.cli.app import app
from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Verb
from ocf.component import Component, Conflicts, Writes, reconciling
from ocf.errors import ApiError, BuildError, ForbiddenError, InvalidError, NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment, hpa
from ocf.runtime.rbac.rules import mapping_or_guess
from ocf.testing import FaultyCluster, RecordingCluster, faults
from ocf_server import CustomKind, EmbeddedCluster
from tests.docs.reader import ROOT

TEXT: Final = " ".join((ROOT / "docs/project/limits.md").read_text(encoding="utf-8").split())
OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")


def manifest(kind: str, spec: dict[str, Any], api_version: str = "v1") -> Manifest:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }


async def quota() -> None:
    cluster = EmbeddedCluster()
    await cluster.create(manifest("ResourceQuota", {"hard": {"pods": "0"}}), field_manager="me")
    await cluster.create(manifest("Pod", {"containers": [{"name": "a", "image": "a"}]}), field_manager="me")


async def authorization() -> None:
    node = ObjectKey("v1", "Node", "a")
    with pytest.raises(NotFoundError):
        await EmbeddedCluster().acting_as("alice").get(node)
    with pytest.raises(ForbiddenError):
        await EmbeddedCluster(authorization=True).acting_as("alice").get(node)


async def cost() -> None:
    rule = "self.a.all(x, x.all(y, self.a.all(z, z.all(w, w.contains(y)))))"
    texts = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    spec = {"type": "object", "properties": {"a": texts}, "x-kubernetes-validations": [{"rule": rule}]}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"kind": "Shop", "plural": "shops"}
    definition = manifest(
        "CustomResourceDefinition",
        {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "apiextensions.k8s.io/v1",
    )
    definition["metadata"] = {"name": "shops.example.com"}
    await EmbeddedCluster().create(definition, field_manager="me")


def made(name: str = "a", namespace: str = "town", **data: str) -> configmap.Builder:
    return configmap.Builder({"metadata": {"name": name, "namespace": namespace}, "data": data})


def built(namespace: str = "town", **options: Any) -> Component:
    return component.Builder("web", owner=OWNER).with_resource(made(namespace=namespace), **options).build()


async def town() -> EmbeddedCluster:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["town", "east"])
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
    await cluster.create(shop, field_manager="me")
    return cluster


async def reconcile(cluster: Cluster, web: Component) -> None:
    async with reconciling(await cluster.get(OWNER), cluster) as context:
        await web.reconcile(context)


async def names(cluster: Cluster, namespace: str = "town") -> list[str]:
    found = await cluster.list("v1", "ConfigMap", ListOptions(namespace=namespace))
    return sorted(each["metadata"]["name"] for each in found.items)


async def elsewhere() -> None:
    cluster = await town()
    for options, expected in (({}, []), ({"unowned": True}, ["a"])):
        with suppress(ReconcileError):
            await reconcile(cluster, built("east", **options))
        assert await names(cluster, "east") == expected


async def one_try() -> None:
    faulty = FaultyCluster(await town(), [faults.server_error(503, verbs=[Verb.APPLY], kind="ConfigMap")])
    with pytest.raises(ReconcileError):
        await reconcile(faulty, built())
    faulty.assert_all_injected()
    assert await names(faulty) == []


async def unregistered() -> None:
    cluster = await town()
    await reconcile(cluster, component.Builder("web", owner=OWNER).with_resource(made("b")).build())
    await reconcile(cluster, built())
    assert await names(cluster) == ["a", "b"]
    await reconcile(cluster, component.Builder("web", owner=OWNER).with_resource(made()).with_prune().build())
    assert await names(cluster) == ["a"]


async def static() -> None:
    cluster = await town()
    for is_suspended, text in ((False, "old"), (True, "new")):
        web = component.Builder("web", owner=OWNER).with_resource(made(text=text)).suspend(is_suspended)
        await reconcile(cluster, web.build())
    live = await cluster.get(ObjectKey("v1", "ConfigMap", "a", "town"))
    assert live["data"] == {"text": "old"}


async def two_requests() -> None:
    for options, expected in (({}, 1), ({"set_once": ["data.text"]}, 2), ({"writes": Writes.CREATE_ONLY}, 2)):
        cluster = RecordingCluster(await town())
        given: Any = options
        await reconcile(cluster, component.Builder("web", owner=OWNER).with_resource(made(text="a"), **given).build())
        assert len([one for one in cluster.writes if one.kind == "ConfigMap"]) == expected


async def replaced() -> None:
    cluster = await town()
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "town"}}
    await cluster.create({**theirs, "data": {"text": "theirs", "other": "theirs"}}, field_manager="helm")
    found = []
    for drop in (False, True):
        options: Any = {"writes": Writes.UPDATE_ONLY, "on_conflict": Conflicts.TAKE, "delete_when": drop}
        await reconcile(
            cluster, component.Builder("web", owner=OWNER).with_resource(made(text="ours"), **options).build()
        )
        found.append((await cluster.get(ObjectKey("v1", "ConfigMap", "a", "town")))["data"])
    assert found == [{"text": "ours", "other": "theirs"}, {"other": "theirs"}]


async def guesses() -> None:
    guess = mapping_or_guess("parts.example.com/v1", "Geese", [])
    assert guess.namespaced
    assert guess.plural == "geeses"


async def strategic() -> None:
    cluster = await town()
    with pytest.raises(ApiError, match="unknown format") as raised:
        await cluster.patch(OWNER, {"spec": {}}, PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="me"))
    assert raised.value.code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


async def others_accepted() -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(InvalidError):
        await cluster.create(manifest("Pod", {"containers": []}), field_manager="me")
    node = manifest("Node", {"taints": [{"key": "not a key", "effect": "Never"}]})
    del node["metadata"]["namespace"]
    await cluster.create(node, field_manager="me")


async def scalers() -> None:
    containers = {"containers": [{"name": "a", "image": "a"}]}
    base = {"metadata": {"name": "a", "namespace": "town"}, "spec": {"replicas": 3, "template": {"spec": containers}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}
    scaler = {"metadata": {"name": "a", "namespace": "town"}, "spec": spec}
    for apart in (True, False):
        cluster = await town()
        web = component.Builder("web", owner=OWNER).with_resource(deployment.Builder(base))
        other = component.Builder("other", condition_type="Other", owner=OWNER) if apart else web
        other.with_resource(hpa.Builder(scaler))
        for each in (other, web) if apart else (web,):
            await reconcile(cluster, each.build())
        key = ObjectKey("apps/v1", "Deployment", "a", "town")
        await cluster.apply(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": base["metadata"], "spec": {"replicas": 5}},
            field_manager="hpa",
            force=True,
        )
        await reconcile(cluster, web.build())
        assert (await cluster.get(key))["spec"]["replicas"] == (3 if apart else 5)


async def percentage() -> None:
    members: list[Any] = [made("a"), made("b")]
    with pytest.raises(BuildError, match="max_unavailable"):
        component.Builder("web", owner=OWNER).with_rollout(members, max_unavailable="50%").build()  # type: ignore[arg-type]


async def no_controllers() -> None:
    cluster = EmbeddedCluster()
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await cluster.create(manifest("Deployment", spec, "apps/v1"), field_manager="me")
    live = await cluster.get(ObjectKey("apps/v1", "Deployment", "a", "default"))
    assert not live.get("status")
    assert not (await cluster.list("v1", "Pod")).items


async def four_kinds() -> None:
    text = CliRunner().invoke(app, ["hpa-controller", "manifests", "--image", "example.com/ocf:1"]).stdout
    resources = {
        resource
        for each in yaml.safe_load_all(text)
        for rule in (each or {}).get("rules") or ()
        for resource in rule["resources"]
        if resource.endswith("/scale")
    }
    plurals = ("deployments", "replicasets", "replicationcontrollers", "statefulsets")
    assert resources == {f"{plural}/scale" for plural in plurals}


async def paths() -> None:
    for path in ("spec.containers[0].image", 'metadata.annotations["example.com/a"]'):
        with pytest.raises(BuildError, match="is not a field path"):
            built(ignore_fields=[path])


CHECKS: Final[dict[str, Callable[[], Awaitable[None]]]] = {
    "quotas and limit ranges bound nothing": quota,
    "unless it is [asked for](../testing/embedded-cluster.md#authorization), no authorization": authorization,
    "no cost estimate of CEL rules": cost,
    "Objects in another namespace than their owner are rejected, unless they are [registered as unowned]": elsewhere,
    "An error ends it; [the operator]": one_try,
    "**What is no longer registered stays**, unless the component was built with `with_prune()`": unregistered,
    "**Static resources stay** while a component is suspended": static,
    "**A field that is set once, and an object that is only created, take two requests**": two_requests,
    "A value that a field of an update-only resource has replaced does not come back": replaced,
    "**Rights of kinds without a definition** are for a guessed plural, of namespaced objects": guesses,
    "**Strategic merge** is for kinds of this release of Kubernetes": strategic,
    "invalid objects of other built-in kinds are accepted": others_accepted,
    "An HPA in another component, or in another operator, is not found": scalers,
    "has its limit as a number, not as a percentage": percentage,
    "**It scales four kinds out of the box**; its role has to name all others": four_kinds,
    "nothing fills in a status, places, starts or ends a pod": no_controllers,
    "An entry of a list, or a key with a dot in it (most annotations have one), cannot be named": paths,
}
# Bullets whose claim the tests of the code itself prove, by their beginning.
TESTED: Final = {
    "**Resources form a sequence": "tests/docs/test_status.py::order",
    "**External resources**": "tests/component/external/test_one_target.py::test_a_lost_answer_creates_nothing_twice",
    "**Beside the reconciles**": "tests/runtime/operator/test_background.py::"
    "test_one_that_does_not_open_ends_the_process_with_an_event",
    "**A clean-up may be called again**": "tests/runtime/operator/test_deletion.py::"
    "test_a_process_that_dies_at_any_write_is_followed_by_one_that_cleans_up",
    "**A takeover comes before the apply**": "tests/component/apply/test_takeover_rejected.py::"
    "test_what_a_webhook_denies",
    "**A held object whose owner is gone": "tests/runtime/operator/test_held_objects.py::"
    "test_it_is_released_if_its_owner_is_gone_for_good",
    "**Kinds that are known only at run time**": "tests/runtime/operator/test_server.py::"
    "test_a_wildcard_is_no_kind_of_which_the_plural_is_guessed",
    "**A handler that hangs": "tests/component/test_author_code.py::test_a_grace_handler_that_hangs_is_named",
    "**The limits of the HTTP servers": "tests/http/test_server.py::"
    "test_the_connection_that_has_waited_longest_is_closed_first",
    "**A field manager with a hashed name**": "tests/component/apply/test_earlier_owners.py::"
    "test_hashed_managers_of_an_owner_to_which_the_object_refers_are_taken_over",
    "**Two processes of one operator**": "tests/component/model/test_status_backoff.py::"
    "test_two_writers_of_one_status_back_off_and_name_each_other",
    "**One condition of two operators**": "tests/runtime/operator/test_several_operators.py::"
    "test_a_condition_that_two_operators_declare_is_rejected",
    "**A value that was handled last": "tests/component/test_handling.py::"
    "test_a_value_that_cannot_be_stored_now_is_an_error_and_is_handled_again",
    "**Only conditions have a time**": "tests/component/test_timed_out.py::"
    "test_a_phase_times_out_at_its_deadline_whichever_process_looks",
    "**Conditions that the definition": "tests/component/test_unstored_status.py::"
    "test_what_is_not_stored_is_shown_once_and_not_written_again",
    "**What the HPA controller remembers**": "tests/controllers/hpa/test_reconciler.py::"
    "test_a_restart_scales_nothing_down_for_the_length_of_the_window",
}
OTHERS: Final = "what another program does, not this one"
STOPPED: Final = "what happens while no operator runs, or to what was sent before: there is nothing to call"
# Bullets that have no test by which their end would be noticed, with the reason.
UNTESTED: Final = {
    "**Copies are found by their label**": STOPPED,
    "**Each watch is a connection.**": "the protocol of the HTTP client's library",
    "**kopf connects by itself.**": OTHERS,
    "**A field that excludes one of ours**": OTHERS,
    "**Orphaned pods that no new object adopts stay**": STOPPED,
    "**A webhook that changes a field of `recreate_when_changed`**": STOPPED,
    "**An object that loses its owner reference": STOPPED,
    "**A pause takes effect": STOPPED,
    "**An apply with several fields": OTHERS,
    "**A function of a webhook that hangs": "a thread that never ends would be left in the process of the tests",
    "**The stored condition is the memory.**": "what follows from a design, not a refusal",
    "**An event of the author's is not stored.**": STOPPED,
    "**The promise of no needless writes": "what follows from a design, not a refusal",
    "**KEDA's conditions": OTHERS,
    "**The memory of another controller": OTHERS,
    "**Explaining looks at one metric": "an absence of code, for which no call has an answer",
    "**Its differences": "links",
    "admission and conversion webhooks are called": "what there is, tested with the server",
    "defaults for some kinds only": "the table of the server's page has the kinds, and is generated from its tests",
}


@pytest.mark.parametrize("claim", CHECKS)
def test_a_limit_is_there(claim: str) -> None:
    async def test() -> None:
        await CHECKS[claim]()

    assert claim in TEXT
    asyncio.run(test())


def test_every_limit_is_checked_or_has_a_reason() -> None:
    page = (ROOT / "docs/project/limits.md").read_text(encoding="utf-8").partition("\n## When to")[0]
    lines = [" ".join(each.split()) for each in re.split(r"^\* ", page, flags=re.MULTILINE)[1:]]
    begins = [*TESTED, *UNTESTED]
    found = {bullet: [one for one in begins if bullet.startswith(one)] for bullet in lines}
    unknown = [bullet for bullet, named in found.items() if not named and not any(claim in bullet for claim in CHECKS)]
    assert unknown == []
    assert sorted(one for named in found.values() for one in named) == sorted(begins)


@pytest.mark.parametrize("beginning", TESTED)
def test_the_test_of_a_limit_exists(beginning: str) -> None:
    path, _, name = TESTED[beginning].partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_the_page_knows_that_hpa_controllers_divide_the_autoscalers() -> None:
    assert "--sharding" in CliRunner().invoke(app, ["hpa-controller", "--help"]).stdout
    assert "one process at work" not in TEXT
