"""Loading the operator's code: functions, owners and components, with one-line errors."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ocf.cli.component_loader import one_line, read_owners
from ocf.cli.operator_loader import load_components
from ocf.component import Component
from ocf.errors import ConfigError
from tests.cli.owner_files import owners_of

pytestmark = pytest.mark.usefixtures("operator_directory")

OWNER = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "shop"},
    "spec": {"version": "2.3.1"},
}


def error_of(work: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as raised:
        work()
    text = str(raised.value)
    assert "\n" not in text
    return text


def components_of(name: str, owner: dict[str, Any]) -> Sequence[Component]:
    return asyncio.run(load_components(f"shop_operator:{name}")[0].components(owner))


class TestFunction:
    def test_it_is_found_in_the_working_directory(self) -> None:
        assert getattr(load_components("shop_operator:one")[0].function, "__name__", "") == "one"

    def test_it_may_be_a_nested_attribute(self) -> None:
        function = load_components("shop_operator:Shop.model_validate")[0].function
        assert getattr(function, "__name__", "") == "model_validate"

    @pytest.mark.parametrize("target", ["shop_operator:", ":one", ""])
    def test_an_invalid_name_is_rejected(self, target: str) -> None:
        assert error_of(lambda: load_components(target)) == (
            f'invalid target "{target}": write MODULE or MODULE:NAME, for example shop.operator'
        )

    @pytest.mark.parametrize("module", ["shop_oprator", "shop.operator"])
    def test_a_missing_module(self, module: str, tmp_path: Path) -> None:
        assert error_of(lambda: load_components(f"{module}:one")) == (
            f'module "{module}" not found: it is neither installed nor in {tmp_path}'
        )

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            pytest.param("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'", id="import"),
            pytest.param("\n\n1 / 0", "ZeroDivisionError: division by zero", id="error"),
            pytest.param("import sys; sys.exit(3)", "SystemExit: 3", id="exit"),
        ],
    )
    def test_a_failing_module_has_the_source_location(self, tmp_path: Path, source: str, problem: str) -> None:
        (tmp_path / "broken.py").write_text(source)
        line = source.count("\n") + 1
        assert error_of(lambda: load_components("broken:one")) == (
            f"module broken cannot be imported: {problem} (broken.py:{line})"
        )

    def test_a_module_with_a_syntax_error(self, tmp_path: Path) -> None:
        (tmp_path / "broken.py").write_text("def one(:\n")
        assert error_of(lambda: load_components("broken:one")).endswith("(broken.py:1)")

    def test_an_unknown_name_is_rejected_with_the_nearest_one(self) -> None:
        assert error_of(lambda: load_components("shop_operator:componets")) == (
            'shop_operator:componets: module shop_operator has no "componets", did you mean "components"?'
        )

    def test_a_name_of_the_module_operator_is_found_for_its_package(self, tmp_path: Path) -> None:
        """Projects of `ocf new operator` have theirs there, and other commands take the package."""
        (tmp_path / "town").mkdir()
        (tmp_path / "town/__init__.py").write_text("")
        (tmp_path / "town/operator.py").write_text("def components(): ...\n")
        assert error_of(lambda: load_components("town:components")) == (
            'town:components: module town has no "components", did you mean "town.operator:components"?'
        )

    def test_another_object_than_a_function(self) -> None:
        assert error_of(lambda: load_components("shop_operator:SIZE")) == (
            "shop_operator:SIZE is not an operator, got an object of type int; "
            "declare one, operator = Operator(name=..., owner=..., components=...)"
        )

    def test_annotations_of_others_than_the_owner_need_not_be_known(self, tmp_path: Path) -> None:
        """From Python 3.14 on they need no quotes either (PEP 649)."""
        quote = "" if sys.version_info >= (3, 14) else '"'
        function = f"def annotated(shop: Shop) -> {quote}Component{quote}: return modelled(shop)"
        (tmp_path / "annotated.py").write_text(f"from shop_operator import Shop, modelled\n{function}\n")

        (component,) = asyncio.run(load_components("annotated:annotated")[0].components(OWNER))

        assert component.name == "web"

    def test_a_model_of_the_owner_that_is_imported_for_type_checkers_only(self, tmp_path: Path) -> None:
        quote = "" if sys.version_info >= (3, 14) else '"'
        (tmp_path / "annotated.py").write_text(f"def annotated(shop: {quote}Shop{quote}): ...\n")

        problem = error_of(lambda: asyncio.run(load_components("annotated:annotated")[0].components(OWNER)))

        assert problem == (
            "annotated(shop: Shop): name 'Shop' is not defined; import the owner's model outside of TYPE_CHECKING"
        )


class TestOwners:
    def test_several_documents_are_several_owners(self, tmp_path: Path) -> None:
        text = (tmp_path / "owner.yaml").read_text()
        (tmp_path / "two.yaml").write_text(f"{text}---{text.replace('corner', 'main')}")
        assert [owner["metadata"]["name"] for owner in owners_of("two.yaml")] == ["corner", "main"]

    def test_the_items_of_a_list_are_owners(self, tmp_path: Path) -> None:
        text = (tmp_path / "owner.yaml").read_text()
        names = ("corner", "main")
        items = [yaml.safe_load(text.replace("corner", name)) for name in names]
        listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {}})
        (tmp_path / "listed.yaml").write_text(f"{listed}---\n{text.replace('corner', 'last')}")
        found = read_owners("listed.yaml")
        assert [each.manifest and each.manifest["metadata"]["name"] for each in found] == [*names, "last"]
        assert [(each.number, each.path) for each in found] == [(1, "items[0]"), (1, "items[1]"), (2, "")]
        assert {each["spec"]["size"] for each in owners_of("listed.yaml", ["spec.size=4"])} == {4}

    def test_fields_are_set_to_json_or_text(self) -> None:
        [owner] = owners_of("owner.yaml", ["spec.size=4", "spec.version=2.0", "spec.name=a=b", "spec.on=true"])
        assert owner["spec"] == {"version": 2.0, "size": 4, "name": "a=b", "on": True}

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            pytest.param(
                b"", "owner.yaml holds no objects; an owner is a manifest with apiVersion, kind and", id="empty"
            ),
            pytest.param(b"a: [", "owner.yaml: document 1: ", id="no YAML"),
            pytest.param(b"- a", "owner.yaml: document 1: a map with keys is expected, not a list", id="a list"),
            pytest.param(
                b"kind: Shop", "owner.yaml: document 1 is not an owner: Shop: apiVersion: required value", id="no owner"
            ),
            pytest.param(
                b"{apiVersion: v1, kind: List, items: [{kind: Shop}]}",
                "owner.yaml: document 1, items[0] is not an owner: Shop: apiVersion: required value",
                id="no owner in a List",
            ),
            pytest.param(
                b"{apiVersion: v1, kind: List, items: [a]}",
                "owner.yaml: document 1 is not an owner: items[0]: items of a List must be objects, got str",
                id="no object in a List",
            ),
            pytest.param(
                b"{apiVersion: v1, kind: List, items: []}", "owner.yaml holds no objects; ", id="an empty List"
            ),
            pytest.param(b"a: \xff", "owner.yaml: invalid text: byte 4 is not UTF-8", id="no text"),
            pytest.param(b"#" * (3 * 2**20 + 1), "owner.yaml: document 1: longer than 3145728 bytes", id="too long"),
        ],
    )
    def test_a_file_without_a_valid_owner(self, tmp_path: Path, content: bytes, problem: str) -> None:
        (tmp_path / "owner.yaml").write_bytes(content)
        assert problem in error_of(lambda: owners_of("owner.yaml"))

    def test_a_missing_file(self) -> None:
        assert error_of(lambda: owners_of("nowhere.yaml")) == "nowhere.yaml cannot be read: No such file or directory"

    def test_an_endless_file_is_not_read_completely(self) -> None:
        assert "longer than" in error_of(lambda: owners_of("/dev/zero"))

    def test_a_folder_has_the_owners_of_its_files(self, tmp_path: Path) -> None:
        folder = tmp_path / "owners"
        folder.mkdir()
        assert "the folder contains no YAML or JSON files" in error_of(lambda: owners_of("owners"))
        for name in ("b", "a"):
            (folder / f"{name}.yaml").write_text(Path("owner.yaml").read_text().replace("corner", name))
        assert [one["metadata"]["name"] for one in owners_of("owners", ["spec.size=4"])] == ["a", "b"]
        assert [one["spec"]["size"] for one in owners_of("owners", ["spec.size=4"])] == [4, 4]

    @pytest.mark.parametrize("change", ["spec.size", "=4", "a..b=3"])
    def test_an_invalid_change(self, change: str) -> None:
        assert "write" in error_of(lambda: owners_of("owner.yaml", [change]))


class TestComponents:
    @pytest.mark.parametrize("name", ["one", "components", "modelled", "half_annotated"])
    def test_one_or_several_from_a_manifest_or_a_model(self, name: str) -> None:
        assert [each.name for each in components_of(name, OWNER)] == ["web"]

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            pytest.param("fails", "failed: RuntimeError: no such size (shop_operator.py:", id="raises"),
            pytest.param("forgets", "returned a builder; was .build() forgotten?", id="builder"),
            pytest.param("waits", "must return one or more components, got NoneType", id="None of a coroutine"),
            pytest.param("nothing", "must return one or more components, got NoneType", id="None"),
            pytest.param("invalid", "failed: component name cannot be empty; condition type cannot be", id="rejected"),
        ],
    )
    def test_an_invalid_result_of_a_function(self, name: str, problem: str) -> None:
        message = error_of(lambda: components_of(name, OWNER))
        assert message.startswith(f"shop_operator:{name} for Shop shop/corner {problem}")

    def test_a_model_that_is_imported_for_type_checkers_only(self) -> None:
        """Passing a manifest instead would fail far from the cause."""
        message = error_of(lambda: components_of("unknown_model", OWNER))
        assert message.startswith(
            "unknown_model(owner: OnlyForTypeCheckers): name 'OnlyForTypeCheckers' is not defined"
        )

    def test_an_owner_that_does_not_match_the_model(self) -> None:
        message = error_of(lambda: components_of("modelled", {**OWNER, "spec": {"size": "many"}}))
        assert message.startswith("shop_operator:modelled for Shop shop/corner: the owner is not a valid Shop: ")
        assert "size" in message
        assert "version" in message


def test_equal_errors_of_a_group_are_reported_once() -> None:
    watch, lease = ConfigError("no watch"), ConfigError("no lease")
    group = ExceptionGroup(
        "unhandled errors in a TaskGroup", [watch, ExceptionGroup("", [lease]), ConfigError("no watch")]
    )

    assert one_line(group) == "no watch; no lease"


def test_the_notes_of_an_error_are_shown_behind_it() -> None:
    """They name what has failed, such as a background task, of which the text of the error says nothing."""
    error = OSError("address already in use")
    error.add_note('the task "count" of operator shops failed')
    expected = 'OSError: address already in use (the task "count" of operator shops failed)'
    assert one_line(ExceptionGroup("unhandled errors in a TaskGroup", [error])) == expected
