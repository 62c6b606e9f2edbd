"""Edits of the objects in the corpus of recorded verdicts."""

from pathlib import Path
from typing import Any

import pytest

from scripts.record.validation_cases.table import Table, at, cases, together
from tests.ocf_server.validation.corpus import REMOVED, Answer, Case, Corpus, NotApplicableError, edited

OBJECT = {"spec": {"ports": [{"port": 80}]}, "metadata": {"labels": {"a.b/c": "d"}}}


@pytest.mark.parametrize(
    ("path", "value", "changed"),
    [
        pytest.param("spec.ports[0].port", 81, {"spec": {"ports": [{"port": 81}]}}, id="an item"),
        pytest.param("spec.ports[+]", {}, {"spec": {"ports": [{"port": 80}, {}]}}, id="a new item"),
        pytest.param("spec.ports", REMOVED, {"spec": {}}, id="a removed field"),
        pytest.param("metadata.labels[a.b/c]", "e", {"metadata": {"labels": {"a.b/c": "e"}}}, id="a key with dots"),
        pytest.param("data.a", 1, {"data": {"a": 1}}, id="a missing map"),
    ],
)
def test_an_edit_changes_one_field(path: str, value: Any, changed: dict[str, Any]) -> None:
    assert edited(OBJECT, [(path, value)]) == {**OBJECT, **changed}


@pytest.mark.parametrize(("path", "value"), [("spec.ports[1].port", 1), ("spec.name", REMOVED), ("spec.ports.port", 1)])
def test_an_edit_must_fit_the_object(path: str, value: Any) -> None:
    with pytest.raises(NotApplicableError):
        edited(OBJECT, [(path, value)])


def test_a_corpus_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [(Case("web", update=True, edits=(("spec", {}),)), Answer(422, "wrong", (("r", "spec", "text"),)))]
    corpus = Corpus("1.36.3", "Service", {"web": {}}, {"old": {}}, rows)
    corpus.save(tmp_path)

    assert Corpus.load("Service", tmp_path) == corpus


def test_the_same_seed_draws_the_same_cases() -> None:
    mistakes = (*at("spec.a", 1, 2), *together(("spec.b", 1), ("spec.c", REMOVED)))
    table = Table("Thing", {"base": {"spec": {"c": 1}}}, mistakes, {"stored": {"spec": {"c": 1}}}, at("spec.d", 1))

    assert list(cases(table)) == list(cases(table))
    assert {len(case.edits) for case in cases(table)} >= {0, 1, 2, 3}
