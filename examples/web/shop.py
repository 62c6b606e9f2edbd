"""What a user writes: the spec of a Shop, the custom resource that the components belong to.

Only what the operator reads is named here. The manifest as read from the cluster is what a pass works on, so fields
that these models do not know are never lost.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

__all__ = ["Part", "Scaling", "Shop", "ShopSpec"]


class Part(StrEnum):
    """What an object of a shop is for; its name and its labels say so."""

    DATABASE = "db"
    WEB = "web"
    EXPORTER = "exporter"


class _Model(BaseModel):
    """Spelt as in the API, and never changed."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class Scaling(_Model):
    """Between which counts the application is scaled."""

    min_replicas: int = Field(default=2, ge=1)
    max_replicas: int = Field(default=6, ge=1)


class ShopSpec(_Model):
    """What a user asks for.

    Attributes:
        version: Version of the product, `2.3.0`; every version gate asks it.
        password_secret: Name of a Secret with the key `password`. The user makes it, the operator only reads it.
        suspended: Whether the shop is asleep.
        exporter: Whether the exporter of metrics runs beside the application.
        scaling: Between which counts the application is scaled.
    """

    version: str
    password_secret: str
    suspended: bool = False
    exporter: bool = False
    scaling: Scaling = Scaling()


class _Metadata(_Model):
    name: str
    namespace: str


class Shop(_Model):
    """A shop, as far as the operator reads it."""

    metadata: _Metadata
    spec: ShopSpec

    def named(self, part: Part) -> dict[str, str]:
        """Return name and namespace of an object of the shop.

        Args:
            part: What the object is for.
        """
        return {"name": f"{self.metadata.name}-{part}", "namespace": self.metadata.namespace}

    def labels(self, part: Part) -> dict[str, str]:
        """Return the labels by which the pods of a part are selected.

        A selector can never be changed, so nothing that changes belongs here: no version, above all.

        Args:
            part: What the pods are for.
        """
        return {"app.kubernetes.io/instance": self.metadata.name, "app.kubernetes.io/component": str(part)}
