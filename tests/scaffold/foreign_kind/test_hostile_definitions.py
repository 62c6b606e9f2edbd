"""Hostile definitions: whatever a field says, the code is that of an honest definition, or there is an error.

Other generators wrote such texts into code: a path (https://github.com/swagger-api/swagger-codegen/issues/11309), a
description of a schema of Kubernetes (https://github.com/fabric8io/kubernetes-client/pull/7954), the version of the API
(https://github.com/ferdikoomen/openapi-typescript-codegen/issues/2809), a quote at the end of a docstring
(https://github.com/glideapps/quicktype/issues/2247), a backslash or three quotes in one
(https://github.com/datamodel-code-generator/datamodel-code-generator/issues/1808,
https://github.com/microsoft/kiota/issues/5636).
"""

from __future__ import annotations

import ast
import copy
import io
import tokenize
import unicodedata
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.objects import load_document
from ocf.scaffold import KindOptions, foreign_kinds, render_kind
from ocf.scaffold.foreign_kind import ForeignKind
from ocf.scaffold.foreign_kind.documentation import docstring
from tests.requirements import Sampled

Json = dict[str, Any]
Step = str | int

MARK: Final = "executed"
CODE: Final = f"open({MARK!r}, 'w')"
HOSTILE: Final = {
    "a call after double quotes": f'")\n{CODE}\n("',
    "a call after single quotes": f"')\n{CODE}\n('",
    "three quotes in lines of their own": f'"""\n{CODE}\n"""',
    "three quotes in the line": f'x"""; {CODE} #',
    "a backslash at the end": "ends with a backslash \\",
    "a backslash and a blank at the end": "ends with a backslash and a blank \\ ",
    "a quote and a blank at the end": 'ends with a quote" ',
    "quotes around a line break": 'two quotes""\n"',
    "an escaped line break": f"\\\n{CODE}",
    "a carriage return": f"x\r{CODE}",
    "a form feed": f"x\x0c{CODE}",
    "a line separator": f"x\u2028{CODE}",
    "a next line": f"x\x85{CODE}",
    "wide quotes that normalize to quotes": f"\uff02\uff02\uff02\n{CODE}\n",
    "half of a surrogate pair": "\ud800",
    "a null": "\x00",
    "an override of direction": "\u202e",
    "a language tag": "\U000e0001",
    "a soft hyphen": "\xad",
    "a character of private use": "\ue000",
    "an unassigned character": "\u0378",
    "escapes": "\\N{DIGIT ONE}\\x",
    "templates": "{{ 7 * 7 }}@{kind}@% if x %@{kind}",
    "a long text with an equals sign": "a=" + "b" * 200 + f'"+{CODE}+"',
    "a path": "../../../etc/passwd",
    "a sign whose lower case is ASCII": "\u212aelvin",
    "a name of Python": "None",
    "a dunder": "__import__",
}
HIDDEN: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
ODD: Final[tuple[object, ...]] = (
    *(10**400, -1, 2**62, 1e308, 5e-324, float("inf"), float("nan")),
    *(True, None, [], {}, [[1]], {"a": [{}]}),
)

STATUS: Final[Json] = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
        }
    },
}
DEFINITION: Final[Json] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "caches.example.com"},
    "spec": {
        "group": "example.com",
        "names": {
            "kind": "Cache",
            "plural": "caches",
            "singular": "cache",
            "listKind": "CacheList",
            "shortNames": ["c"],
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'}
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A cache.",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "description": "What is wanted.",
                                "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "must be positive"}],
                                "oneOf": [{"required": ["size"]}, {"required": ["mode"]}],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                                    "ratio": {
                                        "type": "number",
                                        "multipleOf": 0.5,
                                        "exclusiveMinimum": True,
                                        "minimum": 0,
                                    },
                                    "mode": {"type": "string", "enum": ["fast", "safe"], "nullable": True},
                                    "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "format": "x"},
                                    "items": {
                                        "type": "array",
                                        "minItems": 1,
                                        "x-kubernetes-list-map-keys": ["key"],
                                        "items": {"type": "object", "properties": {"key": {"type": "string"}}},
                                    },
                                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "limit": {"x-kubernetes-int-or-string": True, "pattern": "^x$"},
                                },
                            },
                            "status": STATUS,
                        },
                    }
                },
            }
        ],
    },
}


def places(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield the path of every value below a value."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in steps:
        yield (*path, step)
        yield from places(below, (*path, step))


PLACES: Final = tuple(places(DEFINITION))
NAMES: Final = tuple(path for path in PLACES if isinstance(path[-1], str))


def changed(path: tuple[Step, ...], change: Callable[[Any, Any], None]) -> Json:
    """Return the definition with a change of the value that holds the end of a path."""
    made = copy.deepcopy(DEFINITION)
    below: Any = made
    for step in path[:-1]:
        below = below[step]
    change(below, path[-1])
    return made


def with_value(path: tuple[Step, ...], value: object) -> Json:
    return changed(path, lambda below, step: below.__setitem__(step, value))


def with_name(path: tuple[Step, ...], name: str) -> Json:
    return changed(path, lambda below, step: below.__setitem__(name, below.pop(step)))


class Masked(ast.NodeTransformer):
    """Removes what may differ between two declarations: texts and the names of classes."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("text" if isinstance(node.value, str) else node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = "name"
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("name" if node.id.startswith("Cache") else node.id, node.ctx)


def shape(text: str) -> str:
    return ast.dump(Masked().visit(ast.parse(text)))


def honest(ready: str, *, cluster_scoped: bool, has_spec: bool) -> dict[str, str]:
    """Return the files of an honest definition, of the form that the definition asks for."""
    parts: Json = {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}, "status": STATUS}
    kind = ForeignKind(
        group="example.com",
        version="v1",
        kind="Cache",
        cluster_scoped=cluster_scoped,
        schema={"type": "object", "properties": parts if has_spec else {**parts, "other": {"type": "string"}}},
        ready=ready,
    )
    return render_kind(kind, KindOptions()).texts


MODEL_NODES: Final = (
    ast.Module,
    ast.Expr,
    ast.Constant,
    ast.ImportFrom,
    ast.alias,
    ast.Assign,
    ast.AnnAssign,
    ast.ClassDef,
    ast.List,
    ast.Set,
    ast.Tuple,
    ast.Name,
    ast.Load,
    ast.Store,
    ast.Subscript,
    ast.BinOp,
    ast.BitOr,
    ast.UnaryOp,
    ast.USub,
    ast.Call,
    ast.keyword,
)
CALLED: Final = {"Field", "frozenset"}
IMPORTED: Final = {"__future__", "typing", "pydantic", "ocf.objects.third_party.base"}
ARGUMENTS: Final = {
    "default",
    "alias",
    "ge",
    "gt",
    "le",
    "lt",
    "multiple_of",
    "max_length",
    "min_length",
    "pattern",
}


def assert_models_only(text: str) -> None:
    """Check that a module has imports, classes with annotated fields, aliases and texts, and nothing else."""
    assert not [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type == tokenize.COMMENT]
    tree = ast.parse(text)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    imported: set[str] = set()
    for node in ast.walk(tree):
        assert isinstance(node, MODEL_NODES), ast.dump(node)
        if isinstance(node, ast.ImportFrom):
            assert node.module in IMPORTED
            imported |= {each.name for each in node.names}
        elif isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            assert node.func.id in CALLED
            assert {each.arg for each in node.keywords} <= ARGUMENTS
            assert all(isinstance(each.value, ast.Constant | ast.UnaryOp) for each in node.keywords)
        elif isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            defined.add(node.target.id)
        elif isinstance(node, ast.Expr):
            assert isinstance(node.value, ast.Constant)
            assert isinstance(node.value.value, str)
    known = imported | defined | CALLED | {"__all__", "str", "list", "dict", "bool", "int"}
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= known


def assert_harmless(definition: Json, options: KindOptions | None = None) -> None:
    """Check that a definition gives an error, or files that differ from honest ones in texts and names alone."""
    try:
        (kind,) = foreign_kinds([definition])
        made = render_kind(kind, options or KindOptions())
    except ConfigError:
        return
    folder = made.module.replace(".", "/")
    declaration, model = made.texts[f"{folder}/__init__.py"], made.texts[f"{folder}/model.py"]
    assert_models_only(model)
    has_spec = "SpecEditor" in declaration
    expected = honest(kind.ready, cluster_scoped=kind.cluster_scoped, has_spec=has_spec)
    if made.class_name.startswith("Cache"):
        assert shape(declaration) == shape(expected["kinds/cache/__init__.py"])
    for path, text in made.texts.items():
        assert ".." not in Path(path).parts
        if path.endswith(".py"):
            # Such characters hide code from a reviewer: https://github.com/crystal-lang/crystal/issues/11392.
            assert {unicodedata.category(each) for each in text if each != "\n"}.isdisjoint(HIDDEN)
            ast.parse(text.encode())
        else:
            assert isinstance(load_document(text), dict)


ANY_TEXT: Final = st.one_of(
    st.sampled_from([*HOSTILE.values()]), st.text(st.characters(), max_size=40), st.text("\"'\\\n x#", max_size=12)
)
JUNK: Final = st.one_of(
    ANY_TEXT, st.sampled_from(ODD), st.lists(ANY_TEXT, max_size=2), st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2)
)


@given(st.sampled_from(PLACES), JUNK)
@example(("spec", "versions", 0, "name"), f'v1")\n{CODE}\n("')
def test_any_value_at_any_field_gives_an_error_or_harmless_code(path: tuple[Step, ...], value: object) -> None:
    assert_harmless(with_value(path, value))


@given(st.sampled_from(NAMES), ANY_TEXT)
def test_any_name_of_a_field_gives_an_error_or_harmless_code(path: tuple[Step, ...], name: str) -> None:
    assert_harmless(with_name(path, name))


@given(st.lists(ANY_TEXT, min_size=1, max_size=4), st.sampled_from(["", "    "]))
def test_no_text_ends_its_docstring(parts: list[str], indent: str) -> None:
    text = "\n".join(docstring(parts, indent))

    (node,) = ast.parse(f"class A:\n{text}\n" if indent else text).body
    expression = node.body[0] if isinstance(node, ast.ClassDef) else node
    assert isinstance(expression, ast.Expr)
    assert isinstance(expression.value, ast.Constant)


@pytest.mark.matrix
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_at_every_field(name: str, sampled: Sampled) -> None:
    for _, path in sampled([(name, path) for path in PLACES]):
        assert_harmless(with_value(path, HOSTILE[name]))


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        pytest.param(("spec", "group"), 'a.b")', "spec.group: 'a.b\")': a lowercase RFC 1123 subdomain", id="group"),
        pytest.param(("spec", "group"), "internal", "should be a domain with at least one dot", id="group, no dot"),
        pytest.param(("spec", "group"), 1.5, "spec.group: must be a text, got 1.5", id="group, a number"),
        pytest.param(("spec", "versions", 0, "name"), 'v1")', "spec.versions[].name: 'v1\")'", id="version"),
        pytest.param(("spec", "names", "kind"), "\u212aelvin", "spec.names.kind: must be a name", id="kind"),
        pytest.param(("spec", "versions"), "v1", 'spec.versions: must be a list, got "v1"', id="versions"),
        pytest.param(
            ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "size", "minimum"),
            CODE,
            f'properties.spec.properties.size.minimum: must be a number, got "{CODE}"',
            id="limit",
        ),
        pytest.param(
            ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties", "size", "maximum"),
            10**400,
            "size.maximum: must be a finite number of 64 bits, got a number of 1329 bits",
            id="huge limit",
        ),
        pytest.param(
            ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "oneOf", 0, "required"),
            "size",
            'oneOf[0].required: must be a list, got "size"',
            id="list",
        ),
    ],
)
def test_an_error_names_field_and_value(path: tuple[Step, ...], value: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        foreign_kinds([with_value(path, value)])

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name) for name, text in HOSTILE.items() if name != "a name of Python"]
)
@pytest.mark.parametrize("option", ["ready", "failing"])
def test_a_condition_of_an_option_is_a_type_of_conditions(option: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"--{option}: must be the type of a condition, got"):
        KindOptions(**{option: text})


@pytest.mark.parametrize("package", ["a.class", "a..b", "a b", "a\nb", "", "a.b;c"])
def test_a_package_is_a_name_of_python(package: str) -> None:
    with pytest.raises(ConfigError, match="--package: must be a package of Python"):
        KindOptions(package=package)


@pytest.mark.parametrize(
    ("package", "taken", "problem"),
    [
        pytest.param("json", (), "hides a module of Python's standard library", id="standard library"),
        pytest.param("types.kinds", (), "hides a module of Python's standard library", id="in the standard library"),
        pytest.param("ocf.kinds", (), "hides another package", id="ocf"),
        pytest.param("redis", {"redis"}, "hides another package", id="installed"),
        pytest.param("match", (), "is a keyword of Python", id="soft keyword"),
    ],
)
def test_a_package_hides_no_other(package: str, taken: Collection[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=f"--package: '{package}' is in the package .*, which {problem}"):
        KindOptions(package=package, taken=taken)
    # Below the first name, each is possible.
    assert KindOptions(package=f"shop.{package}", taken=taken).package == f"shop.{package}"


def test_a_schema_that_is_too_deep_is_an_error() -> None:
    schema: Json = {"type": "string"}
    for _ in range(3000):
        schema = {"type": "array", "items": schema}

    with pytest.raises(ConfigError, match="must be nested at most 100 levels deep"):
        ForeignKind(group="a.b", version="v1", kind="Cache", cluster_scoped=False, schema=schema, ready="")
