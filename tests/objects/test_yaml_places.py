"""Lines and columns of fields in a text."""

import pytest

from ocf.objects.yaml_places import YamlNode, split_path

TEXT = """\
# a comment
spec:
  replicas: 3
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization}}
  - &pods
    type: Pods
  - <<: *pods
    name: rps
---
---
{"spec":
  {"paused": true}}
"""


@pytest.mark.parametrize(
    ("path", "line", "exact"),
    [
        pytest.param("metadata.annotations.ocf.dev/finish-after", 4, True, id="annotation"),
        pytest.param("metadata.annotations.ocf.dev/other", 2, False, id="missing annotation"),
        pytest.param("metadata.labels.a.b.c.d", 6, True, id="dots everywhere"),
    ],
)
def test_a_key_may_have_dots(path: str, line: int, exact: bool) -> None:
    text = 'metadata:\n  annotations:\n    a: b\n    ocf.dev/finish-after: 5m\n  labels:\n    a.b: {c.d: "1"}\n'
    root = YamlNode.root(text)
    assert root is not None
    found = root.descend(split_path(path))
    assert (found.line, found.exact) == (line, exact)


@pytest.mark.parametrize(
    ("document", "path", "place"),
    [
        pytest.param(0, "", (2, 1, True), id="document"),
        pytest.param(0, "spec.replicas", (3, 3, True), id="key"),
        pytest.param(0, "spec.metrics[0]", (5, 5, True), id="item"),
        pytest.param(0, "spec.metrics[0].resource.target.type", (6, 36, True), id="flow style"),
        pytest.param(0, "spec.metrics[2].type", (8, 5, True), id="merged key"),
        pytest.param(0, "spec.metrics[2].container", (9, 5, False), id="missing key"),
        pytest.param(0, "spec.metrics[9].type", (4, 3, False), id="missing item"),
        pytest.param(0, "status.replicas", (2, 1, False), id="missing in the document"),
        pytest.param(1, "spec.paused", (14, 4, True), id="second document, which is JSON"),
    ],
)
def test_a_field_has_a_place(document: int, path: str, place: tuple[int, int, bool]) -> None:
    root = YamlNode.root(TEXT, document)
    assert root is not None
    found = root.descend(split_path(path))

    assert (found.line, found.column, found.exact) == place


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("a: [", 0, id="not YAML"),
        pytest.param("a: 1", 1, id="missing document"),
        pytest.param("# nothing\n---\n~", 0, id="null"),
    ],
)
def test_a_text_without_the_document_has_no_root(text: str, document: int) -> None:
    assert YamlNode.root(text, document) is None
