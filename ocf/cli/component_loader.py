"""Getting from `MODULE:FUNCTION` and a file to components, with one line for whatever is in the way.

The function is the operator's own: it takes an owner and returns its components. An owner is given as a manifest, or as
the pydantic model that the function's first parameter is annotated with. Several owners are several documents of one
file.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from ocf.errors import BuildError, ConfigError
from ocf.objects import ObjectKey, describe_invalid, load_documents, parse_path, with_field

if TYPE_CHECKING:
    from ocf.component import Component
    from ocf.objects import Manifest

__all__ = [
    "components_of",
    "find_attribute",
    "import_by_name",
    "load_function",
    "one_line",
    "owner_name",
    "parse_value",
    "read_owners",
    "source_location",
]

# One more than a document may have, so that a longer one is refused as too long, and no file fills the memory.
_LONGEST: Final = 3 * 2**20 + 1
_STDIN: Final = "-"


def load_function(target: str) -> Callable[[Any], object]:
    """Import a function by name; modules of the working directory are found, too.

    Args:
        target: `package.module:function`.

    Raises:
        ConfigError: If the text is no such name, the module cannot be imported, or it has no such function.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise ConfigError(f'"{target}" names no function: write MODULE:FUNCTION, for example shop.operator:components')
    found = find_attribute(target, import_by_name(module_name), name)
    if not callable(found):
        raise ConfigError(f"{target} is no function, but {type(found).__name__}")
    function: Callable[[Any], object] = found
    return function


def find_attribute(target: str, module: Any, name: str) -> Any:
    """Return what a module calls by a name.

    Args:
        target: What was asked for, for messages.
        module: The module.
        name: The name; with dots, the name of something in it.

    Raises:
        ConfigError: If there is nothing of that name; with the nearest one.
    """
    found = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            problem = f'module {module.__name__} has no "{name}"{_nearest(found, part)}'
            raise ConfigError(f"{target}: {problem}") from None
    return found


def import_by_name(name: str) -> Any:
    """Import a module by name; those of the working directory are found, too.

    Args:
        name: Its name, `package.module`.

    Raises:
        ConfigError: If there is none, or it cannot be imported; says where.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(f'there is no module "{name}", neither installed nor in {here}') from error
        raise ConfigError(f"module {name} cannot be imported: {one_line(error)}{source_location(error)}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"module {name} cannot be imported: {one_line(error)}{source_location(error)}") from error


def _nearest(module: Any, name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [each for each in dir(module) if not each.startswith("_")], n=1)
    return f', did you mean "{near[0]}"?' if near else ""


def read_owners(path: str, changes: Sequence[str] = ()) -> tuple[Manifest, ...]:
    """Read the owners of a file.

    Args:
        path: A file of YAML or JSON documents; `-` is the standard input.
        changes: Fields to be set in every owner, `spec.version=2.3.1`; a value is JSON, or else a text.

    Raises:
        ConfigError: If the file cannot be read, or holds something else.
    """
    name = "the standard input" if path == _STDIN else path
    try:
        owners = load_documents(_text(path))
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is no text: byte {error.start + 1} is not UTF-8") from error
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error
    if not owners:
        raise ConfigError(f"{name} holds no object; an owner is a manifest with apiVersion, kind and metadata")
    for number, owner in enumerate(owners, 1):
        try:
            ObjectKey.of(owner)
        except ConfigError as error:
            raise ConfigError(f"{name}: document {number} is no owner: {error}") from error
    return tuple(_with_changes(owner, changes) for owner in owners)


def _text(path: str) -> str:
    if path == _STDIN:
        return sys.stdin.read(_LONGEST)
    with Path(path).open("rb") as file:
        return file.read(_LONGEST).decode()


def _with_changes(owner: Manifest, changes: Sequence[str]) -> Manifest:
    for change in changes:
        path, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f'"{change}" sets nothing: write PATH=VALUE, for example spec.version=2.3.1')
        owner = with_field(owner, parse_path(path), parse_value(value))
    return owner


def parse_value(text: str) -> Any:
    """Read a value of the command line: JSON, or else a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def owner_name(owner: Manifest) -> str:
    """Return what people call an owner, `Shop shop/corner`."""
    key = ObjectKey.of(owner)
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def components_of(target: str, function: Callable[[Any], object], owner: Manifest) -> tuple[Component, ...]:
    """Call the operator's function for an owner.

    Args:
        target: What the function is called, for messages.
        function: Takes the owner, returns a component or several.
        owner: The owner's manifest.

    Raises:
        ConfigError: If the function raises, or returns something else.
    """
    who = f"{target} for {owner_name(owner)}"
    given = _owner_argument(function, owner, who)
    try:
        found = function(given)
    except Exception as error:
        raise ConfigError(f"{who} failed: {one_line(error)}{source_location(error)}") from error
    return _require_components(found, who)


def _owner_argument(function: Callable[[Any], object], owner: Manifest, who: str) -> Any:
    model = _model_of(function)
    if model is None:
        return owner
    try:
        return model.model_validate(owner)
    except ValueError as error:
        raise ConfigError(f"{who}: the owner is no {model.__name__}: {describe_invalid(error) or error}") from error


def _model_of(function: Callable[[Any], object]) -> Any:
    """Return the pydantic model that the first parameter is annotated with; None where it takes a manifest."""
    from pydantic import BaseModel

    try:
        first = next(iter(inspect.signature(function).parameters.values()))
    except (StopIteration, TypeError, ValueError):
        return None
    wanted = first.annotation
    if isinstance(wanted, str):
        # Only this one: the others may name what is imported for type checkers alone.
        def taking(owner: object) -> None: ...

        taking.__annotations__ = {"owner": wanted}
        try:
            wanted = get_type_hints(taking, getattr(inspect.unwrap(function), "__globals__", {}))["owner"]
        except NameError as error:
            where = f"{getattr(function, '__qualname__', function)}({first.name}: {wanted})"
            raise ConfigError(f"{where}: {error}; import the owner's model when the program runs, too") from error
    return wanted if isinstance(wanted, type) and issubclass(wanted, BaseModel) else None


def _require_components(found: object, who: str) -> tuple[Component, ...]:
    from ocf.component import Builder, Component

    if inspect.iscoroutine(found):
        found.close()
        raise ConfigError(f"{who} is asynchronous; it has to be a plain function")
    several = tuple(found) if isinstance(found, Iterable) and not isinstance(found, str | dict) else (found,)
    for each in several:
        if isinstance(each, Builder):
            raise ConfigError(f"{who} returned a builder; was .build() forgotten?")
        if not isinstance(each, Component):
            raise ConfigError(f"{who} has to return a component, or several, not {type(each).__name__}")
    return tuple(each for each in several if isinstance(each, Component))


def one_line(error: BaseException) -> str:
    """Word an error in one line: what it is, unless it is ours, and what it says."""
    if isinstance(error, BuildError):
        return "; ".join(error.problems)
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(map(one_line, error.exceptions)))
    text = " ".join(str(error).split())
    if type(error).__module__.startswith("ocf."):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def source_location(error: BaseException) -> str:
    """Say where in the operator's own code an error comes from; our own code is not where to look."""
    if isinstance(error, SyntaxError):
        return f" ({Path(error.filename or '?').name}:{error.lineno})"
    ours = Path(__file__).parents[1]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    theirs = [frame for frame in frames if ours not in Path(frame.filename).parents]
    return f" ({Path(theirs[-1].filename).name}:{theirs[-1].lineno})" if theirs else ""
