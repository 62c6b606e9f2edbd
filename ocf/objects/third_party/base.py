"""Base classes of the models: known fields have types, unknown fields are kept."""

from kubernetes.client import V1ObjectMeta
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

__all__ = ["ApiModel", "ApiObject", "Condition"]


class ApiModel(BaseModel):
    """A part of an object, with camelCase keys.

    A newer version of the definition may have fields that the model does not know: they are sent and read as they are.
    A field inside of a list that has one owner as a whole has the default of the definition, so that it is sent: the
    API server would add it, and the list would then differ from what was applied.
    """

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True, validate_assignment=True)


class ApiObject(ApiModel):
    """An object; subclasses add `spec` and `status`."""

    api_version: str | None = None
    kind: str | None = None
    metadata: V1ObjectMeta | None = None


class Condition(ApiModel):
    """A condition of a status."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None
    last_transition_time: str | None = None
