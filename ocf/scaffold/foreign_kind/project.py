"""Files of a foreign kind in a project: models, declaration, and tests with a sample."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from ocf.errors import ConfigError
from ocf.objects import Manifest, dump_document
from ocf.objects.name_validation import qualified_name
from ocf.objects.redaction import redacted
from ocf.scaffold.foreign_kind.definition import ForeignKind
from ocf.scaffold.foreign_kind.description import ClassModel, Model
from ocf.scaffold.foreign_kind.names import module_name
from ocf.scaffold.foreign_kind.python_source import bracketed, module_source
from ocf.scaffold.foreign_kind.sample import minimal_sample
from ocf.scaffold.foreign_kind.schema_reader import read_schema
from ocf.scaffold.package_names import package_problem
from ocf.scaffold.python_literal import literal
from ocf.scaffold.template import Templates

__all__ = ["KindFiles", "KindOptions", "kept_problems", "render_kind"]

_TEMPLATES: Final = "templates/kind"
_TESTS: Final = "tests/kinds"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindOptions:
    """Place and status of a foreign kind.

    Args:
        package: Package of the kinds, `shop.kinds`.
        folder: Folder of that package in the project, `shop/kinds`; empty follows from the package.
        ready: Type of the condition that is True once an object works; empty takes that of the definition.
        failing: Type of the condition that is True while the controller cannot make progress; empty if there is none.
        taken: Names of importable packages, which that of the kinds would hide.

    Raises:
        ConfigError: If the package cannot be imported under its name, or a condition is not a type of conditions.
    """

    package: str = "kinds"
    folder: str = ""
    ready: str = ""
    failing: str = ""
    taken: Collection[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in self.package.split(".")):
            raise ConfigError(f"--package: must be a package of Python such as shop.kinds, got {self.package!r}")
        top = self.package.partition(".")[0]
        if problem := package_problem(top, self.taken):
            raise ConfigError(f"--package: {self.package!r} is in the package {top}, which {problem}")
        for option, name in (("--ready", self.ready), ("--failing", self.failing)):
            if name and (problems := qualified_name(name)):
                raise ConfigError(f"{option}: must be the type of a condition, got {name!r}: {'; '.join(problems)}")

    @property
    def place(self) -> str:
        """Folder of the package."""
        return self.folder or self.package.replace(".", "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFiles:
    """Files of a kind.

    Args:
        module: Its package, `shop.kinds.certificate`.
        class_name: Name of the class of its objects.
        texts: Path in the project to text.
        generated: Paths of those that can be written anew: the user does not change them.
        declaration: Path of the declaration.
        sample: Path of the sample.
    """

    module: str
    class_name: str
    texts: dict[str, str]
    generated: frozenset[str]
    declaration: str
    sample: str


def render_kind(kind: ForeignKind, options: KindOptions, sample: Manifest | None = None) -> KindFiles:
    """Render the files of a kind. Nothing of them is imported or executed: the definition may come from anybody.

    Args:
        kind: The kind.
        options: Its place and status.
        sample: An object of the kind for the tests; None makes the smallest one.

    Returns:
        The files.

    Raises:
        ConfigError: If Jinja is not installed, or a failing condition is asked for where there is none that is ready.

    Example:
        >>> schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        ...     "size": {"type": "integer", "minimum": 1}}}}}
        >>> cache = ForeignKind(
        ...     group="example.com", version="v1", kind="Cache", cluster_scoped=False, schema=schema, ready=""
        ... )
        >>> made = render_kind(cache, KindOptions(package="shop.kinds"))
        >>> sorted(made.texts)
        ['shop/kinds/cache/__init__.py', 'shop/kinds/cache/model.py', 'tests/kinds/cache.yaml',
         'tests/kinds/goldens/cache.yaml', 'tests/kinds/test_cache.py']
        >>> made.generated
        frozenset({'shop/kinds/cache/model.py'})
    """
    if options.failing and not (options.ready or kind.ready):
        raise ConfigError(
            f"--failing: has no effect, because the definition of {kind.kind} has no conditions in its status; name "
            "the condition that is True once an object works with --ready"
        )
    module, models = module_name(kind.kind), read_schema(kind.kind, kind.schema)
    place = f"{options.place}/{module}"
    templates = Templates(_variables(kind, options, models, module))
    folder = files("ocf.scaffold").joinpath(_TEMPLATES)

    def rendered(name: str) -> str:
        return templates.render(folder.joinpath(f"{name}.tmpl").read_text(encoding="utf-8"))

    model, declaration, sampled = f"{place}/model.py", f"{place}/__init__.py", f"{_TESTS}/{module}.yaml"
    example = minimal_sample(kind) if sample is None else sample
    texts = {
        declaration: rendered("declaration.py"),
        model: module_source(models, _header(kind)),
        f"{_TESTS}/test_{module}.py": rendered("test_kind.py"),
        sampled: dump_document(example),
        # A resource without mutations renders its baseline.
        f"{_TESTS}/goldens/{module}.yaml": dump_document(redacted(example)),
    }
    return KindFiles(
        module=f"{options.package}.{module}",
        class_name=models[-1].name,
        texts=texts,
        generated=frozenset({model}),
        declaration=declaration,
        sample=sampled,
    )


def kept_problems(
    kept: Mapping[str, str], made: KindFiles, kind: ForeignKind, options: KindOptions, *, has_sample: bool
) -> Iterator[str]:
    """Yield why files that exist and are kept do not have what was asked for.

    Args:
        kept: Path to text of the files of the kind that exist, without those that are written anew.
        made: The files of the kind.
        options: Its place and status.
        has_sample: Whether the user has given the sample.

    Example:
        >>> schema = {"type": "object"}
        >>> cache = ForeignKind(
        ...     group="example.com", version="v1", kind="Cache", cluster_scoped=False, schema=schema, ready="Ready"
        ... )
        >>> before, options = render_kind(cache, KindOptions()), KindOptions(ready="Healthy")
        >>> print(*kept_problems(before.texts, before, cache, options, has_sample=False))
        --ready: kinds/cache/__init__.py exists and is kept, with 'Ready', not 'Healthy'; change it there, or remove
        the file and have it written anew
    """
    remedy = "change it there, or remove the file and have it written anew"
    if made.declaration in kept:
        found = dict(_declared(kept[made.declaration]))
        seen, wanted = found.get("api_version", kind.api_version), kind.api_version
        if seen != wanted:
            yield f"{made.declaration} exists and is kept, with {seen}, and the models are of {wanted}; {remedy}"
        for name, wanted in (("ready", options.ready), ("failing", options.failing)):
            if wanted and found.get(name, "") != wanted:
                with_ = f"with {found[name]!r}" if name in found else "with a status of its own"
                yield f"--{name}: {made.declaration} exists and is kept, {with_}, not {wanted!r}; {remedy}"
    if has_sample and kept.get(made.sample, made.texts[made.sample]) != made.texts[made.sample]:
        yield f"--sample: {made.sample} exists and is kept, with another object; {remedy}"


def _declared(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a declaration says of its API version and conditions; it is parsed, and never executed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Kind"), args=[ast.Constant(value=str(version)), *_]):
                yield "api_version", version
            case ast.Call(func=ast.Name(id="ConditionStatus"), keywords=keywords):
                for each in keywords:
                    if each.arg and isinstance(each.value, ast.Constant):
                        yield each.arg, str(each.value.value)


def _header(kind: ForeignKind) -> tuple[str, ...]:
    origin = (
        "Generated from its CustomResourceDefinition by `ocf new kind`, which writes this file anew with `--force`. "
        "The status is read only, so neither its limits nor its required fields are checked."
    )
    return (f"Models of {kind.kind} (`{kind.api_version}`).", origin)


def _variables(
    kind: ForeignKind, options: KindOptions, models: Sequence[Model], module: str
) -> dict[str, str | bool | list[str]]:
    root, part = models[-1], _edited_part(models)
    ready = options.ready or kind.ready
    phrase = (
        f"An object is operational while its condition `{ready}` is True."
        if ready
        else "An object is ready by existing."
    )
    category = f"edit_{module}" if part == root.name else f"edit_{module}_spec"
    path = "" if part == root.name else "spec"
    suspended = [literal(f"{kind.kind} unaffected by suspension")]
    suspension = bracketed("default_suspension_status_handler: Final = always_suspended(", suspended, ")", "")
    return {
        "package": options.package,
        "module": module,
        "kind": kind.kind,
        "group": kind.group,
        "api_version": kind.api_version,
        "cluster_scoped": kind.cluster_scoped,
        "class_name": root.name,
        "part": part,
        "part_phrase": "the object" if part == root.name else "the spec",
        "path": path,
        "category_line": "\n".join(
            bracketed(f"    {category} = Edits(", [f"{part}Editor", literal(path)], ")", "    ")
        ),
        "suspension_line": "\n".join(suspension),
        "category_phrase": phrase,
        "integration": bool(ready),
        "exports": sorted(["Builder", "Mutation", "Mutator", "Resource", f"{part}Editor"]),
        "builder": "IntegrationBuilder" if ready else "StaticBuilder",
        "ready": ready,
        "failing": options.failing,
    }


def _edited_part(models: Sequence[Model]) -> str:
    """Return the class that a mutation edits: that of the spec, or of the object if it has more parts."""
    root = models[-1]
    parts = {each.name: each.type.text for each in root.fields} if isinstance(root, ClassModel) else {}
    classes = {model.name for model in models if isinstance(model, ClassModel)}
    spec = parts.pop("spec", "")
    return spec if spec in classes and set(parts) <= {"status"} else root.name
