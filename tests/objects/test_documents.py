"""Documents are loaded from YAML and JSON and dumped as YAML."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ManifestError
from ocf.objects.document_limits import MAX_DEPTH, MAX_VALUES
from ocf.objects.documents import dump_document, load_as_kubectl, load_document, load_documents

texts = st.text(st.characters(codec="utf-8"), max_size=10)
manifests = st.dictionaries(
    texts,
    st.recursive(
        texts | st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(-1e9, 1e9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=10,
    ),
    max_size=4,
)


def refusal(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        load_documents(text)
    return str(caught.value)


class TestLoadDocument:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("kind: Service\nspec: {ports: [80]}", id="YAML"),
            pytest.param('{"kind": "Service", "spec": {"ports": [80]}}', id="JSON"),
            pytest.param('\n {\n\t"kind":\t"Service", "spec": {"ports": [80.0]}}\n', id="JSON with tabs"),
            pytest.param("{kind: Service, spec: {ports: [80]}}", id="YAML in braces"),
            pytest.param('{"kind": "Service", "spec": {"ports": [80],},}  # no JSON', id="nearly JSON"),
            pytest.param("---\n# empty\n---\nkind: Service\nspec:\n  ports:\n  - 80\n---\n", id="empty ones around it"),
            pytest.param("\ufeffkind: Service\nspec: {ports: [80]}", id="byte order mark"),
        ],
    )
    def test_reads_the_one_document(self, text: str) -> None:
        document = load_document(text)

        assert document == {"kind": "Service", "spec": {"ports": [80]}}
        assert type(document["spec"]["ports"][0]) is int

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("", "document: the text holds 0 documents, exactly one is expected", id="nothing"),
            pytest.param(
                "# nothing\n---\n", "document: the text holds 0 documents, exactly one is expected", id="empty"
            ),
            pytest.param("a: 1\n---\nb: 1", "document: the text holds 2 documents, exactly one is expected", id="two"),
            pytest.param("- a: 1", "document: a map with keys is expected, not a list", id="list"),
            pytest.param("text", "document: a map with keys is expected, not a str", id="text"),
            pytest.param("a: 1\na: 2", "document: line 2: the key a is given twice", id="unreadable"),
        ],
    )
    def test_rejects(self, text: str, problem: str) -> None:
        with pytest.raises(ManifestError) as caught:
            load_document(text)

        assert str(caught.value) == problem


class TestLoadDocuments:
    def test_empty_documents_are_left_out(self) -> None:
        assert load_documents("---\na: 1\n---\n---\n# nothing\n---\nb: {}\n...\n") == ({"a": 1}, {"b": {}})

    @pytest.mark.parametrize("text", ["", " \n", "---\n---\n", "~", "# nothing"])
    def test_there_may_be_none(self, text: str) -> None:
        assert load_documents(text) == ()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("a: 1\n---\n- b", "document 2: a map with keys is expected, not a list", id="list"),
            pytest.param("a: 1\n---\n---\nb: [", "document 3: line ", id="unreadable"),
            pytest.param("[1]", "document 1: a map with keys is expected, not a list", id="list of JSON"),
        ],
    )
    def test_an_error_names_the_document(self, text: str, problem: str) -> None:
        """Documents are counted as they are in the text, empty ones too."""
        assert refusal(text).startswith(problem)


class TestJson:
    @given(manifests)
    def test_json_is_read_as_it_was_meant(self, manifest: dict[str, Any]) -> None:
        """Characters beyond the first 65536, which JSON writes as two escapes, included."""
        assert load_document(json.dumps(manifest)) == manifest
        assert load_document(json.dumps(manifest, ensure_ascii=False, indent="\t")) == manifest

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param('{"a": NaN}', "NaN is not a JSON number", id="not a number"),
            pytest.param('{"a": [-Infinity]}', "-Infinity is not a JSON number", id="infinity"),
            pytest.param('{\n"a": 1,\n"a": 2}', "line 3: the key a is given twice", id="key twice"),
            pytest.param('{"a": "\\ud800"}', "line 1: ", id="half of a surrogate pair"),
            pytest.param('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}", "levels deep", id="too deep"),
            pytest.param('{"a": ' * 100_000, "levels deep", id="far too deep"),
            pytest.param('{"a": [' + "0," * MAX_VALUES + "0]}", f"more than {MAX_VALUES} values", id="too many values"),
        ],
    )
    def test_it_is_as_strict_as_yaml(self, text: str, problem: str) -> None:
        assert problem in refusal(text)

    def test_depth_is_the_same(self) -> None:
        levels = MAX_DEPTH - 1

        assert load_document('{"a": ' + "[" * levels + "]" * levels + "}")


class TestSize:
    def test_three_mebibytes_are_read(self) -> None:
        text = "a: " + "x" * (3 * 2**20 - 3)

        assert len(load_document(text)["a"]) == 3 * 2**20 - 3
        assert refusal(text + "x") == "document 1: longer than 3145728 bytes"

    def test_bytes_count_and_not_characters(self) -> None:
        assert refusal("a: " + "é" * (3 * 2**19)) == "document 1: longer than 3145728 bytes"

    def test_half_of_a_surrogate_pair_is_rejected(self) -> None:
        assert refusal("a: \ud800") == "document 1: character 4 is half of a surrogate pair"


class TestDumpDocument:
    @given(manifests)
    def test_what_is_dumped_is_loaded_again(self, manifest: dict[str, Any]) -> None:
        assert load_document(dump_document(manifest)) == manifest

    def test_keys_keep_their_order(self) -> None:
        assert dump_document({"b": 1, "a": {"d": 1, "c": 2}}) == "b: 1\na:\n  d: 1\n  c: 2\n"

    def test_what_is_no_json_is_rejected(self) -> None:
        with pytest.raises(ManifestError, match=r"^document: spec: set is not a JSON value$"):
            dump_document({"spec": set()})


class TestLoadAsKubectl:
    @pytest.mark.parametrize(
        ("text", "document", "warnings"),
        [
            pytest.param("a: 1\na: 2", {"a": 2}, ["line 2: the key a is given twice"], id="key twice"),
            pytest.param('{"a": 1, "a": 2}', {"a": 2}, ["the key a is given twice"], id="key twice in JSON"),
            pytest.param(
                '{"a": "x\\ud83d", "\\ude00": [1, 2.5]}',
                {"a": "x\ufffd", "\ufffd": [1, 2.5]},
                ["\\ud83d is half of a surrogate pair; kubectl replaces it by U+FFFD"],
                id="half of a surrogate pair",
            ),
            pytest.param('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}, [], id="a surrogate pair"),
            pytest.param("a: {<<: {b: 1}, b: 2}", {"a": {"b": 2}}, [], id="a merged key is not given twice"),
            pytest.param("on: 1\n2: 3\n0x10: 4\n1.5: 5", {"true": 1, "2": 3, "16": 4, "1.5": 5}, [], id="keys"),
            pytest.param(
                "1: a\n1: b", {"1": "b"}, ["line 2: the key 1 is given twice; kubectl takes the last"], id="int"
            ),
            pytest.param("1: a\n0x1: b", {"1": "b"}, ["line 2: the key 0x1 is given twice; kubectl takes"], id="hex"),
            *(
                pytest.param(
                    f"{one}: a\n{other}: b",
                    {name: "b"},
                    [f"line 2: the key {shown} is the text of another key, of another type; kubectl takes one"],
                    id=f"{one} and {other}",
                )
                for one, other, name, shown in [
                    ("1", "'1'", "1", "1"),
                    ("'1'", "1", "1", "1"),
                    ("true", "'true'", "true", "true"),
                    ("'true'", "yes", "true", "yes"),
                    ("1.5", "'1.5'", "1.5", "1.5"),
                ]
            ),
            pytest.param("a: !Ref b\nc: !x {d: !!set {e}}", {"a": "b", "c": {"d": {"e": None}}}, [], id="tags"),
            pytest.param("a: !x 5\nb: !!timestamp 2001-01-01", {"a": "5", "b": "2001-01-01"}, [], id="tagged texts"),
            pytest.param("a: !!binary aGk=", {"a": "hi"}, [], id="binary"),
            pytest.param("a: 1\n...\nb: 2", {"a": 1}, ["line 2: kubectl does not read"], id="after dots"),
            pytest.param("a: 1\n...\n# b\n", {"a": 1}, [], id="comment after dots"),
            pytest.param("null", None, [], id="null"),
            pytest.param("# nothing", None, [], id="nothing"),
        ],
    )
    def test_accepts_what_kubectl_accepts(self, text: str, document: Any, warnings: list[str]) -> None:
        found, given = load_as_kubectl(text)

        assert found == document
        assert len(given) == len(warnings)
        assert all(one.startswith(start) for one, start in zip(given, warnings, strict=True))

    @pytest.mark.parametrize(
        "text",
        ["~: 1", "{a: 1}: 2", "a: !!int b", "a: !!binary '***'", "a: *b", "a: [", "- a", "a: 1\n--- x", "a: .inf"],
    )
    def test_rejects_what_kubectl_rejects(self, text: str) -> None:
        with pytest.raises(ManifestError):
            load_as_kubectl(text)
