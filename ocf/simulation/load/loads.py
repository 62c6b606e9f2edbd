"""A load of any type, as the field `load` of a scenario takes it."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ocf.simulation.load.files import CsvLoad, JsonLoad, PrometheusLoad, RecordingLoad
from ocf.simulation.load.generators import RampLoad, SineLoad, SpikeLoad, SteadyLoad, StepsLoad
from ocf.simulation.load.noise import NoiseLoad
from ocf.simulation.load.patterns import DailyLoad, WeeklyLoad
from ocf.simulation.load.served import ServedLoad

__all__ = ["AnyLoad", "Loads"]

AnyLoad = Annotated[
    CsvLoad
    | DailyLoad
    | JsonLoad
    | NoiseLoad
    | PrometheusLoad
    | RampLoad
    | RecordingLoad
    | ServedLoad
    | SineLoad
    | SpikeLoad
    | SteadyLoad
    | StepsLoad
    | WeeklyLoad,
    Field(discriminator="type"),
]
"""A load of any type; the field `type` names it."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


class _OneOrList:
    """The JSON schema of a list, or of one item of it."""

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        listed = handler(core_schema)
        return {"anyOf": [listed["items"], {**listed, "minItems": 1}]}


Loads = Annotated[tuple[AnyLoad, ...], BeforeValidator(_listed), _OneOrList(), Field(min_length=1)]
"""One load, or several that are added up."""
