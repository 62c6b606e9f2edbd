"""Keyed lists, tested with the containers of a pod."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1Container, V1PodSpec, V1Volume

from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS, KeyedList
from ocf.errors import ConfigError
from ocf.objects import write_model

LISTS = pytest.mark.parametrize(
    ("containers", "field"),
    [(CONTAINERS, "containers"), (INIT_CONTAINERS, "init_containers")],
    ids=["containers", "init containers"],
)

Containers = KeyedList[V1PodSpec, V1Container]


def container(name: str, image: str | None = None) -> V1Container:
    return V1Container(name=name, image=image)


def pod(field: str, *containers: V1Container) -> V1PodSpec:
    spec = V1PodSpec(containers=[])
    setattr(spec, field, list(containers))
    return spec


def names(spec: V1PodSpec, field: str) -> list[str]:
    return [each.name for each in getattr(spec, field) or []]


@LISTS
class TestEnsure:
    def test_replaces_whole_at_the_same_place(self, containers: Containers, field: str) -> None:
        spec = pod(field, container("a"), V1Container(name="b", image="b:1", args=["--old"]), container("c"))

        containers.ensure(spec, container("b", "b:2"))

        assert getattr(spec, field) == [container("a"), container("b", "b:2"), container("c")]

    def test_appends_what_is_new(self, containers: Containers, field: str) -> None:
        spec = pod(field, container("a"))

        containers.ensure(spec, container("b"), container("c"))

        assert names(spec, field) == ["a", "b", "c"]

    def test_later_duplicates_stay(self, containers: Containers, field: str) -> None:
        spec = pod(field, container("a", "1"), container("a", "2"))

        containers.ensure(spec, container("a", "3"))

        assert getattr(spec, field) == [container("a", "3"), container("a", "2")]

    def test_a_class_of_the_users_own_is_found_among_the_others(self, containers: Containers, field: str) -> None:
        class Sidecar(V1Container):
            pass

        spec = pod(field, container("a"))

        containers.ensure(spec, Sidecar(name="a", image="new"))
        containers.ensure(spec, container("a", "newer"))

        assert getattr(spec, field) == [container("a", "newer")]

    def test_stores_copies(self, containers: Containers, field: str) -> None:
        given_one = V1Container(name="a", args=["--x"])
        one, other = pod(field), pod(field)

        containers.ensure(one, given_one)
        containers.ensure(other, given_one)
        getattr(one, field)[0].args.append("--y")
        getattr(one, field)[0].name = "b"

        assert given_one == V1Container(name="a", args=["--x"])
        assert getattr(other, field) == [given_one]

    @pytest.mark.parametrize("wrong", [None, "a", {"name": "a"}, V1Volume(name="a")], ids=lambda w: type(w).__name__)
    def test_one_of_another_type_stores_none(self, containers: Containers, field: str, wrong: V1Container) -> None:
        spec = pod(field, container("a"))

        with pytest.raises(ConfigError, match=r"ontainers: must be a kubernetes\.client\.V1Container, not of type "):
            containers.ensure(spec, container("b"), wrong)

        assert names(spec, field) == ["a"]

    def test_an_entry_that_is_not_a_container_is_not_changed(self, containers: Containers, field: str) -> None:
        """An entry added through raw is reported when the object is written, not when another entry is edited."""
        spec = pod(field)
        getattr(spec, field).extend([42, {"name": "a"}])

        containers.ensure(spec, container("a"))
        containers.remove(spec, "a")

        assert getattr(spec, field) == [42, {"name": "a"}]


@LISTS
class TestRemove:
    def test_removes_every_entry_with_the_key(self, containers: Containers, field: str) -> None:
        spec = pod(field, container("a"), container("b"), container("a"), container("c"))

        containers.remove(spec, "a", "c")

        assert names(spec, field) == ["b"]

    def test_a_key_that_is_not_there_is_passed_over(self, containers: Containers, field: str) -> None:
        spec = pod(field, container("a"))

        containers.remove(spec, "b")

        assert names(spec, field) == ["a"]

    def test_ensure_then_remove_ends_absent(self, containers: Containers, field: str) -> None:
        spec = pod(field, container("a"))

        containers.ensure(spec, container("b"))
        containers.remove(spec, "b")

        assert names(spec, field) == ["a"]


class TestUnsetting:
    def test_an_emptied_list_is_unset(self) -> None:
        spec = pod("init_containers", container("a"))

        INIT_CONTAINERS.remove(spec, "a")

        assert write_model(spec) == {"containers": []}

    def test_a_list_written_empty_stays(self) -> None:
        spec = pod("init_containers")

        INIT_CONTAINERS.remove(spec, "a")

        assert write_model(spec) == {"containers": [], "initContainers": []}

    def test_a_list_the_api_requires_stays_as_an_empty_one(self) -> None:
        """The list of containers is a required field, and a mutation may remove the last one before adding another."""
        spec = pod("containers", container("a"))

        CONTAINERS.remove(spec, "a")
        CONTAINERS.ensure(spec, container("b"))

        assert names(spec, "containers") == ["b"]

    def test_an_entry_without_a_key_equals_no_other(self) -> None:
        keyless = KeyedList[V1PodSpec, V1Container]("init_containers", key=lambda _container: None)
        spec = V1PodSpec(containers=[])

        keyless.ensure(spec, container("a"))
        keyless.ensure(spec, container("a"))

        assert names(spec, "init_containers") == ["a", "a"]


CONTAINER = st.builds(container, st.sampled_from("abcd"), st.sampled_from(["1", "2"]))


class TestLaws:
    @given(present=st.lists(CONTAINER, max_size=5), new=CONTAINER)
    def test_ensuring_twice_is_ensuring_once(self, present: list[V1Container], new: V1Container) -> None:
        spec = pod("init_containers", *present)

        INIT_CONTAINERS.ensure(spec, new)
        once = write_model(spec)
        INIT_CONTAINERS.ensure(spec, new)

        assert once == write_model(spec)

    @given(present=st.none() | st.lists(CONTAINER, min_size=1, max_size=5), new=CONTAINER)
    def test_remove_undoes_ensure_of_what_was_absent(self, present: list[V1Container] | None, new: V1Container) -> None:
        others = [each for each in present or [] if each.name != new.name] or None
        spec = V1PodSpec(containers=[], init_containers=others)
        before = write_model(spec)

        INIT_CONTAINERS.ensure(spec, new)
        INIT_CONTAINERS.remove(spec, new.name)

        assert before == write_model(spec)

    @given(present=st.lists(CONTAINER, max_size=6), gone=st.sets(st.sampled_from("abcd")))
    def test_survivors_keep_their_order(self, present: list[V1Container], gone: set[str]) -> None:
        spec = pod("init_containers", *present)

        INIT_CONTAINERS.remove(spec, *gone)

        assert names(spec, "init_containers") == [each.name for each in present if each.name not in gone]
