"""Whatever is in the way of loading an operator's code is told in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ocf.cli.component_loader import components_of, load_function, one_line, read_owners
from ocf.errors import ConfigError

pytestmark = pytest.mark.usefixtures("operator_directory")

OWNER = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "shop"},
    "spec": {"version": "2.3.1"},
}


def said(work: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as refused:
        work()
    text = str(refused.value)
    assert "\n" not in text
    return text


class TestFunction:
    def test_it_is_found_in_the_working_directory(self) -> None:
        assert load_function("shop_operator:one").__name__ == "one"

    def test_it_may_be_an_attribute_of_something(self) -> None:
        assert load_function("shop_operator:Shop.model_validate").__name__ == "model_validate"

    @pytest.mark.parametrize("target", ["shop_operator", "shop_operator:", ":one", ""])
    def test_a_text_that_names_none_is_refused(self, target: str) -> None:
        assert said(lambda: load_function(target)) == (
            f'"{target}" names no function: write MODULE:FUNCTION, for example shop.operator:components'
        )

    @pytest.mark.parametrize("module", ["shop_oprator", "shop.operator"])
    def test_a_module_that_is_not_there(self, module: str, tmp_path: Path) -> None:
        assert said(lambda: load_function(f"{module}:one")) == (
            f'there is no module "{module}", neither installed nor in {tmp_path}'
        )

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            pytest.param("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'", id="import"),
            pytest.param("\n\n1 / 0", "ZeroDivisionError: division by zero", id="error"),
            pytest.param("import sys; sys.exit(3)", "SystemExit: 3", id="exit"),
        ],
    )
    def test_a_module_that_fails_says_where(self, tmp_path: Path, source: str, problem: str) -> None:
        (tmp_path / "broken.py").write_text(source)
        line = source.count("\n") + 1
        assert said(lambda: load_function("broken:one")) == (
            f"module broken cannot be imported: {problem} (broken.py:{line})"
        )

    def test_a_module_that_is_no_python(self, tmp_path: Path) -> None:
        (tmp_path / "broken.py").write_text("def one(:\n")
        assert said(lambda: load_function("broken:one")).endswith("(broken.py:1)")

    def test_a_name_that_is_not_there_is_refused_with_the_nearest(self) -> None:
        assert said(lambda: load_function("shop_operator:componets")) == (
            'shop_operator:componets: module shop_operator has no "componets", did you mean "components"?'
        )

    def test_what_is_no_function(self) -> None:
        assert said(lambda: load_function("shop_operator:SIZE")) == "shop_operator:SIZE is no function, but int"


class TestOwners:
    def test_several_documents_are_several_owners(self, tmp_path: Path) -> None:
        text = (tmp_path / "owner.yaml").read_text()
        (tmp_path / "two.yaml").write_text(f"{text}---{text.replace('corner', 'main')}")
        assert [owner["metadata"]["name"] for owner in read_owners("two.yaml")] == ["corner", "main"]

    def test_fields_are_set_as_json_or_as_text(self) -> None:
        [owner] = read_owners("owner.yaml", ["spec.size=4", "spec.version=2.0", "spec.name=a=b", "spec.on=true"])
        assert owner["spec"] == {"version": 2.0, "size": 4, "name": "a=b", "on": True}

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            pytest.param(
                b"", "owner.yaml holds no object; an owner is a manifest with apiVersion, kind and", id="empty"
            ),
            pytest.param(b"a: [", "owner.yaml: document 1: ", id="no YAML"),
            pytest.param(b"- a", "owner.yaml: document 1: a map with keys is expected, not a list", id="a list"),
            pytest.param(
                b"kind: Shop", "owner.yaml: document 1 is no owner: Shop: apiVersion: required value", id="no owner"
            ),
            pytest.param(b"a: \xff", "owner.yaml is no text: byte 4 is not UTF-8", id="no text"),
            pytest.param(b"#" * (3 * 2**20 + 1), "owner.yaml: document 1: longer than 3145728 bytes", id="too long"),
        ],
    )
    def test_a_file_that_holds_none(self, tmp_path: Path, content: bytes, problem: str) -> None:
        (tmp_path / "owner.yaml").write_bytes(content)
        assert problem in said(lambda: read_owners("owner.yaml"))

    def test_a_file_that_is_not_there(self) -> None:
        assert said(lambda: read_owners("nowhere.yaml")) == "nowhere.yaml cannot be read: No such file or directory"

    def test_a_file_without_an_end_is_not_read_to_its_end(self) -> None:
        assert "longer than" in said(lambda: read_owners("/dev/zero"))

    def test_a_directory(self, tmp_path: Path) -> None:
        assert said(lambda: read_owners(str(tmp_path))).endswith("cannot be read: Is a directory")

    @pytest.mark.parametrize("change", ["spec.size", "=4", "a..b=3"])
    def test_a_change_that_sets_nothing(self, change: str) -> None:
        assert "write" in said(lambda: read_owners("owner.yaml", [change]))


class TestComponents:
    @pytest.mark.parametrize("name", ["one", "components", "modelled", "half_annotated"])
    def test_one_or_several_from_a_manifest_or_a_model(self, name: str) -> None:
        function = load_function(f"shop_operator:{name}")
        assert [each.name for each in components_of(name, function, OWNER)] == ["web"]

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            pytest.param("fails", "failed: RuntimeError: no such size (shop_operator.py:", id="raises"),
            pytest.param("forgets", "returned a builder; was .build() forgotten?", id="builder"),
            pytest.param("waits", "is asynchronous; it has to be a plain function", id="coroutine"),
            pytest.param("nothing", "has to return a component, or several, not NoneType", id="None"),
            pytest.param("refused", "failed: component name cannot be empty; condition type cannot be", id="refused"),
        ],
    )
    def test_what_a_function_does_wrong(self, name: str, problem: str) -> None:
        function = load_function(f"shop_operator:{name}")
        told = said(lambda: components_of(f"shop_operator:{name}", function, OWNER))
        assert told.startswith(f"shop_operator:{name} for Shop shop/corner {problem}")

    def test_a_model_that_only_type_checkers_see(self) -> None:
        """Handing over a manifest instead would fail far from the cause."""
        function = load_function("shop_operator:unknown_model")
        told = said(lambda: components_of("unknown_model", function, OWNER))
        assert told.startswith("unknown_model(owner: OnlyForTypeCheckers): name 'OnlyForTypeCheckers' is not defined")

    def test_an_owner_that_is_not_the_model(self) -> None:
        function = load_function("shop_operator:modelled")
        told = said(lambda: components_of("modelled", function, {**OWNER, "spec": {"size": "many"}}))
        assert told.startswith("modelled for Shop shop/corner: the owner is no Shop: ")
        assert "size" in told
        assert "version" in told


def test_several_errors_are_told_each_once() -> None:
    watch, lease = ConfigError("no watch"), ConfigError("no lease")
    group = ExceptionGroup(
        "unhandled errors in a TaskGroup", [watch, ExceptionGroup("", [lease]), ConfigError("no watch")]
    )

    assert one_line(group) == "no watch; no lease"
