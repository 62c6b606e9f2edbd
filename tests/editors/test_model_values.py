"""Values that editors store have the right type and are copies."""

from typing import Optional

import pytest
from kubernetes.client import V1Container, V1EnvVar, V1ObjectMeta, V2HorizontalPodAutoscalerSpec, V2MetricSpec
from pydantic import BaseModel

from ocf.editors.model_values import field_type, own
from ocf.errors import ConfigError


class Shop(BaseModel):
    """A user's own resource, with every way to write an optional list."""

    old: Optional[list[V1EnvVar]] = None  # noqa: UP045 (the spelling tested)
    new: list[V1EnvVar] | None = None
    none_first: None | list[V1EnvVar] = None  # noqa: RUF036 (the spelling tested)
    plain: list[V1EnvVar] = []


@pytest.mark.parametrize(
    ("model", "field", "expected"),
    [
        pytest.param(V2HorizontalPodAutoscalerSpec, "metrics", V2MetricSpec, id="list of models"),
        pytest.param(V1Container, "args", str, id="list of texts"),
        pytest.param(V1Container, "image", str, id="text"),
        pytest.param(V2HorizontalPodAutoscalerSpec, "max_replicas", int, id="required number"),
        *(pytest.param(Shop, field, V1EnvVar, id=f"user's model, {field}") for field in Shop.model_fields),
    ],
)
def test_field_type_takes_off_what_is_around_a_class(model: type[BaseModel], field: str, expected: type) -> None:
    assert field_type(model, field) is expected


def test_a_class_of_the_same_name_from_another_package_is_named_with_it() -> None:
    """`kubernetes.aio` has classes of the same names; a message must distinguish them."""
    foreign = type("V1EnvVar", (BaseModel,), {"__module__": "kubernetes.aio.client.models.v1_env_var"})()

    with pytest.raises(ConfigError, match=r" kubernetes\.client\.V1EnvVar, not .* kubernetes\.aio\.client\.V1EnvVar$"):
        own(V1Container(name="web"), "env", foreign)


def test_a_field_is_named_as_manifests_name_it() -> None:
    with pytest.raises(
        ConfigError, match=r"^ownerReferences: must be a kubernetes\.client\.V1OwnerReference, not of type text$"
    ):
        own(V1ObjectMeta(), "owner_references", "backend")
