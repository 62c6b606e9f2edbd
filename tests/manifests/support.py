"""Installations of small operators, for tests of their manifests."""

from collections.abc import Sequence
from typing import Any

from ocf.component import Builder, Component
from ocf.manifests import Installation, InstallOptions
from ocf.manifests.install_options import Project
from ocf.objects import Manifest
from ocf.primitives import configmap
from ocf.runtime.admission import Webhook
from ocf.runtime.crds import CamelModel, Conversion, CRDVersion, CustomResource, Scope, VersionedResource
from ocf.runtime.operator import Operator, OwnerType

__all__ = ["PROJECT", "installation"]

PROJECT = Project(
    version="1.2.0",
    description="Opens and closes shops.",
    authors=[("Shop team", "shops@example.com")],
    links=[("Source", "https://example.com/shops")],
    keywords=["shop"],
)


class ShopSpec(CamelModel):
    """What a shop sells, in `{{braces}}`."""

    motto: str = "open"


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    """A shop."""

    spec: ShopSpec = ShopSpec()


class ClusterShop(Shop, group="example.com", version="v1", kind="Shop", scope=Scope.CLUSTER):
    """A shop."""


class OldShopSpec(CamelModel):
    slogan: str = "open"


class OldShop(CustomResource[OldShopSpec], group="example.com", version="v1alpha1", kind="Shop", condition=""):
    """A shop, as it was."""

    spec: OldShopSpec = OldShopSpec()


def components(shop: Shop) -> Component:
    web = Builder("web", owner=shop.key, condition_type="WebReady")
    if not shop.metadata.namespace:
        web = web.with_namespace("default")
    return web.with_resource(configmap.Builder({"data": {"motto": shop.spec.motto}})).build()


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
    *,
    webhooks: bool = True,
    guards: Sequence[Webhook[Any]] = (),
    cluster_scoped: bool = False,
    converting: bool = False,
    **options: Any,
) -> Installation:
    """Return the installation of the operator `shops`.

    Args:
        webhooks: Whether shops have webhooks.
        guards: Further webhooks.
        cluster_scoped: Whether shops have no namespace.
        converting: Whether shops have two versions.
        options: Options of the installation.
    """
    model = ClusterShop if cluster_scoped else Shop
    metadata = {"name": "corner"} if cluster_scoped else {"name": "corner", "namespace": "town"}
    owner: Manifest = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"motto": "open"}}
    operator = Operator(
        name="shops",
        owner=OwnerType.of(model, _versions() if converting else None),
        components=components,
        abnormal_conditions=["Degraded"],
        published_conditions=["Ready", "Degraded"],
        webhooks=[*([Webhook.of(model, defaulters=[lambda shop: shop])] if webhooks else []), *guards],
    )
    return Installation(
        operator,
        [components(model.model_validate(owner))],
        InstallOptions(**{"project": PROJECT, **options}),
        [owner],
    )
