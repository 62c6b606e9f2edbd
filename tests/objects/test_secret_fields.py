"""Values of fields that a model declares as secret are in no message."""

from __future__ import annotations

from typing import Annotated, Any, Final

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    Secret,
    SecretBytes,
    SecretStr,
    ValidationError,
)
from pydantic.json_schema import WithJsonSchema

from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.model_errors import describe_invalid, field_errors_of
from ocf.objects.model_fields import is_secret
from ocf.objects.models import read_live
from ocf.runtime.admission import Step, Webhook, review
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import OwnerType

SECRET: Final = "hunter2"
LONG: Final = Field(min_length=9)


class Login(CamelModel):
    pass_word: SecretStr = Field(min_length=9)
    other_name: int = 1


class Token(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: SecretStr = Field(min_length=9)


class ShopSpec(CamelModel):
    text: SecretStr = Field(default=SecretStr("long enough"), min_length=9)
    maybe: SecretStr | None = Field(default=None, min_length=9)
    raw: SecretBytes = Field(default=SecretBytes(b"long enough"), min_length=9)
    number: Secret[int] = Secret[int](1)
    many: list[Annotated[SecretStr, LONG]] = Field(default=[])
    named: dict[str, Annotated[SecretStr, LONG]] = Field(default={})
    login: Login | None = None
    logins: list[Login] = Field(default=[])
    either: Token | int = 1
    marked: Annotated[str, LONG] = Field(default="long enough", json_schema_extra={"format": "password"})
    written: str = Field(default="long enough", min_length=9, json_schema_extra={"writeOnly": True})
    annotated: Annotated[str, LONG, WithJsonSchema({"type": "string", "format": "password"})] = "long enough"
    plain: str = Field(default="long enough", min_length=9)


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    """A shop."""

    spec: ShopSpec = ShopSpec()


HIDDEN: Final[list[dict[str, Any]]] = [
    {"text": SECRET},
    {"text": [SECRET]},
    {"text": 7007007},
    {"maybe": SECRET},
    {"raw": SECRET},
    {"number": SECRET},
    {"many": [SECRET]},
    {"many": ["long enough", SECRET]},
    {"named": {"a": SECRET}},
    {"login": {"passWord": SECRET}},
    {"login": {"passWord": 7007007}},
    {"logins": [{"passWord": "long enough"}, {"passWord": SECRET}]},
    {"either": {"token": SECRET}},
    {"marked": SECRET},
    {"written": SECRET},
    {"annotated": SECRET},
]


def shop(spec: dict[str, Any]) -> Manifest:
    metadata = {"name": "corner", "namespace": "town"}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


def texts(spec: dict[str, Any]) -> list[str]:
    """Return the messages about a shop: of its readers, of its owner type, and of its webhook."""
    with pytest.raises(ManifestError) as of_live:
        read_live(shop(spec), Shop)
    with pytest.raises(ManifestError) as of_owner:
        OwnerType.of(Shop).read(shop(spec))
    found = [str(of_live.value), str(of_owner.value)]
    with pytest.raises(ValidationError) as invalid:
        Shop.model_validate(shop(spec))
    found.append(describe_invalid(invalid.value, Shop))
    found += [str(error) for error in field_errors_of(invalid.value.errors(), shop(spec), Shop)]
    webhook = Webhook.of(Shop, validators=[lambda *_: []])
    kind = {"group": "example.com", "version": "v1", "kind": "Shop"}
    request = {
        "uid": "1",
        "kind": kind,
        "operation": "CREATE",
        "object": shop(spec),
        "name": "corner",
        "namespace": "town",
    }
    found.append(str(review(webhook, Step.VALIDATE, {"request": request})["response"]))
    return found


@pytest.mark.parametrize("spec", HIDDEN, ids=str)
def test_the_value_of_a_secret_field_is_in_no_message(spec: dict[str, Any]) -> None:
    found = texts(spec)
    assert all(f"spec.{next(iter(spec))}" in text for text in found), found
    assert not any(SECRET in text or "7007007" in text for text in found), found


@pytest.mark.parametrize("spec", [{"plain": SECRET}, {"login": {"passWord": "long enough", "otherName": SECRET}}])
def test_other_values_are_shown(spec: dict[str, Any]) -> None:
    assert all(SECRET in text for text in texts(spec))


@pytest.mark.parametrize(
    "alias", [AliasChoices("token", "pass"), AliasPath("token", 0), AliasChoices("pass", AliasPath("token", 0))]
)
def test_a_field_with_several_names_shows_no_secret(alias: AliasChoices | AliasPath) -> None:
    class Named(BaseModel):
        secret: SecretStr = Field(min_length=99, validation_alias=alias)

    with pytest.raises(ValidationError) as caught:
        Named.model_validate({"token": [SECRET] if "AliasPath" in str(alias) else SECRET})
    assert SECRET not in describe_invalid(caught.value)


def test_an_assignment_shows_no_secret() -> None:
    class Checked(BaseModel):
        model_config = ConfigDict(validate_assignment=True)

        token: SecretStr = Field(default=SecretStr("long enough"), min_length=9)

    held: Any = Checked()
    with pytest.raises(ValidationError) as caught:
        held.token = SECRET
    assert SECRET not in describe_invalid(caught.value)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (("spec",), False),
        (("spec", "plain"), False),
        (("spec", "text"), True),
        (("spec", "many", 0), True),
        (("spec", "named", "a"), True),
        (("spec", "either", "Token", "token"), True),
        (("spec", "either", "int"), False),
        (("spec", "logins", 1, "otherName"), False),
        (("metadata", "name"), False),
        (("nowhere", "at", "all"), False),
    ],
)
def test_which_fields_are_secret(path: tuple[str | int, ...], *, wanted: bool) -> None:
    assert is_secret(Shop, path) is wanted
