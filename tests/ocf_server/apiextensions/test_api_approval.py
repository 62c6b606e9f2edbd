"""Condition and validation of definitions in the groups of Kubernetes, on the embedded and on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import pytest
import pytest_asyncio

from ocf.cluster import Cluster, PatchOptions, PatchType, Subresource
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import find_condition
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from tests.support import definition_of, eventually

ANNOTATION: Final = "api-approved.kubernetes.io"
TYPE: Final = "KubernetesAPIApprovalPolicyConformant"
GROUP: Final = "approval.k8s.io"
URL: Final = "https://github.com/kubernetes/enhancements/pull/1111"
SEE: Final = f"see {URL}"
NEEDED: Final = f'protected groups must have approval annotation "{ANNOTATION}"'
BAD: Final = f'{NEEDED} with either a URL or a reason starting with "unapproved", {SEE}'
MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")


def definition(group: str, value: str | None) -> Manifest:
    manifest = definition_of("Approval", group, {"type": "object"})
    if value is not None:
        manifest["metadata"]["annotations"] = {ANNOTATION: value}
    return manifest


@pytest_asyncio.fixture(params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    if request.param == "embedded":
        yield EmbeddedCluster()
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    async with await plane.cluster() as real:
        yield real


async def removed(cluster: Cluster, key: ObjectKey) -> None:
    """Delete a definition, and wait until it is gone."""
    await cluster.delete(key)

    async def is_gone() -> bool:
        try:
            await cluster.get(key)
        except NotFoundError:
            return True
        return False

    await eventually(is_gone)


async def reported(cluster: Cluster, key: ObjectKey, *, after: str = "") -> tuple[str, str, str]:
    """Return status, reason and message of the condition, once the reason is another one than `after`."""

    def condition(live: Manifest) -> dict[str, Any]:
        return dict(find_condition(live["status"].get("conditions"), TYPE) or {})

    def is_settled(live: Manifest) -> bool:
        names = find_condition(live["status"].get("conditions"), "Established") or {}
        return names.get("status") == "True" and condition(live).get("reason", after) != after

    found = condition(await eventually(partial(cluster.get, key), is_settled))
    return found["status"], found["reason"], found["message"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        pytest.param(URL, ("True", "ApprovedAnnotation", f"approved in {URL}"), id="a URL"),
        pytest.param("unapproved", ("False", "UnapprovedAnnotation", 'not approved: "unapproved"'), id="no reason"),
        pytest.param(
            'unapproved, "experimental"',
            ("False", "UnapprovedAnnotation", r'not approved: "unapproved, \"experimental\""'),
            id="a reason with quotes",
        ),
    ],
)
async def test_the_condition_says_what_the_annotation_says(
    cluster: Cluster, value: str, wanted: tuple[str, str, str]
) -> None:
    key = ObjectKey.of(await cluster.create(definition(GROUP, value), field_manager="test"))
    assert await reported(cluster, key) == wanted
    await removed(cluster, key)


@pytest.mark.parametrize(
    ("group", "value", "problem"),
    [
        pytest.param(GROUP, None, f"Required value: {NEEDED}, {SEE}", id="no annotation"),
        pytest.param(GROUP, "", f"Required value: {NEEDED}, {SEE}", id="an empty annotation"),
        pytest.param("approval.kubernetes.io", None, f"Required value: {NEEDED}, {SEE}", id="the other domain"),
        pytest.param("k8s.io", None, f"Required value: {NEEDED}, {SEE}", id="the domain itself"),
        pytest.param(GROUP, "yes", f'Invalid value: "yes": {BAD}', id="a word"),
        pytest.param(GROUP, "/a/path", f'Invalid value: "/a/path": {BAD}', id="a path"),
        pytest.param(GROUP, "mailto:me", f'Invalid value: "mailto:me": {BAD}', id="a URL without a host"),
        pytest.param(GROUP, "https://", f'Invalid value: "https://": {BAD}', id="an empty host"),
        pytest.param(GROUP, "Unapproved", f'Invalid value: "Unapproved": {BAD}', id="a capital letter"),
    ],
)
async def test_an_annotation_that_is_missing_or_bad_is_refused(
    cluster: Cluster, group: str, value: str | None, problem: str
) -> None:
    with pytest.raises(ApiError) as refused:
        await cluster.create(definition(group, value), field_manager="test", dry_run=True)
    assert refused.value.message == (
        f'CustomResourceDefinition.apiextensions.k8s.io "approvals.{group}" is invalid: '
        f"metadata.annotations[{ANNOTATION}]: {problem}"
    )


@pytest.mark.parametrize("group", ["approval-k8s.io", "approval.k8s.io.example.com", "approval.example.com"])
async def test_other_groups_need_no_approval(cluster: Cluster, group: str) -> None:
    created = await cluster.create(definition(group, None), field_manager="test")
    key = ObjectKey.of(created)
    live = await eventually(
        partial(cluster.get, key), lambda one: find_condition(one["status"].get("conditions"), "Established")
    )
    assert find_condition(live["status"]["conditions"], TYPE) is None
    await removed(cluster, key)


async def test_the_condition_follows_the_annotation_and_not_what_clients_make_of_it(cluster: Cluster) -> None:
    key = ObjectKey.of(await cluster.create(definition(GROUP, "unapproved"), field_manager="test"))
    await reported(cluster, key)
    changed = {"metadata": {"annotations": {ANNOTATION: URL}}}
    await cluster.patch(key, changed, MERGE)
    assert await reported(cluster, key, after="UnapprovedAnnotation") == (
        "True",
        "ApprovedAnnotation",
        f"approved in {URL}",
    )
    live = await cluster.get(key)
    others = [one for one in live["status"]["conditions"] if one["type"] != TYPE]
    of_status = PatchOptions(patch_type=PatchType.MERGE, field_manager="test", subresource=Subresource.STATUS)
    await cluster.patch(key, {"status": {"conditions": others}}, of_status)
    # A change that another controller answers comes after what this one would have written.
    await cluster.patch(key, {"spec": {"names": {"shortNames": ["appr"]}}}, MERGE)
    live = await eventually(partial(cluster.get, key), lambda one: "shortNames" in one["status"]["acceptedNames"])
    assert find_condition(live["status"]["conditions"], TYPE) is None
    with pytest.raises(ApiError, match="Required value: protected groups must have approval annotation"):
        await cluster.patch(key, {"metadata": {"annotations": {ANNOTATION: None}}}, MERGE)
    await removed(cluster, key)
