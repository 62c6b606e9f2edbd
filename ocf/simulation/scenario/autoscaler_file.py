"""The HPA of a scenario: inline or in a file, decoded, validated as the API server does, and defaulted."""

from collections.abc import Iterator
from pathlib import Path

from ocf.autoscaling import default, validate
from ocf.autoscaling.api.betas import not_served
from ocf.autoscaling.api.kinds import HPA_KIND, kind_problem
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import FieldProblem, ManifestError
from ocf.objects import Manifest, load_document
from ocf.objects.manifest_stream import Document, documents_in
from ocf.objects.yaml_places import YamlNode, split_path
from ocf.schema.kubernetes import FeatureGates
from ocf.simulation.input_errors import InputError, InputProblem
from ocf.simulation.load.text_files import read_bounded
from ocf.simulation.recording.format import is_recording

__all__ = ["HPA_KIND", "checked_hpa", "conversion_note", "hpa_of_file", "text_problems"]


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
    documents = list(documents_in(str(file), read_bounded(file).encode()))
    for each in documents:
        meant = None if each.manifest is None else kind_problem(each.manifest)
        if each.manifest is None:
            raise InputError([_text_problem(each.problem, str(file))])
        if meant is not None:
            raise InputError(_placed([meant], each))
    found = [each for each in documents if each.manifest is not None and each.manifest.get("kind") == HPA_KIND]
    if len(found) != 1:
        kinds = ", ".join(str(each.manifest.get("kind")) for each in documents if each.manifest) or "nothing"
        raise InputError(
            [InputProblem(str(file), f"must hold one {HPA_KIND}, and holds {len(found)}; it holds: {kinds}")]
        )
    hpa, problems = checked_hpa(found[0].manifest or {}, gates)
    if problems:
        raise InputError(_placed(problems, found[0]))
    return hpa


def conversion_note(scenario: Path) -> str:
    """Return that the HPA of a scenario is of a version that is not served, so that it was converted; empty otherwise.

    Args:
        scenario: The file of a scenario that was read.
    """
    hpa = None if is_recording(scenario) else load_document(read_bounded(scenario)).get("hpa")
    file = scenario
    if isinstance(hpa, str):
        file = scenario.parent / hpa
        manifests = (each.manifest or {} for each in documents_in(str(file), read_bounded(file).encode()))
        hpa = next((each for each in manifests if each.get("kind") == HPA_KIND), None)
    version = hpa.get("apiVersion") if isinstance(hpa, dict) else None
    removed = not_served(version)
    return f"{file}: {version} is {removed}; it is simulated as autoscaling/v2" if removed else ""


def _placed(problems: list[FieldProblem], document: Document) -> Iterator[InputProblem]:
    root = YamlNode.root(document.text)
    found = None if root is None else root.descend(split_path(document.path))
    for each in problems:
        line = None if found is None else document.line + found.descend(split_path(each.path)).line - 1
        yield InputProblem(document.file, each.detail, line, each.path)


def text_problems(error: ManifestError, file: str) -> Iterator[InputProblem]:
    """Yield the problems of a text that cannot be parsed."""
    for each in error.problems:
        yield _text_problem(each.detail, file, each.path)


def _text_problem(problem: str, file: str, path: str = "") -> InputProblem:
    """Return a problem, with the line with which its text begins."""
    place, _, detail = problem.partition(": ")
    line = place.removeprefix("line ")
    return InputProblem(file, detail, int(line), path) if line.isdigit() else InputProblem(file, problem, None, path)
