"""Python names for the fields and schemas of a custom resource: stable, readable, and never taken."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count
from typing import Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

__all__ = ["ITEM", "RESERVED", "VALUE", "class_names", "field_name", "module_name", "needs_alias"]

ITEM: Final = "[]"
"""Segment of a path: the items of a list."""
VALUE: Final = "{}"
"""Segment of a path: the values of a map."""

RESERVED: Final = frozenset(
    {
        "Annotated",
        "Any",
        "ApiModel",
        "ApiObject",
        "ApplyOperation",
        "BaseMutator",
        "Builder",
        "ClassVar",
        "ConditionStatus",
        "DateTime",
        "Editor",
        "Edits",
        "FILE",
        "FOLDER",
        "Field",
        "Final",
        "GOLDEN",
        "Handlers",
        "IntOrString",
        "IntegrationBuilder",
        "IntegrationResource",
        "IntegrationStatus",
        "Kind",
        "Literal",
        "Manifest",
        "Mutation",
        "Mutator",
        "NullableFields",
        "Number",
        "ObjectMeta",
        "ObjectMetaEditor",
        "Path",
        "QuantityValue",
        "Resource",
        "SAMPLE",
        "StaticBuilder",
        "StaticResource",
        "StrictBool",
        "StrictInt",
        "TYPE_CHECKING",
        "TypeAlias",
    }
)
"""Names of the generated modules, which no class must have; of `ObjectMeta`, its editor would have one of them."""

_LONG: Final = 50
"""Names that are longer have the last fields of the path only."""
_SHORTEST: Final = 8
_LONGEST: Final = 80
_LONGEST_KIND: Final = 56
"""With longer names the formatter would break lines of the templates."""
_ANNOTATIONS: Final = frozenset({"bool", "dict", "float", "frozenset", "int", "list", "str"})
# A capital begins a word, also the last one of several, and so does the first digit after a small letter does not:
# HTTPGet gives http_get, ipv4Address ipv4_address.
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z0-9]+|[0-9]+")
_ENDINGS: Final = (
    ("ies", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
)


def field_name(name: str) -> str:
    """Return the name of a field in Python.

    Args:
        name: Its name in the API.

    Returns:
        Snake case; with an underscore at the end if Python, pydantic or the annotations of the model use the name.

    Example:
        >>> [field_name(name) for name in ("secretName", "isCA", "class", "$ref", "3scale", "schema")]
        ['secret_name', 'is_ca', 'class_', 'ref', 'field_3scale', 'schema_']
    """
    found = "_".join(word.lower() for word in _WORDS.findall(name)) or "field"
    if found[0].isdigit() or found.startswith(("model_validate", "model_dump")):
        found = f"field_{found}"
    taken = keyword.iskeyword(found) or hasattr(BaseModel, found) or found in {*_ANNOTATIONS, "l", "nullable_fields"}
    return f"{found}_" if taken else found


def needs_alias(name: str, python: str) -> bool:
    """Return whether the alias generator of the models does not give the name in the API.

    Args:
        name: The name in the API.
        python: The name in Python.

    Example:
        >>> needs_alias("secretName", "secret_name"), needs_alias("isCA", "is_ca")
        (False, True)
    """
    return to_camel(python) != name


def module_name(kind: str) -> str:
    """Return the name of the package of a kind.

    Example:
        >>> module_name("ServiceMonitor"), module_name("Import")
        ('servicemonitor', 'import_')
    """
    name = kind.lower().replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def class_names(kind: str, path: Sequence[str]) -> Iterator[str]:
    """Yield names for the schema at a path, the best one first; the caller takes the first that is free.

    Args:
        path: Names of fields, `ITEM` and `VALUE`; empty for the whole object.

    Yields:
        The kind with the fields in singular, without `Spec` below the spec; of a long path only its last fields.

    Example:
        >>> next(class_names("Certificate", ("spec", "privateKey")))
        'CertificatePrivateKey'
        >>> next(class_names("Certificate", ("status", "conditions", "[]")))
        'CertificateStatusCondition'
        >>> next(class_names("Image", ()))
        'Image'
        >>> next(class_names("Field", ())), next(class_names("postgresql", ()))
        ('FieldObject', 'Postgresql')
    """
    for name in _candidates(kind, path):
        if name not in RESERVED and not hasattr(builtins, name):
            yield name


def _candidates(kind: str, path: Sequence[str]) -> Iterator[str]:
    kind = "".join(part[:1].upper() + part[1:] for part in kind.split("-"))[:_LONGEST_KIND]
    words = list(_camel_words(path))
    if not words:
        yield from (kind, f"{kind}Object")
        return
    short = words[1:] if words[0] == "Spec" and len(words) > 1 else words
    full = kind + "".join(short)
    if len(full) > _LONG:
        ends = (kind + "".join(short[-last:]) for last in range(2, len(short)))
        yield from (name for name in ends if len(kind) + _SHORTEST < len(name) <= _LONGEST)
    if len(full) > _LONGEST:
        # A part of the path and a digest of all of it: the name depends on nothing else.
        full = f"{full[: _LONGEST - 8]}{sha256('.'.join(path).encode()).hexdigest()[:8]}"
    yield full
    yield from (name for name in [kind + "".join(words)] if len(name) <= _LONGEST)
    yield from (f"{full}{number}" for number in count(2))


def _camel_words(path: Sequence[str]) -> Iterator[str]:
    """Yield a word for each field; the items of a list and the values of a map put it into singular."""
    words: list[str] = []
    for segment in path:
        if segment not in {ITEM, VALUE}:
            words.append("".join(word[0].upper() + word[1:] for word in _WORDS.findall(segment)) or "Field")
        elif words and (single := _singular(words[-1])) != words[-1]:
            words[-1] = single
        else:
            words.append("Item" if segment == ITEM else "Value")
    yield from words


def _singular(word: str) -> str:
    return next((word.removesuffix(plural) + single for plural, single in _ENDINGS if word.endswith(plural)), word)
