"""Extension of Griffe, which reads the code for the site: two things that it does not know of the docstrings here."""

import re
from collections.abc import Iterator
from typing import Any

from griffe import Class, Extension, Function, GriffeLoader, Module, Object, Parameter, ParameterKind, Parameters


class Docstrings(Extension):
    """Reads sections `Example:` as doctests, and knows the arguments of named tuples and pydantic models."""

    def on_object(self, *, obj: Object, **_options: Any) -> None:
        """Rename the sections of an object, before they are parsed."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_options: Any) -> None:  # noqa: ARG002 (of the base)
        """Give classes whose arguments are their fields the method that they get when the code runs."""
        for each in _classes(pkg):
            documented = each.docstring is not None and "Args:\n" in each.docstring.value
            if documented and "__init__" not in each.members and "dataclass" not in each.labels:
                fields = list(_fields(each))
                if fields:
                    each.set_member("__init__", Function("__init__", parameters=Parameters(*fields), parent=each))


def _classes(found: Object) -> Iterator[Class]:
    for member in found.members.values():
        if not member.is_alias and isinstance(member, Module | Class):
            if isinstance(member, Class):
                yield member
            yield from _classes(member)


def _fields(model: Class) -> Iterator[Parameter]:
    bases = {str(base) for base in model.bases}
    kind = ParameterKind.positional_or_keyword if "NamedTuple" in bases else ParameterKind.keyword_only
    yield Parameter("self", kind=ParameterKind.positional_or_keyword)
    own = {name: each for one in (*reversed(model.mro()), model) for name, each in one.attributes.items()}
    for name, attribute in own.items():
        constant = "ClassVar" in str(attribute.annotation) or ("class-attribute" in attribute.labels and name.isupper())
        if attribute.annotation is not None and not constant and not name.startswith("_"):
            default = attribute.value
            yield Parameter(name, annotation=attribute.annotation, kind=kind, default=default)
