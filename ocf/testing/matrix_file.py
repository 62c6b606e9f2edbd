"""Version matrix in a YAML file, so that adding a version or a configuration needs no change of code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ocf.concepts import Data
from ocf.errors import BuildError, OcfError
from ocf.objects import load_document
from ocf.testing.goldens import Subject
from ocf.testing.matrix import VersionMatrix
from ocf.testing.mutation_coverage import Firing, Fixture

__all__ = ["load_matrix"]

SpecT = TypeVar("SpecT")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Expected(_Part):
    mutation: str
    at: str = ""


def _spelled_out(value: object) -> object:
    return {"mutation": value} if isinstance(value, str) else value


_Expectation = Annotated[_Expected, BeforeValidator(_spelled_out)]


class _Fixture(_Part):
    name: str
    spec: Any = None
    spec_file: str | None = Field(None, alias="specFile")
    requires: tuple[_Expectation, ...] = ()
    forbids: tuple[_Expectation, ...] = ()

    @model_validator(mode="after")
    def _one_spec(self) -> _Fixture:
        if len({"spec", "spec_file"} & self.model_fields_set) != 1:
            raise ValueError("give exactly one of spec and specFile")
        return self


class _Matrix(_Part):
    directory: str
    versions: tuple[str, ...]
    fixtures: tuple[_Fixture, ...]
    exclude: tuple[str, ...] = ()


def load_matrix(
    path: str | Path,
    *,
    spec: Callable[[Any], SpecT],
    build: Callable[[str, SpecT], Subject],
    data: Mapping[Data[Any], Any] | None = None,
) -> VersionMatrix[SpecT]:
    """Read a version matrix from a YAML file.

    Its keys are `directory`, `versions`, `fixtures` and `exclude`, as `VersionMatrix` takes them. A fixture has
    `name`, exactly one of `spec` and `specFile`, and `requires` and `forbids`: names of mutations, or
    `{mutation: ..., at: <version>}`. Paths are relative to the file.

    Args:
        path: The file.
        spec: Converts the spec in the file to the spec of a fixture; for example `model_validate` of a pydantic model.
        build: Builds a resource, a component or several from a version and a fixture's spec.
        data: Values of the data cells while a case runs.

    Raises:
        BuildError: If the file or the matrix is invalid; names the file and lists all problems.
    """
    path = Path(path)
    try:
        described = _Matrix.model_validate(_read(path))
    except ValidationError as error:
        raise BuildError(list(_problems(path, error))) from None
    fixtures, problems = [], []
    for fixture in described.fixtures:
        try:
            fixtures.append(_fixture(fixture, path.parent, spec))
        except (BuildError, ValueError, TypeError) as error:
            problems.append(f"{path}: fixture {fixture.name}: {error}")
    if problems:
        raise BuildError(problems)
    return VersionMatrix(
        directory=path.parent / described.directory if described.directory else "",
        versions=described.versions,
        fixtures=fixtures,
        build=build,
        exclude=described.exclude,
        data=data or {},
    )


def _fixture(described: _Fixture, folder: Path, spec: Callable[[Any], SpecT]) -> Fixture[SpecT]:
    value = described.spec if described.spec_file is None else _read(folder / described.spec_file)
    return Fixture(
        name=described.name,
        spec=spec(value),
        requires=[Firing(expected.mutation, expected.at) for expected in described.requires],
        forbids=[Firing(expected.mutation, expected.at) for expected in described.forbids],
    )


def _read(path: Path) -> object:
    try:
        return load_document(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BuildError([f"{path} cannot be read: {error}"]) from error
    except OcfError as error:
        raise BuildError([f"{path}: {error}"]) from error


def _problems(path: Path, error: ValidationError) -> list[str]:
    return [
        f"{path}: {'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}" for problem in error.errors()
    ]
