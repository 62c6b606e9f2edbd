"""A resource with three versions, each of which expresses something that its neighbours do not."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, Field

from ocf.errors import FieldProblem, ManifestError
from ocf.runtime.crds import Conversion, CRDVersion, PrinterColumn, VersionedResource
from ocf.runtime.crds.crd import AGE

GROUP: Final = "versions.example.com"
TEXT: Final = "[a-z]{0,3}"


class AddressSpec(BaseModel):
    address: str = Field(pattern=f"^{TEXT}, {TEXT}$")
    memory_gi: int = Field(default=1, ge=0, le=64, alias="memoryGi")
    motto: str | None = None


class CountStatus(BaseModel):
    count: int = 0


class ShopV1(BaseModel):
    spec: AddressSpec
    status: CountStatus | None = None


class StreetSpec(BaseModel):
    street: str = Field(pattern=f"^{TEXT}$")
    city: str = Field(pattern=f"^{TEXT}$")
    memory_mi: int = Field(default=1024, ge=0, le=64 * 1024 + 1023, alias="memoryMi")
    color: str | None = "red"
    tags: set[str] = set()
    ports: dict[str, int] = {}


class ReadyStatus(BaseModel):
    count: int = 0
    ready: bool = False


class ShopV2(BaseModel):
    spec: StreetSpec
    status: ReadyStatus | None = None


class Place(BaseModel):
    street: str = Field(pattern=f"^{TEXT}$")
    city: str = Field(pattern=f"^{TEXT}$")
    floor: int = 0


class Port(BaseModel):
    name: str
    number: int
    tls: bool = False


class PlaceSpec(BaseModel):
    place: Place
    memory_mi: int = Field(default=1024, ge=0, le=64 * 1024 + 1023, alias="memoryMi")
    color: str | None = "red"
    ports: list[Port] = []


class ShopV3(BaseModel):
    spec: PlaceSpec
    status: ReadyStatus | None = None


def v1_to_v2(old: ShopV1) -> ShopV2:
    street, city = old.spec.address.split(", ")
    spec = StreetSpec(street=street, city=city, memoryMi=old.spec.memory_gi * 1024)
    return ShopV2(spec=spec, status=ReadyStatus(count=old.status.count) if old.status else None)


def v2_to_v1(new: ShopV2) -> ShopV1:
    spec = AddressSpec(address=f"{new.spec.street}, {new.spec.city}", memoryGi=new.spec.memory_mi // 1024)
    return ShopV1(spec=spec, status=CountStatus(count=new.status.count) if new.status else None)


def v2_to_v3(old: ShopV2) -> ShopV3:
    if old.spec.street == "bad":
        raise ManifestError("", [FieldProblem("spec.street", "is not a street")])
    if old.spec.street == "bug":
        raise KeyError("a value of the object")
    spec = PlaceSpec(
        place=Place(street=old.spec.street, city=old.spec.city),
        memoryMi=old.spec.memory_mi,
        color=old.spec.color,
        ports=[Port(name=name, number=number) for name, number in sorted(old.spec.ports.items())],
    )
    return ShopV3(spec=spec, status=old.status)


def v3_to_v2(new: ShopV3) -> ShopV2:
    spec = StreetSpec(
        street=new.spec.place.street,
        city=new.spec.place.city,
        memoryMi=new.spec.memory_mi,
        color=new.spec.color,
        ports={port.name: port.number for port in new.spec.ports},
    )
    return ShopV2(spec=spec, status=new.status)


ONE_TWO: Final = Conversion(ShopV1, ShopV2, up=v1_to_v2, down=v2_to_v1)
TWO_THREE: Final = Conversion(ShopV2, ShopV3, up=v2_to_v3, down=v3_to_v2)
V1: Final = CRDVersion("v1", ShopV1, columns=[PrinterColumn("Address", ".spec.address")], deprecated="use v3")
V2: Final = CRDVersion("v2", ShopV2, columns=[PrinterColumn("City", ".spec.city"), AGE])
V3: Final = CRDVersion("v3", ShopV3, stored=True)
SHOPS: Final = VersionedResource(GROUP, [V1, V2, V3], [ONE_TWO, TWO_THREE], kind="Shop")
