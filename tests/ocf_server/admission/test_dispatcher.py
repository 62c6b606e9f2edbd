"""Admission webhooks: matching, requests, and the effect of responses.

The expected texts are those of a real API server (1.36.3).
"""

import asyncio
import base64
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import ApiError, BadRequestError, ForbiddenError, InvalidError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.api.webhook_client import UnansweredError
from ocf_server.api.write_options import FieldValidation
from ocf_server.http.status import status_of

Build = Callable[..., Manifest]
SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")
WEB = ObjectKey("apps/v1", "Deployment", "web", "shop")


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """Return the response of a webhook that changes the object."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


class Webhooks:
    """Responds for all webhooks, by their names, and records the requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Manifest]] = []
        self.responses: dict[str, Any] = {}

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        del seconds
        name = webhook["name"].partition(".")[0]
        self.requests.append((name, review["request"]))
        content = self.responses.get(name, {"allowed": True})
        if inspect.iscoroutinefunction(content):
            content = await content(review["request"])
        if isinstance(content, str):
            raise UnansweredError(content)
        response = {"uid": review["request"]["uid"], **content}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.requests]


def webhook(name: str, **fields: Any) -> dict[str, Any]:
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": "https://127.0.0.1:8443"},
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def configuration(kind: str, *webhooks: dict[str, Any], name: str = "hooks") -> Manifest:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


@pytest.fixture
def webhooks() -> Webhooks:
    return Webhooks()


@pytest.fixture
def cluster(webhooks: Webhooks, clock: Any) -> EmbeddedCluster:
    kinds = [CustomKind("example.com", "v1", "Widget")]
    return EmbeddedCluster(kinds=kinds, namespaces=("shop", "other"), now=clock, admission=webhooks)


async def install(cluster: EmbeddedCluster, kind: str, *webhooks: dict[str, Any], name: str = "hooks") -> None:
    await cluster.create(configuration(kind, *webhooks, name=name), field_manager="test")


class TestRequests:
    async def test_a_create(self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build) -> None:
        """Mutating webhooks get the object as sent with its managed fields; validating ones the object to be stored."""
        await install(cluster, "Mutating", webhook("first"))
        await install(cluster, "Validating", webhook("second"))
        await cluster.create(config_map(data={"a": "1"}), field_manager="me")

        first, second = (request for _, request in webhooks.requests)
        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        resource = {"group": "", "version": "v1", "resource": "configmaps"}
        assert {name: first[name] for name in first if name not in ("uid", "object", "userInfo")} == {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "settings",
            "namespace": "shop",
            "operation": "CREATE",
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"},
        }
        assert first["object"]["metadata"]["managedFields"]
        assert "uid" not in first["object"]["metadata"]
        assert second["object"]["metadata"]["uid"] == (await cluster.get(SETTINGS))["metadata"]["uid"]
        assert first["uid"] != second["uid"]

    async def test_a_patch_and_a_delete(self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build) -> None:
        await cluster.create(config_map(data={"a": "1"}), field_manager="me")
        await install(cluster, "Validating", webhook("hook"))
        await cluster.patch(
            SETTINGS, {"data": {"a": "2"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="me", dry_run=True)
        )
        await cluster.delete(SETTINGS)

        (_, change), (_, end) = webhooks.requests
        assert (change["operation"], change["dryRun"], change["options"]["kind"]) == ("UPDATE", True, "UpdateOptions")
        assert (change["oldObject"]["data"], change["object"]["data"]) == ({"a": "1"}, {"a": "2"})
        assert (end["operation"], end["object"], end["oldObject"]["data"]) == ("DELETE", None, {"a": "1"})

    async def test_an_apply_that_changes_nothing_calls_webhooks(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Mutating", webhook("hook"))
        for _ in range(2):
            await cluster.apply(config_map(data={"a": "1"}), field_manager="me")

        assert [request["operation"] for _, request in webhooks.requests] == ["CREATE", "UPDATE"]

    async def test_a_scale(self, cluster: EmbeddedCluster, webhooks: Webhooks, deployment: Build) -> None:
        """A webhook gets the Scale, can change it, and finds the scaled resource in `resource`."""
        await cluster.create(deployment(2), field_manager="me")
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = patch({"op": "replace", "path": "/spec/replicas", "value": 4})
        change = {"spec": {"replicas": 9}}
        part = Subresource.SCALE
        scale = await cluster.patch(
            WEB, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="hpa", subresource=part)
        )

        ((_, request),) = webhooks.requests
        assert (request["kind"]["kind"], request["resource"]["resource"], request["subResource"]) == (
            "Scale",
            "deployments",
            "scale",
        )
        assert (request["oldObject"]["spec"], request["object"]["spec"]) == ({"replicas": 2}, {"replicas": 9})
        assert scale["spec"] == {"replicas": 4}

    async def test_an_eviction_and_a_binding(self, cluster: EmbeddedCluster, webhooks: Webhooks) -> None:
        """A webhook can reject them, and change them; the deletion that an eviction causes is not reviewed."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
        await cluster.create({**pod, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}, field_manager="me")
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = patch({"op": "replace", "path": "/target/name", "value": "n2"})
        binding = {**pod, "target": {"kind": "Node", "name": "n1"}}
        await cluster.create(binding, field_manager="me", subresource=Subresource.BINDING)
        assert (await cluster.get(ObjectKey.of(pod)))["spec"]["nodeName"] == "n2"
        webhooks.responses["hook"] = {"allowed": False}
        with pytest.raises(BadRequestError, match="denied the request"):
            await cluster.create(pod, field_manager="me", subresource=Subresource.EVICTION)
        webhooks.responses.clear()
        await cluster.create(pod, field_manager="me", subresource=Subresource.EVICTION)
        assert "deletionTimestamp" in (await cluster.get(ObjectKey.of(pod)))["metadata"]

        requests = [request for _, request in webhooks.requests]
        kinds = [
            {"group": "", "version": "v1", "kind": "Binding"},
            {"group": "policy", "version": "v1", "kind": "Eviction"},
        ]
        assert [request["kind"] for request in requests] == [kinds[0], kinds[1], kinds[1]]
        assert [request["subResource"] for request in requests] == ["binding", "eviction", "eviction"]
        assert {(request["operation"], request["resource"]["resource"]) for request in requests} == {("CREATE", "pods")}
        assert requests[1]["object"]["kind"] == "Eviction"


class TestMatching:
    @pytest.mark.parametrize(
        ("fields", "called"),
        [
            pytest.param({}, True, id="everything"),
            pytest.param({"rules": []}, False, id="no rule"),
            pytest.param(
                {"rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"]}]},
                False,
                id="another operation",
            ),
            pytest.param(
                {"rules": [{"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["*"]}]},
                False,
                id="another group",
            ),
            pytest.param(
                {
                    "rules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["configmaps"],
                            "scope": "Cluster",
                        }
                    ]
                },
                False,
                id="another scope",
            ),
            pytest.param(
                {"rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["*/status"]}]},
                False,
                id="a subresource",
            ),
            pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, False, id="another namespace"),
            pytest.param({"objectSelector": {"matchLabels": {"app": "web"}}}, True, id="an object with the label"),
            pytest.param({"objectSelector": {"matchLabels": {"app": "api"}}}, False, id="without the label"),
        ],
    )
    async def test_rules_and_selectors(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build, fields: dict[str, Any], called: bool
    ) -> None:
        await install(cluster, "Validating", webhook("hook", **fields))
        await cluster.create(config_map(labels={"app": "web"}), field_manager="me")

        assert bool(webhooks.requests) is called

    async def test_webhooks_are_called_in_order_of_configuration_names(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Mutating", webhook("c"), name="z")
        await install(cluster, "Mutating", webhook("b"), webhook("a"), name="y")
        await cluster.create(config_map(), field_manager="me")

        assert webhooks.names == ["b", "a", "c"]

    async def test_webhooks_are_not_called_for_webhook_configurations(
        self, cluster: EmbeddedCluster, webhooks: Webhooks
    ) -> None:
        """Otherwise a configuration that denies everything could not be removed."""
        await install(cluster, "Validating", webhook("hook", namespaceSelector={}))
        await cluster.delete(ObjectKey("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hooks"))

        assert webhooks.requests == []

    async def test_a_webhook_gets_the_version_that_its_rule_names(
        self, cluster: EmbeddedCluster, webhooks: Webhooks
    ) -> None:
        rule = {
            "operations": ["CREATE"],
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v2"],
            "resources": ["horizontalpodautoscalers"],
        }
        await install(cluster, "Validating", webhook("hook", rules=[rule]))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        autoscaler: Manifest = {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": target, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
        }
        await cluster.create(autoscaler, field_manager="me")

        ((_, request),) = webhooks.requests
        assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v2", "v1")
        assert request["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


class TestMutation:
    async def test_a_change_of_a_webhook_is_stored_without_a_field_manager(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = patch({"op": "add", "path": "/data/b", "value": "2"})
        stored = await cluster.create(config_map(data={"a": "1"}), field_manager="me")

        assert stored["data"] == {"a": "1", "b": "2"}
        (entry,) = stored["metadata"]["managedFields"]
        assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}

    async def test_a_webhook_gets_the_changes_of_earlier_webhooks(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Mutating", webhook("first"), webhook("second"))
        webhooks.responses["first"] = patch({"op": "add", "path": "/data/b", "value": "2"})
        await cluster.create(config_map(data={"a": "1"}), field_manager="me")

        assert webhooks.requests[1][1]["object"]["data"] == {"a": "1", "b": "2"}

    async def test_a_webhook_with_reinvocation_is_called_once_more_after_later_changes(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(
            cluster,
            "Mutating",
            webhook("first", reinvocationPolicy="IfNeeded"),
            webhook("never"),
            webhook("last", reinvocationPolicy="IfNeeded"),
        )
        webhooks.responses["last"] = patch({"op": "add", "path": "/data/b", "value": "2"})
        await cluster.create(config_map(data={"a": "1"}), field_manager="me")

        assert webhooks.names == ["first", "never", "last", "first"]

    async def test_defaults_are_set_again_after_a_webhook(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, deployment: Build
    ) -> None:
        await install(cluster, "Mutating", webhook("hook"))
        path = "/spec/template/spec/containers/-"
        webhooks.responses["hook"] = patch({"op": "add", "path": path, "value": {"name": "side", "image": "side:1"}})
        stored = await cluster.create(deployment(), field_manager="me")

        assert stored["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"] == "IfNotPresent"

    @pytest.mark.parametrize(
        ("response", "text"),
        [
            pytest.param(patch({"op": "remove", "path": "/nope"}), "Internal error occurred: ", id="no such path"),
            pytest.param(
                patch({"op": "add", "path": "/data/a", "value": 1}),
                "Internal error occurred: json: cannot unmarshal number",
                id="of a wrong type",
            ),
            pytest.param(
                {"allowed": True, "patch": "W10="},
                'failed calling webhook "hook.example.com": received invalid webhook response: '
                "webhook returned response.patch but not response.patchType",
                id="no patch type",
            ),
            pytest.param(
                {"allowed": True, "patchType": "JSONPatch"},
                "webhook returned response.patchType but not response.patch",
                id="no patch",
            ),
        ],
    )
    async def test_an_invalid_patch_fails_the_request(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build, response: Any, text: str
    ) -> None:
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = response
        with pytest.raises(ServerError) as caught:
            await cluster.create(config_map(data={"a": "1"}), field_manager="me")

        assert (caught.value.code, caught.value.reason) == (500, "InternalError")
        assert text in caught.value.message

    @pytest.mark.parametrize(
        "operations",
        [
            pytest.param([{"op": "remove", "path": "/kind"}], id="without its kind"),
            pytest.param([{"op": "remove", "path": "/apiVersion"}], id="without its version"),
            pytest.param([{"op": "remove", "path": f"/{name}"} for name in ("apiVersion", "kind")], id="without both"),
        ],
    )
    async def test_the_removed_type_of_a_built_in_object_is_restored(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build, operations: list[dict[str, Any]]
    ) -> None:
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = patch(*operations)
        stored = await cluster.create(config_map(data={"a": "1"}), field_manager="me")

        assert (stored["apiVersion"], stored["kind"]) == ("v1", "ConfigMap")
        assert (await cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_a_changed_kind_of_a_built_in_object_is_rejected(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = patch({"op": "replace", "path": "/kind", "value": "Other"})
        with pytest.raises(ServerError) as caught:
            await cluster.create(config_map(), field_manager="me")

        problem = 'no kind "Other" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'
        assert (caught.value.code, caught.value.message) == (500, f"Internal error occurred: {problem}")
        assert [cause.message for cause in caught.value.causes] == [problem]

    @pytest.mark.parametrize(
        ("operation", "code", "text"),
        [
            pytest.param(
                {"op": "remove", "path": "/kind"},
                500,
                'Internal error occurred: Object \'Kind\' is missing in \'{"apiVersion":"example.com/v1","metadata":{',
                id="without its kind",
            ),
            pytest.param(
                {"op": "remove", "path": "/apiVersion"},
                500,
                '/, Kind=Shop is unstructured and is not suitable for converting to "example.com/v1"',
                id="without its version",
            ),
            pytest.param(
                {"op": "replace", "path": "/kind", "value": "Other"},
                422,
                'Other.example.com "corner" is invalid: kind: Invalid value: "Other": must be Shop',
                id="of another kind",
            ),
        ],
    )
    async def test_a_custom_resource_with_a_changed_type_is_rejected(
        self, webhooks: Webhooks, operation: dict[str, Any], code: int, text: str
    ) -> None:
        kinds = [CustomKind("example.com", "v1", "Shop")]
        cluster = EmbeddedCluster(kinds=kinds, namespaces=["shop"], admission=webhooks)
        await install(cluster, "Mutating", webhook("hook"))
        webhooks.responses["hook"] = patch(operation)
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "shop"}}
        with pytest.raises(ApiError) as caught:
            await cluster.create(shop, field_manager="me")

        assert caught.value.code == code
        assert caught.value.message.startswith(text)


class TestDenials:
    @pytest.mark.parametrize(
        ("status", "kind", "code", "reason", "text"),
        [
            pytest.param(
                {"message": "no way", "code": 403, "reason": "Forbidden"},
                ForbiddenError,
                403,
                "Forbidden",
                ": no way",
                id="code and reason",
            ),
            pytest.param(None, BadRequestError, 400, "", " without explanation", id="no message"),
            pytest.param({"message": "no"}, BadRequestError, 400, "", ": no", id="message"),
            pytest.param({"reason": "Because"}, BadRequestError, 400, "Because", ": Because", id="reason"),
            pytest.param({"message": "no", "code": 200}, BadRequestError, 400, "", ": no", id="a code of success"),
            pytest.param(
                {"message": "no", "code": 422, "details": {"causes": [{"reason": "R", "message": "m", "field": "f"}]}},
                InvalidError,
                422,
                "",
                ": no",
                id="causes",
            ),
        ],
    )
    async def test_a_denial_has_the_status_of_the_webhook(  # noqa: PLR0917 (columns of the table)
        self,
        cluster: EmbeddedCluster,
        webhooks: Webhooks,
        config_map: Build,
        status: Any,
        kind: type[ApiError],
        code: int,
        reason: str,
        text: str,
    ) -> None:
        await install(cluster, "Validating", webhook("hook"))
        webhooks.responses["hook"] = {"allowed": False, **({"status": status} if status else {})}
        with pytest.raises(kind) as caught:
            await cluster.create(config_map(), field_manager="me")

        assert caught.value.message == f'admission webhook "hook.example.com" denied the request{text}'
        assert (caught.value.code, caught.value.reason) == (code, reason)
        with pytest.raises(NotFoundError):
            await cluster.get(SETTINGS)

    async def test_a_denial_has_the_details_of_the_webhook(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Validating", webhook("hook"))
        details = {"name": "settings", "group": "g", "kind": "K", "uid": "u", "retryAfterSeconds": 7}
        status = {"code": 429, "reason": "TooManyRequests", "message": "later", "details": details}
        webhooks.responses["hook"] = {"allowed": False, "status": status}
        with pytest.raises(ApiError) as caught:
            await cluster.create(config_map(), field_manager="me")

        assert status_of(caught.value)["details"] == details

    async def test_the_failure_policy_decides_about_a_webhook_without_response(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Validating", webhook("lenient", failurePolicy="Ignore"))
        webhooks.responses |= dict.fromkeys(("lenient", "strict"), "failed to call webhook: no answer")
        await cluster.create(config_map("a"), field_manager="me")
        await install(cluster, "Validating", webhook("strict"), name="more")
        with pytest.raises(ServerError) as caught:
            await cluster.create(config_map("b"), field_manager="me")

        problem = 'failed calling webhook "strict.example.com": failed to call webhook: no answer'
        assert caught.value.message == f"Internal error occurred: {problem}"
        assert [cause.message for cause in caught.value.causes] == [problem]

    async def test_a_dry_run_is_allowed_without_side_effects_on_dry_run(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        del webhooks
        await install(cluster, "Validating", webhook("hook", sideEffects="NoneOnDryRun"))
        await cluster.create(config_map(), field_manager="me", dry_run=True)

        with pytest.raises(NotFoundError):
            await cluster.get(SETTINGS)

    async def test_warnings_of_a_webhook_reach_the_caller(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        await install(cluster, "Validating", webhook("hook"))
        webhooks.responses["hook"] = {"allowed": True, "warnings": ["look out"]}
        heard: list[str] = []
        await cluster.checking(FieldValidation.WARN, warn=heard.append).create(config_map(), field_manager="me")

        assert heard == ["look out"]


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        pytest.param(
            patch({"op": "add", "path": "/data", "value": {}}),
            "validating webhook may not return response.patch",
            id="a patch",
        ),
        pytest.param(
            {"allowed": True, "patchType": "JSONPatch"},
            "validating webhook may not return response.patchType",
            id="a patch type",
        ),
        pytest.param(
            {"allowed": True, "uid": "other", "patch": "W10="}, 'expected response.uid="', id="another uid as well"
        ),
    ],
)
async def test_a_validating_webhook_returns_no_patch(
    cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build, response: Any, problem: str
) -> None:
    await install(cluster, "Validating", webhook("hook"))
    webhooks.responses["hook"] = response
    with pytest.raises(ServerError, match="received invalid webhook response: ") as caught:
        await cluster.create(config_map(), field_manager="test")
    assert problem in caught.value.message


async def test_a_write_is_retried_when_another_request_changed_the_object(
    cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
) -> None:
    """If the object changes during the call of a webhook, the write starts again from the changed object."""
    await cluster.create(config_map(data={"a": "1"}), field_manager="me")
    await install(cluster, "Validating", webhook("hook"))
    paused, going = asyncio.Event(), asyncio.Event()

    async def slow(request: Manifest) -> dict[str, Any]:
        if request["object"]["data"].get("b") == "mine" and not paused.is_set():
            paused.set()
            await going.wait()
        return {"allowed": True}

    webhooks.responses["hook"] = slow
    change = {"data": {"b": "mine"}}
    mine = asyncio.create_task(
        cluster.patch(SETTINGS, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="me"))
    )
    await paused.wait()
    await cluster.patch(
        SETTINGS, {"data": {"c": "theirs"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="they")
    )
    cluster.requests.clear()
    going.set()

    assert (await mine)["data"] == {"a": "1", "b": "mine", "c": "theirs"}
    assert [(request.field_manager, request.changed) for request in cluster.requests] == [("me", True)]


async def test_concurrent_changes_are_not_attributed_to_a_waiting_write(
    cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
) -> None:
    await install(cluster, "Validating", webhook("hook"))
    paused, going = asyncio.Event(), asyncio.Event()

    async def slow(request: Manifest) -> dict[str, Any]:
        if request["name"] == "slow":
            paused.set()
            await going.wait()
        return {"allowed": True}

    webhooks.responses["hook"] = slow
    ours = asyncio.create_task(cluster.create(config_map("slow"), field_manager="me", dry_run=True))
    await paused.wait()
    await cluster.create(config_map("other"), field_manager="they")
    going.set()
    await ours

    assert [(request.name, request.changed) for request in cluster.requests][1:] == [("other", True), ("slow", False)]


@pytest.mark.parametrize(
    ("fields", "field", "detail"),
    [
        pytest.param(
            {"sideEffects": ""}, "sideEffects", "Required value: must specify one of None, NoneOnDryRun", id="effects"
        ),
        pytest.param(
            {"sideEffects": "Some"},
            "sideEffects",
            'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
            id="side effects",
        ),
        pytest.param(
            {"admissionReviewVersions": []},
            "admissionReviewVersions",
            "Required value: must specify one of v1, v1beta1",
            id="no versions",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v9"]},
            "admissionReviewVersions",
            'Invalid value: ["v9"]: must include at least one of v1, v1beta1',
            id="unknown versions",
        ),
        pytest.param(
            {"name": "hook"},
            "name",
            'Invalid value: "hook": should be a domain with at least three segments separated by dots',
            id="name",
        ),
        pytest.param(
            {"failurePolicy": "Maybe"},
            "failurePolicy",
            'Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
            id="policy",
        ),
        pytest.param(
            {"timeoutSeconds": 40},
            "timeoutSeconds",
            "Invalid value: 40: the timeout value must be between 1 and 30 seconds",
            id="timeout",
        ),
        pytest.param(
            {"clientConfig": {}}, "clientConfig", "Required value: exactly one of url or service is required", id="none"
        ),
        pytest.param(
            {"clientConfig": {"url": "http://a.b"}},
            "clientConfig.url",
            "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            id="no TLS",
        ),
        pytest.param(
            {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]},
            "rules[0].operations",
            "Required value",
            id="no operations",
        ),
    ],
)
async def test_an_invalid_configuration_is_rejected(
    cluster: EmbeddedCluster, fields: dict[str, Any], field: str, detail: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        await install(cluster, "Validating", {**webhook("hook"), **fields})

    assert [(cause.field, cause.message) for cause in caught.value.causes] == [(f"webhooks[0].{field}", detail)]


class TestMatchConditions:
    async def test_a_webhook_is_called_if_all_conditions_are_true(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        conditions = [
            {"name": "big", "expression": "size(object.data) > 1"},
            {"name": "new", "expression": "oldObject == null"},
        ]
        await install(cluster, "Validating", webhook("hook", matchConditions=conditions))
        await cluster.create(config_map("small", data={"a": "1"}), field_manager="me")
        await cluster.create(config_map("big", data={"a": "1", "b": "2"}), field_manager="me")
        await cluster.update(config_map("big", data={"a": "1", "b": "3"}), field_manager="me")
        assert [request["name"] for _, request in webhooks.requests] == ["big"]

    async def test_a_mutating_webhook_is_matched_with_the_changes_of_earlier_ones(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        webhooks.responses["first"] = patch({"op": "add", "path": "/data/b", "value": "2"})
        conditions = [{"name": "changed", "expression": "'b' in object.data"}]
        await install(cluster, "Mutating", webhook("first"), webhook("second", matchConditions=conditions))
        await cluster.create(config_map(data={"a": "1"}), field_manager="me")
        assert webhooks.names == ["first", "second"]

    async def test_a_dry_run_may_skip_a_webhook_with_side_effects(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        """Only a webhook that is to be called prevents a dry run; stored configurations may have any side effects."""
        conditions = [{"name": "real", "expression": "!request.dryRun"}]
        await install(cluster, "Validating", webhook("hook", matchConditions=conditions))
        await cluster.create(config_map(data={"a": "1"}), field_manager="me", dry_run=True)
        assert not webhooks.names


class TestMutatingPolicies:
    """Order and repetition of mutating policies and webhooks."""

    @staticmethod
    async def bind(cluster: EmbeddedCluster, expression: str, **spec: Any) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        head: Manifest = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "counts"}}
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        policy = {"matchConstraints": {"resourceRules": [rule]}, "mutations": [mutation], **spec}
        await cluster.create({**head, "kind": "MutatingAdmissionPolicy", "spec": policy}, field_manager="test")
        binding = {**head, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "counts"}}
        await cluster.create(binding, field_manager="test")

    @pytest.mark.parametrize(
        ("reinvocation", "count", "seen"),
        [
            pytest.param("Never", "x", ["x"], id="a policy that is never repeated"),
            pytest.param("IfNeeded", "xx", ["x", "xx"], id="a policy and a webhook that are repeated if needed"),
        ],
    )
    async def test_webhooks_run_after_policies_and_both_are_repeated(  # noqa: PLR0917 (fixtures and a table)
        self,
        cluster: EmbeddedCluster,
        webhooks: Webhooks,
        config_map: Build,
        reinvocation: str,
        count: str,
        seen: list[str],
    ) -> None:
        await self.bind(cluster, "Object{data: {'count': object.data.count + 'x'}}", reinvocationPolicy=reinvocation)
        await install(cluster, "Mutating", webhook("first", reinvocationPolicy="IfNeeded"))
        webhooks.responses["first"] = patch({"op": "add", "path": "/data/hook", "value": "called"})
        made = await cluster.create(config_map(data={"count": ""}), field_manager="me")

        assert made["data"] == {"count": count, "hook": "called"}
        assert [request["object"]["data"]["count"] for _, request in webhooks.requests] == seen

    async def test_a_policy_that_is_not_repeated_does_not_see_the_changes_of_webhooks(
        self, cluster: EmbeddedCluster, webhooks: Webhooks, config_map: Build
    ) -> None:
        expression = "Object{data: {'saw': string(has(object.data.hook))}}"
        await self.bind(cluster, expression, reinvocationPolicy="Never")
        await install(cluster, "Mutating", webhook("first"))
        webhooks.responses["first"] = patch({"op": "add", "path": "/data/hook", "value": "called"})
        made = await cluster.create(config_map(data={"a": "1"}), field_manager="me")
        assert made["data"] == {"a": "1", "saw": "false", "hook": "called"}
