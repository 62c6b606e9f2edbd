"""Owner references and server-set fields."""

import pytest

from ocf.component.model.ownership import Owner, sendable
from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest, ObjectKey, copy_json

SHOP = Owner(ObjectKey("example.com/v1", "Shop", "demo", "shop"), "uid-1", 3)
MALL = Owner(ObjectKey("example.com/v1", "Mall", "demo"), "uid-2", 1)


def made(namespace: str = "shop", *references: Manifest) -> Manifest:
    metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata | ({"ownerReferences": list(references)} if references else {}),
    }


class TestOwner:
    def test_is_read_from_the_live_object(self) -> None:
        manifest = {
            "apiVersion": "example.com/v1",
            "kind": "Shop",
            "metadata": {"name": "demo", "namespace": "shop", "uid": "uid-1", "generation": 3},
        }
        assert Owner.of(manifest) == SHOP

    def test_without_uid_it_was_not_read_from_a_cluster(self) -> None:
        manifest = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "demo", "namespace": "shop"}}
        with pytest.raises(ManifestError, match=r"metadata\.uid: required value"):
            Owner.of(manifest)


class TestOwnerReference:
    def test_names_the_owner_as_controller(self) -> None:
        (reference,) = SHOP.owned(made())["metadata"]["ownerReferences"]
        assert reference == {
            "apiVersion": "example.com/v1",
            "kind": "Shop",
            "name": "demo",
            "uid": "uid-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def test_references_in_the_baseline_stay(self) -> None:
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "uid-9"}
        assert [found["uid"] for found in SHOP.owned(made("shop", other))["metadata"]["ownerReferences"]] == [
            "uid-9",
            "uid-1",
        ]

    def test_a_second_controller_is_rejected(self) -> None:
        other = {"apiVersion": "v1", "kind": "Mall", "name": "m", "uid": "uid-9", "controller": True}
        with pytest.raises(ConfigError, match="names another controller, Mall m"):
            SHOP.owned(made("shop", other))

    def test_another_namespace_is_rejected(self) -> None:
        with pytest.raises(ConfigError, match='cannot own an object in another namespace, "elsewhere"'):
            SHOP.owned(made("elsewhere"))

    def test_a_cluster_scoped_object_cannot_name_a_namespaced_owner(self) -> None:
        assert SHOP.owned(made("")) == made("")

    @pytest.mark.parametrize("namespace", ["", "anywhere"])
    def test_a_cluster_scoped_owner_owns_everywhere(self, namespace: str) -> None:
        assert MALL.owned(made(namespace))["metadata"]["ownerReferences"][0]["uid"] == "uid-2"

    @pytest.mark.parametrize("version", ["v1", "v2"])
    def test_the_owner_itself_gets_no_reference(self, version: str) -> None:
        metadata = {"name": "demo", "namespace": "shop"}
        itself = {"apiVersion": f"example.com/{version}", "kind": "Shop", "metadata": metadata}
        assert SHOP.owned(itself) == itself

    def test_a_cluster_scoped_owner_gets_no_reference_to_itself(self) -> None:
        itself = {"apiVersion": "example.com/v1", "kind": "Mall", "metadata": {"name": "demo"}}
        assert MALL.owned(itself) == itself

    @pytest.mark.parametrize(
        ("api_version", "rejected"),
        [
            pytest.param("example.com/v1", True, id="in its version"),
            pytest.param("example.com/v2", True, id="in another version"),
            pytest.param("example.org/v1", False, id="in another group"),
        ],
    )
    def test_an_object_that_owns_the_owner_is_rejected(self, api_version: str, *, rejected: bool) -> None:
        above = {"apiVersion": "example.com/v1", "kind": "Chain", "name": "all", "uid": "uid-7"}
        metadata = {"name": "demo", "namespace": "shop", "uid": "uid-1", "ownerReferences": [above]}
        owner = Owner.of({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata})
        given = {"apiVersion": api_version, "kind": "Chain", "metadata": {"name": "all", "namespace": "shop"}}
        if not rejected:
            assert owner.owned(given)["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
            return
        with pytest.raises(ConfigError, match=r"Chain/shop/all owns .*Shop/shop/demo: .*unowned=True"):
            owner.owned(given)

    def test_the_given_object_is_not_changed(self) -> None:
        given = made()
        before = copy_json(given)
        SHOP.owned(given)
        assert given == before


@pytest.mark.parametrize(
    "field",
    [
        "managedFields",
        "resourceVersion",
        "uid",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ],
)
def test_server_set_fields_are_not_sent(field: str) -> None:
    given: Manifest = {"kind": "X", "metadata": {"name": "x", field: "1"}, "status": {"a": 1}}
    assert sendable(given) == {"kind": "X", "metadata": {"name": "x"}}
    assert given["metadata"][field] == "1"


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        pytest.param({}, "", id="this owner"),
        pytest.param({"kind": "Mall", "uid": "uid-2"}, "Mall demo", id="another kind"),
        pytest.param({"name": "other", "uid": "uid-2"}, "Shop other", id="another name"),
        pytest.param(
            {"uid": "uid-0"}, "example.com/v1 Shop demo with the uid uid-0", id="a former owner of the same name"
        ),
        pytest.param(
            {"apiVersion": "other.com/v2", "uid": "uid-2"},
            "other.com/v2 Shop demo with the uid uid-2",
            id="an owner of another group",
        ),
    ],
)
def test_another_controller_is_not_named_as_the_owner_is(reference: Manifest, named: str) -> None:
    (own,) = SHOP.owned(made())["metadata"]["ownerReferences"]
    assert SHOP.foreign_controller(made("shop", own | reference)) == named
