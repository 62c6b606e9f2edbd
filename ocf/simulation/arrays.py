"""Types of arrays for annotations: type checkers see the type of the elements, which Python only has from 3.12 on."""

from array import array
from typing import TYPE_CHECKING, TypeAlias

__all__ = ["FloatArray", "IntArray"]

if TYPE_CHECKING:
    FloatArray: TypeAlias = array[float]
    IntArray: TypeAlias = array[int]
else:
    FloatArray = IntArray = array
