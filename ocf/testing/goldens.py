"""Golden files: what an operator renders, kept in version control, so that a change of it is seen in a review.

A golden says what no single assertion says: that everything else stayed as it was. It is rendered without a cluster,
so it costs milliseconds, and it is refreshed by one flag, so it costs no typing either.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ocf.component import Component
from ocf.concepts import Resource
from ocf.objects import Manifest, dump_document, redacted
from ocf.testing.diffs import unified

__all__ = ["Subject", "assert_golden", "compared_with", "parts_of", "refresh", "serialize"]

Subject: TypeAlias = Resource | Component | Sequence[Component]
"""What has a golden: a resource, a component with all its managed resources, or the components of one owner."""


def serialize(subject: Subject) -> str:
    """Write what a resource or a component renders as YAML.

    Guards and the extraction of data do not run: a cell that is needed must be seeded, `with cell.seeded(value):`.

    Args:
        subject: A resource; or a component, or several: of these the managed resources, in the order in which they are
            applied.

    Returns:
        One document, or several with `---` between them; empty for a component that manages nothing. Values of Secrets
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
    """Compare what a resource or a component renders with its golden file.

    Args:
        path: The golden file.
        subject: A resource, a component, or several components.
        update: Write the file, and its folders, instead of comparing.

    Raises:
        AssertionError: If they differ, with a unified diff, or if there is no such file.
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

    Args:
        path: The golden file.
        text: What it should hold.

    Returns:
        What is wrong, for a person; empty if nothing is.
    """
    if not path.exists():
        return f"golden file {path} does not exist; create it with `pytest --ocf-update-goldens`, or update=True"
    # Read without translating line ends: a golden that an editor or git rewrote must not pass on one machine only.
    golden = path.read_bytes().decode()
    if golden == text:
        return ""
    return unified(golden, text, before_name=str(path), after_name="rendered now")


def refresh(path: Path, text: str) -> None:
    """Write a golden file, and the folders it lies in.

    Args:
        path: The golden file.
        text: What it should hold.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def parts_of(subject: Subject) -> Sequence[Resource | Component]:
    """Return the one resource or component, or the several components.

    Args:
        subject: What has a golden.
    """
    return subject if isinstance(subject, Sequence) else [subject]


def _rendered(subject: Subject) -> Iterator[Manifest]:
    for part in parts_of(subject):
        if isinstance(part, Component):
            yield from part.render()
        else:
            yield _without_leftovers(part.render())


def _without_leftovers(manifest: Manifest) -> Manifest:
    """Drop what tools written in Go leave in every object they print, and what says nothing."""
    metadata = manifest["metadata"]
    if metadata.get("creationTimestamp", "") is None:
        metadata = {key: value for key, value in metadata.items() if key != "creationTimestamp"}
    kept = {key: value for key, value in manifest.items() if key != "status" or value}
    return {**kept, "metadata": metadata}
