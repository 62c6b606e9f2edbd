"""Validation of environment variables.

Source: `ValidateEnv` and `ValidateEnvFrom` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, invalid, required
from ocf.objects.name_validation import config_key, dns_label, dns_subdomain, dns_subdomain_prefix
from ocf_server.validation.downward import environment_field_errors, resource_field_errors
from ocf_server.validation.fields import each_problem
from ocf_server.validation.file_paths import no_backsteps

__all__ = ["variable_errors", "variable_source_errors", "variables_of_files"]

_Json: TypeAlias = Mapping[str, Any]

_FORM: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_ONE_OF: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)


def _variable_name(text: str) -> list[str]:
    found = [] if text else ["environment variable name must be non-empty"]
    if not (text.isascii() and text.isprintable()) or "=" in text:
        found.append(_FORM)
    return found


def variable_errors(variables: Sequence[_Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of environment variables."""
    for index, variable in enumerate(variables):
        place = f"{path}[{index}]"
        if variable["name"]:
            yield from each_problem(_variable_name, variable["name"], f"{place}.name")
        else:
            yield required(f"{place}.name")
        if "valueFrom" in variable:
            yield from _value_errors(variable, f"{place}.valueFrom")


def _value_errors(variable: _Json, path: str) -> Iterator[FieldError]:
    source = variable["valueFrom"]
    if "fieldRef" in source:
        yield from environment_field_errors(source["fieldRef"], f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        yield from resource_field_errors(source["resourceFieldRef"], f"{path}.resourceFieldRef", in_file=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from _key_errors(source[name], f"{path}.{name}")
    if "fileKeyRef" in source:
        yield from _file_key_errors(source["fileKeyRef"], f"{path}.fileKeyRef")
    if not source:
        yield invalid(path, "", _ONE_OF)
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _key_errors(source: _Json, path: str) -> Iterator[FieldError]:
    yield from each_problem(dns_subdomain, source.get("name", ""), f"{path}.name")
    if source.get("key"):
        yield from each_problem(config_key, source["key"], f"{path}.key")
    else:
        yield required(f"{path}.key")


def _file_key_errors(source: _Json, path: str) -> Iterator[FieldError]:
    if source.get("key"):
        yield from each_problem(_variable_name, source["key"], f"{path}.key")
    else:
        yield required(f"{path}.key")
    if source.get("volumeName"):
        yield from each_problem(dns_label, source["volumeName"], f"{path}.volumeName")
    else:
        yield required(f"{path}.volumeName")
    if source.get("path"):
        yield from no_backsteps(source["path"], f"{path}.path")
    else:
        yield required(f"{path}.path")


def variable_source_errors(sources: Sequence[_Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of objects whose entries become environment variables."""
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        if source.get("prefix"):
            yield from each_problem(_variable_name, source["prefix"], f"{place}.prefix")
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in given:
            if source[name].get("name"):
                yield from each_problem(dns_subdomain_prefix, source[name]["name"], f"{place}.{name}.name")
            else:
                yield required(f"{place}.{name}.name")
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")


def variables_of_files(variables: Sequence[_Json], path: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the volume name of each variable that is read from a file."""
    for index, variable in enumerate(variables):
        source = variable.get("valueFrom", {}).get("fileKeyRef")
        if source is not None:
            yield f"{path}[{index}].valueFrom.fileKeyRef.volumeName", source.get("volumeName", "")
