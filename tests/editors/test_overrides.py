"""What users override is merged as the API server merges patches, with errors that name the field and no value.

https://github.com/datastax/cass-operator/issues/108 and https://github.com/ansible-community/awx-operator-helm/issues/47
miss a merge of containers by name, and https://github.com/devfile/devworkspace-operator/pull/967 the directives.
"""

from typing import Any, Final

import pytest
from kubernetes.client import V1PodTemplateSpec

from ocf.cluster import PatchOptions, PatchType
from ocf.editors import strategic_merge
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey, copy_json, read_live
from ocf_server import EmbeddedCluster

SECRET: Final = "hunter2"
DEPLOYMENT: Final[Manifest] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "app:1",
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    },
                    {"name": "proxy", "image": "proxy:1"},
                ],
                "tolerations": [{"key": "spot", "operator": "Exists"}],
            },
        },
    },
}
PATCHES: Final[dict[str, Manifest]] = {
    "a label": {"metadata": {"labels": {"team": "a"}}},
    "a variable": {"containers": [{"name": "app", "env": [{"name": "B", "value": "3"}]}]},
    "another container": {"containers": [{"name": "logs", "image": "logs:1"}]},
    "without a container": {"containers": [{"name": "proxy", "$patch": "delete"}]},
    "an atomic list": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "no list": {"tolerations": None},
    "another map": {"nodeSelector": {"$patch": "replace", "disk": "ssd"}},
    "the order": {"$setElementOrder/containers": [{"name": "proxy"}, {"name": "app"}]},
}


def of_pods(spec: Manifest) -> Manifest:
    return spec if "metadata" in spec else {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
async def test_the_api_server_makes_the_same_of_the_patch(patch: Manifest) -> None:
    cluster = EmbeddedCluster(namespaces=["shop"])
    await cluster.create(DEPLOYMENT, field_manager="user")
    options = PatchOptions(patch_type=PatchType.STRATEGIC_MERGE, field_manager="user")
    await cluster.patch(ObjectKey.of(DEPLOYMENT), of_pods(patch), options)
    patched = await cluster.get(ObjectKey.of(DEPLOYMENT))

    other = EmbeddedCluster(namespaces=["shop"])
    merged = await other.create(strategic_merge(DEPLOYMENT, of_pods(patch)), field_manager="user")
    assert merged["spec"] == patched["spec"]
    assert merged["metadata"]["labels"] == patched["metadata"]["labels"]


def test_neither_the_manifest_nor_the_patch_is_changed_or_shared() -> None:
    manifest, patch = copy_json(DEPLOYMENT), of_pods({"containers": [{"name": "app", "args": ["a"]}]})
    before = copy_json([manifest, patch])
    merged = strategic_merge(manifest, patch)
    merged["spec"]["template"]["spec"]["containers"][0]["args"].append("b")
    merged["metadata"]["labels"]["app"] = "x"
    assert [manifest, patch] == before


def test_parts_may_be_models_which_keep_fields_of_a_later_release() -> None:
    override = read_live({"spec": {"containers": [{"name": "app", "later": 1}]}}, V1PodTemplateSpec)
    merged = strategic_merge(DEPLOYMENT, {"spec": {"template": override}})
    app, proxy = merged["spec"]["template"]["spec"]["containers"]
    assert (app["image"], app["later"], proxy["name"]) == ("app:1", 1, "proxy")


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        pytest.param(
            {"containers": [{"image": SECRET}]},
            "spec.template.spec.containers: map: {image} does not contain declared merge key: name",
            id="an item without its key",
        ),
        pytest.param(
            {"containers": [{"name": "app", "env": [{"value": SECRET}]}]},
            "spec.template.spec.containers.env: map: {value} does not contain declared merge key: name",
            id="an item of an item",
        ),
        pytest.param(
            {"nodeSelector": {"$patch": SECRET}},
            "unknown patch type: (str) in map: {$patch}",
            id="an unknown directive",
        ),
        pytest.param({"containers": [SECRET]}, "list element types are not identical", id="a text among containers"),
        pytest.param({"$retainKeys": SECRET}, "invalid patch format of retainKeys", id="keys that are no list"),
        pytest.param(
            {"$setElementOrder/containers": SECRET}, "spec.template.spec: expected a []interface {}", id="no order"
        ),
    ],
)
def test_a_patch_that_cannot_be_merged_names_the_field_and_no_value(patch: dict[str, Any], text: str) -> None:
    manifest = copy_json(DEPLOYMENT)
    manifest["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "hdd"}
    with pytest.raises(ConfigError) as caught:
        strategic_merge(manifest, of_pods(patch))
    message = str(caught.value)
    assert message.startswith("apps/v1/Deployment/shop/web: a patch cannot be merged into spec.template.spec")
    assert text in message
    assert SECRET not in message


def test_a_kind_without_merge_keys_is_rejected() -> None:
    shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner"}}
    with pytest.raises(ConfigError, match=r"example.com/v1/Shop/corner: Shop of example.com/v1 is not a kind of Kub"):
        strategic_merge(shop, {"spec": {}})
