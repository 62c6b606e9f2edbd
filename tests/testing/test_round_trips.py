"""Round trips find conversions that lose, swap or invent values, also where an annotation would hide it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from ocf.objects import Manifest
from ocf.runtime.crds import Conversion, VersionedResource
from ocf.testing import assert_round_trips, objects_of
from tests.runtime.crds.shop_versions import (
    GROUP,
    SHOPS,
    TWO_THREE,
    V1,
    V2,
    V3,
    ShopV1,
    ShopV2,
    ShopV3,
    v1_to_v2,
    v2_to_v1,
    v2_to_v3,
    v3_to_v2,
)

KEPT = ["spec.motto", "spec.memoryMi", "spec.color", "spec.tags", "spec.ports", "spec.place.floor", "status.ready"]


@given(objects_of(SHOPS))
def test_correct_conversions_pass_for_all_objects(manifest: Manifest) -> None:
    assert_round_trips(SHOPS, manifest, kept=KEPT)


def shop(**spec: Any) -> Manifest:
    given = {"street": "a", "city": "b", **spec}
    return {"apiVersion": f"{GROUP}/v2", "kind": "Shop", "metadata": {"name": "corner"}, "spec": given}


def moving(up: Callable[[ShopV2], ShopV3], down: Callable[[ShopV3], ShopV2] = v3_to_v2) -> VersionedResource:
    """Return shops of v2 and v3 with other functions."""
    return VersionedResource(GROUP, [V2, V3], [Conversion(ShopV2, ShopV3, up=up, down=down)], kind="Shop")


def _with_another_color(old: ShopV2) -> ShopV3:
    new = v2_to_v3(old)
    return new.model_copy(update={"spec": new.spec.model_copy(update={"color": f"{new.spec.color}!"})})


def _with_swapped_places(old: ShopV2) -> ShopV3:
    new = v2_to_v3(old)
    place = new.spec.place.model_copy(update={"street": f"{new.spec.place.city}", "city": new.spec.place.street})
    return new.model_copy(update={"spec": new.spec.model_copy(update={"place": place})})


def test_a_swapped_pair_of_fields_is_found() -> None:
    with pytest.raises(AssertionError, match=r"^Shop: v2 to v3 and back must not change the object:") as caught:
        assert_round_trips(moving(_with_swapped_places), shop())
    assert "-  street: a\n-  city: b\n+  street: b\n+  city: a" in str(caught.value)


def test_a_changed_value_is_found() -> None:
    with pytest.raises(AssertionError, match=r"-  color: red\n\+  color: red!"):
        assert_round_trips(moving(_with_another_color), shop())


def test_a_value_that_depends_on_what_another_version_does_not_express_is_found() -> None:
    """Where v2 has no motto, the memory would grow with each conversion."""

    def growing(old: ShopV1) -> ShopV2:
        new = v1_to_v2(old)
        memory = new.spec.memory_mi + (0 if old.spec.motto else 1024)
        return new.model_copy(update={"spec": new.spec.model_copy(update={"memory_mi": memory})})

    wrong = Conversion(ShopV1, ShopV2, up=growing, down=v2_to_v1)
    resource = VersionedResource(GROUP, [V1, replace(V2, stored=True)], [wrong], kind="Shop")
    old = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": "a"}}
    with pytest.raises(AssertionError, match=r"^Shop: v1 to v2 and back must not change the object:"):
        assert_round_trips(resource, {**old, "spec": {"address": "a, b", "motto": "x"}})


def test_functions_that_differ_from_call_to_call_are_found() -> None:
    calls: list[int] = []

    def counting(old: ShopV2) -> ShopV3:
        calls.append(1)
        new = v2_to_v3(old)
        return new.model_copy(update={"spec": new.spec.model_copy(update={"memory_mi": len(calls)})})

    with pytest.raises(AssertionError, match=r"^Shop: v2 to v3"):
        assert_round_trips(moving(counting), shop())


def _forgetting(old: ShopV2) -> ShopV3:
    new = v2_to_v3(old)
    return new.model_copy(update={"spec": new.spec.model_copy(update={"color": "red"})})


def test_a_forgotten_field_is_found_if_the_kept_ones_are_known() -> None:
    given = shop(color="blue", tags=["x"])
    assert_round_trips(moving(_forgetting), given)
    assert_round_trips(moving(_forgetting), given, kept=["spec.tags", "spec.color"])
    with pytest.raises(AssertionError) as caught:
        assert_round_trips(moving(_forgetting), given, kept=["spec.tags"])
    assert str(caught.value) == (
        "Shop: v2 to v3 and back, without annotations, changes spec.color, which `kept` does not name"
    )


def test_a_kept_field_of_entries_is_named_for_all_of_them() -> None:
    ports = [{"name": "x", "number": 1, "tls": True}, {"name": "y", "number": 1}]
    new = {**shop(), "apiVersion": f"{GROUP}/v3", "spec": {"place": {"street": "a", "city": "b"}, "ports": ports}}
    resource = VersionedResource(GROUP, [V2, V3], [TWO_THREE], kind="Shop")
    assert_round_trips(resource, new, kept=["spec.ports[].tls"])
    with pytest.raises(AssertionError, match=r"changes spec.ports\[\].tls, which `kept` does not name$"):
        assert_round_trips(resource, new, kept=["spec.ports[].number", "spec.port"])


def test_defaults_that_the_object_lacks_are_no_difference() -> None:
    resource = VersionedResource(GROUP, [V2, V3], [TWO_THREE], kind="Shop")
    assert_round_trips(resource, shop(), kept=())


def test_metadata_stays() -> None:
    given = {**shop(), "metadata": {"name": "corner", "labels": {"a": "b"}, "annotations": {"c": "d"}}}
    assert_round_trips(SHOPS, given)
