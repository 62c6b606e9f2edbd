"""Owners as models of their spec."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from kubernetes.client import V1Condition
from pydantic import BaseModel, Field

from ocf.cluster.client import ApiServerCluster
from ocf.errors import BuildError, ManifestError
from ocf.objects import Manifest, ObjectKey, write_model
from ocf.runtime.admission import Operation, Step, Webhook
from ocf.runtime.admission.review import review
from ocf.runtime.crds import (
    CamelModel,
    CRDVersion,
    CustomResource,
    OwnerMetadata,
    OwnerStatus,
    PrinterColumn,
    ScaleSubresource,
    Scope,
    crd,
)
from ocf.runtime.crds.model_manifests import write_nullable
from ocf.runtime.operator import OwnerType
from ocf.testing.envtest.fixtures import Envtest

NAMES: Final = "names.example.com"


class ShopSpec(CamelModel):
    """What the shop should be."""

    max_replicas: int = Field(default=1, ge=1)
    open_from: datetime | None = None


class ShopStatus(OwnerStatus):
    ready_replicas: int | None = None


class Shop(CustomResource[ShopSpec], group=NAMES, version="v1"):
    """A shop."""


class Branch(
    CustomResource[ShopSpec, ShopStatus],
    group=NAMES,
    version="v1beta1",
    plural="branches",
    short_names=["br"],
    categories=["all"],
    scope=Scope.CLUSTER,
    condition="example.com/WebReady",
    columns=[PrinterColumn("Replicas", ".status.readyReplicas")],
    scale=ScaleSubresource(spec=".spec.maxReplicas", status=".status.readyReplicas"),
    selectable=[".spec.maxReplicas"],
):
    """A branch."""

    spec: ShopSpec = ShopSpec()


def version_of(model: type[CustomResource[Any, Any]]) -> Manifest:
    (version,) = model.definition()["spec"]["versions"]
    return dict(version)


def schema(model: type[CustomResource[Any, Any]]) -> Manifest:
    found: Manifest = version_of(model)["schema"]["openAPIV3Schema"]
    return found


def columns(model: type[CustomResource[Any, Any]]) -> dict[str, str]:
    return {one["name"]: one["jsonPath"] for one in version_of(model)["additionalPrinterColumns"]}


def test_the_definition_is_that_of_a_model_written_in_full() -> None:
    class Whole(BaseModel):
        """A shop."""

        spec: ShopSpec
        status: OwnerStatus | None = None

    condition = ".status.conditions[?(@.type=='Ready')]"
    shown = [
        PrinterColumn("Ready", f"{condition}.status"),
        PrinterColumn("Reason", f"{condition}.reason"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ]

    assert Shop.definition() == crd(NAMES, CRDVersion("v1", Whole, columns=shown), kind="Shop")


def test_each_caller_has_a_definition_of_its_own() -> None:
    changed = Shop.definition()
    changed["spec"]["versions"][0]["schema"].clear()

    assert Shop.definition()["spec"]["versions"][0]["schema"]


def test_conditions_merge_by_type_and_have_no_default() -> None:
    conditions = schema(Shop)["properties"]["status"]["properties"]["conditions"]

    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert "default" not in conditions


def test_every_argument_of_the_class_is_in_the_definition() -> None:
    spec, version = Branch.definition()["spec"], version_of(Branch)

    assert spec["names"] == {
        "kind": "Branch",
        "listKind": "BranchList",
        "plural": "branches",
        "singular": "branch",
        "shortNames": ["br"],
        "categories": ["all"],
    }
    assert (spec["scope"], version["name"]) == ("Cluster", "v1beta1")
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.maxReplicas"
    assert version["selectableFields"] == [{"jsonPath": ".spec.maxReplicas"}]
    assert schema(Branch)["properties"]["status"]["properties"]["readyReplicas"] == {"type": "integer"}
    assert columns(Branch) == {
        "example.com/WebReady": ".status.conditions[?(@.type=='example.com/WebReady')].status",
        "Reason": ".status.conditions[?(@.type=='example.com/WebReady')].reason",
        "Replicas": ".status.readyReplicas",
        "Age": ".metadata.creationTimestamp",
    }


def test_a_spec_may_be_absent_only_if_it_has_a_default() -> None:
    assert schema(Shop)["required"] == ["spec"]
    assert schema(Branch)["properties"]["spec"]["default"] == {"maxReplicas": 1}
    assert Branch.model_validate({}).spec.max_replicas == 1


class Ledger(CustomResource[None], group=NAMES, version="v1", selectable=[".title"]):
    """Data at the top of the object."""

    title: str
    pages: list[int] = Field(default_factory=list)


class Journal(Ledger, group=NAMES, version="v1"):
    """A kind with what another one without a spec has."""

    spec_of: str = ""


@pytest.mark.parametrize("kind", [Ledger, Journal])
def test_a_kind_without_a_spec_has_its_data_at_the_top(kind: type[Ledger]) -> None:
    (version,) = kind.definition()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["properties"].keys() - {"specOf"} == {"title", "pages", "status"}
    assert schema["required"] == ["title"]
    content = {"title": "corner", "pages": [1]}
    metadata = {"name": "a", "namespace": "b"}
    owner = OwnerType.of(kind).read({"apiVersion": f"{NAMES}/v1", "kind": kind.kind, "metadata": metadata, **content})
    assert (owner.spec, owner.title, owner.key.name) == (None, "corner", "a")
    for written in (write_model(owner), write_nullable(owner)):
        assert {name: value for name, value in written.items() if name in {"title", "pages", "spec"}} == content


def test_a_spec_of_a_kind_without_one_is_ignored_as_an_unknown_field() -> None:
    assert Ledger.model_validate({"title": "corner", "spec": {"size": 1}}).spec is None


def test_columns_of_the_author_replace_those_of_the_same_name() -> None:
    own = PrinterColumn("Reason", ".spec.maxReplicas"), PrinterColumn("Age", ".spec.openFrom")

    class Kiosk(CustomResource[ShopSpec], group=NAMES, version="v1", columns=own):
        """A kiosk."""

    assert columns(Kiosk) == {
        "Ready": ".status.conditions[?(@.type=='Ready')].status",
        "Reason": ".spec.maxReplicas",
        "Age": ".spec.openFrom",
    }


def test_without_a_condition_only_the_age_is_shown() -> None:
    class Kiosk(CustomResource[ShopSpec], group=NAMES, version="v1", condition=""):
        """A kiosk."""

    assert list(columns(Kiosk)) == ["Age"]


def test_the_kind_is_the_name_of_the_class_unless_it_is_given() -> None:
    class ShopV2(CustomResource[ShopSpec], group=NAMES, version="v2", kind="Shop"):
        """A shop, later."""

    assert (ShopV2.api_version, ShopV2.kind) == (f"{NAMES}/v2", "Shop")
    assert ShopV2.definition()["metadata"]["name"] == f"shops.{NAMES}"


def test_a_version_of_several_has_what_its_class_declares() -> None:
    class BranchV1(CustomResource[ShopSpec], group=NAMES, version="v1", kind="Branch", condition="Open"):
        """A branch, later."""

    both = [
        CRDVersion("v1beta1", Branch, deprecated="use v1"),
        CRDVersion("v1", BranchV1, stored=True, selectable=[".spec.openFrom"]),
    ]
    (older, newer) = crd(NAMES, *both, kind="Branch")["spec"]["versions"]

    assert {key: older[key] for key in version_of(Branch) if key != "storage"} == {
        key: value for key, value in version_of(Branch).items() if key != "storage"
    }
    assert [one["name"] for one in newer["additionalPrinterColumns"]] == ["Open", "Reason", "Age"]
    assert newer["selectableFields"] == [{"jsonPath": ".spec.openFrom"}]


def test_a_base_class_shares_what_several_kinds_have() -> None:
    class Base(CustomResource[ShopSpec]):
        @property
        def replicas(self) -> int:
            return 2 * self.spec.max_replicas

    class Kiosk(Base, group=NAMES, version="v1"):
        """A kiosk."""

    assert Kiosk(spec=ShopSpec(max_replicas=2)).replicas == 4
    with pytest.raises(BuildError, match=r"custom resource Base: group: required value"):
        Base.definition()


def test_a_class_with_half_of_its_name_is_rejected() -> None:
    with pytest.raises(BuildError, match=r"custom resource Half: version: required value"):

        class Half(CustomResource[ShopSpec], group=NAMES):
            """Half a kind."""

    with pytest.raises(BuildError) as raised:

        class Other(CustomResource[ShopSpec], version="v1", condition="is ready"):
            """The other half."""

    assert raised.value.problems[0] == "custom resource Other: group: required value"
    assert "condition: a condition type must match" in raised.value.problems[1]


def test_models_without_a_definition_are_no_owner_type() -> None:
    class Plain(BaseModel):
        resource: str = "cpu"

    for make in (OwnerType.of, Webhook.of):
        with pytest.raises(BuildError, match=r"Plain declares no group and version: make it a CustomResource"):
            make(Plain)


def test_a_subclass_of_a_kind_is_not_read_as_the_kind() -> None:
    class Larger(Shop):
        """A shop with more."""

    with pytest.raises(BuildError, match=r"expected one of v1 \(Shop\)"):
        OwnerType.of(Larger)


def test_operator_and_webhook_take_the_model_alone() -> None:
    owners = OwnerType.of(Branch)

    assert (owners.api_version, owners.kind, owners.model) == (f"{NAMES}/v1beta1", "Branch", Branch)
    assert owners.definition is not None
    assert callable(owners.definition)
    assert owners.definition() == Branch.definition()
    assert Webhook.of(Branch).path(Step.VALIDATE) == f"/validate/{NAMES}/branches"


METADATA: Final[Manifest] = {
    "name": "corner",
    "namespace": "town",
    "uid": "0c4f",
    "resourceVersion": "41",
    "generation": 2,
    "labels": {"tier": "web"},
    "annotations": {"note": "x"},
    "finalizers": ["example.com/hold"],
    "creationTimestamp": "2026-11-28T10:00:00Z",
    "deletionTimestamp": "2026-11-28T11:00:00Z",
    "managedFields": [{"manager": "kubectl"}],
    "ownerReferences": [],
}


def test_metadata_and_conditions_are_typed() -> None:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Healthy",
        "message": "",
        "lastTransitionTime": "2026-11-28T10:00:00Z",
    }
    shop = OwnerType.of(Shop).read(
        {
            "apiVersion": Shop.api_version,
            "kind": "Shop",
            "metadata": METADATA,
            "spec": {"maxReplicas": 3},
            "status": {"conditions": [ready], "phase": "of another writer"},
        }
    )

    assert shop.metadata == OwnerMetadata(
        name="corner",
        namespace="town",
        uid="0c4f",
        resource_version="41",
        generation=2,
        labels={"tier": "web"},
        annotations={"note": "x"},
        finalizers=["example.com/hold"],
        creation_timestamp=datetime(2026, 11, 28, 10, tzinfo=UTC),
        deletion_timestamp=datetime(2026, 11, 28, 11, tzinfo=UTC),
    )
    assert shop.key == ObjectKey(Shop.api_version, "Shop", "corner", "town")
    assert [(one.type, one.reason) for one in shop.conditions] == [("Ready", "Healthy")]
    assert isinstance(shop.conditions[0], V1Condition)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="no status"),
        pytest.param({"status": None}, id="null"),
        pytest.param({"status": {}}, id="an empty status"),
        pytest.param({"status": {"phase": "of another writer"}}, id="a status of another writer"),
    ],
)
def test_before_the_first_reconcile_there_are_no_conditions(status: Manifest) -> None:
    """An author needs no check for null: https://github.com/fabric8io/kubernetes-client/issues/2744."""
    shop = OwnerType.of(Shop).read({"metadata": METADATA, "spec": {}, **status})

    assert shop.conditions == []


def test_an_owner_that_the_model_cannot_read_is_an_error_with_the_field() -> None:
    with pytest.raises(ManifestError, match=r"spec\.maxReplicas"):
        OwnerType.of(Shop).read(
            {
                "apiVersion": Shop.api_version,
                "kind": "Shop",
                "metadata": METADATA,
                "spec": {"maxReplicas": "many"},
            }
        )


def defaulted(shop: Shop) -> Shop:
    return shop.model_copy(update={"spec": shop.spec.model_copy(update={"max_replicas": 7})})


def checked(new: Shop, old: Shop | None, operation: Operation) -> tuple[()]:
    assert (new.metadata.name, old, operation) == ("", None, Operation.CREATE)
    return ()


def test_webhooks_read_an_object_whose_name_is_not_generated_yet() -> None:
    """Rebuilds https://github.com/kubernetes/kubernetes/issues/76680: a create has a `generateName` and no name."""
    webhook = Webhook.of(Shop, defaulters=[defaulted], validators=[checked])
    sent = {
        "apiVersion": Shop.api_version,
        "kind": "Shop",
        "metadata": {"generateName": "corner-", "namespace": "town", "ownerReferences": [{"uid": "1"}]},
        "spec": {},
    }
    request = {
        "uid": "1",
        "kind": {"group": NAMES, "version": "v1", "kind": "Shop"},
        "operation": "CREATE",
        "object": sent,
    }

    patched = review(webhook, Step.DEFAULT, {"request": request})["response"]
    validated = review(webhook, Step.VALIDATE, {"request": request})["response"]

    assert patched["allowed"]
    assert validated["allowed"], validated


async def test_the_api_server_stores_what_the_model_reads(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    await asyncio.to_thread(envtest.plane.install_crds, Shop.definition(), Branch.definition())
    created = await envtest_cluster.create(
        {
            "apiVersion": Shop.api_version,
            "kind": "Shop",
            "metadata": {"name": "corner", "namespace": envtest.namespace, "labels": {"tier": "web"}},
            "spec": {"maxReplicas": 3},
        },
        field_manager="test",
    )

    shop = OwnerType.of(Shop).read(created)

    assert (shop.metadata.uid, shop.metadata.generation) == (created["metadata"]["uid"], 1)
    assert (shop.metadata.labels, shop.metadata.deletion_timestamp) == ({"tier": "web"}, None)
    assert shop.metadata.creation_timestamp is not None
    assert shop.spec == ShopSpec(max_replicas=3)
    live = await envtest_cluster.get(ObjectKey("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"shops.{NAMES}"))
    (version,) = live["spec"]["versions"]
    assert version["additionalPrinterColumns"] == version_of(Shop)["additionalPrinterColumns"]
