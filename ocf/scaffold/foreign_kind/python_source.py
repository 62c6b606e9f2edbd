"""Source of the module of models, laid out as ruff formats it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ocf.scaffold.foreign_kind.description import AliasModel, ClassModel, FieldModel, Model
from ocf.scaffold.foreign_kind.documentation import WIDTH, docstring
from ocf.scaffold.python_literal import literal

__all__ = ["bracketed", "module_source"]

_INDENT: Final = "    "
_BASE: Final = "ocf.objects.third_party.base"
_IMPORTS: Final = {
    "typing": ("Annotated", "Any", "ClassVar", "Literal", "TypeAlias"),
    _BASE: ("ApiModel", "ApiObject", "DateTime", "IntOrString", "NullableFields", "Number", "QuantityValue"),
    "pydantic": ("Field", "StrictBool", "StrictInt"),
}
_CALL: Final = 2
_TEXT: Final = re.compile(r"""(["'])(?:\\.|(?!\1).)*\1""")
_PART: Final = 80
"""Characters of each part of a text that is longer than a line."""


def module_source(models: Sequence[Model], header: Sequence[str]) -> str:
    """Return the source of a module.

    Args:
        models: The declarations, each after those that it uses.
        header: Paragraphs of the docstring of the module.

    Returns:
        Python, as `ruff format` leaves it with lines of 120 characters.
    """
    body = [line for model in models for line in ("", "", *_declaration(model))]
    used = set(re.findall(r"\w+", "\n".join(_code(models))))
    imports = [
        f"from {module} import {', '.join(name for name in names if name in used)}"
        for module, names in _IMPORTS.items()
        if used & set(names)
    ]
    standard = [line for line in imports if line.startswith("from typing")]
    others = [line for line in imports if line not in standard]
    names = sorted((model.name for model in models), key=_natural)
    parts = [
        "\n".join(docstring(header, "")),
        "from __future__ import annotations",
        *(["\n".join(standard)] if standard else []),
        "\n".join(others),
        "\n".join(bracketed("__all__ = [", [literal(name) for name in names], "]", "")),
    ]
    return "\n\n".join(parts) + "\n".join(["", *body, ""])


def _natural(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Return the order of names in `__all__`: constants first, numbers by value."""
    return not name.isupper(), [(int(part or 0), text) for part, text in re.findall(r"([0-9]+)|([^0-9]+)", name)]


def _code(models: Sequence[Model]) -> Iterator[str]:
    """Yield the texts of a module that name what it imports."""
    for model in models:
        if isinstance(model, AliasModel):
            yield f"TypeAlias {'Literal' if model.values else f'Annotated Field {model.type.text}'}"
            continue
        yield model.base
        if "NullableFields" in model.base:
            yield "ClassVar"
        for each in model.fields:
            yield _TEXT.sub("", _annotation(each))
            yield "Field" if _arguments(each) else ""


def _declaration(model: Model) -> Iterator[str]:
    return _alias(model) if isinstance(model, AliasModel) else _class(model)


def _alias(model: AliasModel) -> Iterator[str]:
    if model.values:
        yield from bracketed(f"{model.name}: TypeAlias = Literal[", [literal(value) for value in model.values], "]", "")
    else:
        field = ["Field(", [f"{name}={literal(value)}" for name, value in model.type.limits.items()], ")"]
        flat = f"{model.name}: TypeAlias = Annotated[{model.type.text}, Field({', '.join(field[1])})]"
        if len(flat) <= WIDTH:
            yield flat
        else:
            yield f"{model.name}: TypeAlias = Annotated["
            yield f"{_INDENT}{model.type.text},"
            yield from _with_comma(bracketed(f"{_INDENT}Field(", list(field[1]), ")", _INDENT))
            yield "]"
    yield from docstring([model.summary, *model.type.notes], "")


def _class(model: ClassModel) -> Iterator[str]:
    yield f"class {model.name}({model.base}):"
    yield from docstring(model.paragraphs, _INDENT)
    nullable = [literal(each.name) for each in model.fields if each.nullable]
    if nullable:
        yield ""
        yield from _nullable(sorted(nullable))
    if model.fields:
        yield ""
    for each in model.fields:
        yield from _field(each)


def _nullable(names: Sequence[str]) -> Iterator[str]:
    prefix = f"{_INDENT}nullable_fields: ClassVar[frozenset[str]] = frozenset("
    flat = f"{prefix}{{{', '.join(names)}}})"
    if len(flat) <= WIDTH:
        yield flat
        return
    yield prefix
    yield from bracketed(f"{_INDENT * 2}{{", list(names), "}", _INDENT * 2)
    yield f"{_INDENT})"


def _field(field: FieldModel) -> Iterator[str]:
    yield from _assignment(f"{_INDENT}{field.name}:", _annotation(field), _value(field))
    if field.paragraphs:
        yield from docstring(field.paragraphs, _INDENT)


def _value(field: FieldModel) -> list[str]:
    """Return the value of a field: none, `None`, or `Field(` and its arguments."""
    arguments = _arguments(field)
    if arguments:
        return ["Field(", *arguments]
    return [] if field.required else ["None"]


def _assignment(name: str, annotation: str, value: Sequence[str]) -> Iterator[str]:
    """Yield a field in one line, else with a broken value, else with a broken annotation."""
    head, inner = f"{name} {annotation}", _INDENT * 2
    if len(value) > 1 and len(f"{head} = Field(") <= WIDTH:
        yield from bracketed(f"{head} = Field(", value[1:], ")", _INDENT)
    elif len(value) < _CALL and len(flat := " = ".join([head, *value])) <= WIDTH:
        yield flat
    elif value and len(f"{head} = (") <= WIDTH:
        yield f"{head} = ("
        yield from _broken(inner, value, inner)
        yield f"{_INDENT})"
    else:
        yield f"{name} ("
        yield f"{inner}{annotation}"
        yield from _broken(f"{_INDENT}) = ", value, _INDENT) if value else [f"{_INDENT})"]


def _broken(prefix: str, value: Sequence[str], indent: str) -> Iterator[str]:
    if len(value) > 1:
        yield from bracketed(f"{prefix}Field(", value[1:], ")", indent)
    else:
        yield f"{prefix}None"


def _annotation(field: FieldModel) -> str:
    optional = (not field.required or field.nullable) and field.type.text != "Any"
    return f"{field.type.text} | None" if optional else field.type.text


def _arguments(field: FieldModel) -> list[str]:
    found = [f"alias={literal(field.alias)}"] if field.alias else []
    found += [f"{name}={literal(value)}" for name, value in field.type.limits.items()]
    return ["default=None", *found] if found and not field.required else found


def bracketed(prefix: str, arguments: Sequence[str], suffix: str, indent: str) -> Iterator[str]:
    """Yield a bracket with its content: in one line, else with the content in a line, else one argument in each.

    Args:
        prefix: The line up to the opening bracket, with its indentation.
        arguments: The content.
        suffix: The closing bracket.
        indent: The indentation.

    Example:
        >>> list(bracketed("x = f(", ["a", "b=1"], ")", ""))
        ['x = f(a, b=1)']
    """
    flat = f"{prefix}{', '.join(arguments)}{suffix}"
    inner = f"{indent}{_INDENT}"
    if len(flat) <= WIDTH:
        yield flat
        return
    yield prefix
    if len(content := f"{inner}{', '.join(arguments)}") <= WIDTH and prefix.endswith("("):
        yield content
    else:
        for argument in arguments:
            yield from _argument(argument, inner)
    yield f"{indent}{suffix}"


def _argument(argument: str, indent: str) -> Iterator[str]:
    name, sign, value = argument.partition("=")
    # A text has an equals sign within its quotes, an argument with a name before them.
    if len(indent) + len(argument) + 1 <= WIDTH or not sign or not name.isidentifier():
        yield f"{indent}{argument},"
        return
    yield f"{indent}{name}=("
    yield from (f"{indent}{_INDENT}{part}" for part in _split(value))
    yield f"{indent}),"


def _split(value: str) -> Iterator[str]:
    """Yield a literal of a text in parts that Python joins; a part does not end within an escape."""
    match = re.fullmatch(r"""(r?)(["'])(.*)\2""", value, re.DOTALL)
    if match is None:
        yield value
        return
    raw, quote, text = match.groups()
    pieces = re.findall(r"\\(?:x..|u....|U........|.)|.", text, re.DOTALL)
    for start in range(0, len(pieces), _PART):
        yield f"{raw}{quote}{''.join(pieces[start : start + _PART])}{quote}"


def _with_comma(lines: Iterator[str]) -> Iterator[str]:
    *before, last = lines
    yield from before
    yield f"{last},"
