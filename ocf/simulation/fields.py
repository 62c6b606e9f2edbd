"""Field types of the models of a scenario."""

from typing import Annotated

from pydantic import Field

from ocf.objects.field_types import FileModel, Period, PositivePeriod
from ocf.objects.field_types import Milli as _SignedMilli

__all__ = ["Fraction", "Milli", "Model", "Period", "Positive", "PositivePeriod", "Rate"]


class Model(FileModel):
    """Base of all models of a scenario."""


Milli = Annotated[_SignedMilli, Field(ge=0)]
"""A quantity, such as `250m` or `1Gi`, in thousandths; not negative."""
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A finite number that is not negative."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A finite number of more than 0."""
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number between 0 and 1."""
