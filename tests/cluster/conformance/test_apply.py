"""Server-side apply: field ownership, conflicts, force, and fields that are no longer applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import PatchType, Subresource
from ocf.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Env

    Owned = Callable[[Manifest], dict[str, set[str]]]

TEMPLATE = "selector: {matchLabels: {app: demo}}, template: {metadata: {labels: {app: demo}}, spec: {containers: [%s]}}"
WEB = "{name: web, image: 'web:1'}"
WEB_WITH = "{name: web, image: 'web:1', resources: {requests: {cpu: %s}}}"


def deployment(spec: str = "", containers: str = WEB) -> str:
    return f"spec: {{{TEMPLATE % containers}{', ' if spec else ''}{spec}}}"


class TestOwnership:
    async def test_applied_fields_are_owned(self, env: Env, owned: Owned) -> None:
        live = await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")

        assert owned(live) == {"us Apply": {"data.a", "data.b"}}

    async def test_a_field_applied_with_the_same_value_twice_has_two_owners(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await env.apply("them", "ConfigMap", "data: {b: '2', c: '3'}")

        assert owned(live) == {"us Apply": {"data.a", "data.b"}, "them Apply": {"data.b", "data.c"}}

    async def test_a_field_that_is_no_longer_applied_is_removed(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await env.apply("us", "ConfigMap", "data: {a: '1'}")

        assert live["data"] == {"a": "1"}
        assert owned(live) == {"us Apply": {"data.a"}}

    async def test_a_field_that_is_no_longer_applied_stays_if_another_manager_owns_it(
        self, env: Env, owned: Owned
    ) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        await env.apply("them", "ConfigMap", "data: {b: '2'}")
        live = await env.apply("us", "ConfigMap", "data: {a: '1'}")

        assert live["data"] == {"a": "1", "b": "2"}
        assert owned(live) == {"us Apply": {"data.a"}, "them Apply": {"data.b"}}

    async def test_an_empty_apply_keeps_the_object(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        live = await env.apply("us", "ConfigMap", "")

        assert not live.get("data")
        assert owned(live) == {}

    async def test_an_update_owns_the_changed_fields(self, env: Env, owned: Owned) -> None:
        live = await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await env.update({**live, "data": {"a": "1", "b": "3"}}, by="editor")

        assert owned(live) == {"us Apply": {"data.a"}, "editor Update": {"data.b"}}

    async def test_a_patch_owns_the_changed_fields(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await env.merge("ConfigMap", "data: {b: '3', c: '4'}", by="editor")

        assert owned(live) == {"us Apply": {"data.a"}, "editor Update": {"data.b", "data.c"}}

    async def test_a_patch_without_a_change_owns_nothing(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        live = await env.merge("ConfigMap", "data: {a: '1'}", by="editor")

        assert owned(live) == {"us Apply": {"data.a"}}

    async def test_one_manager_may_apply_and_update(self, env: Env, owned: Owned) -> None:
        await env.create("ConfigMap", "data: {a: '1'}", by="us")
        live = await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")

        assert owned(live) == {"us Apply": {"data.a", "data.b"}, "us Update": {"data", "data.a"}}

    async def test_a_field_removed_by_another_manager_has_no_owner(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await env.merge("ConfigMap", "data: {b: null}", by="editor")

        assert live["data"] == {"a": "1"}
        assert owned(live) == {"us Apply": {"data.a"}}

    async def test_subresources_have_separate_entries(self, env: Env, owned: Owned) -> None:
        await env.create("Widget", "spec: {size: 2}", by="us")
        await env.merge("Widget", "status: {replicas: 1}", by="us", part=Subresource.STATUS)
        live = await env.merge("Widget", "spec: {replicas: 4}", by="us", part=Subresource.SCALE)

        assert owned(live if live["kind"] == "Widget" else await env.get("Widget")) == {
            "us Update": {"spec"},
            "us Update status": {"status", "status.replicas"},
            "us Update scale": {"spec.size"},
        }

    async def test_scaling_a_count_without_an_owner_does_not_own_it(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Deployment", deployment())
        await env.merge("Deployment", "spec: {replicas: 5}", by="scaler", part=Subresource.SCALE)
        live = await env.get("Deployment")

        assert live["spec"]["replicas"] == 5
        assert set(owned(live)) == {"us Apply"}

    async def test_emptying_managed_fields_removes_all_owners(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        live = await env.merge("ConfigMap", "metadata: {managedFields: [{}]}", by="editor")

        assert owned(live) == {}

    async def test_an_apply_to_an_object_without_owners_conflicts_with_before_first_apply(
        self, env: Env, owned: Owned
    ) -> None:
        """The server attributes the earlier fields to a manager `before-first-apply`."""
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        await env.merge("ConfigMap", "metadata: {managedFields: [{}]}", by="editor")
        live = await env.apply("us", "ConfigMap", "data: {b: '2'}")

        assert owned(live) == {"us Apply": {"data.b"}, "before-first-apply Update": {"data", "data.a"}}


class TestConflicts:
    async def test_another_value_for_a_field_of_another_manager_is_a_conflict(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")

        with env.error(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "us": .data.b',
            'FieldManagerConflict .data.b: conflict with "us"',
        ):
            await env.apply("them", "ConfigMap", "data: {b: '3', c: '4'}")
        assert (await env.get("ConfigMap"))["data"] == {"a": "1", "b": "2"}

    async def test_all_conflicts_are_reported(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        await env.apply("them", "ConfigMap", "data: {b: '2'}")

        with env.error(
            409,
            "Conflict",
            'Apply failed with 2 conflicts: conflicts with "them":\n- .data.b\nconflicts with "us":\n- .data.a',
            'FieldManagerConflict .data.a: conflict with "us"',
            'FieldManagerConflict .data.b: conflict with "them"',
        ):
            await env.apply("other", "ConfigMap", "data: {a: '5', b: '5'}")

    async def test_a_conflict_with_an_update_names_version_and_time(self, env: Env) -> None:
        await env.create("ConfigMap", "data: {a: '1'}", by="editor")

        with env.error(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a',
            'FieldManagerConflict .data.a: conflict with "editor" using v1',
        ):
            await env.apply("us", "ConfigMap", "data: {a: '2'}")

    async def test_a_conflict_with_a_subresource_names_it(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment("replicas: 2"))
        await env.merge("Deployment", "spec: {replicas: 5}", by="scaler", part=Subresource.SCALE)

        with env.error(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" '
            "using apps/v1: .spec.replicas",
            'FieldManagerConflict .spec.replicas: conflict with "scaler" with subresource "scale" using apps/v1',
        ):
            await env.apply("us", "Deployment", deployment("replicas: 3"))

    async def test_an_apply_conflicts_with_an_update_of_the_same_manager(self, env: Env) -> None:
        await env.create("ConfigMap", "data: {a: '1'}", by="us")

        with env.error(409, "Conflict", None, 'FieldManagerConflict .data.a: conflict with "us" using v1'):
            await env.apply("us", "ConfigMap", "data: {a: '2'}")

    async def test_a_field_inside_a_keyed_list_is_named_by_its_key(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment())
        field = '.spec.template.spec.containers[name="web"].image'

        with env.error(409, "Conflict", None, f'FieldManagerConflict {field}: conflict with "us"'):
            await env.apply("them", "Deployment", deployment(containers="{name: web, image: 'web:2'}"))

    async def test_force_takes_the_field(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await env.apply("them", "ConfigMap", "data: {b: '3'}", force=True)

        assert live["data"] == {"a": "1", "b": "3"}
        assert owned(live) == {"us Apply": {"data.a"}, "them Apply": {"data.b"}}

    async def test_force_takes_the_field_from_an_update(self, env: Env, owned: Owned) -> None:
        await env.create("ConfigMap", "data: {a: '1', b: '2'}", by="editor")
        live = await env.apply("us", "ConfigMap", "data: {b: '3'}", force=True)

        assert owned(live) == {"editor Update": {"data", "data.a"}, "us Apply": {"data.b"}}

    async def test_the_manager_that_lost_a_field_gets_a_conflict(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        await env.apply("them", "ConfigMap", "data: {a: '2'}", force=True)

        with env.error(409, "Conflict", None, 'FieldManagerConflict .data.a: conflict with "them"'):
            await env.apply("us", "ConfigMap", "data: {a: '1'}")

    async def test_updates_never_conflict(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")

        assert (await env.merge("ConfigMap", "data: {a: '2'}", by="editor"))["data"] == {"a": "2"}

    async def test_a_number_is_the_same_quantity_as_its_text(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment(containers=WEB_WITH % "1"))
        live = await env.apply("them", "Deployment", deployment(containers=WEB_WITH % "'1'"))

        assert live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}

    async def test_another_spelling_of_a_quantity_is_a_conflict(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment(containers=WEB_WITH % "'1'"))
        field = '.spec.template.spec.containers[name="web"].resources.requests.cpu'

        with env.error(409, "Conflict", None, f'FieldManagerConflict {field}: conflict with "us"'):
            await env.apply("them", "Deployment", deployment(containers=WEB_WITH % "1000m"))


class TestDefaults:
    async def test_a_default_has_no_owner(self, env: Env, owned: Owned) -> None:
        live = await env.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 1
        assert not any(path.startswith("spec.replicas") for path in owned(live)["us Apply"])

    async def test_a_field_that_is_no_longer_applied_gets_its_default(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment("replicas: 3"))
        live = await env.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 1

    async def test_a_custom_field_that_is_no_longer_applied_gets_its_default(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {size: 5}")
        live = await env.apply("us", "Widget", "spec: {colour: red}")

        assert live["spec"] == {"size": 3, "colour": "red"}

    async def test_a_field_is_handed_over_by_a_second_manager(self, env: Env, owned: Owned) -> None:
        """The new manager applies the live value first; then the old one stops applying it, and the value stays."""
        await env.apply("us", "Deployment", deployment("replicas: 3"))
        heir = "spec: {replicas: 3}"
        await env.apply("heir", "Deployment", heir)
        live = await env.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 3
        assert owned(live)["heir Apply"] == {"spec.replicas"}

    async def test_a_field_owned_by_the_new_manager_may_be_scaled(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Deployment", deployment("replicas: 3"))
        await env.apply("heir", "Deployment", "spec: {replicas: 3}")
        await env.apply("us", "Deployment", deployment())
        await env.merge("Deployment", "spec: {replicas: 7}", by="scaler", part=Subresource.SCALE)
        live = await env.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 7
        assert owned(live)["scaler Update scale"] == {"spec.replicas"}
        assert "heir Apply" not in owned(live)

    async def test_a_field_is_taken_back_by_force(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Deployment", deployment())
        await env.merge("Deployment", "spec: {replicas: 7}", by="scaler", part=Subresource.SCALE)
        live = await env.apply("us", "Deployment", deployment("replicas: 2"), force=True)

        assert live["spec"]["replicas"] == 2
        assert "scaler Update scale" not in owned(live)

    async def test_a_handed_over_field_that_is_no_longer_applied_is_reset(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment("replicas: 3"))
        await env.apply("heir", "Deployment", "spec: {replicas: 3}")
        await env.apply("us", "Deployment", deployment())
        live = await env.apply("heir", "Deployment", "")

        assert live["spec"]["replicas"] == 1


class TestKeyedLists:
    """Items have separate owners, by key."""

    async def test_each_manager_adds_items(self, env: Env) -> None:
        await env.apply("us", "Deployment", deployment())
        live = await env.apply(
            "them", "Deployment", "spec: {template: {spec: {containers: [{name: side, image: 'side:1'}]}}}"
        )

        assert [each["name"] for each in live["spec"]["template"]["spec"]["containers"]] == ["web", "side"]

    async def test_an_item_that_is_no_longer_applied_is_removed(self, env: Env) -> None:
        both = f"{WEB}, {{name: side, image: 'side:1'}}"
        await env.apply("us", "Deployment", deployment(containers=both))
        live = await env.apply("us", "Deployment", deployment())

        assert [each["name"] for each in live["spec"]["template"]["spec"]["containers"]] == ["web"]

    async def test_items_are_in_the_applied_order(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {parts: [{name: a}, {name: b}]}")
        live = await env.apply("us", "Widget", "spec: {parts: [{name: b}, {name: c}, {name: a}]}")

        assert [each["name"] for each in live["spec"]["parts"]] == ["b", "c", "a"]

    async def test_items_of_other_managers_keep_their_position(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {parts: [{name: a}, {name: b}, {name: c}]}")
        live = await env.apply("them", "Widget", "spec: {parts: [{name: d}, {name: b}]}")

        assert [each["name"] for each in live["spec"]["parts"]] == ["a", "d", "b", "c"]

    async def test_fields_of_one_item_may_have_two_owners(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Widget", "spec: {parts: [{name: a, image: x}]}")
        live = await env.apply("them", "Widget", "spec: {parts: [{name: a, count: 4}]}")

        assert live["spec"]["parts"] == [{"name": "a", "image": "x", "count": 4}]
        item = 'spec.parts[k:{"name":"a"}]'
        assert owned(live) == {
            "us Apply": {item, f"{item}.name", f"{item}.image"},
            "them Apply": {item, f"{item}.name", f"{item}.count"},
        }

    async def test_an_item_stays_while_any_manager_applies_it(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {parts: [{name: a, image: x}]}")
        await env.apply("them", "Widget", "spec: {parts: [{name: a, count: 4}]}")
        live = await env.apply("us", "Widget", "spec: {}")

        assert live["spec"]["parts"] == [{"name": "a", "count": 4}]

    async def test_ports_are_identified_by_number_and_protocol(self, env: Env) -> None:
        await env.apply("us", "Service", "spec: {ports: [{name: a, port: 53, protocol: UDP}]}")
        live = await env.apply("them", "Service", "spec: {ports: [{name: b, port: 53, protocol: TCP}]}")

        assert [(each["name"], each["protocol"]) for each in live["spec"]["ports"]] == [("a", "UDP"), ("b", "TCP")]

    async def test_an_omitted_key_has_its_default(self, env: Env, owned: Owned) -> None:
        live = await env.apply("us", "Service", "spec: {ports: [{port: 80}]}")

        assert 'spec.ports[k:{"port":80,"protocol":"TCP"}]' in owned(live)["us Apply"]

    @pytest.mark.parametrize(
        ("kind", "body", "message"),
        [
            pytest.param(
                "Deployment",
                deployment(containers=f"{WEB}, {WEB}"),
                "failed to create typed patch object (<namespace>/demo; apps/v1, Kind=Deployment): "
                '.spec.template.spec.containers: duplicate entries for key [name="web"]',
                id="two items with one key",
            ),
            pytest.param(
                "Widget",
                "spec: {parts: [{image: x}]}",
                "failed to create typed patch object (<namespace>/demo; conformance.example.com/v1, Kind=Widget): "
                ".spec.parts: element 0: associative list with keys has an element that omits all key "
                'fields ["name"] (and doesn\'t have default values for any key fields)',
                id="an item without its key",
            ),
            pytest.param(
                "Widget",
                "spec: {tags: [a, b, a]}",
                "failed to create typed patch object (<namespace>/demo; conformance.example.com/v1, Kind=Widget): "
                '.spec.tags: duplicate entries for key [="a"]',
                id="a repeated member of a set",
            ),
        ],
    )
    async def test_keys_are_required_and_unique(self, env: Env, kind: str, body: str, message: str) -> None:
        with env.error(500, "", message, kind=InvalidError):
            await env.apply("us", kind, body)


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        pytest.param("ConfigMap", "data: [a]", ".data: expected map, got &{[a]}", id="a list in the place of a map"),
        pytest.param(
            "Service",
            "spec: {ports: {port: 80}}",
            ".spec.ports: expected list, got &{map[port:80]}",
            id="a map in the place of a list",
        ),
        pytest.param("Widget", "spec: a", ".spec: expected map, got &{a}", id="a string in the place of a map"),
        pytest.param("Widget", "spec: true", ".spec: expected map, got &{true}", id="a boolean in the place of a map"),
        pytest.param(
            "Widget",
            "spec: {enabled: {b: [1, null, true], a: 1.5}}",
            ".spec.enabled: expected boolean, got &{map[a:1.5 b:[1 <nil> true]]}",
            id="a map in the place of a boolean",
        ),
        pytest.param(
            "Widget",
            "spec: {size: [1]}",
            ".spec.size: expected numeric (int or float), got []interface {}",
            id="a list in the place of a number",
        ),
        pytest.param(
            "Widget",
            "spec: {order: [true]}",
            ".spec.order[0]: expected string, got &value.valueUnstructured{Value:true}",
            id="a boolean in a list of strings",
        ),
        pytest.param(
            "Widget",
            "spec: {colour: [1.5, a, {b: true, a: []}, null]}",
            ".spec.colour: expected string, got &value.valueUnstructured{Value:[]interface {}"
            '{1.5, "a", map[string]interface {}{"a":[]interface {}{}, "b":true}, interface {}(nil)}}',
            id="a list in the place of a string",
        ),
    ],
)
async def test_values_that_do_not_match_the_schema_are_rejected(env: Env, kind: str, body: str, problem: str) -> None:
    head = f"<namespace>/demo; {env.key(kind).api_version.rpartition('/')[0]}/"
    version = env.key(kind).api_version.rpartition("/")[2]
    message = f"failed to create typed patch object ({head}{version}, Kind={kind}): {problem}"
    with env.error(500, "", message, kind=InvalidError):
        await env.apply("us", kind, body)


class TestSets:
    async def test_each_manager_adds_members(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Widget", "spec: {tags: [a, b]}")
        live = await env.apply("them", "Widget", "spec: {tags: [b, c]}")

        assert live["spec"]["tags"] == ["a", "b", "c"]
        assert owned(live) == {
            "us Apply": {'spec.tags[v:"a"]', 'spec.tags[v:"b"]'},
            "them Apply": {'spec.tags[v:"b"]', 'spec.tags[v:"c"]'},
        }

    async def test_a_member_that_is_no_longer_applied_is_removed(self, env: Env) -> None:
        await env.apply("us", "Widget", "spec: {tags: [a, b]}")
        await env.apply("them", "Widget", "spec: {tags: [b, c]}")
        live = await env.apply("us", "Widget", "spec: {tags: []}")

        assert live["spec"]["tags"] == ["b", "c"]

    async def test_finalizers_are_a_set(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "metadata: {finalizers: [a.io/x]}")
        live = await env.apply("them", "ConfigMap", "metadata: {finalizers: [b.io/y]}")

        assert live["metadata"]["finalizers"] == ["a.io/x", "b.io/y"]


class TestAtomic:
    """Atomic fields have one owner as a whole."""

    @pytest.mark.parametrize(
        ("kind", "one", "other", "field"),
        [
            pytest.param("Widget", "spec: {order: [a]}", "spec: {order: [b]}", ".spec.order", id="list"),
            pytest.param(
                "Widget", "spec: {limits: {cpu: '1'}}", "spec: {limits: {memory: '1'}}", ".spec.limits", id="map"
            ),
            pytest.param(
                "Deployment",
                deployment(),
                "spec: {selector: {matchLabels: {app: other}}}",
                ".spec.selector",
                id="selector of a Deployment",
            ),
            pytest.param(
                "Service",
                "spec: {ports: [{port: 80}], selector: {a: b}}",
                "spec: {selector: {c: d}}",
                ".spec.selector",
                id="selector of a Service",
            ),
            pytest.param(
                "HorizontalPodAutoscaler",
                "spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: demo}, metrics: "
                "[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]}",
                "spec: {metrics: "
                "[{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 70}}}]}",
                ".spec.metrics",
                id="metrics of an autoscaler",
            ),
        ],
    )
    async def test_a_change_of_a_part_changes_the_whole(
        self, env: Env, kind: str, one: str, other: str, field: str
    ) -> None:
        await env.apply("us", kind, one)

        with env.error(409, "Conflict", None, f'FieldManagerConflict {field}: conflict with "us"'):
            await env.apply("them", kind, other)

    async def test_it_is_replaced(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Widget", "spec: {limits: {cpu: '1', memory: '1'}, order: [a, b]}")
        live = await env.apply("us", "Widget", "spec: {limits: {cpu: '2'}, order: [b]}")

        assert (live["spec"]["limits"], live["spec"]["order"]) == ({"cpu": "2"}, ["b"])
        assert owned(live) == {"us Apply": {"spec.limits", "spec.order"}}

    async def test_a_patch_of_a_part_owns_the_whole(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Widget", "spec: {limits: {cpu: '1', memory: '1'}}")
        live = await env.merge("Widget", "spec: {limits: {cpu: '2'}}", by="editor")

        assert live["spec"]["limits"] == {"cpu": "2", "memory": "1"}
        assert owned(live) == {"editor Update": {"spec.limits"}}


class TestMaps:
    async def test_each_manager_adds_keys(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Widget", "spec: {labels: {a: '1'}}")
        live = await env.apply("them", "Widget", "spec: {labels: {b: '2'}}")

        assert live["spec"]["labels"] == {"a": "1", "b": "2"}
        assert owned(live) == {"us Apply": {"spec.labels.a"}, "them Apply": {"spec.labels.b"}}

    async def test_undeclared_fields_are_merged_by_key(self, env: Env, owned: Owned) -> None:
        await env.apply("us", "Widget", "spec: {free: {a: {one: 1}, list: [1]}}")
        live = await env.apply("them", "Widget", "spec: {free: {a: {two: 2}}}")

        assert live["spec"]["free"] == {"a": {"one": 1, "two": 2}, "list": [1]}
        assert owned(live) == {
            "us Apply": {"spec.free.a", "spec.free.a.one", "spec.free.list"},
            "them Apply": {"spec.free.a", "spec.free.a.two"},
        }

    async def test_an_empty_map_is_owned(self, env: Env, owned: Owned) -> None:
        live = await env.apply("us", "Widget", "spec: {free: {}}")

        assert owned(live) == {"us Apply": {"spec.free"}}

    async def test_labels_and_annotations_are_shared(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "metadata: {labels: {a: '1'}, annotations: {a: '1'}}")
        live = await env.apply("them", "ConfigMap", "metadata: {labels: {b: '2'}, annotations: {b: '2'}}")

        assert live["metadata"]["labels"] == live["metadata"]["annotations"] == {"a": "1", "b": "2"}


class TestRefusals:
    @pytest.mark.parametrize(
        ("kind", "body", "problem"),
        [
            pytest.param(
                "Deployment", "spec: {colour: red}", ".spec.colour: field not declared in schema", id="undeclared"
            ),
            pytest.param(
                "HorizontalPodAutoscaler",
                "spec: {maxReplicas: many}",
                ".spec.maxReplicas: expected numeric (int or float), got string",
                id="a string in the place of a number",
            ),
        ],
    )
    async def test_values_that_do_not_match_the_schema_are_rejected(
        self, env: Env, kind: str, body: str, problem: str
    ) -> None:
        group = env.key(kind).api_version
        subject = f"{group if '/' in group else '/' + group}, Kind={kind}"

        with env.error(
            500, "", f"failed to create typed patch object (<namespace>/demo; {subject}): {problem}", kind=InvalidError
        ):
            await env.apply("us", kind, body)

    async def test_managed_fields_cannot_be_applied(self, env: Env) -> None:
        with env.error(400, "BadRequest", "metadata.managedFields must be nil"):
            await env.apply("us", "ConfigMap", "metadata: {managedFields: [{}]}")

    async def test_a_field_manager_is_required(self, env: Env) -> None:
        with env.error(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
            "FieldValueRequired fieldManager: Required value: is required for apply patch",
        ):
            await env.apply("", "ConfigMap")

    async def test_the_name_of_a_field_manager_has_a_limit(self, env: Env) -> None:
        await env.apply("m" * 128, "ConfigMap")
        with env.error(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
            "FieldValueTooLong fieldManager: Too long: may not be more than 128 bytes",
        ):
            await env.apply("m" * 129, "ConfigMap")

    async def test_a_uid_that_is_not_the_live_one_is_invalid(self, env: Env) -> None:
        await env.apply("us", "ConfigMap", "data: {a: '1'}")
        detail = 'Invalid value: "8a2c7a5e-0000-4000-8000-000000000000": field is immutable'

        with env.error(422, "Invalid", None, env.plain(f"FieldValueInvalid metadata.uid: {detail}")):
            await env.apply("us", "ConfigMap", "metadata: {uid: 8a2c7a5e-0000-4000-8000-000000000000}")

    @pytest.mark.parametrize("kind", ["ConfigMap", "Widget"])
    async def test_an_object_that_does_not_exist_is_not_created_with_a_uid(self, env: Env, kind: str) -> None:
        uid = "8a2c7a5e-0000-4000-8000-000000000000"
        subject = {"ConfigMap": "configmaps", "Widget": "widgets.conformance.example.com"}[kind]
        detail = "uid mismatch: the provided object specified uid <uid>, and no existing object was found"

        with env.error(409, "Conflict", f'Operation cannot be fulfilled on {subject} "demo": {detail}'):
            await env.apply("us", kind, f"metadata: {{uid: {uid}}}")
        with env.error(404, "NotFound", None):
            await env.get(kind)


async def test_an_apply_to_the_status_owns_only_the_status(env: Env, owned: Owned) -> None:
    await env.create("Widget", "spec: {size: 2}", by="us")
    body = "{metadata: {labels: {a: b}}, spec: {size: 9}, status: {replicas: 1}}"
    live = await env.apply("reporter", "Widget", body, part=Subresource.STATUS)

    assert (live["spec"], live["status"]) == ({"size": 2}, {"replicas": 1})
    assert owned(live)["reporter Apply status"] == {"status.replicas"}


async def test_an_apply_to_the_object_does_not_own_its_status(env: Env, owned: Owned) -> None:
    live = await env.apply("us", "Widget", "{spec: {size: 2}, status: {replicas: 1}}")

    assert "status" not in live
    assert owned(live) == {"us Apply": {"spec.size"}}


@pytest.mark.parametrize("patch_type", [PatchType.MERGE, PatchType.STRATEGIC_MERGE])
async def test_a_patch_owns_lists_by_their_list_type(env: Env, owned: Owned, patch_type: PatchType) -> None:
    await env.apply("us", "Deployment", deployment())
    containers = [{"name": "web", "image": "web:2"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    live = await env.patch("Deployment", patch, patch_type=patch_type, by="editor")

    assert owned(live)["editor Update"] == {'spec.template.spec.containers[k:{"name":"web"}].image'}
