"""The custom resource Shop, which owns the objects of the components.

The models declare only the fields that the operator reads. A reconcile works on the manifest that was read from the
cluster, so fields that these models do not declare are never lost.
"""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

__all__ = ["Part", "Scaling", "Shop", "ShopSpec"]


class Part(StrEnum):
    """Purpose of an object of a shop; part of its name and its labels."""

    DATABASE = "db"
    WEB = "web"
    EXPORTER = "exporter"


class _Model(BaseModel):
    """Immutable model whose fields have the names of the API (camel case)."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class Scaling(_Model):
    """Range in which the application is scaled."""

    min_replicas: int = Field(default=2, ge=1)
    max_replicas: int = Field(default=6, ge=1)


class ShopSpec(_Model):
    """Desired state of a shop.

    Attributes:
        version: Version of the product, `2.3.0`; every version gate evaluates it.
        password_secret: Name of a Secret with the key `password`. The user creates it, the operator only reads it.
        suspended: Whether the shop is suspended.
        exporter: Whether the metrics exporter runs beside the application.
        scaling: Range in which the application is scaled.
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
    """A shop, with the fields that the operator reads."""

    metadata: _Metadata
    spec: ShopSpec

    def named(self, part: Part) -> dict[str, str]:
        """Return name and namespace of an object of the shop.

        Args:
            part: Purpose of the object.
        """
        return {"name": f"{self.metadata.name}-{part}", "namespace": self.metadata.namespace}

    def labels(self, part: Part) -> dict[str, str]:
        """Return the labels that select the pods of a part.

        A selector is immutable, so these labels must never change; above all they must not contain the version.

        Args:
            part: Purpose of the pods.
        """
        return {"app.kubernetes.io/instance": self.metadata.name, "app.kubernetes.io/component": str(part)}
