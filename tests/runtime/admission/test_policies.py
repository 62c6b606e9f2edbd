"""Admission policies, while no process of the operator runs: on the embedded API server and a real one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from kubernetes.client import (
    CoreV1Event,
    EventsV1Event,
    V1Deployment,
    V1Pod,
    V1PodSpec,
    V1Secret,
    V2HorizontalPodAutoscaler,
)
from pydantic import BaseModel

from ocf.errors import ApiError, BuildError, ForbiddenError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import (
    ApplyConfiguration,
    JSONPatch,
    Match,
    Operation,
    Parameters,
    Policy,
    Validation,
)
from ocf.runtime.admission.policies import apply_policies, registered_policies
from ocf.runtime.crds import CamelModel, CustomResource
from ocf_server import EmbeddedCluster
from ocf_server.api.write_options import FieldValidation
from tests.runtime.admission.policy_places import MANAGER, Place
from tests.support import eventually

PATCH: Final = JSONPatch('[JSONPatch{op: "add", path: "/metadata/labels/changed", value: "yes"}]')
SMALL: Final = Validation("!has(object.data) || size(object.data) <= 1", "data must have at most 1 entry")


async def test_a_rule_holds_for_creates_updates_and_dry_runs(place: Place) -> None:
    error = await place.enforce(place.policy(validations=[SMALL]), place.config("a", "b"))

    assert isinstance(error, InvalidError)
    name = f"policy-{place.namespace}"
    denied = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: data must have at most 1 entry"
    assert str(error).endswith(f'configmaps "one" is forbidden: {denied}')
    stored = await place.create(place.config("a"))
    with pytest.raises(InvalidError, match="at most 1 entry"):
        await place.cluster.update({**stored, "data": {"a": "", "b": ""}}, field_manager=MANAGER)
    await place.cluster.delete(ObjectKey.of(stored))


async def test_the_reason_of_a_rule_decides_the_class_of_the_error(place: Place) -> None:
    error = await place.enforce(place.policy(validations=[replace(SMALL, reason="Forbidden")]), place.config("a", "b"))

    assert isinstance(error, ForbiddenError)


async def test_a_rule_of_deletes_reads_the_old_object(place: Place) -> None:
    match = Match(operations=[Operation.DELETE])
    kept = Validation('!("keep" in oldObject.data)', "it is to be kept")
    await place.create(place.config("keep"))
    await place.create(place.object("free", data={"any": ""}))
    await apply_policies(place.cluster, [place.policy(validations=[kept], match=match)], field_manager=MANAGER)

    async def refused() -> bool:
        try:
            await place.cluster.delete(ObjectKey("v1", "ConfigMap", "one", place.namespace))
        except InvalidError as error:
            return "it is to be kept" in str(error)
        await place.create(place.config("keep"))
        return False

    await eventually(refused)
    await place.cluster.delete(ObjectKey("v1", "ConfigMap", "free", place.namespace))


async def test_a_rule_reads_the_user_and_whether_it_is_a_dry_run(place: Place) -> None:
    rules = [
        Validation('"system:masters" in request.userInfo.groups', "only for administrators"),
        Validation("!request.dryRun", "a dry run"),
    ]
    error = await place.enforce(place.policy(validations=rules), place.config())

    assert "a dry run" in str(error)
    assert await place.create(place.config())


async def test_a_rule_is_for_the_user_of_the_request(place: Place) -> None:
    rule = Validation('request.userInfo.username != "mallory"', "not mallory")
    mallory, alice = [
        replace(place, cluster=place.cluster.acting_as(name, groups=["system:masters"]))
        for name in ("mallory", "alice")
    ]
    error = await mallory.enforce(place.policy(validations=[rule]), place.config())

    assert "not mallory" in str(error)
    assert await alice.create(place.config())


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease", "operator"])
async def test_system_namespaces_and_that_of_the_operator_are_left_out(place: Place, namespace: str) -> None:
    """A policy does not keep the cluster from starting: https://github.com/open-policy-agent/gatekeeper/issues/4530."""
    operators = f"operator-{place.namespace}"
    await place.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operators}})
    nothing = place.policy(validations=[Validation("false", "never")])
    await place.enforce(nothing, place.config(), namespace=operators)

    elsewhere = operators if namespace == "operator" else namespace
    assert await place.create(place.config(namespace=elsewhere), dry_run=True)


async def test_all_namespaces_are_included_where_it_is_asked_for(place: Place) -> None:
    everywhere = place.policy(validations=[Validation("false", "never")], match=Match(everywhere=True))

    assert "never" in str(await place.enforce(everywhere, place.config(namespace="kube-system")))


async def test_a_policy_is_never_without_its_binding() -> None:
    """Nothing reports a missing one: https://github.com/kubernetes/kubernetes/issues/117263."""
    both = Policy.of(V1Pod, "both", validations=[SMALL], mutations=[PATCH]).manifests()

    kinds = [one["kind"] for one in both]
    assert [kind.removesuffix("Binding") for kind in kinds[::2]] == kinds[::2]
    assert kinds[1::2] == [f"{kind}Binding" for kind in kinds[::2]]
    assert {one["spec"].get("policyName", "both") for one in both} == {"both"}
    # https://github.com/kyverno/kyverno/issues/12683: a binding without an action is refused.
    assert both[1]["spec"]["validationActions"] == ["Deny"]


@pytest.mark.parametrize("actions", [["Warn"], ["Audit"], ["Warn", "Audit"]])
async def test_a_rule_that_only_warns_or_audits_denies_nothing(actions: Any) -> None:
    warnings: list[str] = []
    cluster = EmbeddedCluster(namespaces=["shop"])
    place = Place(cluster.checking(FieldValidation.WARN, warn=warnings.append), "shop")
    await apply_policies(cluster, [place.policy(validations=[SMALL], actions=actions)], field_manager=MANAGER)

    await place.create(place.config("a", "b"))

    assert ["at most 1 entry" in text for text in warnings] == [True] * ("Warn" in actions)


async def test_a_message_is_used_where_its_expression_fails(place: Place) -> None:
    """A field is missing, as in https://github.com/kyverno/kyverno/issues/15591."""
    rule = replace(SMALL, message_expression='"for " + object.metadata.annotations["team"]')

    assert "data must have at most 1 entry" in str(
        await place.enforce(place.policy(validations=[rule]), place.config("a", "b"))
    )


@pytest.mark.parametrize(("failure", "denied"), [("Fail", True), ("Ignore", False)])
async def test_the_failure_policy_decides_where_a_rule_cannot_be_evaluated(failure: Any, *, denied: bool) -> None:
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    rule = Validation('object.data["a"] == ""', "a must be empty")
    policy = place.policy(validations=[rule], failure_policy=failure)
    await apply_policies(place.cluster, [policy], field_manager=MANAGER)

    if denied:
        with pytest.raises(ApiError, match="no such key"):
            await place.create(place.config())
    else:
        assert await place.create(place.config())


async def test_variables_conditions_and_audit_annotations(place: Place) -> None:
    policy = place.policy(
        validations=[Validation("variables.count <= 1", message_expression='"got " + string(variables.count)')],
        variables={"count": "size(object.data)"},
        audit_annotations={"count": "string(variables.count)"},
        match=Match(
            conditions={"not-free": '!has(object.metadata.annotations) || !("free" in object.metadata.annotations)'}
        ),
    )
    error = await place.enforce(policy, place.config("a", "b"))

    assert "denied request: got 2" in str(error)
    free = place.config("a", "b")
    free["metadata"]["annotations"] = {"free": ""}
    assert await place.create(free)


async def test_parameters_are_read_from_the_namespace_of_the_request(place: Place) -> None:
    await place.create(
        {**place.object("limits", data={"most": "1"}), "metadata": {"name": "limits", "namespace": place.namespace}}
    )
    policy = place.policy(
        validations=[Validation("size(object.data) <= int(params.data.most)", "too many")],
        parameters=Parameters(api_version="v1", kind="ConfigMap", name="limits"),
    )

    assert "too many" in str(await place.enforce(policy, place.config("a", "b")))
    assert await place.create(place.config("a"))


async def test_parameters_say_what_happens_while_they_are_missing() -> None:
    """The field is required, and has no default: https://github.com/kubernetes/kubernetes/issues/130822."""
    for missing in ("Deny", "Allow"):
        place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
        parameters = Parameters(api_version="v1", kind="ConfigMap", name="limits", missing=missing)
        policy = place.policy(validations=[SMALL], parameters=parameters)
        await apply_policies(place.cluster, [policy], field_manager=MANAGER)
        if missing == "Deny":
            with pytest.raises(ApiError, match="no params found"):
                await place.create(place.config())
        else:
            assert await place.create(place.config("a", "b"))


@pytest.mark.parametrize(("missing", "freed"), [("Deny", False), ("Allow", True)])
async def test_missing_parameters_keep_finalizers_only_where_they_deny(missing: Any, *, freed: bool) -> None:
    """A namespace that is deleted loses them first: https://github.com/kubernetes/kubernetes/issues/129883."""
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    held = place.config("a")
    held["metadata"]["finalizers"] = ["example.com/held"]
    await place.create(held)
    parameters = Parameters(api_version="v1", kind="ConfigMap", name="limits", missing=missing)
    policy = place.policy(validations=[SMALL], parameters=parameters)
    await apply_policies(place.cluster, [policy], field_manager=MANAGER)
    await place.cluster.delete(ObjectKey.of(held))

    live = await place.cluster.get(ObjectKey.of(held))
    free = without_finalizers(live)
    if freed:
        await place.cluster.update(free, field_manager=MANAGER)
    else:
        with pytest.raises(ApiError, match="no params found"):
            await place.cluster.update(free, field_manager=MANAGER)


def without_finalizers(live: Manifest) -> Manifest:
    return {**live, "metadata": {**live["metadata"], "finalizers": []}}


COPY: Final = JSONPatch('[JSONPatch{op: "add", path: "/data/copy", value: object.data.none}]')


@pytest.mark.parametrize("being_deleted", [False, True])
@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"validations": [Validation("size(object.data) == 0", "no entry")]}, id="a validation"),
        pytest.param({"validations": [Validation("object.data.none == ''")]}, id="a validation without its field"),
        pytest.param({"mutations": [COPY]}, id="a mutation that cannot be applied"),
    ],
)
async def test_a_rule_keeps_no_finalizer_unless_it_is_for_objects_that_are_being_deleted(
    rule: Any, *, being_deleted: bool
) -> None:
    """A policy kept Jobs in Terminating: https://github.com/dc-tec/openbao-operator/pull/53."""
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    held = place.config("a")
    held["metadata"]["finalizers"] = ["example.com/held"]
    stored = await place.create(held)
    policy = place.policy(being_deleted=being_deleted, **rule)
    await apply_policies(place.cluster, [policy], field_manager=MANAGER)
    with pytest.raises(ApiError):
        await place.cluster.update(without_finalizers(stored), field_manager=MANAGER)
    await place.cluster.delete(ObjectKey.of(held))

    live = await place.cluster.get(ObjectKey.of(held))
    if being_deleted:
        with pytest.raises(ApiError):
            await place.cluster.update(without_finalizers(live), field_manager=MANAGER)
    else:
        await place.cluster.update(without_finalizers(live), field_manager=MANAGER)
        with pytest.raises(NotFoundError):
            await place.cluster.get(ObjectKey.of(held))


async def test_what_breaks_a_newer_rule_can_still_be_deleted(place: Place) -> None:
    held = place.config("a", "b")
    held["metadata"]["finalizers"] = ["example.com/held"]
    stored = await place.create(held)
    await place.enforce(place.policy(validations=[SMALL]), place.object("two", data={"a": "", "b": ""}))
    with pytest.raises(InvalidError, match="at most 1 entry"):
        await place.cluster.update(without_finalizers(stored), field_manager=MANAGER)
    await place.cluster.delete(ObjectKey.of(held))

    live = await place.cluster.get(ObjectKey.of(held))
    await place.cluster.update(without_finalizers(live), field_manager=MANAGER)
    with pytest.raises(NotFoundError):
        await place.cluster.get(ObjectKey.of(held))


async def test_a_create_is_checked_whatever_deletion_timestamp_it_has() -> None:
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    await apply_policies(place.cluster, [place.policy(validations=[SMALL])], field_manager=MANAGER)
    claimed = place.config("a", "b")
    claimed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(InvalidError, match="at most 1 entry"):
        await place.create(claimed)


async def test_a_rule_of_deletes_is_for_objects_that_are_being_deleted() -> None:
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    held = place.config("a")
    held["metadata"]["finalizers"] = ["example.com/held"]
    await place.create(held)
    await place.cluster.delete(ObjectKey.of(held))
    match = Match(operations=[Operation.UPDATE, Operation.DELETE])
    once = Validation("!has(oldObject.metadata.deletionTimestamp)", "it is being deleted already")
    await apply_policies(place.cluster, [place.policy(validations=[once], match=match)], field_manager=MANAGER)
    with pytest.raises(InvalidError, match="being deleted already"):
        await place.cluster.delete(ObjectKey.of(held))


async def test_mutations_of_both_kinds_are_applied_in_order(place: Place) -> None:
    policy = place.policy(
        mutations=[
            ApplyConfiguration('Object{metadata: Object.metadata{annotations: {"team": "web"}}}'),
            JSONPatch('[JSONPatch{op: "add", path: "/metadata/annotations/size", value: string(size(object.data))}]'),
        ]
    )
    changed = await place.mutate(policy, place.config("a"), lambda one: "annotations" in one["metadata"])

    assert changed["metadata"]["annotations"] == {"team": "web", "size": "1"}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        pytest.param({"validations": [Validation("object.data <")]}, "spec.validations[0].expression", id="syntax"),
        pytest.param({"validations": [Validation("size(object.data)")]}, "spec.validations[0].expression", id="type"),
        pytest.param(
            {"validations": [replace(SMALL, message_expression="1")]},
            "spec.validations[0].messageExpression",
            id="message",
        ),
        pytest.param(
            {"validations": [SMALL], "variables": {"a": "nothing.b"}}, "spec.variables[0].expression", id="variable"
        ),
        pytest.param(
            {"validations": [SMALL], "audit_annotations": {"a": "1"}},
            "spec.auditAnnotations[0].valueExpression",
            id="audit",
        ),
        pytest.param({"mutations": [JSONPatch("object")]}, "spec.mutations[0].jsonPatch.expression", id="patch"),
        pytest.param(
            {"validations": [SMALL], "match": Match(conditions={"a": "1"})},
            "spec.matchConditions[0].expression",
            id="match",
        ),
        # As in https://github.com/projectcapsule/capsule/issues/1829: a macro is a method.
        pytest.param(
            {"validations": [Validation('!exists(object.data, key, key == "a")')]},
            "spec.validations[0].expression",
            id="macro as a function",
        ),
    ],
)
async def test_a_wrong_expression_is_refused_with_its_place(place: Place, settings: Any, field: str) -> None:
    with pytest.raises(InvalidError, match="is invalid: ") as caught:
        await apply_policies(place.cluster, [place.policy(**settings)], field_manager=MANAGER)

    assert field in str(caught.value)


class Limit(CustomResource[CamelModel], group="example.com", version="v1"):
    """A limit."""

    spec: CamelModel = CamelModel()


@pytest.mark.parametrize(
    ("model", "found"),
    [
        pytest.param(Limit, ("example.com", "v1", "limits"), id="custom resource"),
        pytest.param(V1Pod, ("", "v1", "pods"), id="core"),
        pytest.param(V1Deployment, ("apps", "v1", "deployments"), id="group"),
        pytest.param(
            V2HorizontalPodAutoscaler, ("autoscaling", "v2", "horizontalpodautoscalers"), id="one of two versions"
        ),
        pytest.param(CoreV1Event, ("", "v1", "events"), id="core event"),
        pytest.param(EventsV1Event, ("events.k8s.io", "v1", "events"), id="event"),
    ],
)
def test_the_kind_is_that_of_the_model(model: type[BaseModel], found: tuple[str, str, str]) -> None:
    policy = Policy.of(model, "any", validations=[SMALL])

    assert (policy.group, policy.version, policy.plural) == found
    selector = policy.manifests()[0]["spec"]["matchConstraints"]["namespaceSelector"]
    assert (selector == {}) is (model is Limit)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"validations": ()}, "needs validations, bounds, audit annotations or mutations", id="nothing"),
        pytest.param({"name": "Pods"}, 'its name "Pods": a lowercase RFC 1123 subdomain', id="name"),
        pytest.param({"plural": ""}, 'the version and the plural of its kind, got "v1" and ""', id="plural"),
        pytest.param({"actions": ()}, "at least one of Deny, Warn, Audit is required", id="no action"),
        pytest.param({"actions": ["Block"]}, "must be of Deny, Warn, Audit, got 'Block'", id="unknown action"),
        pytest.param({"actions": ["Warn", "Warn"]}, "each at most once, got Warn, Warn", id="action twice"),
        pytest.param({"actions": ["Deny", "Warn"]}, "use either Deny or Warn", id="two responses"),
        pytest.param({"failure_policy": "Open"}, 'must be "Fail" or "Ignore", got \'Open\'', id="failure policy"),
        pytest.param({"validations": [Validation(" ")]}, "validations[0]: the expression is empty", id="no expression"),
        pytest.param({"validations": [Validation("a", "b\nc")]}, "the message must be one line", id="two lines"),
        pytest.param({"variables": {"a-b": "1"}}, '"a-b" must be an identifier of CEL', id="variable"),
        pytest.param(
            {"mutations": [PATCH], "match": Match(operations=[Operation.DELETE])},
            "a delete cannot be mutated",
            id="mutated delete",
        ),
        pytest.param(
            {"match": Match(conditions={"not-being-deleted": "true"})}, "choose another name", id="name of a condition"
        ),
    ],
)
def test_what_no_api_server_takes_is_refused_when_it_is_built(settings: dict[str, Any], problem: str) -> None:
    given = {"name": "pods", "group": "", "version": "v1", "plural": "pods", "validations": [SMALL], **settings}

    with pytest.raises(BuildError) as caught:
        Policy(**given)
    assert problem in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"name": "a", "selector": {}}])
def test_parameters_have_either_a_name_or_a_selector(settings: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="either a name or a selector"):
        Parameters(api_version="v1", kind="ConfigMap", **settings)


@pytest.mark.parametrize("model", [V1PodSpec, BaseModel])
def test_a_model_that_is_not_a_kind_is_refused(model: type[BaseModel]) -> None:
    with pytest.raises(BuildError, match=r"is not the model of a built-in kind|declares no group"):
        Policy.of(model, "any", validations=[SMALL])


async def test_registered_policies_go_when_the_process_ends() -> None:
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    policy = place.policy(validations=[SMALL], mutations=[PATCH])

    async with registered_policies(place.cluster, [policy], namespace="", field_manager=MANAGER):
        with pytest.raises(InvalidError):
            await place.create(place.config("a", "b"))

    assert await place.create(place.config("a", "b"))
    for manifest in policy.manifests():
        with pytest.raises(NotFoundError):
            await place.cluster.get(ObjectKey.of(manifest))


async def test_registered_policies_go_when_one_is_rejected() -> None:
    place = Place(EmbeddedCluster(namespaces=["shop"]), "shop")
    both = [place.policy(validations=[SMALL]), Policy.of(V1Pod, "wrong", validations=[Validation("1")])]

    with pytest.raises(InvalidError, match="wrong"):
        async with registered_policies(place.cluster, both, namespace="", field_manager=MANAGER):
            pytest.fail("the policy was not rejected")

    assert await place.create(place.config("a", "b"))


async def test_mutations_take_the_version_that_the_cluster_serves() -> None:
    """Kubernetes serves v1beta1 from 1.34 and v1 from 1.36: https://github.com/projectcalico/calico/pull/12875."""
    applied: list[str] = []

    class Older(EmbeddedCluster):
        async def is_namespaced(self, api_version: str, kind: str) -> bool:
            if api_version == "admissionregistration.k8s.io/v1":
                raise NotFoundError(f"no matches for kind {kind}")
            return await super().is_namespaced(api_version, kind)

        async def apply(self, manifest: Manifest, **_: Any) -> Manifest:
            applied.append(f"{manifest['kind']} {manifest['apiVersion'].rpartition('/')[2]}")
            return manifest

    policy = Policy.of(V1Secret, "both", validations=[SMALL], mutations=[PATCH])
    await apply_policies(Older(), [policy], field_manager=MANAGER)

    assert applied == [
        "ValidatingAdmissionPolicy v1",
        "ValidatingAdmissionPolicyBinding v1",
        "MutatingAdmissionPolicy v1beta1",
        "MutatingAdmissionPolicyBinding v1beta1",
    ]
