"""Description of the models of a custom resource: what the source of a module says, without its layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["AliasModel", "ClassModel", "FieldModel", "Model", "TypeModel"]


@dataclass(frozen=True, slots=True)
class TypeModel:
    """A type of Python.

    Args:
        text: The annotation, `list[CertificateUsage]`, without `| None`.
        limits: Arguments of `Field` that hold for a value of this type, `{"ge": 1}`.
        notes: Sentences about limits that no argument can express.
    """

    text: str
    limits: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldModel:
    """A field of a class.

    Args:
        name: The name in Python.
        alias: The name in the API; empty if it follows from the other one.
        required: Whether an object must have the field.
        nullable: Whether null is a value.
        paragraphs: Description.
    """

    name: str
    alias: str
    type: TypeModel
    required: bool
    nullable: bool
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassModel:
    """A class: an object with fields.

    Args:
        name: Name of the class.
        base: Name of the base class.
        paragraphs: Description; the first one is the summary.
    """

    name: str
    base: str
    paragraphs: tuple[str, ...]
    fields: tuple[FieldModel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasModel:
    """A name for values of an enumeration, or for a scalar with limits.

    Args:
        values: The values of an enumeration; empty if it is not one.
        type: The scalar with its limits.
        summary: One sentence.
    """

    name: str
    values: tuple[Any, ...] = ()
    type: TypeModel = TypeModel("str")
    summary: str


Model: TypeAlias = ClassModel | AliasModel
"""One declaration of a module."""
