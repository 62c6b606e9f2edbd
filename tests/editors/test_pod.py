"""PodSpecEditor: fields, and lists keyed by name or by everything."""

from collections.abc import Callable

import pytest
from kubernetes.client import (
    V1EmptyDirVolumeSource,
    V1LocalObjectReference,
    V1PodSecurityContext,
    V1PodSpec,
    V1SecretVolumeSource,
    V1SecurityContext,
    V1Toleration,
    V1Volume,
)
from pydantic import ValidationError

from ocf.editors import PodSpecEditor
from ocf.errors import ConfigError
from ocf.objects import write_model
from ocf.objects.models import copy_model

Setter = Callable[[PodSpecEditor, object], None]


@pytest.fixture
def spec() -> V1PodSpec:
    return V1PodSpec(containers=[])


@pytest.fixture
def editor(spec: V1PodSpec) -> PodSpecEditor:
    return PodSpecEditor(spec)


def cache() -> V1Volume:
    return V1Volume(name="cache", empty_dir=V1EmptyDirVolumeSource())


def certs(name: str = "tls") -> V1Volume:
    return V1Volume(name="certs", secret=V1SecretVolumeSource(secret_name=name))


class TestFields:
    @pytest.mark.parametrize(
        ("setter", "field", "value", "wrong"),
        [
            pytest.param(PodSpecEditor.set_service_account_name, "serviceAccountName", "web", 1, id="account"),
            pytest.param(PodSpecEditor.set_priority_class_name, "priorityClassName", "high", 1, id="priority"),
            pytest.param(PodSpecEditor.set_host_network, "hostNetwork", False, "no", id="network, false is a value"),
            pytest.param(PodSpecEditor.set_host_pid, "hostPID", True, 1, id="process ids"),
            pytest.param(PodSpecEditor.set_host_ipc, "hostIPC", True, 1, id="inter-process communication"),
        ],
    )
    def test_sets_its_field_none_unsets_it_and_the_model_checks_the_type(
        self, editor: PodSpecEditor, setter: Setter, field: str, value: object, wrong: object
    ) -> None:
        setter(editor, value)

        assert write_model(editor.raw) == {"containers": [], field: value}

        with pytest.raises(ValidationError):
            setter(editor, wrong)
        setter(editor, None)

        assert write_model(editor.raw) == {"containers": []}

    def test_security_context_is_replaced_whole_by_a_copy(self, editor: PodSpecEditor) -> None:
        context = V1PodSecurityContext(run_as_non_root=True)

        editor.set_security_context(V1PodSecurityContext(run_as_user=1))
        editor.set_security_context(context)
        context.run_as_non_root = False

        assert write_model(editor.raw)["securityContext"] == {"runAsNonRoot": True}

        editor.set_security_context(None)

        assert "securityContext" not in write_model(editor.raw)

    def test_the_security_context_of_a_container_is_rejected(self, editor: PodSpecEditor) -> None:
        with pytest.raises(ConfigError, match=r"V1PodSecurityContext, not of type .*\.V1SecurityContext"):
            editor.set_security_context(V1SecurityContext())  # type: ignore[arg-type]  # the mistake tested

    def test_raw_is_the_live_spec(self, spec: V1PodSpec, editor: PodSpecEditor) -> None:
        assert editor.raw is spec


class TestVolumes:
    def test_a_volume_of_the_same_name_is_replaced_in_place(self, editor: PodSpecEditor) -> None:
        """Whole: a volume that was a secret can become a directory."""
        editor.raw.volumes = [certs(), cache(), certs("other")]
        directory = V1Volume(name="certs", empty_dir=V1EmptyDirVolumeSource())

        editor.ensure_volume(directory)

        assert [directory, cache(), certs("other")] == editor.raw.volumes

    def test_another_volume_is_appended(self, editor: PodSpecEditor) -> None:
        editor.ensure_volume(cache())
        editor.ensure_volume(certs())

        assert [cache(), certs()] == editor.raw.volumes

    def test_the_callers_volume_is_copied(self, editor: PodSpecEditor) -> None:
        volume = certs()
        before = copy_model(volume)

        editor.ensure_volume(volume)
        assert editor.raw.volumes is not None
        assert editor.raw.volumes[0].secret is not None
        editor.raw.volumes[0].secret.secret_name = "changed"

        assert before == volume

    def test_remove_drops_every_one_of_the_name_and_unsets_the_empty_list(self, editor: PodSpecEditor) -> None:
        editor.raw.volumes = [certs(), cache(), certs("other")]

        editor.remove_volume("certs")

        assert [cache()] == editor.raw.volumes

        editor.remove_volume("cache")

        assert write_model(editor.raw) == {"containers": []}


class TestTolerations:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            pytest.param(
                V1Toleration(key="gpu", operator="Exists", effect="NoExecute", toleration_seconds=60),
                V1Toleration(key="gpu", operator="Exists", effect="NoExecute", toleration_seconds=60),
                id="all fields",
            ),
            pytest.param(V1Toleration(operator="Exists"), V1Toleration(operator="Exists", key=""), id="empty as unset"),
        ],
    )
    def test_an_equal_one_is_not_added_again(
        self, editor: PodSpecEditor, one: V1Toleration, other: V1Toleration
    ) -> None:
        editor.ensure_toleration(one)
        editor.ensure_toleration(other)

        assert [other] == editor.raw.tolerations

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(V1Toleration(key="gpu", effect="NoExecute", toleration_seconds=0), id="other seconds"),
            pytest.param(V1Toleration(key="gpu", effect="NoSchedule"), id="other effect"),
            pytest.param(V1Toleration(key="gpu", effect="NoExecute", value="a"), id="other value"),
            pytest.param(V1Toleration(key="gpu", effect="NoExecute", operator="Equal"), id="operator spelled out"),
            pytest.param(V1Toleration(key="cpu", effect="NoExecute"), id="other key"),
        ],
    )
    def test_any_difference_makes_another_one(self, editor: PodSpecEditor, other: V1Toleration) -> None:
        one = V1Toleration(key="gpu", effect="NoExecute")

        editor.ensure_toleration(one)
        editor.ensure_toleration(other)

        assert [one, other] == editor.raw.tolerations

    def test_remove_asks_the_condition_and_unsets_the_empty_list(self, editor: PodSpecEditor) -> None:
        for key in ("gpu", "spot", "gpu-2"):
            editor.ensure_toleration(V1Toleration(key=key))

        editor.remove_tolerations(lambda toleration: (toleration.key or "").startswith("gpu"))

        assert [V1Toleration(key="spot")] == editor.raw.tolerations

        editor.remove_tolerations(lambda _toleration: True)

        assert write_model(editor.raw) == {"containers": []}

    def test_a_condition_that_cannot_be_called_is_rejected(self, editor: PodSpecEditor) -> None:
        """Also where there is nothing to ask it about."""
        with pytest.raises(ConfigError, match="must be callable, not of type NoneType"):
            editor.remove_tolerations(None)  # type: ignore[arg-type]  # the mistake tested


class TestNodeSelector:
    def test_ensure_makes_and_overwrites_remove_drops_and_unsets(self, editor: PodSpecEditor) -> None:
        editor.ensure_node_selector("arch", "arm64")
        editor.ensure_node_selector("disk", "ssd")
        editor.ensure_node_selector("arch", "amd64")

        assert editor.raw.node_selector == {"arch": "amd64", "disk": "ssd"}

        editor.remove_node_selector("zone")
        editor.remove_node_selector("arch")
        editor.remove_node_selector("disk")

        assert write_model(editor.raw) == {"containers": []}

    def test_a_value_that_is_not_a_string_is_rejected(self, editor: PodSpecEditor) -> None:
        with pytest.raises(ConfigError, match=r"nodeSelector\[gpu\]: must be a text, not True"):
            editor.ensure_node_selector("gpu", True)  # type: ignore[arg-type]


class TestImagePullSecrets:
    def test_ensure_is_by_name_remove_drops_all_and_unsets(self, editor: PodSpecEditor) -> None:
        editor.ensure_image_pull_secret("a")
        editor.ensure_image_pull_secret("b")
        editor.ensure_image_pull_secret("a")

        assert [V1LocalObjectReference(name="a"), V1LocalObjectReference(name="b")] == editor.raw.image_pull_secrets

        assert editor.raw.image_pull_secrets is not None
        editor.raw.image_pull_secrets.append(V1LocalObjectReference(name="a"))
        editor.remove_image_pull_secret("a")
        editor.remove_image_pull_secret("b")

        assert write_model(editor.raw) == {"containers": []}

    def test_a_reference_without_a_name_matches_none(self, editor: PodSpecEditor) -> None:
        nameless = V1LocalObjectReference()
        editor.raw.image_pull_secrets = [nameless]

        editor.ensure_image_pull_secret("a")
        editor.remove_image_pull_secret("a")

        assert [nameless] == editor.raw.image_pull_secrets


@pytest.mark.parametrize(
    "edit",
    [PodSpecEditor.remove_volume, PodSpecEditor.ensure_image_pull_secret, PodSpecEditor.remove_image_pull_secret],
)
@pytest.mark.parametrize("name", [None, 1, ["a"]], ids=repr)
def test_a_name_that_is_not_a_string_is_rejected(editor: PodSpecEditor, edit: Setter, name: object) -> None:
    with pytest.raises(ConfigError, match="must be a text"):
        edit(editor, name)

    assert write_model(editor.raw) == {"containers": []}
