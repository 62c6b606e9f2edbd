"""The HPA of a scenario: inline or in a file, decoded, validated as the API server does, and defaulted."""

from collections.abc import Iterator
from pathlib import Path

from ocf.autoscaling import default, validate
from ocf.autoscaling.api.kinds import HPA_KIND, kind_problem
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest
from ocf.objects.documents import load_documents
from ocf.objects.yaml_places import YamlNode, split_path
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.text_files import read_bounded

__all__ = ["HPA_KIND", "checked_hpa", "hpa_of_file", "text_problems"]


def checked_hpa(manifest: Manifest, gates: FeatureGates) -> tuple[Manifest, list[FieldProblem]]:
    """Return an HPA as autoscaling/v2 with its defaults and without a status, and why the API server would reject it.

    Args:
        manifest: The manifest, of any version.
    """
    kind = manifest.get("kind")
    if kind != HPA_KIND:
        return manifest, [FieldProblem("kind", f"must be {HPA_KIND}, got {kind!r}")]
    try:
        decoded = read_hpa({name: part for name, part in manifest.items() if name != "status"}, gates=gates)
    except ManifestError as error:
        return manifest, list(error.problems)
    errors = dict.fromkeys((each.path, each.message) for each in validate(decoded, gates=gates))
    return default(decoded), [FieldProblem(path, message) for path, message in errors]


def hpa_of_file(file: Path, gates: FeatureGates) -> Manifest:
    """Read the HPA of a file, which may hold other objects, too."""
    text = read_bounded(file)
    try:
        documents = load_documents(text)
    except ManifestError as error:
        raise InputError(text_problems(error, str(file))) from None
    found = [at for at, each in enumerate(documents) if each.get("kind") == HPA_KIND]
    meant = next((problem for each in documents if (problem := kind_problem(each)) is not None), None)
    if meant is not None:
        raise InputError([InputProblem(str(file), meant.detail, None, meant.path)])
    if len(found) != 1:
        kinds = ", ".join(str(each.get("kind")) for each in documents) or "nothing"
        raise InputError(
            [InputProblem(str(file), f"must hold one {HPA_KIND}, and holds {len(found)}; it holds: {kinds}")]
        )
    hpa, problems = checked_hpa(documents[found[0]], gates)
    if problems:
        raise InputError(_placed(problems, file, text, found[0]))
    return hpa


def _placed(problems: list[FieldProblem], file: Path, text: str, document: int) -> Iterator[InputProblem]:
    root = YamlNode.root(text, document)
    for each in problems:
        line = None if root is None else root.descend(split_path(each.path)).line
        yield InputProblem(str(file), each.detail, line, each.path)


def text_problems(error: ManifestError, file: str) -> Iterator[InputProblem]:
    """Yield the problems of a text that cannot be parsed."""
    for each in error.problems:
        place, _, detail = each.detail.partition(": ")
        line = place.removeprefix("line ")
        if line.isdigit():
            yield InputProblem(file, detail, int(line), each.path)
        else:
            yield InputProblem(file, each.detail, None, each.path)
