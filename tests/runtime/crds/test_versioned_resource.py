"""Declaration of several versions: each mistake is reported when the resource is declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from ocf.errors import BuildError, ManifestError
from ocf.runtime.crds import Conversion, CRDVersion, VersionedResource, crd

from .shop_versions import GROUP, ONE_TWO, SHOPS, TWO_THREE, V1, V2, V3, ShopV1, ShopV2, ShopV3, v1_to_v2, v2_to_v1


async def _late(_: Any) -> Any:
    raise NotImplementedError


def _any(_: Any) -> Any:
    raise NotImplementedError


class Other(BaseModel):
    pass


@pytest.mark.parametrize(
    ("versions", "conversions", "problem"),
    [
        pytest.param(
            [V1, V2, V3],
            [ONE_TWO],
            "there is no conversion between v2 (ShopV2) and v3 (ShopV3), which are neighbours",
            id="a pair is missing",
        ),
        pytest.param(
            [V1, V2, V3],
            [ONE_TWO, TWO_THREE, ONE_TWO],
            "expected one conversion between v1 (ShopV1) and v2 (ShopV2), got 2",
            id="a pair is declared twice",
        ),
        pytest.param(
            [V1, V2, V3],
            [ONE_TWO, TWO_THREE, Conversion(ShopV1, ShopV3, up=_any, down=_any)],
            "the conversion between ShopV1 and ShopV3 is not between neighbours; "
            "the versions are v1 (ShopV1), v2 (ShopV2), v3 (ShopV3)",
            id="a pair that skips a version",
        ),
        pytest.param(
            [V1, V2, V3],
            [ONE_TWO, TWO_THREE, Conversion(Other, ShopV3, up=_any, down=_any)],
            "the conversion between Other and ShopV3 has models of no version: Other",
            id="a model of no version",
        ),
        pytest.param(
            [V2, V3],
            [TWO_THREE, Conversion(ShopV3, ShopV2, up=TWO_THREE.down, down=TWO_THREE.up)],
            "the conversion between ShopV3 and ShopV2 must have the model of the older version first",
            id="a pair in the wrong order",
        ),
        pytest.param(
            [V2, V3],
            [Conversion[Any, Any](ShopV2, ShopV3, up=_late, down=_any)],
            "_late is a coroutine; conversion functions are plain functions",
            id="a coroutine",
        ),
        pytest.param(
            [V1, V2, replace(V3, stored=False)],
            [ONE_TWO, TWO_THREE],
            "exactly one version must be stored, got none",
            id="no storage version",
        ),
        pytest.param(
            [V1, replace(V2, stored=True), V3],
            [ONE_TWO, TWO_THREE],
            "exactly one version must be stored, got v2, v3",
            id="two storage versions",
        ),
        pytest.param(
            [V1, V2, replace(V3, name="v2")],
            [ONE_TWO, TWO_THREE],
            "the names of the versions must differ, got v2 twice",
            id="two versions with one name",
        ),
        pytest.param([], [], "a kind must have at least one version", id="no version"),
    ],
)
def test_a_mistake_is_reported_with_model_and_version(
    versions: Sequence[CRDVersion], conversions: Sequence[Conversion[Any, Any]], problem: str
) -> None:
    with pytest.raises(BuildError) as caught:
        VersionedResource(GROUP, versions, conversions, kind="Shop")
    assert str(caught.value) == f"shops.{GROUP}: {problem}"


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(BuildError) as caught:
        VersionedResource(GROUP, [V1, V2, replace(V3, stored=False)], kind="Shop")
    assert len(str(caught.value).splitlines()) == 3


def test_models_with_different_names_need_the_name_of_the_kind() -> None:
    with pytest.raises(BuildError, match="all models must have the name of the kind, unless `kind` is given"):
        VersionedResource(GROUP, [V1, V2, V3], [ONE_TWO, TWO_THREE])
    with pytest.raises(ManifestError, match="all models must have the name of the kind, unless `kind` is given"):
        crd(GROUP, V1, V3)


def test_the_definition_has_every_version_with_its_schema_columns_and_deprecation() -> None:
    spec = SHOPS.definition()["spec"]
    assert spec["names"] == {"kind": "Shop", "listKind": "ShopList", "plural": "shops", "singular": "shop"}
    found = [(each["name"], each["storage"], each.get("deprecationWarning")) for each in spec["versions"]]
    assert found == [("v1", False, "use v3"), ("v2", False, None), ("v3", True, None)]
    columns = [[column["name"] for column in each.get("additionalPrinterColumns", [])] for each in spec["versions"]]
    assert columns == [["Address"], ["City", "Age"], []]
    fields = [set(each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]) for each in spec["versions"]]
    assert fields[0] == {"address", "memoryGi", "motto"}
    assert fields[2] == {"place", "memoryMi", "color", "ports"}


def test_neighbours_with_one_model_need_no_conversion() -> None:
    same = VersionedResource(GROUP, [V2, replace(V2, name="v3", stored=True)], kind="Shop")
    old = {"apiVersion": f"{GROUP}/v2", "kind": "Shop", "metadata": {"name": "a"}, "spec": {"unknown": 1}}
    assert same.convert(old, "v3") == {**old, "apiVersion": f"{GROUP}/v3"}


def test_one_model_may_be_that_of_two_versions_which_are_not_neighbours() -> None:
    back = Conversion(ShopV2, ShopV1, up=v2_to_v1, down=v1_to_v2)
    chain = VersionedResource(GROUP, [V1, V2, replace(V1, name="v3", stored=True)], [ONE_TWO, back], kind="Shop")
    spec = {"address": "a, b", "memoryGi": 2, "motto": "x"}
    old = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": "a"}, "spec": spec}
    assert chain.convert(chain.convert(old, "v3"), "v1") == old


def test_an_unknown_version_is_reported_with_the_known_ones() -> None:
    with pytest.raises(
        BuildError, match=r"^shops.versions.example.com has no version 'v9', expected one of v1, v2, v3"
    ):
        SHOPS.version("v9")


def test_a_single_version_is_stored_and_needs_no_webhook() -> None:
    one = VersionedResource(GROUP, [V1], kind="Shop")
    assert (one.stored, one.has_conversions, SHOPS.has_conversions) == (V1, False, True)
    assert SHOPS.stored == V3
