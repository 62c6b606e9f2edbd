"""ContainerEditor: image, variables, arguments, ports, mounts and resources."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import (
    CoreV1ResourceClaim,
    V1Container,
    V1ContainerPort,
    V1EnvVar,
    V1EnvVarSource,
    V1HTTPGetAction,
    V1Probe,
    V1ResourceRequirements,
    V1SecretKeySelector,
    V1TCPSocketAction,
    V1VolumeMount,
)

from ocf.editors import ContainerEditor
from ocf.errors import ConfigError, QuantityError
from ocf.objects import write_model
from ocf.objects.models import copy_model

EMPTY = {"name": "web"}


@pytest.fixture
def editor() -> ContainerEditor:
    return ContainerEditor(V1Container(name="web"))


def variable(name: str, value: str = "1") -> V1EnvVar:
    return V1EnvVar(name=name, value=value)


class TestImage:
    def test_is_set(self, editor: ContainerEditor) -> None:
        editor.set_image("web:2")

        assert write_model(editor.raw) == {**EMPTY, "image": "web:2"}

    @pytest.mark.parametrize("image", [None, 2])
    def test_an_image_that_is_not_a_string_is_rejected(self, editor: ContainerEditor, image: str) -> None:
        """The model would accept None, but removing the image is not an edit of the image."""
        with pytest.raises(ConfigError, match="image: must be a text"):
            editor.set_image(image)

    def test_raw_is_the_live_container(self) -> None:
        container = V1Container(name="web")

        assert ContainerEditor(container).raw is container


class TestEnv:
    def test_value_becomes_value_from_cleanly_and_in_place(self, editor: ContainerEditor) -> None:
        """The variable is replaced as a whole, so the old value does not remain beside the reference."""
        reference = V1EnvVarSource(secret_key_ref=V1SecretKeySelector(name="db", key="password"))
        editor.ensure_env_var(variable("A"), variable("PASSWORD"), variable("C"))

        editor.ensure_env_var(V1EnvVar(name="PASSWORD", value_from=reference))

        assert write_model(editor.raw)["env"] == [
            {"name": "A", "value": "1"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
            {"name": "C", "value": "1"},
        ]

    def test_only_the_first_duplicate_is_replaced(self, editor: ContainerEditor) -> None:
        editor.raw.env = [variable("A", "1"), variable("A", "2")]

        editor.ensure_env_var(variable("A", "3"))

        assert [variable("A", "3"), variable("A", "2")] == editor.raw.env

    def test_several_are_stored_in_the_order_given(self, editor: ContainerEditor) -> None:
        """The order is part of the meaning: $(NAME) refers to what came before."""
        editor.ensure_env_var(variable("B"), variable("A"), variable("B", "2"))

        assert [variable("B", "2"), variable("A")] == editor.raw.env

    def test_remove_drops_all_duplicates_of_every_name(self, editor: ContainerEditor) -> None:
        editor.raw.env = [variable("A"), variable("B"), variable("A"), variable("C")]

        editor.remove_env_var("A", "C", "D")

        assert [variable("B")] == editor.raw.env

    def test_removing_the_last_one_unsets_the_list(self, editor: ContainerEditor) -> None:
        editor.ensure_env_var(variable("A"))
        editor.remove_env_var("A")

        assert write_model(editor.raw) == EMPTY

    def test_none_given_changes_nothing(self, editor: ContainerEditor) -> None:
        editor.ensure_env_var()
        editor.remove_env_var()

        assert write_model(editor.raw) == EMPTY

    def test_the_callers_variables_are_copied(self, editor: ContainerEditor) -> None:
        given_one = variable("A")
        before = copy_model(given_one)

        editor.ensure_env_var(given_one)
        assert editor.raw.env is not None
        editor.raw.env[0].value = "2"

        assert before == given_one

    def test_an_error_never_shows_a_value(self, editor: ContainerEditor) -> None:
        secret = {"name": "PASSWORD", "value": "hunter2"}

        with pytest.raises(ConfigError) as caught:
            editor.ensure_env_var(secret)  # type: ignore[arg-type]  # the mistake tested

        assert str(caught.value) == "env: must be a kubernetes.client.V1EnvVar, not of type dict"


class TestArgs:
    def test_one_that_is_there_is_not_added_again(self, editor: ContainerEditor) -> None:
        editor.ensure_arg("--verbose")
        editor.ensure_arg("--verbose", "--debug", "--debug")

        assert editor.raw.args == ["--verbose", "--debug"]

    def test_another_value_of_the_same_flag_is_another_argument(self, editor: ContainerEditor) -> None:
        editor.ensure_arg("--level=1")
        editor.ensure_arg("--level=2")

        assert editor.raw.args == ["--level=1", "--level=2"]

    def test_remove_drops_every_occurrence_and_unsets_the_empty_list(self, editor: ContainerEditor) -> None:
        editor.raw.args = ["-v", "--debug", "-v"]

        editor.remove_arg("-v")

        assert editor.raw.args == ["--debug"]

        editor.remove_arg("--debug", "-x")

        assert write_model(editor.raw) == EMPTY

    def test_a_wrong_type_stores_none_and_shows_only_numbers(self, editor: ContainerEditor) -> None:
        with pytest.raises(ConfigError, match=r"^args: must be a text, not 8080$"):
            editor.ensure_arg("--port", 8080)  # type: ignore[arg-type]  # the mistake tested
        with pytest.raises(ConfigError, match=r"^args: must be a text, not of type bytes$"):
            editor.ensure_arg(b"--password=hunter2")  # type: ignore[arg-type]  # the mistake tested

        assert write_model(editor.raw) == EMPTY

    @given(present=st.lists(st.sampled_from("abc"), max_size=5), args=st.lists(st.sampled_from("abc"), max_size=3))
    def test_ensuring_twice_is_ensuring_once_and_keeps_the_order(self, present: list[str], args: list[str]) -> None:
        container = V1Container(name="web", args=list(present) or None)
        editor = ContainerEditor(container)

        editor.ensure_arg(*args)
        once = list(container.args or [])
        editor.ensure_arg(*args)

        assert once == (container.args or [])
        assert once[: len(present)] == present


class TestPorts:
    @pytest.mark.parametrize("protocol", [None, "", "TCP"], ids=repr)
    def test_no_protocol_is_tcp(self, editor: ContainerEditor, protocol: str | None) -> None:
        new = V1ContainerPort(container_port=80, protocol=protocol, name="new")
        editor.ensure_port(V1ContainerPort(container_port=80, protocol="TCP", name="old"))

        editor.ensure_port(new)

        assert [new] == editor.raw.ports

        editor.remove_port(80)

        assert write_model(editor.raw) == EMPTY

    def test_one_number_serves_two_protocols(self, editor: ContainerEditor) -> None:
        tcp, udp = V1ContainerPort(container_port=53), V1ContainerPort(container_port=53, protocol="UDP")

        editor.ensure_port(tcp)
        editor.ensure_port(udp)

        assert [tcp, udp] == editor.raw.ports

        editor.remove_port(53, protocol="UDP")

        assert [tcp] == editor.raw.ports

    @pytest.mark.parametrize("number", [None, "80", 80.0], ids=repr)
    def test_a_port_number_that_is_not_an_integer_is_rejected(self, editor: ContainerEditor, number: int) -> None:
        """It would silently match no port."""
        with pytest.raises(ConfigError, match="ports: must be a whole number, not "):
            editor.remove_port(number)

    def test_the_name_does_not_identify_a_port(self, editor: ContainerEditor) -> None:
        editor.ensure_port(V1ContainerPort(container_port=80, name="http"))
        editor.ensure_port(V1ContainerPort(container_port=8080, name="http"))

        assert len(editor.raw.ports or []) == 2


class TestVolumeMounts:
    def test_are_keyed_by_path(self, editor: ContainerEditor) -> None:
        """One volume may be mounted twice; one path holds one mount."""
        editor.ensure_volume_mount(V1VolumeMount(name="data", mount_path="/a"))
        editor.ensure_volume_mount(V1VolumeMount(name="data", mount_path="/b"))
        editor.ensure_volume_mount(V1VolumeMount(name="cache", mount_path="/a", read_only=True))

        assert write_model(editor.raw)["volumeMounts"] == [
            {"name": "cache", "mountPath": "/a", "readOnly": True},
            {"name": "data", "mountPath": "/b"},
        ]

        editor.remove_volume_mount("/a")
        editor.remove_volume_mount("/b")
        editor.remove_volume_mount("/c")

        assert write_model(editor.raw) == EMPTY


SET_ONE = pytest.mark.parametrize(
    ("field", "set_one"),
    [("limits", ContainerEditor.set_resource_limit), ("requests", ContainerEditor.set_resource_request)],
    ids=["limits", "requests"],
)

SetOne = Callable[[ContainerEditor, str, object], None]


@SET_ONE
class TestOneResource:
    @pytest.mark.parametrize(
        ("quantity", "text"),
        [("500m", "500m"), ("0.50", "0.50"), ("1024Mi", "1024Mi"), (2, "2"), (0.5, "0.5"), (0, "0")],
        ids=repr,
    )
    def test_is_stored_as_the_text_given(
        self, editor: ContainerEditor, field: str, set_one: SetOne, quantity: object, text: str
    ) -> None:
        set_one(editor, "cpu", quantity)

        assert write_model(editor.raw) == {**EMPTY, "resources": {field: {"cpu": text}}}

    def test_touches_one_key_only(self, editor: ContainerEditor, field: str, set_one: SetOne) -> None:
        before = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}}
        editor.raw.resources = V1ResourceRequirements.model_validate(before)

        set_one(editor, "cpu", "2")

        assert write_model(editor.raw)["resources"] == {**before, field: {**before[field], "cpu": "2"}}

    @pytest.mark.parametrize("quantity", ["", "1 Gi", "lots", float("nan"), float("inf"), True], ids=repr)
    def test_an_invalid_quantity_is_rejected_with_its_path(
        self, editor: ContainerEditor, field: str, set_one: SetOne, quantity: object
    ) -> None:
        with pytest.raises(QuantityError, match=rf"^resources\.{field}\[cpu\]: "):
            set_one(editor, "cpu", quantity)

        assert write_model(editor.raw) == EMPTY

    def test_none_drops_the_key_and_then_what_became_empty(
        self, editor: ContainerEditor, field: str, set_one: SetOne
    ) -> None:
        set_one(editor, "cpu", 1)
        set_one(editor, "memory", "1Gi")

        set_one(editor, "cpu", None)
        set_one(editor, "disk", None)

        assert write_model(editor.raw)["resources"] == {field: {"memory": "1Gi"}}

        set_one(editor, "memory", None)
        set_one(editor, "memory", None)

        assert write_model(editor.raw) == EMPTY

    @pytest.mark.parametrize("rest", [{}, {"claims": []}, {"claims": [{"name": "gpu"}]}], ids=repr)
    def test_dropping_leaves_what_the_user_wrote(
        self, editor: ContainerEditor, field: str, set_one: SetOne, rest: dict[str, object]
    ) -> None:
        """Empty requirements stay where nothing was dropped from them, and so do claims."""
        editor.raw.resources = V1ResourceRequirements.model_validate(rest)

        set_one(editor, "cpu", None)

        assert write_model(editor.raw)["resources"] == rest

        if rest:
            set_one(editor, "cpu", 1)
            set_one(editor, "cpu", None)

            assert write_model(editor.raw)["resources"] == rest
        assert field not in rest


class TestProbes:
    @pytest.mark.parametrize(
        ("setter", "field"),
        [
            pytest.param(ContainerEditor.set_startup_probe, "startupProbe", id="startup"),
            pytest.param(ContainerEditor.set_readiness_probe, "readinessProbe", id="readiness"),
            pytest.param(ContainerEditor.set_liveness_probe, "livenessProbe", id="liveness"),
        ],
    )
    def test_a_probe_is_replaced_whole_by_a_copy_and_none_unsets_it(
        self, editor: ContainerEditor, setter: Callable[[ContainerEditor, V1Probe | None], None], field: str
    ) -> None:
        setter(editor, V1Probe(period_seconds=5, tcp_socket=V1TCPSocketAction(port="http")))
        probe = V1Probe(http_get=V1HTTPGetAction(path="/ready", port="http"))

        setter(editor, probe)
        probe.period_seconds = 20

        assert write_model(editor.raw) == {**EMPTY, field: {"httpGet": {"path": "/ready", "port": "http"}}}

        setter(editor, None)

        assert write_model(editor.raw) == EMPTY

    def test_a_probe_of_another_type_is_rejected(self, editor: ContainerEditor) -> None:
        with pytest.raises(ConfigError, match=r"livenessProbe: must be a kubernetes\.client\.V1Probe"):
            editor.set_liveness_probe(V1HTTPGetAction(port=80))  # type: ignore[arg-type]  # the mistake tested


class TestResources:
    def test_are_replaced_whole_by_a_copy(self, editor: ContainerEditor) -> None:
        editor.set_resource_limit("memory", "1Gi")
        resources = V1ResourceRequirements(requests={"cpu": "1"}, claims=[CoreV1ResourceClaim(name="gpu")])
        before = copy_model(resources)

        editor.set_resources(resources)
        editor.set_resource_request("cpu", "2")
        editor.set_resource_limit("cpu", "2")

        assert before == resources
        assert write_model(editor.raw)["resources"] == {
            "limits": {"cpu": "2"},
            "requests": {"cpu": "2"},
            "claims": [{"name": "gpu"}],
        }

        editor.set_resources(None)

        assert write_model(editor.raw) == EMPTY

    def test_a_text_that_is_not_a_quantity_is_rejected(self, editor: ContainerEditor) -> None:
        editor.set_resource_limit("cpu", 1)

        with pytest.raises(QuantityError, match=r"^resources\.requests\[memory\]: "):
            editor.set_resources(V1ResourceRequirements(requests={"memory": "1 GB"}))

        assert write_model(editor.raw)["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    "edit",
    [
        ContainerEditor.remove_env_var,
        ContainerEditor.remove_arg,
        ContainerEditor.remove_volume_mount,
        lambda editor, wrong: editor.remove_port(80, protocol=wrong),
        ContainerEditor.ensure_port,
        ContainerEditor.ensure_volume_mount,
        ContainerEditor.set_resources,
        ContainerEditor.set_liveness_probe,
    ],
)
@pytest.mark.parametrize("wrong", [1, ["a"], {"name": "a"}], ids=repr)
def test_a_value_of_another_type_is_rejected(
    editor: ContainerEditor, edit: Callable[[ContainerEditor, object], None], wrong: object
) -> None:
    with pytest.raises(ConfigError, match="must be a"):
        edit(editor, wrong)

    assert write_model(editor.raw) == EMPTY
