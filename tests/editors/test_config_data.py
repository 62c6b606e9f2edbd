"""The editors of ConfigMaps and Secrets: entries, merged YAML, base64, and no secret in an error."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1ConfigMap, V1Secret

from ocf.editors import ConfigMapDataEditor, SecretDataEditor
from ocf.errors import ConfigError
from ocf.objects import load_document, write_model

SECRET = "hunter2"


@pytest.fixture
def config() -> ConfigMapDataEditor:
    return ConfigMapDataEditor(V1ConfigMap())


@pytest.fixture
def secret() -> SecretDataEditor:
    return SecretDataEditor(V1Secret())


class TestConfigMap:
    def test_entries_are_set_overwritten_and_dropped(self, config: ConfigMapDataEditor) -> None:
        config.ensure_entry("mode", "slow")
        config.ensure_entry("mode", "fast")
        config.ensure_entry("level", "")
        assert write_model(config.raw) == {"data": {"mode": "fast", "level": ""}}
        config.remove_entry("mode")
        config.remove_entry("never there")
        assert write_model(config.raw) == {"data": {"level": ""}}

    def test_the_last_entry_takes_the_map_with_it(self, config: ConfigMapDataEditor) -> None:
        config.ensure_entry("mode", "fast")
        config.ensure_binary_entry("logo", b"\x00\xff")
        config.remove_entry("mode")
        config.remove_binary_entry("logo")
        assert write_model(config.raw) == {}

    def test_binary_entries_are_encoded_and_apart_from_texts(self, config: ConfigMapDataEditor) -> None:
        config.ensure_entry("a", "text")
        config.ensure_binary_entry("b", b"\x00\xff")
        assert write_model(config.raw) == {"data": {"a": "text"}, "binaryData": {"b": "AP8="}}

    @pytest.mark.parametrize("wrong", [1, None, b"bytes"])
    def test_an_entry_is_text(self, config: ConfigMapDataEditor, wrong: object) -> None:
        with pytest.raises(ConfigError, match=r"data\[mode\]: must be a text"):
            config.ensure_entry("mode", wrong)  # type: ignore[arg-type]  # the point of the test
        with pytest.raises(ConfigError, match=r"binaryData\[mode\]: must be text or bytes, not of type int"):
            config.ensure_binary_entry("mode", 1)  # type: ignore[arg-type]  # the point of the test
        assert write_model(config.raw) == {}


class TestMergeYaml:
    @pytest.mark.parametrize(
        ("present", "patch", "merged"),
        [
            pytest.param("", "a: 1", {"a": 1}, id="nothing there"),
            pytest.param("a: {b: 1, c: 2}", "a: {c: 3, d: 4}", {"a": {"b": 1, "c": 3, "d": 4}}, id="maps are merged"),
            pytest.param("a: [1, 2]", "a: [3]", {"a": [3]}, id="a list takes the place of a list"),
            pytest.param("a: {b: 1}", "a: 2", {"a": 2}, id="a scalar takes the place of a map"),
            pytest.param("a: 1", "a: {b: 2}", {"a": {"b": 2}}, id="a map takes the place of a scalar"),
            pytest.param("a: 1\nb: 2", "a: null", {"a": None, "b": 2}, id="null is a value and drops nothing"),
            pytest.param("a: 'yes'", "b: 'no'", {"a": "yes", "b": "no"}, id="texts stay texts"),
        ],
    )
    def test_rule(self, config: ConfigMapDataEditor, present: str, patch: str, merged: object) -> None:
        if present:
            config.ensure_entry("app.yaml", present)
        config.merge_yaml("app.yaml", patch)
        assert load_document((config.raw.data or {})["app.yaml"]) == merged

    def test_merging_twice_is_merging_once(self, config: ConfigMapDataEditor) -> None:
        config.ensure_entry("app.yaml", "a: {b: 1}")
        config.merge_yaml("app.yaml", "a: {c: [1]}")
        once = write_model(config.raw)
        config.merge_yaml("app.yaml", "a: {c: [1]}")
        assert write_model(config.raw) == once

    @pytest.mark.parametrize("empty", ["", "# nothing\n", "---\n"])
    def test_a_patch_that_says_nothing_changes_nothing(self, config: ConfigMapDataEditor, empty: str) -> None:
        config.ensure_entry("app.yaml", "a: 1  # kept as written\n")
        config.merge_yaml("app.yaml", empty)
        config.merge_yaml("other.yaml", empty)
        assert config.raw.data == {"app.yaml": "a: 1  # kept as written\n"}

    @pytest.mark.parametrize(
        ("present", "patch", "message"),
        [
            pytest.param("a: [", "a: 1", 'entry "app.yaml": failed to parse existing value as YAML: .*line', id="old"),
            pytest.param("a: 1", "a: [", 'entry "app.yaml": failed to parse YAML patch: .*line', id="patch"),
            pytest.param("a: 1", "- 1", 'entry "app.yaml": failed to parse YAML patch: .*a map', id="no map"),
            pytest.param("a: 1", "a: 1\n---\nb: 2", "at most one document is expected, not 2", id="two documents"),
        ],
    )
    def test_what_cannot_be_read_is_an_error_that_names_the_entry(
        self, config: ConfigMapDataEditor, present: str, patch: str, message: str
    ) -> None:
        config.ensure_entry("app.yaml", present)
        with pytest.raises(ConfigError, match=message):
            config.merge_yaml("app.yaml", patch)
        assert config.raw.data == {"app.yaml": present}


class TestSecret:
    @given(content=st.binary() | st.text())
    def test_whatever_is_put_in_comes_out(self, content: str | bytes) -> None:
        data = SecretDataEditor(V1Secret())
        data.ensure_entry("key", content)
        stored = base64.b64decode(write_model(data.raw)["data"]["key"], validate=True)
        assert stored == (content.encode() if isinstance(content, str) else content)

    def test_entries_are_overwritten_and_dropped(self, secret: SecretDataEditor) -> None:
        secret.ensure_entry("a", "1")
        secret.ensure_entry("a", "2")
        assert write_model(secret.raw) == {"data": {"a": "Mg=="}}
        secret.remove_entry("a")
        secret.remove_entry("never there")
        assert write_model(secret.raw) == {}

    @pytest.mark.parametrize("wrong", [4711, [SECRET], {"password": SECRET}, None])
    def test_an_error_contains_only_the_type(self, secret: SecretDataEditor, wrong: object) -> None:
        """Even a number may be a secret, a PIN for example."""
        with pytest.raises(ConfigError, match=r"data\[pin\]: must be text or bytes, not of type") as refused:
            secret.ensure_entry("pin", wrong)  # type: ignore[arg-type]  # the point of the test
        assert SECRET not in str(refused.value)
        assert "4711" not in str(refused.value)
