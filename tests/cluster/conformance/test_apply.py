"""Server-side apply: who owns what, conflicts, force, and what becomes of fields that are given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf.cluster import PatchType, Subresource
from ocf.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Place

    Owned = Callable[[Manifest], dict[str, set[str]]]

TEMPLATE = "selector: {matchLabels: {app: demo}}, template: {metadata: {labels: {app: demo}}, spec: {containers: [%s]}}"
WEB = "{name: web, image: 'web:1'}"
WEB_WITH = "{name: web, image: 'web:1', resources: {requests: {cpu: %s}}}"


def deployment(spec: str = "", containers: str = WEB) -> str:
    return f"spec: {{{TEMPLATE % containers}{', ' if spec else ''}{spec}}}"


class TestOwnership:
    async def test_what_is_applied_is_owned(self, place: Place, owned: Owned) -> None:
        live = await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")

        assert owned(live) == {"us Apply": {"data.a", "data.b"}}

    async def test_what_two_apply_alike_is_owned_by_both(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await place.apply("them", "ConfigMap", "data: {b: '2', c: '3'}")

        assert owned(live) == {"us Apply": {"data.a", "data.b"}, "them Apply": {"data.b", "data.c"}}

    async def test_what_is_given_up_goes(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await place.apply("us", "ConfigMap", "data: {a: '1'}")

        assert live["data"] == {"a": "1"}
        assert owned(live) == {"us Apply": {"data.a"}}

    async def test_what_is_given_up_and_owned_by_another_stays(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        await place.apply("them", "ConfigMap", "data: {b: '2'}")
        live = await place.apply("us", "ConfigMap", "data: {a: '1'}")

        assert live["data"] == {"a": "1", "b": "2"}
        assert owned(live) == {"us Apply": {"data.a"}, "them Apply": {"data.b"}}

    async def test_giving_everything_up_leaves_the_object(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        live = await place.apply("us", "ConfigMap", "")

        assert not live.get("data")
        assert owned(live) == {}

    async def test_who_updates_owns_what_changes(self, place: Place, owned: Owned) -> None:
        live = await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await place.update({**live, "data": {"a": "1", "b": "3"}}, by="editor")

        assert owned(live) == {"us Apply": {"data.a"}, "editor Update": {"data.b"}}

    async def test_who_patches_owns_what_changes(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await place.merge("ConfigMap", "data: {b: '3', c: '4'}", by="editor")

        assert owned(live) == {"us Apply": {"data.a"}, "editor Update": {"data.b", "data.c"}}

    async def test_who_patches_in_vain_owns_nothing(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        live = await place.merge("ConfigMap", "data: {a: '1'}", by="editor")

        assert owned(live) == {"us Apply": {"data.a"}}

    async def test_one_manager_may_apply_and_update(self, place: Place, owned: Owned) -> None:
        await place.create("ConfigMap", "data: {a: '1'}", by="us")
        live = await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")

        assert owned(live) == {"us Apply": {"data.a", "data.b"}, "us Update": {"data", "data.a"}}

    async def test_what_another_removes_is_owned_by_nobody(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await place.merge("ConfigMap", "data: {b: null}", by="editor")

        assert live["data"] == {"a": "1"}
        assert owned(live) == {"us Apply": {"data.a"}}

    async def test_subresources_are_owned_apart(self, place: Place, owned: Owned) -> None:
        await place.create("Widget", "spec: {size: 2}", by="us")
        await place.merge("Widget", "status: {replicas: 1}", by="us", part=Subresource.STATUS)
        live = await place.merge("Widget", "spec: {replicas: 4}", by="us", part=Subresource.SCALE)

        assert owned(live if live["kind"] == "Widget" else await place.get("Widget")) == {
            "us Update": {"spec"},
            "us Update status": {"status", "status.replicas"},
            "us Update scale": {"spec.size"},
        }

    async def test_a_count_that_nobody_owned_is_scaled_and_owned_by_nobody(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Deployment", deployment())
        await place.merge("Deployment", "spec: {replicas: 5}", by="scaler", part=Subresource.SCALE)
        live = await place.get("Deployment")

        assert live["spec"]["replicas"] == 5
        assert set(owned(live)) == {"us Apply"}

    async def test_emptied_managed_fields_forget_all_owners(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        live = await place.merge("ConfigMap", "metadata: {managedFields: [{}]}", by="editor")

        assert owned(live) == {}

    async def test_who_comes_to_an_object_without_owners_meets_those_before(self, place: Place, owned: Owned) -> None:
        """A server says of what was there before that somebody had applied it."""
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        await place.merge("ConfigMap", "metadata: {managedFields: [{}]}", by="editor")
        live = await place.apply("us", "ConfigMap", "data: {b: '2'}")

        assert owned(live) == {"us Apply": {"data.b"}, "before-first-apply Update": {"data", "data.a"}}


class TestConflicts:
    async def test_another_value_of_anothers_field_is_a_conflict(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")

        with place.error(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "us": .data.b',
            'FieldManagerConflict .data.b: conflict with "us"',
        ):
            await place.apply("them", "ConfigMap", "data: {b: '3', c: '4'}")
        assert (await place.get("ConfigMap"))["data"] == {"a": "1", "b": "2"}

    async def test_all_conflicts_are_told(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        await place.apply("them", "ConfigMap", "data: {b: '2'}")

        with place.error(
            409,
            "Conflict",
            'Apply failed with 2 conflicts: conflicts with "them":\n- .data.b\nconflicts with "us":\n- .data.a',
            'FieldManagerConflict .data.a: conflict with "us"',
            'FieldManagerConflict .data.b: conflict with "them"',
        ):
            await place.apply("other", "ConfigMap", "data: {a: '5', b: '5'}")

    async def test_a_conflict_with_an_update_names_version_and_time(self, place: Place) -> None:
        await place.create("ConfigMap", "data: {a: '1'}", by="editor")

        with place.error(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a',
            'FieldManagerConflict .data.a: conflict with "editor" using v1',
        ):
            await place.apply("us", "ConfigMap", "data: {a: '2'}")

    async def test_a_conflict_with_a_subresource_names_it(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment("replicas: 2"))
        await place.merge("Deployment", "spec: {replicas: 5}", by="scaler", part=Subresource.SCALE)

        with place.error(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" '
            "using apps/v1: .spec.replicas",
            'FieldManagerConflict .spec.replicas: conflict with "scaler" with subresource "scale" using apps/v1',
        ):
            await place.apply("us", "Deployment", deployment("replicas: 3"))

    async def test_who_has_updated_conflicts_with_their_own_apply(self, place: Place) -> None:
        await place.create("ConfigMap", "data: {a: '1'}", by="us")

        with place.error(409, "Conflict", None, 'FieldManagerConflict .data.a: conflict with "us" using v1'):
            await place.apply("us", "ConfigMap", "data: {a: '2'}")

    async def test_a_field_inside_a_keyed_list_is_named_by_its_key(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment())
        field = '.spec.template.spec.containers[name="web"].image'

        with place.error(409, "Conflict", None, f'FieldManagerConflict {field}: conflict with "us"'):
            await place.apply("them", "Deployment", deployment(containers="{name: web, image: 'web:2'}"))

    async def test_force_takes_the_field(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1', b: '2'}")
        live = await place.apply("them", "ConfigMap", "data: {b: '3'}", force=True)

        assert live["data"] == {"a": "1", "b": "3"}
        assert owned(live) == {"us Apply": {"data.a"}, "them Apply": {"data.b"}}

    async def test_force_takes_from_those_who_update(self, place: Place, owned: Owned) -> None:
        await place.create("ConfigMap", "data: {a: '1', b: '2'}", by="editor")
        live = await place.apply("us", "ConfigMap", "data: {b: '3'}", force=True)

        assert owned(live) == {"editor Update": {"data", "data.a"}, "us Apply": {"data.b"}}

    async def test_who_lost_a_field_conflicts_in_turn(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        await place.apply("them", "ConfigMap", "data: {a: '2'}", force=True)

        with place.error(409, "Conflict", None, 'FieldManagerConflict .data.a: conflict with "them"'):
            await place.apply("us", "ConfigMap", "data: {a: '1'}")

    async def test_updates_never_conflict(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")

        assert (await place.merge("ConfigMap", "data: {a: '2'}", by="editor"))["data"] == {"a": "2"}

    async def test_a_number_is_the_same_quantity_as_its_text(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment(containers=WEB_WITH % "1"))
        live = await place.apply("them", "Deployment", deployment(containers=WEB_WITH % "'1'"))

        assert live["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}

    async def test_another_spelling_of_a_quantity_is_a_conflict(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment(containers=WEB_WITH % "'1'"))
        field = '.spec.template.spec.containers[name="web"].resources.requests.cpu'

        with place.error(409, "Conflict", None, f'FieldManagerConflict {field}: conflict with "us"'):
            await place.apply("them", "Deployment", deployment(containers=WEB_WITH % "1000m"))


class TestDefaults:
    async def test_a_default_is_owned_by_nobody(self, place: Place, owned: Owned) -> None:
        live = await place.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 1
        assert not any(path.startswith("spec.replicas") for path in owned(live)["us Apply"])

    async def test_a_field_that_is_given_up_gets_its_default(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment("replicas: 3"))
        live = await place.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 1

    async def test_a_custom_field_that_is_given_up_gets_its_default(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {size: 5}")
        live = await place.apply("us", "Widget", "spec: {colour: red}")

        assert live["spec"] == {"size": 3, "colour": "red"}

    async def test_a_field_is_handed_over_by_a_second_manager(self, place: Place, owned: Owned) -> None:
        """The heir applies the live value first; then it is given up, and stays."""
        await place.apply("us", "Deployment", deployment("replicas: 3"))
        heir = "spec: {replicas: 3}"
        await place.apply("heir", "Deployment", heir)
        live = await place.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 3
        assert owned(live)["heir Apply"] == {"spec.replicas"}

    async def test_what_a_heir_holds_may_be_scaled(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Deployment", deployment("replicas: 3"))
        await place.apply("heir", "Deployment", "spec: {replicas: 3}")
        await place.apply("us", "Deployment", deployment())
        await place.merge("Deployment", "spec: {replicas: 7}", by="scaler", part=Subresource.SCALE)
        live = await place.apply("us", "Deployment", deployment())

        assert live["spec"]["replicas"] == 7
        assert owned(live)["scaler Update scale"] == {"spec.replicas"}
        assert "heir Apply" not in owned(live)

    async def test_a_field_is_taken_back_by_force(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Deployment", deployment())
        await place.merge("Deployment", "spec: {replicas: 7}", by="scaler", part=Subresource.SCALE)
        live = await place.apply("us", "Deployment", deployment("replicas: 2"), force=True)

        assert live["spec"]["replicas"] == 2
        assert "scaler Update scale" not in owned(live)

    async def test_a_handed_over_field_that_is_given_up_is_reset(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment("replicas: 3"))
        await place.apply("heir", "Deployment", "spec: {replicas: 3}")
        await place.apply("us", "Deployment", deployment())
        live = await place.apply("heir", "Deployment", "")

        assert live["spec"]["replicas"] == 1


class TestKeyedLists:
    """Items have owners of their own, by key."""

    async def test_each_adds_items_of_their_own(self, place: Place) -> None:
        await place.apply("us", "Deployment", deployment())
        live = await place.apply(
            "them", "Deployment", "spec: {template: {spec: {containers: [{name: side, image: 'side:1'}]}}}"
        )

        assert [each["name"] for each in live["spec"]["template"]["spec"]["containers"]] == ["web", "side"]

    async def test_an_item_that_is_given_up_goes(self, place: Place) -> None:
        both = f"{WEB}, {{name: side, image: 'side:1'}}"
        await place.apply("us", "Deployment", deployment(containers=both))
        live = await place.apply("us", "Deployment", deployment())

        assert [each["name"] for each in live["spec"]["template"]["spec"]["containers"]] == ["web"]

    async def test_order_is_that_of_the_applied(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {parts: [{name: a}, {name: b}]}")
        live = await place.apply("us", "Widget", "spec: {parts: [{name: b}, {name: c}, {name: a}]}")

        assert [each["name"] for each in live["spec"]["parts"]] == ["b", "c", "a"]

    async def test_items_of_others_keep_their_place(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {parts: [{name: a}, {name: b}, {name: c}]}")
        live = await place.apply("them", "Widget", "spec: {parts: [{name: d}, {name: b}]}")

        assert [each["name"] for each in live["spec"]["parts"]] == ["a", "d", "b", "c"]

    async def test_fields_of_one_item_may_have_two_owners(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Widget", "spec: {parts: [{name: a, image: x}]}")
        live = await place.apply("them", "Widget", "spec: {parts: [{name: a, count: 4}]}")

        assert live["spec"]["parts"] == [{"name": "a", "image": "x", "count": 4}]
        item = 'spec.parts[k:{"name":"a"}]'
        assert owned(live) == {
            "us Apply": {item, f"{item}.name", f"{item}.image"},
            "them Apply": {item, f"{item}.name", f"{item}.count"},
        }

    async def test_an_item_stays_while_anybody_names_it(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {parts: [{name: a, image: x}]}")
        await place.apply("them", "Widget", "spec: {parts: [{name: a, count: 4}]}")
        live = await place.apply("us", "Widget", "spec: {}")

        assert live["spec"]["parts"] == [{"name": "a", "count": 4}]

    async def test_ports_are_told_apart_by_number_and_protocol(self, place: Place) -> None:
        await place.apply("us", "Service", "spec: {ports: [{name: a, port: 53, protocol: UDP}]}")
        live = await place.apply("them", "Service", "spec: {ports: [{name: b, port: 53, protocol: TCP}]}")

        assert [(each["name"], each["protocol"]) for each in live["spec"]["ports"]] == [("a", "UDP"), ("b", "TCP")]

    async def test_a_key_that_is_left_out_has_its_default(self, place: Place, owned: Owned) -> None:
        live = await place.apply("us", "Service", "spec: {ports: [{port: 80}]}")

        assert 'spec.ports[k:{"port":80,"protocol":"TCP"}]' in owned(live)["us Apply"]

    @pytest.mark.parametrize(
        ("kind", "body", "message"),
        [
            pytest.param(
                "Deployment",
                deployment(containers=f"{WEB}, {WEB}"),
                "failed to create typed patch object (<place>/demo; apps/v1, Kind=Deployment): "
                '.spec.template.spec.containers: duplicate entries for key [name="web"]',
                id="two items with one key",
            ),
            pytest.param(
                "Widget",
                "spec: {parts: [{image: x}]}",
                "failed to create typed patch object (<place>/demo; conformance.example.com/v1, Kind=Widget): "
                ".spec.parts: element 0: associative list with keys has an element that omits all key "
                'fields ["name"] (and doesn\'t have default values for any key fields)',
                id="an item without its key",
            ),
            pytest.param(
                "Widget",
                "spec: {tags: [a, b, a]}",
                "failed to create typed patch object (<place>/demo; conformance.example.com/v1, Kind=Widget): "
                '.spec.tags: duplicate entries for key [="a"]',
                id="twice in a set",
            ),
        ],
    )
    async def test_keys_are_demanded_and_unique(self, place: Place, kind: str, body: str, message: str) -> None:
        with place.error(500, "", message, kind=InvalidError):
            await place.apply("us", kind, body)


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
        pytest.param("Widget", "spec: a", ".spec: expected map, got &{a}", id="a text in the place of a map"),
        pytest.param("Widget", "spec: true", ".spec: expected map, got &{true}", id="a truth in the place of a map"),
        pytest.param(
            "Widget",
            "spec: {enabled: {b: [1, null, true], a: 1.5}}",
            ".spec.enabled: expected boolean, got &{map[a:1.5 b:[1 <nil> true]]}",
            id="a map in the place of a truth",
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
            id="a truth in a list of texts",
        ),
        pytest.param(
            "Widget",
            "spec: {colour: [1.5, a, {b: true, a: []}, null]}",
            ".spec.colour: expected string, got &value.valueUnstructured{Value:[]interface {}"
            '{1.5, "a", map[string]interface {}{"a":[]interface {}{}, "b":true}, interface {}(nil)}}',
            id="a list in the place of a text",
        ),
    ],
)
async def test_what_does_not_fit_the_schema_is_refused(place: Place, kind: str, body: str, problem: str) -> None:
    head = f"<place>/demo; {place.key(kind).api_version.rpartition('/')[0]}/"
    version = place.key(kind).api_version.rpartition("/")[2]
    message = f"failed to create typed patch object ({head}{version}, Kind={kind}): {problem}"
    with place.error(500, "", message, kind=InvalidError):
        await place.apply("us", kind, body)


class TestSets:
    async def test_each_adds_members(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Widget", "spec: {tags: [a, b]}")
        live = await place.apply("them", "Widget", "spec: {tags: [b, c]}")

        assert live["spec"]["tags"] == ["a", "b", "c"]
        assert owned(live) == {
            "us Apply": {'spec.tags[v:"a"]', 'spec.tags[v:"b"]'},
            "them Apply": {'spec.tags[v:"b"]', 'spec.tags[v:"c"]'},
        }

    async def test_a_member_that_is_given_up_goes(self, place: Place) -> None:
        await place.apply("us", "Widget", "spec: {tags: [a, b]}")
        await place.apply("them", "Widget", "spec: {tags: [b, c]}")
        live = await place.apply("us", "Widget", "spec: {tags: []}")

        assert live["spec"]["tags"] == ["b", "c"]

    async def test_finalizers_are_a_set(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "metadata: {finalizers: [a.io/x]}")
        live = await place.apply("them", "ConfigMap", "metadata: {finalizers: [b.io/y]}")

        assert live["metadata"]["finalizers"] == ["a.io/x", "b.io/y"]


class TestAtomic:
    """Some parts have one owner as a whole."""

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
    async def test_a_change_of_a_part_is_one_of_the_whole(
        self, place: Place, kind: str, one: str, other: str, field: str
    ) -> None:
        await place.apply("us", kind, one)

        with place.error(409, "Conflict", None, f'FieldManagerConflict {field}: conflict with "us"'):
            await place.apply("them", kind, other)

    async def test_it_is_replaced(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Widget", "spec: {limits: {cpu: '1', memory: '1'}, order: [a, b]}")
        live = await place.apply("us", "Widget", "spec: {limits: {cpu: '2'}, order: [b]}")

        assert (live["spec"]["limits"], live["spec"]["order"]) == ({"cpu": "2"}, ["b"])
        assert owned(live) == {"us Apply": {"spec.limits", "spec.order"}}

    async def test_a_patch_of_a_part_takes_the_whole(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Widget", "spec: {limits: {cpu: '1', memory: '1'}}")
        live = await place.merge("Widget", "spec: {limits: {cpu: '2'}}", by="editor")

        assert live["spec"]["limits"] == {"cpu": "2", "memory": "1"}
        assert owned(live) == {"editor Update": {"spec.limits"}}


class TestMaps:
    async def test_each_adds_keys(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Widget", "spec: {labels: {a: '1'}}")
        live = await place.apply("them", "Widget", "spec: {labels: {b: '2'}}")

        assert live["spec"]["labels"] == {"a": "1", "b": "2"}
        assert owned(live) == {"us Apply": {"spec.labels.a"}, "them Apply": {"spec.labels.b"}}

    async def test_what_no_schema_knows_is_merged_by_key(self, place: Place, owned: Owned) -> None:
        await place.apply("us", "Widget", "spec: {free: {a: {one: 1}, list: [1]}}")
        live = await place.apply("them", "Widget", "spec: {free: {a: {two: 2}}}")

        assert live["spec"]["free"] == {"a": {"one": 1, "two": 2}, "list": [1]}
        assert owned(live) == {
            "us Apply": {"spec.free.a", "spec.free.a.one", "spec.free.list"},
            "them Apply": {"spec.free.a", "spec.free.a.two"},
        }

    async def test_an_empty_map_is_owned_as_such(self, place: Place, owned: Owned) -> None:
        live = await place.apply("us", "Widget", "spec: {free: {}}")

        assert owned(live) == {"us Apply": {"spec.free"}}

    async def test_labels_and_annotations_are_shared(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "metadata: {labels: {a: '1'}, annotations: {a: '1'}}")
        live = await place.apply("them", "ConfigMap", "metadata: {labels: {b: '2'}, annotations: {b: '2'}}")

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
                id="a text in the place of a number",
            ),
        ],
    )
    async def test_what_does_not_fit_the_schema_is_refused(
        self, place: Place, kind: str, body: str, problem: str
    ) -> None:
        group = place.key(kind).api_version
        subject = f"{group if '/' in group else '/' + group}, Kind={kind}"

        with place.error(
            500, "", f"failed to create typed patch object (<place>/demo; {subject}): {problem}", kind=InvalidError
        ):
            await place.apply("us", kind, body)

    async def test_managed_fields_cannot_be_applied(self, place: Place) -> None:
        with place.error(400, "BadRequest", "metadata.managedFields must be nil"):
            await place.apply("us", "ConfigMap", "metadata: {managedFields: [{}]}")

    async def test_a_manager_is_named(self, place: Place) -> None:
        with place.error(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
            "FieldValueRequired fieldManager: Required value: is required for apply patch",
        ):
            await place.apply("", "ConfigMap")

    async def test_a_managers_name_has_a_limit(self, place: Place) -> None:
        await place.apply("m" * 128, "ConfigMap")
        with place.error(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
            "FieldValueTooLong fieldManager: Too long: may not be more than 128 bytes",
        ):
            await place.apply("m" * 129, "ConfigMap")

    async def test_a_uid_that_is_not_the_live_one_is_invalid(self, place: Place) -> None:
        await place.apply("us", "ConfigMap", "data: {a: '1'}")
        detail = 'Invalid value: "8a2c7a5e-0000-4000-8000-000000000000": field is immutable'

        with place.error(422, "Invalid", None, place.plain(f"FieldValueInvalid metadata.uid: {detail}")):
            await place.apply("us", "ConfigMap", "metadata: {uid: 8a2c7a5e-0000-4000-8000-000000000000}")


async def test_an_apply_through_the_status_owns_the_status_alone(place: Place, owned: Owned) -> None:
    await place.create("Widget", "spec: {size: 2}", by="us")
    body = "{metadata: {labels: {a: b}}, spec: {size: 9}, status: {replicas: 1}}"
    live = await place.apply("reporter", "Widget", body, part=Subresource.STATUS)

    assert (live["spec"], live["status"]) == ({"size": 2}, {"replicas": 1})
    assert owned(live)["reporter Apply status"] == {"status.replicas"}


async def test_an_apply_to_the_object_does_not_own_its_status(place: Place, owned: Owned) -> None:
    live = await place.apply("us", "Widget", "{spec: {size: 2}, status: {replicas: 1}}")

    assert "status" not in live
    assert owned(live) == {"us Apply": {"spec.size"}}


@pytest.mark.parametrize("patch_type", [PatchType.MERGE, PatchType.STRATEGIC_MERGE])
async def test_a_patch_owns_lists_as_their_types_say(place: Place, owned: Owned, patch_type: PatchType) -> None:
    await place.apply("us", "Deployment", deployment())
    containers = [{"name": "web", "image": "web:2"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    live = await place.patch("Deployment", patch, patch_type=patch_type, by="editor")

    assert owned(live)["editor Update"] == {'spec.template.spec.containers[k:{"name":"web"}].image'}
