"""ValidatingAdmissionPolicies: valid and invalid ones, and requests that they allow, warn of and deny.

Each case has a namespace of its own, to which its bindings are limited, so that all policies can exist at once.
"""

from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]

ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"


def request(method: str, path: str, body: Json | None = None, kind: str = "application/json") -> Json:
    """Return a request of a case."""
    return {"method": method, "path": path, "body": body, "kind": kind}


def configured(kind: str, name: str, spec: Json) -> Json:
    """Return the request that creates a policy or a binding; fields that are None are left out."""
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
    plural = f"{kind.lower().removesuffix('y')}ies" if kind.endswith("Policy") else f"{kind.lower()}s"
    return request("POST", f"{ADMISSION}/{plural}", body)


def in_namespace(namespace: str) -> Json:
    """Return match resources that select one namespace."""
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


def rule(*resources: str, **fields: Any) -> Json:
    """Return a rule for all operations on resources of any group."""
    every = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]}
    return {**every, "resources": list(resources or ("configmaps",)), **fields}


def policy(name: str, *validations: Json, **fields: Any) -> Json:
    """Return the request that creates a policy for ConfigMaps."""
    spec = {"matchConstraints": {"resourceRules": [rule()]}, "validations": list(validations), **fields}
    return configured("ValidatingAdmissionPolicy", name, spec)


def binding(name: str, namespace: str, *actions: str, **fields: Any) -> Json:
    """Return the request that binds a policy to one namespace."""
    spec = {
        "policyName": name,
        "validationActions": list(actions or ("Deny",)),
        "matchResources": in_namespace(namespace),
        **fields,
    }
    return configured("ValidatingAdmissionPolicyBinding", f"{name}-bound", spec)


def config_map(namespace: str, name: str = "one", labels: Json | None = None, **data: str) -> Json:
    """Return a ConfigMap."""
    metadata: Json = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def create(namespace: str, name: str = "one", query: str = "", labels: Json | None = None, **data: str) -> Json:
    """Return the request that creates a ConfigMap."""
    path = f"/api/v1/namespaces/{namespace}/configmaps{query}"
    return request("POST", path, config_map(namespace, name, labels, **data))


SMALL: Final[Json] = {"expression": "size(object.data) < 2"}

_EXPRESSIONS: Final = {
    "a size": "size(object.data) < 2",
    "a missing field": "object.data.missing == 'x'",
    "a field of null": "oldObject.data.x == 'x'",
    "null": "oldObject == null",
    "has of a missing field": "has(object.data.missing)",
    "the operation": "request.operation == 'DELETE'",
    "the kind": "request.kind.kind == 'Secret' && request.kind.group == ''",
    "the resource": "request.resource.resource == 'configmaps' && request.resource.version == 'v2'",
    "the requested kind": "request.requestKind.version == 'v1' && request.requestResource.resource == 'secrets'",
    "the name": "request.name == 'two'",
    "the namespace": "request.namespace == 'elsewhere'",
    "the subresource": "request.subResource == ''",
    "has of the subresource": "has(request.subResource)",
    "dry run": "request.dryRun",
    "options": "request.options.kind == 'UpdateOptions'",
    "groups": "request.userInfo.groups.exists(g, g == 'nobody')",
    "the name of the namespace": "namespaceObject.metadata.name == 'elsewhere'",
    "labels of the namespace": "'team' in namespaceObject.metadata.labels",
    "a missing label of the namespace": "namespaceObject.metadata.labels.team == 'x'",
    "the phase of the namespace": "namespaceObject.status.phase == 'Terminating'",
    "the age of the namespace": "namespaceObject.metadata.creationTimestamp < timestamp('2000-01-01T00:00:00Z')",
    "the authorizer": "!authorizer.group('').resource('pods').namespace('default').check('create').allowed()",
    "a path of the authorizer": "!authorizer.path('/healthz').check('get').allowed()",
    "the request's authorizer": "!authorizer.requestResource.check('update').allowed()",
    "a wrong index": "[1, 2][object.data.size() + 5] == 1",
    "a division by zero": "1 / (size(object.data) - 1) == 1",
    "a bad conversion": "int(object.data.word) == 1",
    "a wrong type": "object.data.word + 1 == 2",
    "labels": "has(object.metadata.labels) && object.metadata.labels.team == 'x'",
    "the type of a value": "type(object.data) == int",
    "all": "object.data.all(key, key.startsWith('x'))",
}

_INVALID: Final[dict[str, Json]] = {
    "no bool": {"expression": "size(object.data)"},
    "dyn": {"expression": "object.data.flag"},
    "a syntax error": {"expression": "size(object.data <"},
    "an undeclared name": {"expression": "objekt.data == 1"},
    "an undeclared field of the request": {"expression": "request.uid == 'x'"},
    "an undeclared field of the namespace": {"expression": "namespaceObject.metadata.uid == 'x'"},
    "params without a kind": {"expression": "params.data == 1"},
    "variables without variables": {"expression": "variables.x == 1"},
    "no overload": {"expression": "request.name + 1 == 2"},
    "no expression": {"expression": ""},
    "an empty expression": {"expression": "  "},
    "an empty message": {"expression": "true", "message": " "},
    "lines in a message": {"expression": "true", "message": "a\nb"},
    "an unknown reason": {"expression": "true", "reason": "Conflict"},
    "an empty message expression": {"expression": "true", "messageExpression": " "},
    "a message expression of a number": {"expression": "true", "messageExpression": "1 + 1"},
    "a message expression of dyn": {"expression": "true", "messageExpression": "object.data.x"},
    "an authorizer in a message": {
        "expression": "true",
        "messageExpression": "string(authorizer.path('/x').check('get').allowed())",
    },
    "an unknown function": {"expression": "frobnicate(object)"},
    "a reserved word": {"expression": "object.data.x == package"},
    "an unknown function of the authorizer": {"expression": "authorizer.resource('x').check('get').allowed()"},
}


def expression_cases() -> Iterator[tuple[str, Json]]:
    """Yield expressions that are evaluated for one ConfigMap, which most of them reject."""
    for title, text in _EXPRESSIONS.items():
        yield f"expression: {title}", {"validations": [{"expression": text}]}
        if title in ("a missing field", "a size"):
            yield (
                f"expression, failures ignored: {title}",
                {
                    "validations": [{"expression": text}],
                    "failurePolicy": "Ignore",
                },
            )
    for title, fields in {
        "a message": {"message": " too big "},
        "a message expression": {"messageExpression": "'size ' + string(size(object.data))"},
        "a message expression that fails": {"messageExpression": "object.data.missing", "message": "fixed"},
        "a message expression that fails, without message": {"messageExpression": "string(object.data.missing)"},
        "a message expression with lines": {"messageExpression": "'a\\nb'", "message": "fixed"},
        "an empty message expression": {"messageExpression": "'  '", "message": "fixed"},
        "the reason Forbidden": {"reason": "Forbidden"},
        "the reason Unauthorized": {"reason": "Unauthorized"},
        "the reason RequestEntityTooLarge": {"reason": "RequestEntityTooLarge"},
        "the reason Invalid": {"reason": "Invalid"},
    }.items():
        yield f"message: {title}", {"validations": [{"expression": "false", **fields}]}
    two = [{"expression": "false", "message": "first"}, {"expression": "false", "message": "second"}]
    yield "two failed validations", {"validations": two}
    yield (
        "an audit annotation that fails",
        {
            "validations": [{"expression": "true"}],
            "auditAnnotations": [{"key": "note", "valueExpression": "string(object.data.missing)"}],
        },
    )
    yield (
        "an audit annotation",
        {
            "validations": [{"expression": "true"}],
            "auditAnnotations": [{"key": "note", "valueExpression": "'x'"}, {"key": "none", "valueExpression": "null"}],
        },
    )
    for title, conditions in {
        "true": ["true"],
        "false": ["false"],
        "false and an error": ["object.data.missing == 'x'", "false"],
        "an error": ["object.data.missing == 'x'"],
        "two errors": ["object.data.missing == 'x'", "object.data.none == 'x'", "true"],
        "the namespace object": ["namespaceObject == null"],
        "the authorizer": ["authorizer.path('/x').check('get').allowed()"],
    }.items():
        given = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
        yield f"match conditions: {title}", {"validations": [{"expression": "false"}], "matchConditions": given}
        yield (
            f"match conditions, failures ignored: {title}",
            {
                "validations": [{"expression": "false"}],
                "matchConditions": given,
                "failurePolicy": "Ignore",
            },
        )
    for title, variables, text in (
        ("one", {"n": "size(object.data)"}, "variables.n < 1"),
        ("composed", {"n": "size(object.data)", "m": "variables.n * 2"}, "variables.m + variables.n < 3"),
        ("unused and broken", {"bad": "object.data.missing"}, "size(object.data) < 1"),
        ("broken", {"bad": "object.data.missing"}, "variables.bad == 'x'"),
        ("broken below", {"bad": "object.data.missing", "b": "variables.bad"}, "variables.b == 'x'"),
        ("has", {"n": "1"}, "!has(variables.n)"),
        ("a list", {"keys": "object.data.map(k, k + '!')"}, "variables.keys.all(k, k == 'x!')"),
        ("dyn", {"data": "object.data"}, "variables.data.word == 'x'"),
    ):
        given = [{"name": name, "expression": expression} for name, expression in variables.items()]
        yield f"variables: {title}", {"validations": [{"expression": text}], "variables": given}


def invalid_cases() -> Iterator[tuple[str, Json]]:
    """Yield specs of policies that the API server rejects, or nearly so."""
    for title, validation in _INVALID.items():
        yield f"invalid validation: {title}", {"validations": [validation]}
    base: Json = {"validations": [{"expression": "true"}]}
    rules: dict[str, Any] = {
        "no rules": {},
        "empty rules": {"resourceRules": []},
        "an empty rule": {"resourceRules": [{}]},
        "a star and more": {"resourceRules": [rule("*", "pods")]},
        "two stars and more": {"resourceRules": [rule("*/*", "pods")]},
        "parts": {"resourceRules": [rule("pods/*", "pods/status")]},
        "an unknown operation": {"resourceRules": [rule(operations=["PATCH"])]},
        "operations": {"resourceRules": [rule(operations=["*", "CREATE"])]},
        "groups": {"resourceRules": [rule(apiGroups=["*", "apps"])]},
        "versions": {"resourceRules": [rule(apiVersions=["*", "v1", ""])]},
        "a scope": {"resourceRules": [rule(scope="Galaxy")]},
        "resource names": {"resourceRules": [rule(resourceNames=["a", "a", "b/c"])]},
        "a match policy": {"resourceRules": [rule()], "matchPolicy": "Fuzzy"},
        "a namespace selector": {
            "resourceRules": [rule()],
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}, {"key": "-", "operator": "In"}]},
        },
        "an object selector": {"resourceRules": [rule()], "objectSelector": {"matchLabels": {"a b": "c d"}}},
        "excluded rules": {"resourceRules": [rule()], "excludeResourceRules": [rule(apiGroups=[])]},
    }
    for title, match in rules.items():
        yield f"invalid match: {title}", {**base, "matchConstraints": match}
    yield "invalid: no match", {**base, "matchConstraints": None}
    yield "invalid: no validations", {"validations": []}
    yield "invalid: a failure policy", {**base, "failurePolicy": "Panic"}
    for title, kind in {
        "nothing": {},
        "a version": {"apiVersion": "a/b/c", "kind": "X"},
        "names": {"apiVersion": "A_b/V1", "kind": "X y"},
        "no version": {"apiVersion": "apps/", "kind": "Deployment"},
    }.items():
        yield f"invalid param kind: {title}", {**base, "paramKind": kind}
    for title, variables in {
        "no name": [{"name": "", "expression": "1"}],
        "a name": [{"name": "a-b", "expression": "1"}],
        "a reserved name": [{"name": "for", "expression": "1"}],
        "no expression": [{"name": "a", "expression": " "}],
        "an expression": [{"name": "a", "expression": "nothing"}],
        "a later one": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
    }.items():
        yield f"invalid variable: {title}", {**base, "variables": variables}
    yield (
        "invalid: a variable of another type",
        {
            "variables": [{"name": "a", "expression": "1"}],
            "validations": [{"expression": "variables.a == 'x'"}],
        },
    )
    for title, conditions in {
        "no name": [{"name": "", "expression": "true"}],
        "a name": [{"name": "a b", "expression": "true"}],
        "a name twice": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}],
        "no expression": [{"name": "a", "expression": ""}],
        "no bool": [{"name": "a", "expression": "1"}],
        "variables": [{"name": "a", "expression": "variables.x"}],
        "too many": [{"name": f"a{index}", "expression": "true"} for index in range(65)],
    }.items():
        yield f"invalid match condition: {title}", {**base, "matchConditions": conditions}
    for title, annotations in {
        "no key": [{"key": "", "valueExpression": "'x'"}],
        "a key": [{"key": "a/b", "valueExpression": "'x'"}],
        "a key twice": [{"key": "a", "valueExpression": "'x'"}, {"key": "a", "valueExpression": "'x'"}],
        "no expression": [{"key": "a", "valueExpression": ""}],
        "a number": [{"key": "a", "valueExpression": "1"}],
        "dyn": [{"key": "a", "valueExpression": "object.data.x"}],
        "too long": [{"key": "a", "valueExpression": f"'{'x' * 5200}'"}],
    }.items():
        yield f"invalid audit annotation: {title}", {**base, "auditAnnotations": annotations}


def invalid_bindings() -> Iterator[tuple[str, Json]]:
    """Yield specs of bindings that the API server rejects."""
    yield "no policy", {"policyName": "", "validationActions": ["Deny"]}
    yield "a policy name", {"policyName": "A b", "validationActions": ["Deny"]}
    yield "no actions", {"policyName": "a"}
    yield "an unknown action", {"policyName": "a", "validationActions": ["Shout"]}
    yield "an action twice", {"policyName": "a", "validationActions": ["Deny", "Deny"]}
    yield "deny and warn", {"policyName": "a", "validationActions": ["Deny", "Warn"]}
    for title, reference in {
        "nothing": {},
        "no action": {"name": "a"},
        "an action": {"name": "a", "parameterNotFoundAction": "Shrug"},
        "name and selector": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"},
        "a name": {"name": "a/b", "parameterNotFoundAction": "Deny"},
        "a selector": {
            "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "parameterNotFoundAction": "Allow",
        },
    }.items():
        yield f"parameters: {title}", {"policyName": "a", "validationActions": ["Deny"], "paramRef": reference}
    yield (
        "a rule",
        {
            "policyName": "a",
            "validationActions": ["Deny"],
            "matchResources": {"resourceRules": [rule(operations=[])], "matchPolicy": "Fuzzy"},
        },
    )


def cases() -> Iterator[Json]:
    """Yield all cases: title, namespace, requests that prepare it, and requests that are decided by its policies."""
    for index, (title, spec) in enumerate(expression_cases()):
        name = f"expression-{index}"
        made = [policy(name, **spec), binding(name, name)]
        yield {"title": title, "namespace": name, "setup": made, "requests": [create(name, word="w")]}
    for index, (title, spec) in enumerate(invalid_cases()):
        yield {"title": title, "namespace": "", "setup": [policy(f"invalid-{index}", **spec)], "requests": []}
    for index, (title, spec) in enumerate(invalid_bindings()):
        made = [binding(f"invalid-{index}", "", **{"matchResources": None, "validationActions": None, **spec})]
        yield {"title": f"invalid binding: {title}", "namespace": "", "setup": made, "requests": []}
    yield from operation_cases()
    yield from parameter_cases()
    yield from webhook_cases()


def operation_cases() -> Iterator[Json]:
    """Yield requests of all kinds under one policy each."""

    def case(name: str, title: str, spec: Json, *requests: Json, actions: tuple[str, ...] = ("Deny",)) -> Json:
        made = [policy(name, **spec), binding(name, name, *actions)]
        return {"title": title, "namespace": name, "setup": made, "requests": list(requests)}

    def path(name: str, suffix: str = "configmaps/one") -> str:
        return f"/api/v1/namespaces/{name}/{suffix}"

    merge = "application/merge-patch+json"
    apply = "application/apply-patch+yaml"
    grows: Json = {"validations": [{"expression": "oldObject == null || size(object.data) <= size(oldObject.data)"}]}
    yield case(
        "operations",
        "updates, patches and applies",
        grows,
        create("operations", a="1"),
        request("PUT", path("operations"), config_map("operations", a="1", b="2")),
        request("PATCH", path("operations"), {"data": {"b": "2"}}, merge),
        request("PATCH", path("operations") + "?fieldManager=me", config_map("operations", c="2"), apply),
        request("PATCH", path("operations"), {"data": {"a": "2"}}, merge),
        request("PATCH", path("operations") + "?dryRun=All", {"data": {"b": "2"}}, merge),
    )
    kept: Json = {"validations": [{"expression": "request.operation != 'DELETE' || oldObject.data.keep != 'yes'"}]}
    yield case(
        "deletes",
        "deletes",
        kept,
        create("deletes", keep="yes"),
        request("DELETE", path("deletes")),
        request("DELETE", path("deletes") + "?dryRun=All"),
        request("PATCH", path("deletes"), {"data": {"keep": "no"}}, merge),
        request("DELETE", path("deletes")),
    )
    no: Json = {"validations": [{"expression": "false", "message": "no"}]}
    yield case("warns", "warnings", no, create("warns"), create("warns", "two", "?dryRun=All"), actions=("Warn",))
    yield case("audits", "audit only", no, create("audits"), actions=("Audit",))
    yield case("both", "warn and audit", no, create("both"), actions=("Warn", "Audit"))
    yield case("dry-run", "a dry run", no, create("dry-run", query="?dryRun=All"))
    body: Json = config_map("generated")
    body["metadata"] = {"generateName": "one-", "namespace": "generated"}
    names: Json = {
        "validations": [{"expression": "request.name == 'x'", "messageExpression": "'<' + request.name + '>'"}]
    }
    yield case("named", "the name of a request", names, create("named"))
    only: Json = {**no, "matchConstraints": {"resourceRules": [rule(resourceNames=["one"])]}}
    yield case("only", "resource names", only, create("only"), create("only", "two"))
    some: Json = {
        **no,
        "matchConstraints": {
            "resourceRules": [rule("configmaps", "secrets")],
            "excludeResourceRules": [rule("configmaps")],
        },
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": "some"}}
    yield case("some", "excluded rules", some, create("some"), request("POST", path("some", "secrets"), secret))
    chosen: Json = {
        **no,
        "matchConstraints": {"resourceRules": [rule()], "objectSelector": {"matchLabels": {"pick": "me"}}},
    }
    yield case("chosen", "an object selector", chosen, create("chosen"), create("chosen", "two", labels={"pick": "me"}))
    scope = {"resourceRules": [rule("validatingwebhookconfigurations", "validatingadmissionpolicies")]}
    named = {"name": "exempt", "expression": "request.name.startsWith('exempt')"}
    exempt: Json = {**no, "matchConstraints": scope, "matchConditions": [named]}
    policies = policy("exempt-other", {"expression": "true"})
    hooks = f"{ADMISSION}/validatingwebhookconfigurations"
    yield case(
        "exempt",
        "the configuration of admission",
        exempt,
        policies,
        request("POST", hooks, webhooks("Validating", "exempt-hooks", [], "Fail")),
    )
    yield case("missing", "an object that is there already", no, create("missing"), create("missing"))
    autoscaler: Json = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "one", "namespace": "equivalent"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }
    old = rule("horizontalpodautoscalers", apiGroups=["autoscaling"], apiVersions=["v1"])
    expression = (
        "object.spec.targetCPUUtilizationPercentage == 40 && request.kind.version == 'v1' && "
        "request.requestKind.version == 'v2'"
    )
    for name, match in (("equivalent", "Equivalent"), ("exact", "Exact")):
        spec = {
            "matchConstraints": {"resourceRules": [old], "matchPolicy": match},
            "validations": [
                {"expression": expression, "messageExpression": "string(object.spec.targetCPUUtilizationPercentage)"}
            ],
        }
        sent = {**autoscaler, "metadata": {"name": "one", "namespace": name}}
        where = f"/apis/autoscaling/v2/namespaces/{name}/horizontalpodautoscalers"
        yield case(name, f"a rule for another version, {match}", spec, request("POST", where, sent))
    deployment: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "scales"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }
    deployments = "/apis/apps/v1/namespaces/scales/deployments"
    scaling: Json = {
        "matchConstraints": {"resourceRules": [rule("deployments/scale")]},
        "validations": [
            {
                "expression": "object.spec.replicas < 5 && request.subResource == 'scale'",
                "messageExpression": "request.kind.kind + string(object.spec.replicas + oldObject.spec.replicas)",
            }
        ],
    }
    yield case(
        "scales",
        "a subresource",
        scaling,
        request("POST", deployments, deployment),
        request("PATCH", f"{deployments}/web/scale", {"spec": {"replicas": 9}}, merge),
        request("PATCH", f"{deployments}/web", {"spec": {"replicas": 9}}, merge),
    )


def parameter_cases() -> Iterator[Json]:
    """Yield policies with parameters."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    few: Json = {
        "paramKind": kind,
        "matchConstraints": {"resourceRules": [rule("secrets")]},
        "validations": [
            {
                "expression": "size(object.stringData) <= int(params.data.most)",
                "messageExpression": "'at most ' + params.data.most + ' of ' + params.kind",
            }
        ],
    }

    def secret(namespace: str) -> Json:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "one", "namespace": namespace},
            "stringData": {"a": "1", "b": "2"},
        }
        return request("POST", f"/api/v1/namespaces/{namespace}/secrets", body)

    sized = [{**few["validations"][0], "expression": "size(object.data) <= int(params.data.most)"}]
    for title, reference, made in (
        ("by name", {"name": "limits", "parameterNotFoundAction": "Deny"}, ["limits"]),
        (
            "by name in a namespace",
            {"name": "limits", "namespace": "{ns}", "parameterNotFoundAction": "Deny"},
            ["limits"],
        ),
        ("not found, deny", {"name": "limits", "parameterNotFoundAction": "Deny"}, []),
        ("not found, allow", {"name": "limits", "parameterNotFoundAction": "Allow"}, []),
        ("by selector", {"selector": {"matchLabels": {"use": "yes"}}, "parameterNotFoundAction": "Deny"}, ["a", "b"]),
        ("by selector, none", {"selector": {"matchLabels": {"use": "no"}}, "parameterNotFoundAction": "Deny"}, ["a"]),
        ("none", None, []),
    ):
        name = f"params-{title.replace(' ', '-').replace(',', '')}"
        used = {**reference, "namespace": name} if reference and "namespace" in reference else reference
        given = [create(name, each, labels={"use": "yes"}, most="1") for each in made]
        setup = [*given, policy(name, **{**few, "validations": sized}), binding(name, name, paramRef=used)]
        yield {"title": f"parameters: {title}", "namespace": name, "setup": setup, "requests": [secret(name)]}
    for title, kind_of, reference in (
        ("an unknown kind", {"apiVersion": "example.com/v1", "kind": "Limit"}, {"name": "x"}),
        (
            "a namespace for a cluster-scoped kind",
            {"apiVersion": "v1", "kind": "Node"},
            {"name": "x", "namespace": "y"},
        ),
    ):
        name = f"params-{title.replace(' ', '-')}"
        action = {**reference, "parameterNotFoundAction": "Deny"}
        for failure in ("Fail", "Ignore"):
            one = f"{name}-{failure.lower()}"
            selector = {"matchLabels": {"kubernetes.io/metadata.name": one}}
            match = {"resourceRules": [rule()], "namespaceSelector": selector}
            fields = {"paramKind": kind_of, "failurePolicy": failure, "matchConstraints": match}
            setup = [policy(one, {"expression": "false"}, **fields)]
            setup.append(binding(one, one, paramRef=action))
            yield {
                "title": f"parameters: {title}, {failure}",
                "namespace": one,
                "setup": setup,
                "requests": [create(one)],
            }


def webhook_cases() -> Iterator[Json]:
    """Yield match conditions of webhooks that cannot be reached, so that a call is an error."""
    for kind in ("Validating", "Mutating"):
        path = f"{ADMISSION}/{kind.lower()}webhookconfigurations"
        for index, (title, texts) in enumerate(
            {
                "true": ["true", "object.data.word == 'w'"],
                "false": ["true", "object.data.word == 'x'"],
                "an error": ["object.data.missing == 'x'"],
                "errors": ["object.data.missing == 'x'", "true", "object.data.none == 'x'"],
                "an error and false": ["object.data.missing == 'x'", "false"],
                "the request": ["request.operation == 'CREATE' && request.name == 'one'"],
                "the authorizer": ["!authorizer.requestResource.check('get').allowed()"],
                "the namespace object": ["namespaceObject == null"],
            }.items()
        ):
            for failure in ("Fail", "Ignore"):
                name = f"{kind.lower()}-{index}-{failure.lower()}"
                conditions = [{"name": f"c{number}", "expression": text} for number, text in enumerate(texts)]
                made = request("POST", path, webhooks(kind, name, conditions, failure))
                yield {
                    "title": f"{kind} webhook, {failure}: {title}",
                    "namespace": name,
                    "setup": [made],
                    "requests": [create(name, word="w")],
                }
    for index, (title, conditions) in enumerate(
        {
            "no bool": [{"name": "a", "expression": "1"}],
            "no name": [{"expression": "true"}],
            "a name": [{"name": "a/b/c", "expression": "true"}],
            "no expression": [{"name": "a", "expression": "  "}],
            "a name twice": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "false"}],
            "params": [{"name": "a", "expression": "params == null"}],
            "a syntax error": [{"name": "a", "expression": "1 +"}],
            "spaces": [{"name": "a", "expression": "  objekt == 1 "}],
            "too many": [{"name": f"a{number}", "expression": "true"} for number in range(65)],
        }.items()
    ):
        made = request(
            "POST",
            f"{ADMISSION}/validatingwebhookconfigurations",
            webhooks("Validating", f"invalid-webhook-{index}", conditions, "Fail"),
        )
        yield {"title": f"invalid webhook condition: {title}", "namespace": "", "setup": [made], "requests": []}


def webhooks(kind: str, name: str, conditions: list[Any], failure: str) -> Json:
    """Return a configuration with one webhook for the ConfigMaps of a namespace."""
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/never"},
        "rules": [rule()],
        **in_namespace(name),
        "matchConditions": conditions,
        "failurePolicy": failure,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }
