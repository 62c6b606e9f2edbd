"""Conversion reviews: all objects or none, and failures that name object and field."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.errors import BuildError
from ocf.objects import Manifest
from ocf.runtime.admission import Service, Url, Webhooks, with_conversion
from ocf.runtime.admission.conversion_review import conversion_review
from ocf.runtime.admission.routes import routes
from ocf.runtime.crds import VersionedResource
from tests.runtime.crds.shop_versions import GROUP, SHOPS, V1, V2


def shop(name: str = "a", **spec: Any) -> Manifest:
    given = {"street": "x", "city": "y", **spec}
    metadata = {"name": name, "namespace": "north"}
    return {"apiVersion": f"{GROUP}/v2", "kind": "Shop", "metadata": metadata, "spec": given}


def asked(*objects: Any, **request: Any) -> dict[str, Any]:
    given = {"uid": "42", "desiredAPIVersion": f"{GROUP}/v3", "objects": list(objects), **request}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": given}
    answer = conversion_review(SHOPS, review)
    assert (answer["apiVersion"], answer["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    return dict(answer["response"])


def test_all_objects_are_returned_in_their_order() -> None:
    response = asked(shop("b"), shop("a"))
    assert (response["uid"], response["result"]) == ("42", {"status": "Success"})
    found = [(each["apiVersion"], each["metadata"]["name"]) for each in response["convertedObjects"]]
    assert found == [(f"{GROUP}/v3", "b"), (f"{GROUP}/v3", "a")]


def test_no_object_is_a_valid_request() -> None:
    assert asked()["result"] == {"status": "Success"}


def test_the_given_objects_are_not_changed() -> None:
    given = shop()
    asked(given)
    assert given == shop()


def test_one_object_that_cannot_be_converted_fails_the_review() -> None:
    response = asked(shop("good"), shop("other", street="bad"))
    assert response["result"] == {
        "status": "Failure",
        "message": "Shop north/other in v2: spec.street: is not a street",
    }
    assert response["convertedObjects"] == []
    assert response["uid"] == "42"


@pytest.mark.parametrize(
    ("request_fields", "message"),
    [
        pytest.param(
            {"desiredAPIVersion": f"{GROUP}/v9"},
            f"shops.{GROUP} has no version 'v9', expected one of v1, v2, v3",
            id="an unknown version",
        ),
        pytest.param(
            {"desiredAPIVersion": "other.example.com/v3"},
            f"request.desiredAPIVersion must be a version of {GROUP}, got 'other.example.com/v3'",
            id="another group",
        ),
        pytest.param({"objects": {}}, "request.objects must be a list, got dict", id="no list"),
        pytest.param(
            {"objects": [shop(), {**shop(), "kind": "Store"}]},
            f"request.objects[1] must be a Shop of {GROUP}, got {GROUP}/v2 Store",
            id="another kind",
        ),
        pytest.param(
            {"objects": [5]}, f"request.objects[0] must be a Shop of {GROUP}, got another value", id="no object"
        ),
        pytest.param(
            {"objects": [{**shop(), "apiVersion": f"{GROUP}/v9"}]},
            f"shops.{GROUP} has no version 'v9', expected one of v1, v2, v3",
            id="an object of an unknown version",
        ),
    ],
)
def test_an_invalid_request_is_a_failure(request_fields: dict[str, Any], message: str) -> None:
    response = asked(shop(), **request_fields)
    assert (response["uid"], response["result"]) == ("42", {"status": "Failure", "message": message})


def test_a_review_without_a_request_is_a_failure() -> None:
    answer = conversion_review(SHOPS, {})
    assert answer["response"]["result"]["message"] == "the ConversionReview has no request"


def test_the_definition_names_the_webhook() -> None:
    definition = with_conversion(SHOPS, Service("shops", "ops"), ca_bundle=b"PEM")
    service = {"name": "shops", "namespace": "ops", "port": 443, "path": f"/convert/{GROUP}/shops"}
    assert definition["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service, "caBundle": "UEVN"},
            "conversionReviewVersions": ["v1"],
        },
    }
    assert "conversion" not in SHOPS.definition()["spec"]


def test_a_single_version_has_no_webhook() -> None:
    one = VersionedResource(GROUP, [V1], kind="Shop")
    assert with_conversion(one, Url("https://127.0.0.1")) == one.definition()


def test_the_path_of_the_definition_is_that_of_the_server() -> None:
    webhooks = Webhooks("shops", conversions=[SHOPS])
    path = with_conversion(SHOPS, Url(""))["spec"]["conversion"]["webhook"]["clientConfig"]["url"]
    (route,) = routes(webhooks).items()
    assert (route[0], route[1].name) == (path, f"convert.shops.{GROUP}")


@pytest.mark.parametrize(
    ("conversions", "problem"),
    [
        pytest.param([], "expected at least one webhook, got none", id="none"),
        pytest.param([SHOPS, SHOPS], f"shops.{GROUP} has two conversion webhooks, expected one", id="one twice"),
        pytest.param(
            [VersionedResource(GROUP, [V2], kind="Shop")],
            f"shops.{GROUP} has one version, so it needs no conversion webhook",
            id="one version",
        ),
    ],
)
def test_conversions_that_cannot_be_served_are_rejected(conversions: list[VersionedResource], problem: str) -> None:
    with pytest.raises(BuildError) as caught:
        Webhooks("shops", conversions=conversions)
    assert str(caught.value) == f"webhooks shops: {problem}"
