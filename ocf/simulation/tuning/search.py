"""A search: the settings to vary, the objectives, and the requirements; as a file or as options."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from ocf.errors import ConfigError, FieldProblem, ManifestError
from ocf.objects import Manifest, load_document
from ocf.objects.yaml_places import YamlNode, split_path
from ocf.simulation.fields import Model
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.text_files import read_bounded
from ocf.simulation.model_problems import model_problems
from ocf.simulation.scenario.autoscaler_file import text_problems
from ocf.simulation.tuning.across import Across
from ocf.simulation.tuning.settings import TunedSetting, choice_setting, range_setting

__all__ = ["SearchFile", "parse_setting", "read_search"]

_RANGE: Final = re.compile(r"(\S+?)\.\.(\S+?)(?:\s+step\s+(\S+))?")


class Range(Model):
    """A range of numbers.

    Args:
        from_: The lowest value, a number or a text with a unit, such as `15s`.
        to: The highest value.
        step: The distance of two values; None: 1 between whole numbers, otherwise a twentieth of the range.
    """

    from_: Annotated[float | int | str, Field(alias="from", union_mode="left_to_right")]
    to: Annotated[float | int | str, Field(union_mode="left_to_right")]
    step: Annotated[float | int | str | None, Field(union_mode="left_to_right")] = None


class SearchFile(Model):
    """A search.

    Args:
        api_version: `ocf.dev/v1`.
        kind: `Search`.
        settings: The values to try by field: a range or a list. A path that begins with `spec` is a field of the HPA,
            any other one is a field of the scenario.
        objectives: Names of measures to minimize; `NAME:max` maximizes one.
        require: Conditions that the chosen settings have to meet, such as `overload_time < 1%`.
        across: Whether an objective is the mean over the scenarios or the worst of them; None: the mean.
    """

    api_version: Literal["ocf.dev/v1"] = "ocf.dev/v1"
    kind: Literal["Search"] = "Search"
    settings: Annotated[dict[str, Range | list[Any]], Field(min_length=1)]
    objectives: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    across: Across | None = None

    def parsed(self) -> tuple[TunedSetting, ...]:
        """Return the settings.

        Raises:
            ConfigError: If one is invalid.
        """
        return tuple(
            range_setting(path, values.from_, values.to, values.step)
            if isinstance(values, Range)
            else choice_setting(path, values)
            for path, values in self.settings.items()
        )


def read_search(path: str | Path) -> SearchFile:
    """Read the file of a search.

    Args:
        path: A YAML or JSON file.

    Raises:
        InputError: If the file cannot be read or is invalid; it has all problems, each with its line.
    """
    file = Path(path)
    text = read_bounded(file)
    try:
        manifest = load_document(text)
    except ManifestError as error:
        raise InputError(text_problems(error, str(file))) from None
    try:
        search = SearchFile.model_validate(manifest, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InputError(_placed(each, text, file) for each in _problems(error, manifest)) from None
    problems = [_placed(each, text, file) for each in _invalid_settings(search)]
    if problems:
        raise InputError(problems)
    return search


def _problems(error: ValidationError, manifest: Manifest) -> Iterable[FieldProblem]:
    """Return the problems; a setting that is neither a range nor a list has one instead of one for each."""
    errors = [each for each in error.errors() if each["loc"][:1] != ("settings",) or len(each["loc"]) == 1]
    yield from model_problems(errors, manifest, SearchFile)
    paths = dict.fromkeys(
        str(each["loc"][1]) for each in error.errors() if each["loc"][:1] == ("settings",) and len(each["loc"]) > 1
    )
    for path in paths:
        seen = manifest["settings"][path]
        yield FieldProblem(
            f"settings.{path}", f"must be a list of values, or a range `{{from: 1, to: 9, step: 2}}`, got {seen!r}"
        )


def _invalid_settings(search: SearchFile) -> Iterable[FieldProblem]:
    for path in search.settings:
        try:
            search.model_copy(update={"settings": {path: search.settings[path]}}).parsed()
        except ConfigError as error:
            yield FieldProblem(f"settings.{path}", str(error).removeprefix(f"{path}: "))


def _placed(problem: FieldProblem, text: str, file: Path) -> InputProblem:
    name, _, rest = problem.path.partition(".")
    # The name of a setting is one key, although it has dots.
    steps = (name, rest) if name == "settings" and rest else split_path(problem.path)
    root = YamlNode.root(text)
    return InputProblem(str(file), problem.detail, None if root is None else root.descend(steps).line, problem.path)


def parse_setting(text: str) -> TunedSetting:
    """Parse a setting of the command line.

    Args:
        text: `PATH=FIRST..LAST`, `PATH=FIRST..LAST step STEP`, or `PATH=VALUE|VALUE`.

    Raises:
        ConfigError: If it is invalid.

    Example:
        >>> parse_setting("spec.minReplicas=2..8 step 2").values
        (2, 4, 6, 8)
        >>> parse_setting("spec.behavior.scaleUp.selectPolicy=Max|Min").values
        ('Max', 'Min')
    """
    path, found, rest = text.partition("=")
    path, rest = path.strip(), rest.strip()
    if not found or not path or not rest:
        raise ConfigError(
            f"invalid setting {text!r}: write the path of a field and its values, such as spec.minReplicas=2..8 or"
            " spec.behavior.scaleUp.selectPolicy=Max|Min"
        )
    limits = _RANGE.fullmatch(rest)
    if limits is not None:
        return range_setting(path, limits[1], limits[2], limits[3])
    return choice_setting(path, [_scalar(each.strip()) for each in rest.split("|")])


def _scalar(text: str) -> Any:
    """Return a value as a YAML file has it."""
    try:
        return load_document(f"value: {text}")["value"]
    except ManifestError:
        return text
