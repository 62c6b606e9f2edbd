"""Drift: what an apply would change, found from the live object alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.component.apply.drift import find_drift, is_stored_as_sent
from ocf.objects import Manifest, copy_json
from ocf.objects.manifest import split_api_version
from ocf.schema.builtin import ANYTHING, builtin_resource, custom_object, struct

MANAGER = "Shop/web/uid"

# As a 1.36 API server stored it after one apply by us; the list of ports shows a key that the server defaulted.
WANTED: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "backend", "namespace": "shop", "labels": {"a": "1"}},
    "spec": {
        "selector": {"matchLabels": {"app": "b"}},
        "template": {
            "metadata": {"labels": {"app": "b"}},
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "app:1",
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "resources": {"requests": {"cpu": "1000m"}},
                    },
                    {"name": "sidecar", "image": "sidecar:1"},
                ],
                "securityContext": {},
            },
        },
    },
}
FIELDS: Manifest = {
    "f:metadata": {"f:labels": {"f:a": {}}},
    "f:spec": {
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"app"}': {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:ports": {
                            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                            'k:{"containerPort":80,"protocol":"UDP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:protocol": {},
                            },
                        },
                        "f:resources": {"f:requests": {"f:cpu": {}}},
                    },
                    'k:{"name":"sidecar"}': {".": {}, "f:name": {}, "f:image": {}},
                },
                "f:securityContext": {},
            },
        },
    },
}


@pytest.fixture
def wanted() -> Manifest:
    copied: Manifest = copy_json(WANTED)
    return copied


@pytest.fixture
def live() -> Manifest:
    """The live object: the desired one, with additions of the server and of other managers."""
    return stored()


def stored() -> Manifest:
    live: Manifest = copy_json(WANTED)
    live["metadata"] |= {
        "uid": "1",
        "labels": {"a": "1", "foreign": "x"},
        "managedFields": [
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:foreign": {}}}}},
            {"manager": MANAGER, "operation": "Apply", "fieldsV1": copy_json(FIELDS)},
        ],
    }
    live["spec"] |= {"replicas": 3, "revisionHistoryLimit": 10}
    containers = live["spec"]["template"]["spec"]["containers"]
    containers[0] |= {"imagePullPolicy": "IfNotPresent", "resources": {"requests": {"cpu": "1"}}}
    containers[0]["ports"][0]["protocol"] = "TCP"
    live["status"] = {"replicas": 3}
    return live


def fields(live: Manifest) -> Any:
    return live["metadata"]["managedFields"][1]["fieldsV1"]


def containers(manifest: Manifest) -> list[Any]:
    found: list[Any] = manifest["spec"]["template"]["spec"]["containers"]
    return found


def reasons(wanted: Manifest, live: Manifest, rewrites: dict[str, tuple[Any, Any]] | None = None) -> list[str]:
    resource = builtin_resource(*split_api_version(wanted["apiVersion"]), wanted["kind"])
    kind = resource.type if resource is not None else ANYTHING
    found = find_drift(wanted, live, manager=MANAGER, rewrites=rewrites or {}, kind=kind)
    return [f"{difference.path}: {difference.why}" for difference in found]


class TestInSync:
    def test_an_applied_and_stored_object_needs_no_write(self, wanted: Manifest, live: Manifest) -> None:
        """Defaults, other managers' fields, a normalised quantity, a defaulted key and the status are not drift."""
        assert reasons(wanted, live) == []

    def test_a_value_the_server_is_known_to_rewrite_needs_no_write(self, wanted: Manifest, live: Manifest) -> None:
        containers(live)[0]["image"] = "mirror/app:1"
        path = "spec.template.spec.containers[0].image"
        assert reasons(wanted, live) == [f"{path}: changed"]
        assert reasons(wanted, live, {path: ("app:1", "mirror/app:1")}) == []

    def test_a_rewrite_counts_only_for_its_values(self, wanted: Manifest, live: Manifest) -> None:
        path = "spec.template.spec.containers[0].image"
        containers(live)[0]["image"] = "other/app:1"
        assert reasons(wanted, live, {path: ("app:1", "mirror/app:1")}) == [f"{path}: changed"]

    def test_a_field_that_the_server_drops_is_a_rewrite(self, wanted: Manifest, live: Manifest) -> None:
        wanted["spec"]["brandNew"] = 1
        assert reasons(wanted, live) == ["spec.brandNew: not owned"]
        assert reasons(wanted, live, {"spec.brandNew": (1, None)}) == []


class TestDrift:
    def test_an_object_we_never_applied(self, wanted: Manifest, live: Manifest) -> None:
        live["metadata"]["managedFields"].pop()
        assert reasons(wanted, live) == [": not owned"]

    @pytest.mark.parametrize("entry", [{"operation": "Update"}, {"subresource": "status"}, {"manager": "Shop/api/uid"}])
    def test_only_our_own_apply_counts(self, wanted: Manifest, live: Manifest, entry: dict[str, str]) -> None:
        live["metadata"]["managedFields"][1] |= entry
        assert reasons(wanted, live) == [": not owned"]

    def test_a_changed_value(self, wanted: Manifest, live: Manifest) -> None:
        containers(wanted)[1]["image"] = "sidecar:2"
        assert reasons(wanted, live) == ["spec.template.spec.containers[1].image: changed"]

    def test_a_new_field(self, wanted: Manifest, live: Manifest) -> None:
        wanted["spec"]["paused"] = True
        assert reasons(wanted, live) == ["spec.paused: not owned"]

    def test_a_field_with_the_default_value_is_not_owned(self, wanted: Manifest, live: Manifest) -> None:
        wanted["spec"]["replicas"] = 3
        assert reasons(wanted, live) == ["spec.replicas: not owned"]

    def test_a_field_no_longer_declared(self, wanted: Manifest, live: Manifest) -> None:
        del wanted["metadata"]["labels"]
        assert reasons(wanted, live) == ["metadata: no longer declared"]

    def test_a_field_taken_by_another_manager(self, wanted: Manifest, live: Manifest) -> None:
        containers(live)[0]["image"] = "hacked:1"
        del fields(live)["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"app"}']["f:image"]
        assert reasons(wanted, live) == ["spec.template.spec.containers[0].image: not owned"]

    def test_an_atomic_value_is_compared_whole(self, wanted: Manifest, live: Manifest) -> None:
        live["spec"]["selector"]["matchLabels"]["more"] = "x"
        assert reasons(wanted, live) == ["spec.selector: changed"]

    def test_an_entry_added_to_a_keyed_list(self, wanted: Manifest, live: Manifest) -> None:
        containers(wanted).append({"name": "new"})
        assert reasons(wanted, live) == ["spec.template.spec.containers[2]: not owned"]

    def test_an_entry_gone_from_a_keyed_list(self, wanted: Manifest, live: Manifest) -> None:
        containers(wanted).pop()
        assert reasons(wanted, live) == ["spec.template.spec.containers.name=sidecar: no longer declared"]

    def test_the_order_of_a_keyed_list(self, wanted: Manifest, live: Manifest) -> None:
        containers(wanted).reverse()
        assert reasons(wanted, live) == ["spec.template.spec.containers: in another order"]

    def test_a_number_is_not_a_bool(self, wanted: Manifest, live: Manifest) -> None:
        wanted["spec"]["paused"] = True
        live["spec"]["paused"] = 1
        fields(live)["f:spec"]["f:paused"] = {}
        assert reasons(wanted, live) == ["spec.paused: changed"]

    @pytest.mark.parametrize(("sent", "found"), [(True, 1), ([False], [0]), ({"on": True}, {"on": 1})])
    def test_a_number_is_not_a_bool_inside_an_atomic_value_either(self, sent: Any, found: Any) -> None:
        head = {"apiVersion": "example.com/v1", "kind": "Thing"}
        metadata = {"name": "a", "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:x": {}}}]}
        desired = {**head, "metadata": {"name": "a"}, "x": sent}
        assert reasons(desired, {**head, "metadata": metadata, "x": sent}) == []
        assert reasons(desired, {**head, "metadata": metadata, "x": found}) == ["x: changed"]

    def test_only_quantity_fields_are_compared_as_quantities(self, wanted: Manifest, live: Manifest) -> None:
        wanted["metadata"]["labels"] = {"a": "1000m"}
        assert reasons(wanted, live) == ["metadata.labels.a: changed"]


class TestSets:
    @pytest.fixture
    def with_finalizers(self, wanted: Manifest, live: Manifest) -> tuple[Manifest, Manifest]:
        wanted["metadata"]["finalizers"] = ["a", "b"]
        live["metadata"]["finalizers"] = ["foreign", "b", "a"]
        fields(live)["f:metadata"]["f:finalizers"] = {f"v:{json.dumps(value)}": {} for value in ("a", "b")}
        return wanted, live

    def test_order_and_values_of_other_managers_do_not_matter(self, with_finalizers: tuple[Manifest, Manifest]) -> None:
        assert reasons(*with_finalizers) == []

    def test_a_new_and_a_dropped_value_are_drift(self, with_finalizers: tuple[Manifest, Manifest]) -> None:
        wanted, live = with_finalizers
        wanted["metadata"]["finalizers"] = ["a", "c"]
        assert reasons(wanted, live) == [
            "metadata.finalizers.c: not owned",
            "metadata.finalizers.b: no longer declared",
        ]


class TestEmptyValues:
    """An empty map or keyed list changes nothing; one that merges as a whole does."""

    @pytest.mark.parametrize(
        ("stored", "owned", "expected"),
        [
            pytest.param({"foreign": "x"}, {}, [], id="labels of another writer"),
            pytest.param(None, {}, [], id="labels that are not stored"),
            pytest.param(None, None, [], id="labels that are not owned either"),
            pytest.param({"foreign": "x"}, None, ["metadata.labels: not owned"], id="labels that we do not own"),
            pytest.param({"a": "1"}, {"f:a": {}}, ["metadata.labels.a: no longer declared"], id="a former label"),
        ],
    )
    def test_labels(self, wanted: Manifest, live: Manifest, stored: Any, owned: Any, expected: list[str]) -> None:
        wanted["metadata"] |= {"labels": {}, "annotations": {"b": "1"}}
        live["metadata"] |= {"labels": stored, "annotations": {"b": "1"}}
        fields(live)["f:metadata"] = {"f:labels": owned, "f:annotations": {"f:b": {}}}
        if stored is None:
            del live["metadata"]["labels"]
        if owned is None:
            del fields(live)["f:metadata"]["f:labels"]
        assert reasons(wanted, live) == expected

    def test_a_selector_merges_as_a_whole(self, wanted: Manifest, live: Manifest) -> None:
        wanted["spec"]["selector"] = {}
        assert reasons(wanted, live) == ["spec.selector: changed"]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every map and list in a value, with each of its keys or positions."""
    found: list[tuple[Any, Any]] = []
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += [(value, key), *places(part)]
    return found


class TestStoredAsSent:
    """`is_stored_as_sent`: a quick answer to the same question, of what was just applied."""

    KIND = struct("apps.v1.Deployment")

    def test_defaults_and_fields_of_others_are_no_difference(self, wanted: Manifest, live: Manifest) -> None:
        del containers(wanted)[0]["resources"]
        assert is_stored_as_sent(wanted, live, self.KIND)

    def test_a_quantity_in_another_form_is_left_to_the_comparison(self, wanted: Manifest, live: Manifest) -> None:
        assert not is_stored_as_sent(wanted, live, self.KIND)

    def test_an_addition_to_what_has_one_owner_is_a_difference(self, wanted: Manifest, live: Manifest) -> None:
        live["spec"]["selector"]["matchLabels"]["added"] = "x"
        del containers(wanted)[0]["resources"]
        assert not is_stored_as_sent(wanted, live, self.KIND)

    @pytest.mark.parametrize("custom", [False, True])
    @given(st.data())
    def test_whatever_the_server_changes_no_drift_is_missed(self, custom: bool, data: st.DataObject) -> None:
        wanted, live = copy_json(WANTED), stored()
        containers(wanted)[0]["resources"] = {}
        fields(live)["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"app"}']["f:resources"] = {}
        for _ in range(data.draw(st.integers(0, 2))):
            target = {part: live[part] for part in ("spec",)} | {"metadata": {"labels": live["metadata"]["labels"]}}
            # The API server keeps the keys of an entry that it has just recorded, the one that it defaults as well.
            holder, key = data.draw(st.sampled_from([(held, at) for held, at in places(target) if at != "protocol"]))
            change = data.draw(st.sampled_from(["remove", "replace", "add", "reverse"]))
            if change == "replace":
                holder[key] = data.draw(st.sampled_from([0, True, "x", None, {}, [], {"x": "y"}]))
            elif change == "remove":
                del holder[key]
            elif change == "reverse" and isinstance(holder, list):
                holder.reverse()
            elif isinstance(holder, dict):
                holder["added"] = "x"
            else:
                holder.append(data.draw(st.sampled_from(["x", {"name": "added"}])))
        if custom:
            wanted["kind"] = live["kind"] = "Backend"
        if is_stored_as_sent(wanted, live, custom_object() if custom else self.KIND):
            assert reasons(wanted, live) == []

    @pytest.mark.parametrize(
        ("spec", "answered", "expected"),
        [
            pytest.param({"size": 3, "on": True}, {"size": 3, "on": True}, True, id="as sent"),
            pytest.param({"size": 3}, {"size": 3, "mode": "Auto"}, False, id="with a default"),
            pytest.param({"size": 3}, {"size": 4}, False, id="with another value"),
            pytest.param({"size": 3}, {}, False, id="pruned"),
            pytest.param({"items": [1, 2]}, {"items": [2, 1]}, False, id="in another order"),
        ],
    )
    def test_of_a_custom_kind_only_the_metadata_may_grow(
        self, spec: Manifest, answered: Manifest, expected: bool
    ) -> None:
        sent = {"apiVersion": "example.com/v1", "kind": "Backend", "metadata": {"name": "web"}, "spec": spec}
        answer = {**sent, "metadata": {"name": "web", "uid": "1", "generation": 1}, "spec": answered}
        assert is_stored_as_sent(sent, answer, custom_object()) is expected
