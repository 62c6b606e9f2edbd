"""Golden files: the rendered manifests of an operator under version control, so that changes show up in a review.

A golden file also proves that everything else is unchanged, which single assertions cannot do. Rendering needs no
cluster and takes milliseconds, and one flag updates all files.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ocf.component import Component
from ocf.concepts import Resource
from ocf.objects import Manifest, dump_document
from ocf.objects.redaction import redacted
from ocf.testing.diffs import unified

__all__ = ["Subject", "assert_golden", "compared_with", "parts_of", "refresh", "serialize"]

Subject: TypeAlias = Resource | Component | Sequence[Component]
"""What a golden file covers: a resource, a component with its managed resources, or the components of one owner."""


def serialize(subject: Subject) -> str:
    """Render a resource or a component as YAML.

    Guards and data extraction do not run; seed the data cells that are needed with `with cell.seeded(value):`.

    Args:
        subject: A resource, a component or several components; of components their managed resources, in the order in
            which they are applied.

    Returns:
        One document, or several separated by `---`; empty for a component without managed resources. Values of Secrets
        are replaced by digests.

    Raises:
        ConfigError: If a gate, a mutation or an edit fails.

    Example:
        >>> from ocf.primitives import hpa
        >>> autoscaler = {
        ...     "apiVersion": "autoscaling/v2",
        ...     "kind": "HorizontalPodAutoscaler",
        ...     "metadata": {"name": "web", "namespace": "shop"},
        ...     "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3},
        ... }
        >>> print(serialize(hpa.Builder(autoscaler).build()), end="")
        apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata:
          name: web
          namespace: shop
        spec:
          maxReplicas: 3
          scaleTargetRef:
            kind: Deployment
            name: web
    """
    return "---\n".join(dump_document(redacted(manifest)) for manifest in _rendered(subject))


def assert_golden(path: str | Path, subject: Subject, *, update: bool = False) -> None:
    """Compare the rendered manifests of a resource or a component with a golden file.

    Args:
        path: The golden file.
        subject: A resource, a component, or several components.
        update: Write the file and its folders instead of comparing.

    Raises:
        AssertionError: If they differ, with a unified diff, or if the file does not exist.
        ConfigError: If the subject cannot be rendered.
    """
    __tracebackhide__ = True
    text = serialize(subject)
    if update:
        refresh(Path(path), text)
        return
    problem = compared_with(Path(path), text)
    if problem:
        raise AssertionError(problem)


def compared_with(path: Path, text: str) -> str:
    """Compare a text with a golden file.

    Returns:
        The problem as a text for the user; empty if the file matches.
    """
    if not path.exists():
        return f"golden file {path} does not exist; create it with `pytest --ocf-update-goldens`, or update=True"
    # Read without translating line endings: a golden file that an editor or git converted must fail on every machine.
    golden = path.read_bytes().decode()
    if golden == text:
        return ""
    return unified(golden, text, before_name=str(path), after_name="rendered now")


def refresh(path: Path, text: str) -> None:
    """Write a golden file and create its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def parts_of(subject: Subject) -> Sequence[Resource | Component]:
    """Return the one resource or component, or the several components."""
    return subject if isinstance(subject, Sequence) else [subject]


def _rendered(subject: Subject) -> Iterator[Manifest]:
    for part in parts_of(subject):
        if isinstance(part, Component):
            yield from part.render()
        else:
            yield _without_leftovers(part.render())


def _without_leftovers(manifest: Manifest) -> Manifest:
    """Drop a null `creationTimestamp` and an empty `status`, which Go tools print in every object."""
    metadata = manifest["metadata"]
    if metadata.get("creationTimestamp", "") is None:
        metadata = {key: value for key, value in metadata.items() if key != "creationTimestamp"}
    kept = {key: value for key, value in manifest.items() if key != "status" or value}
    return {**kept, "metadata": metadata}
