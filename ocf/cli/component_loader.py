"""Components from a function and a file with owners. Every error is one line.

The function is the operator's own: it takes an owner and returns its components. The owner is passed as a manifest, or
as the pydantic model in the annotation of the function's first parameter. A file with several documents has several
owners.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ForwardRef, get_type_hints

from ocf.cli.manifest_files import STDIN, Document, document_parts, opened, read_documents
from ocf.errors import BuildError, ConfigError, without_addresses
from ocf.lazy_types.signatures import signature_of
from ocf.objects import ObjectKey
from ocf.objects.documents import load_documents
from ocf.objects.file_problems import file_problem
from ocf.objects.model_errors import describe_invalid
from ocf.objects.models import validate_live
from ocf.objects.paths import parse_path, with_field
from ocf.objects.suggestions import nearest

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext
    from ocf.objects import Manifest

__all__ = [
    "NO_UID",
    "components_of",
    "find_attribute",
    "import_by_name",
    "one_line",
    "owner_name",
    "parse_value",
    "read_owners",
    "source_location",
    "with_change",
    "with_stored_metadata",
]

NO_UID: Final = "00000000-0000-0000-0000-000000000000"
"""No object has this uid."""

# One byte more than a document may have, so that a longer one is rejected without reading the whole file.
_LONGEST: Final = 3 * 2**20 + 1


def find_attribute(target: str, module: Any, name: str) -> Any:
    """Return an attribute of a module.

    Args:
        target: The name given by the user, for messages.
        name: Name of the attribute; dots separate nested attributes.
    """
    found = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            problem = f'module {module.__name__} has no "{name}"{_in_operator(module, name) or _nearest(found, part)}'
            raise ConfigError(f"{target}: {problem}") from None
    return found


def import_by_name(name: str) -> Any:
    """Import a module by name; modules of the working directory can be imported, too."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(f'module "{name}" not found: it is neither installed nor in {here}') from error
        raise ConfigError(f"module {name} cannot be imported: {one_line(error)}{source_location(error)}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"module {name} cannot be imported: {one_line(error)}{source_location(error)}") from error


def _in_operator(package: Any, name: str) -> str:
    """Return the hint that the module `operator` of a package has a name, as in a project of `ocf new operator`."""
    path = f"{package.__name__}.operator"
    is_package = hasattr(package, "__path__") and importlib.util.find_spec(path) is not None
    is_there = is_package and hasattr(import_by_name(path), name)
    return f', did you mean "{path}:{name}"?' if is_there else ""


def _nearest(module: Any, name: str) -> str:
    near = nearest(name, [each for each in dir(module) if not each.startswith("_") and _is_own(module, each)])
    return f', did you mean "{near}"?' if near else ""


def _is_own(module: Any, name: str) -> bool:
    """Return whether a name could be that of a target: not of a class, nor of what a module has just imported."""
    found = getattr(module, name, None)
    if inspect.ismodule(found) or inspect.isclass(found):
        return False
    return not inspect.isroutine(found) or getattr(found, "__module__", "") == getattr(module, "__name__", "")


def read_owners(path: str) -> tuple[Document, ...]:
    """Read the owners of a file or folder.

    Args:
        path: A file with YAML or JSON documents, a folder with such files, without its kustomizations, or `-` for the
            standard input.

    Returns:
        The documents, with the owners as their manifests; the items of a List are documents of their own.
    """
    if path != STDIN and Path(path).is_dir():
        found = [each for each in read_documents([path]) if not _is_kustomization(each)]
        return tuple(each._replace(manifest=_owner(each)) for each in found)
    name = "the standard input" if path == STDIN else path
    try:
        text = _text(path)
        owners = load_documents(text)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {file_problem(path, error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: invalid text: byte {error.start + 1} is not UTF-8") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    parts = list(document_parts(text))
    if len(parts) != len(owners):
        # A document such as `null` has a text, but is no object; then no line is known.
        parts = [(1, "")] * len(owners)
    documents = [
        each
        for number, (owner, (line, part)) in enumerate(zip(owners, parts, strict=True), 1)
        for each in opened(Document(name, number, line, owner, text=part))
    ]
    if not documents:
        raise ConfigError(f"{name} holds no objects; an owner is a manifest with apiVersion, kind and metadata")
    return tuple(each._replace(manifest=_owner(each)) for each in documents)


def _is_kustomization(document: Document) -> bool:
    return str((document.manifest or {}).get("apiVersion")).startswith("kustomize.config.k8s.io/")


def _owner(document: Document) -> Manifest:
    """Return the owner of a document."""
    if document.manifest is None:
        raise ConfigError(f"{document.place} is not an owner: {document.problem}")
    try:
        ObjectKey.of(document.manifest)
    except ConfigError as error:
        raise ConfigError(f"{document.place} is not an owner: {error}") from error
    return document.manifest


def _text(path: str) -> str:
    if path == STDIN:
        return sys.stdin.read(_LONGEST)
    with Path(path).open("rb") as file:
        return file.read(_LONGEST).decode()


def with_change(owner: Manifest, change: str) -> Manifest:
    """Return an owner in which a field is set, `spec.version=2.3.1`; the value is JSON, or otherwise a string."""
    path, equals, value = change.partition("=")
    if not equals:
        raise ConfigError(f'invalid change "{change}": write PATH=VALUE, for example spec.version=2.3.1')
    return with_field(owner, parse_path(path), parse_value(value))


def parse_value(text: str) -> Any:
    """Return a value of the command line: JSON, or otherwise a string."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def owner_name(owner: Manifest) -> str:
    """Return kind, namespace and name of an owner, `Shop shop/corner`."""
    key = ObjectKey.of(owner)
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def with_stored_metadata(owner: Manifest, stored: Manifest) -> Manifest:
    """Return an owner with the spec, labels and annotations of a file, and its status and other metadata as stored."""
    given = {key: value for key, value in owner["metadata"].items() if key in {"labels", "annotations"}}
    status = {"status": stored["status"]} if "status" in stored else {}
    return {**owner, "metadata": {**stored["metadata"], **given}, **status}


async def components_of(
    target: str, function: Callable[..., object], owner: Manifest, context: ReconcileContext | None = None
) -> tuple[Component, ...]:
    """Call the operator's function for an owner.

    Args:
        target: Name of the function, for messages.
        function: Takes the owner, the owner and the context of a reconcile, or nothing; it may be a coroutine function.
        context: The context; None only if the function does not take it.
    """
    from ocf.lazy_types.signatures import required_parameters

    call = f"{target} for {owner_name(owner)}"
    given = (_owner_argument(function, owner, call), context)[: required_parameters(function)]
    try:
        answer = function(*given)
        found = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:
        raise ConfigError(f"{call} failed: {one_line(error)}{source_location(error)}") from error
    return _require_components(found, call)


def _owner_argument(function: Callable[..., object], owner: Manifest, call: str) -> Any:
    model = _model_of(function)
    if model is None:
        return owner
    try:
        return validate_live(owner, model)
    except ValueError as error:
        raise ConfigError(
            f"{call}: the owner is not a valid {model.__name__}: {describe_invalid(error, model) or error}"
        ) from error


def _model_of(function: Callable[..., object]) -> Any:
    """Return the pydantic model that annotates the first parameter; None if the function takes a manifest."""
    from pydantic import BaseModel

    try:
        first = next(iter(signature_of(function).parameters.values()))
    except (StopIteration, TypeError, ValueError):
        return None
    wanted = first.annotation
    if isinstance(wanted, ForwardRef):
        wanted = wanted.__forward_arg__
    if isinstance(wanted, str):
        # Only this annotation: the others may use names that are imported for type checkers only.
        def taking(owner: object) -> None: ...

        taking.__annotations__ = {"owner": wanted}
        try:
            wanted = get_type_hints(taking, getattr(inspect.unwrap(function), "__globals__", {}))["owner"]
        except NameError as error:
            where = f"{getattr(function, '__qualname__', function)}({first.name}: {wanted})"
            raise ConfigError(f"{where}: {error}; import the owner's model outside of TYPE_CHECKING") from error
    return wanted if isinstance(wanted, type) and issubclass(wanted, BaseModel) else None


def _require_components(found: object, call: str) -> tuple[Component, ...]:
    from ocf.component import Builder, Component

    several = tuple(found) if isinstance(found, Iterable) and not isinstance(found, str | dict) else (found,)
    for each in several:
        if isinstance(each, Builder):
            raise ConfigError(f"{call} returned a builder; was .build() forgotten?")
        if not isinstance(each, Component):
            raise ConfigError(f"{call} must return one or more components, got {type(each).__name__}")
    return tuple(each for each in several if isinstance(each, Component))


def one_line(error: BaseException) -> str:
    """Return an error as one line, with its notes, and with its type unless it is one of our own."""
    if isinstance(error, BuildError):
        return "; ".join(error.problems)
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(one_line, error.exceptions)))
    notes = "; ".join(getattr(error, "__notes__", ()))
    # The file and the line of a syntax error are those that `source_location` returns.
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    text = without_addresses(" ".join(f"{said} ({notes})".split() if notes else said.split()))
    if type(error).__module__.startswith(("ocf.", "ocf_server.")):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def source_location(error: BaseException) -> str:
    """Return the location in the operator's code that an error comes from; frames of this package are skipped."""
    if isinstance(error, SyntaxError):
        return f" ({Path(error.filename or '?').name}:{error.lineno})"
    ours = Path(__file__).parents[1]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    outside = [frame for frame in frames if ours not in Path(frame.filename).parents]
    return f" ({Path(outside[-1].filename).name}:{outside[-1].lineno})" if outside else ""
