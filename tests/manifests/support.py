"""Installations of small operators, for tests of their manifests."""

from typing import Any

from kubernetes.client import V1Condition
from pydantic import BaseModel

from ocf.component import Builder, Component
from ocf.manifests import Installation, InstallOptions
from ocf.manifests.install_options import Project
from ocf.objects import Manifest
from ocf.primitives import configmap
from ocf.runtime.admission import Webhook
from ocf.runtime.crds import Conversion, CRDVersion, Scope, VersionedResource, crd
from ocf.runtime.operator import Operator, OwnerType

__all__ = ["PROJECT", "installation"]

PROJECT = Project(
    version="1.2.0",
    description="Opens and closes shops.",
    authors=[("Shop team", "shops@example.com")],
    links=[("Source", "https://example.com/shops")],
    keywords=["shop"],
)


class ShopSpec(BaseModel):
    """What a shop sells, in `{{braces}}`."""

    motto: str = "open"


class ShopStatus(BaseModel):
    conditions: list[V1Condition] = []


class Shop(BaseModel):
    """A shop."""

    metadata: dict[str, Any] = {}
    spec: ShopSpec = ShopSpec()
    status: ShopStatus | None = None


def components(shop: Shop) -> Component:
    metadata = {"name": shop.metadata["name"], "namespace": shop.metadata.get("namespace", "default")}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": shop.spec.motto}}
    return Builder("web", condition_type="WebReady").with_resource(configmap.Builder(settings).build()).build()


class OldShopSpec(BaseModel):
    slogan: str = "open"


class OldShop(BaseModel):
    """A shop, as it was."""

    spec: OldShopSpec = OldShopSpec()


def _versions() -> VersionedResource:
    renamed = Conversion(
        OldShop,
        Shop,
        up=lambda old: Shop(spec=ShopSpec(motto=old.spec.slogan)),
        down=lambda new: OldShop(spec=OldShopSpec(slogan=new.spec.motto)),
    )
    old = CRDVersion("v1alpha1", OldShop, deprecated="use v1")
    return VersionedResource("example.com", [old, CRDVersion("v1", Shop, stored=True)], [renamed], kind="Shop")


def installation(
    *, webhooks: bool = True, cluster_scoped: bool = False, converting: bool = False, **options: Any
) -> Installation:
    """Return the installation of the operator `shops`.

    Args:
        webhooks: Whether it has webhooks.
        cluster_scoped: Whether shops have no namespace.
        converting: Whether shops have two versions.
        options: Options of the installation.
    """
    scope = Scope.CLUSTER if cluster_scoped else Scope.NAMESPACED
    definition = crd("example.com", CRDVersion("v1", Shop), scope=scope)
    metadata = {"name": "corner"} if cluster_scoped else {"name": "corner", "namespace": "town"}
    owner: Manifest = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"motto": "open"}}
    operator = Operator(
        name="shops",
        owner=OwnerType.of(Shop, _versions() if converting else definition),
        components=components,
        abnormal_conditions=["Degraded"],
        published_conditions=["Ready", "Degraded"],
        webhooks=[Webhook.of(Shop, definition, defaulters=[lambda shop: shop])] if webhooks else [],
    )
    return Installation(
        operator,
        [components(Shop.model_validate(owner))],
        InstallOptions(**{"project": PROJECT, **options}),
        [owner],
    )
