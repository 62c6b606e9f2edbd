"""The Secret primitive: all entries end in `data`, and messages never contain them."""

import base64
from typing import Any

import pytest
from kubernetes.client import V1Secret

from ocf.concepts import Graceful, Operational, Suspendable
from ocf.errors import BuildError, MutationError
from ocf.objects import Manifest
from ocf.primitives import data_hash, secret

HIDDEN = "hunter2"
ENCODED = base64.b64encode(HIDDEN.encode()).decode()
BASE: Manifest = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login", "namespace": "shop"},
    "data": {"user": "c2hvcA=="},
}


def built(mutate: Any = None, **changes: Any) -> secret.Resource:
    mutations = [secret.Mutation("m", mutate)] if mutate else []
    return secret.Builder({**BASE, **changes}).with_mutation(*mutations).build()


def test_it_is_static() -> None:
    for concept in (Graceful, Operational, Suspendable):
        assert not isinstance(built(), concept)
    assert built().identity == "v1/Secret/shop/login"


def test_metadata_is_edited_before_the_entries() -> None:
    ran: list[str] = []

    def mutate(m: secret.Mutator) -> None:
        m.edit_data(lambda _: ran.append("data"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    built(mutate).render()
    assert ran == ["metadata", "data"]


class TestStringData:
    """The server stores no `stringData`: what is sent must say in `data` what will be stored."""

    @pytest.mark.parametrize("as_model", [False, True], ids=["manifest", "model"])
    def test_of_the_base_is_encoded_and_wins(self, as_model: bool) -> None:
        base: Any = {**BASE, "data": {"user": "c2hvcA==", "password": "b2xk"}, "stringData": {"password": HIDDEN}}
        resource = secret.Builder(V1Secret.model_validate(base) if as_model else base).build()
        assert resource.render() == {**BASE, "data": {"user": "c2hvcA==", "password": ENCODED}}
        assert resource.preview().string_data is None
        assert base["stringData"] == {"password": HIDDEN}

    def test_written_through_raw_is_encoded_before_the_next_mutation(self) -> None:
        def raw(m: secret.Mutator) -> None:
            @m.edit_data
            def _(data: Any) -> None:
                data.raw.string_data = {"password": HIDDEN, "user": "other"}

        seen: list[Any] = []
        look = secret.Mutation("look", lambda m: m.edit_data(lambda data: seen.append(dict(data.raw.data or {}))))
        resource = secret.Builder(BASE).with_mutation(secret.Mutation("raw", raw), look).build()
        rendered = resource.render()
        assert rendered["data"] == {"user": "b3RoZXI=", "password": ENCODED}
        assert seen == [rendered["data"]]
        assert "stringData" not in rendered

    def test_the_hash_is_that_of_the_stored_object(self) -> None:
        texts = {**BASE, "data": {}, "stringData": {"user": "shop"}}
        assert data_hash(texts) == data_hash(BASE) == secret.Builder(texts).build().desired_hash()


def test_entries_are_recorded_in_short() -> None:
    def mutate(m: secret.Mutator) -> None:
        m.ensure_entry("password", HIDDEN)
        m.ensure_entry("key", b"\x00\xff")
        m.remove_entry("user")

    assert built(mutate).render()["data"] == {"password": ENCODED, "key": "AP8="}


class TestNoValueIsShown:
    def test_in_an_explanation(self) -> None:
        field = built(lambda m: m.ensure_entry("password", HIDDEN)).explain().field("data.password")
        assert str(field.source) == "mutation m, edit_data"
        for shown in (HIDDEN, ENCODED):
            assert shown not in str(field)

    @pytest.mark.parametrize(
        "mutate",
        [
            pytest.param(lambda data: data.ensure_entry("password", [HIDDEN]), id="a wrong type"),
            pytest.param(lambda data: setattr(data.raw, "data", {"password": [HIDDEN]}), id="a wrong type through raw"),
            pytest.param(lambda data: data.raw.data.update(password=[HIDDEN]), id="a wrong type in the map"),
            pytest.param(
                lambda data: setattr(data.raw, "string_data", {"password": 4711}),
                id="a number as text",
            ),
            pytest.param(lambda data: _put_text(data, 4711), id="a number in the map of texts"),
            pytest.param(lambda data: data.raw.data.update(password=b"\xff" + HIDDEN.encode()), id="bytes"),
        ],
    )
    def test_in_the_error_of_an_edit(self, mutate: Any) -> None:
        with pytest.raises(MutationError) as failed:
            built(lambda m: m.edit_data(mutate)).render()
        for shown in (HIDDEN, ENCODED, "4711"):
            assert shown not in str(failed.value)
        assert "edit_data" in str(failed.value)

    @pytest.mark.parametrize("field", ["data", "stringData"])
    @pytest.mark.parametrize("value", [[HIDDEN], 4711, {"nested": HIDDEN}], ids=["list", "number", "map"])
    def test_in_the_error_of_a_build(self, field: str, value: object) -> None:
        with pytest.raises(BuildError) as failed:
            built(**{field: {"password": value}})
        for shown in (HIDDEN, "4711"):
            assert shown not in str(failed.value)
        assert f"{field}.password" in str(failed.value)


def _put_text(data: Any, value: Any) -> None:
    data.raw.string_data = {"user": "shop"}
    data.raw.string_data["password"] = value


class TestWhatTheServerWouldReject:
    """Found where it is written: in the base by the builder, in an edit by the rendering."""

    LARGE = base64.b64encode(b"x" * (1024 * 1024 - 3)).decode()

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            pytest.param(
                {"data": {"password": "hunter2!"}},
                'data[password]: Invalid value: "<secret contents redacted>": must be base64: '
                "illegal base64 data at input byte 7",
                id="no base64",
            ),
            pytest.param(
                {"stringData": {"more": "x" * 1024 * 1024}},
                "data: Too long: may not be more than 1048576 bytes",
                id="stringData above 1 MiB with data",
            ),
            pytest.param({"data": {"..": ""}}, "data[..]: Invalid value: \"..\": must not be '..'", id="key"),
        ],
    )
    def test_a_base_is_rejected_with_all_other_problems(self, content: Any, problem: str) -> None:
        with pytest.raises(BuildError) as caught:
            secret.Builder({**BASE, **content}).with_metrics_identifier(" ").build()
        assert caught.value.problems == (f"Secret shop/login: {problem}", "metrics identifier cannot be blank")
        assert HIDDEN not in str(caught.value)

    @pytest.mark.parametrize(
        ("edit", "problem"),
        [
            pytest.param(lambda data: data.raw.data.update(key="hunter2!"), "must be base64", id="no base64"),
            pytest.param(lambda data: data.ensure_entry("more", "x" * 4), "data: Too long", id="above 1 MiB"),
            pytest.param(lambda data: data.ensure_entry("a b", ""), "a valid config key must consist", id="key"),
        ],
    )
    def test_an_edit_is_named(self, edit: Any, problem: str) -> None:
        def mutate(m: secret.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_label("a", "b"))
            m.edit_data(edit)

        with pytest.raises(MutationError, match=problem) as caught:
            built(mutate, data={"user": self.LARGE}).render()
        assert (caught.value.mutation, caught.value.category) == ("m", "edit_data")
        assert HIDDEN not in str(caught.value)

    def test_an_object_at_the_limit_is_rendered(self) -> None:
        rendered = built(lambda m: m.ensure_entry("more", "xxx"), data={"user": self.LARGE}).render()
        assert len(rendered["data"]["user"]) == len(self.LARGE)
