"""MutatingAdmissionPolicies: valid and invalid ones, and requests that they change and deny."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from scripts.record.admission_cases.policies import (
    ADMISSION,
    Json,
    config_map,
    configured,
    create,
    in_namespace,
    request,
    webhooks,
)
from scripts.record.admission_cases.policies import rule as any_rule


def rule(*resources: str, **fields: Any) -> Json:
    """Return a rule for the operations that a policy can change."""
    return any_rule(*resources, **{"operations": ["CREATE", "UPDATE"], **fields})


def applied(expression: str) -> Json:
    """Return a mutation by an apply configuration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression: str) -> Json:
    """Return a mutation by a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(name: str, *mutations: Json, **fields: Any) -> Json:
    """Return the request that creates a policy, by default for ConfigMaps."""
    spec = {
        "matchConstraints": {"resourceRules": [rule()]},
        "reinvocationPolicy": "Never",
        "mutations": list(mutations),
        **fields,
    }
    return configured("MutatingAdmissionPolicy", name, spec)


def binding(name: str, namespace: str, **fields: Any) -> Json:
    """Return the request that binds a policy to one namespace."""
    spec = {"policyName": name, "matchResources": in_namespace(namespace), **fields}
    return configured("MutatingAdmissionPolicyBinding", f"{name}-bound", spec)


def deployment(namespace: str, **spec: Any) -> Json:
    """Return the request that creates a Deployment."""
    container = {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "args": ["a"]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], "nodeSelector": {"a": "b"}},
            },
            **spec,
        },
    }
    return request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body)


_EXPRESSIONS: Final = Path(__file__).parent / "mutations.txt"


def _mutations() -> dict[str, dict[str, Json]]:
    """Return the mutations by the headings of the file and by their titles."""
    found: dict[str, dict[str, Json]] = {}
    for line in filter(None, _EXPRESSIONS.read_text(encoding="utf-8").splitlines()):
        if line.startswith("["):
            found[line.strip("[]")] = {}
            continue
        title, _, expression = line.partition(": ")
        kind, _, title = title.partition(" ")
        found[next(reversed(found))][title] = applied(expression) if kind == "apply" else patched(expression)
    return found


_INVALID: Final[dict[str, Json]] = {
    "no mutations": {"mutations": []},
    "no rules": {"matchConstraints": {}},
    "no match": {"matchConstraints": None},
    "no reinvocation policy": {"reinvocationPolicy": None},
    "an unknown reinvocation policy": {"reinvocationPolicy": "Often"},
    "a failure policy": {"failurePolicy": "Panic"},
    "a delete": {"matchConstraints": {"resourceRules": [rule(operations=["DELETE"])]}},
    "all operations": {"matchConstraints": {"resourceRules": [rule(operations=["*"])]}},
    "a connect": {"matchConstraints": {"resourceRules": [rule(operations=["CREATE", "CONNECT"])]}},
    "a param kind": {"paramKind": {"apiVersion": "a/b/c", "kind": "x y"}},
    "a variable": {"variables": [{"name": "a-b", "expression": "nothing"}]},
    "a match condition": {"matchConditions": [{"name": "a b", "expression": "1"}]},
}

_INVALID_MUTATIONS: Final[dict[str, Json]] = {
    "nothing": {},
    "an unknown type": {"patchType": "Merge", "applyConfiguration": {"expression": "Object{}"}},
    "the other expression": {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
    "the other expression of an apply": {"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}},
    "both expressions": {**applied("Object{}"), "jsonPatch": {"expression": "[]"}},
    "no expression": applied(""),
    "no expression of a patch": patched(" "),
    "a map": applied("{'a': 1}"),
    "a part": applied("Object.metadata{}"),
    "a dynamic value": applied("object"),
    "an undeclared type": applied("Foo{}"),
    "an object in a list": patched("[Object{}]"),
    "one operation": patched("JSONPatch{op: 'add'}"),
    "a field of a wrong type": patched("[JSONPatch{op: 1}]"),
    "an unknown part": patched("[JSONPatch{of: 'x'}]"),
    "a syntax error": applied("Object{"),
    "an undeclared name": applied("Object{data: nothing}"),
    "params without a kind": applied("Object{data: params.data}"),
    "mixed operations": patched("[JSONPatch{op: 'add'}, 1]"),
    "a field of a text": applied("Object{data: Object.data{}.x.y}"),
    "an optional field": applied("Object{?data: 1}"),
}


def _labels(text: str) -> Json:
    return applied(f"Object{{metadata: Object.metadata{{labels: {text}}}}}")


def cases() -> Iterator[Json]:
    """Yield all cases."""

    def case(name: str, title: str, made: list[Json], *requests: Json) -> Json:
        return {"title": title, "namespace": name, "setup": made, "requests": list(requests)}

    def one(name: str, title: str, mutations: list[Json], *requests: Json, **fields: Any) -> Json:
        return case(name, title, [policy(name, *mutations, **fields), binding(name, name)], *requests)

    mutations = _mutations()
    for index, (title, mutation) in enumerate(mutations["config map"].items()):
        name = f"config-{index}"
        yield one(name, f"config map: {title}", [mutation], create(name, word="w"))
    on_deployments = {"resourceRules": [rule("deployments")]}
    for index, (title, mutation) in enumerate(mutations["deployment"].items()):
        name = f"deployment-{index}"
        yield one(name, f"deployment: {title}", [mutation], deployment(name), matchConstraints=on_deployments)
    for index, (title, fields) in enumerate(_INVALID.items()):
        made = policy(f"invalid-{index}", **{"mutations": [applied("Object{}")], **fields})
        yield case("", f"invalid: {title}", [made])
    for index, (title, mutation) in enumerate(_INVALID_MUTATIONS.items()):
        yield case("", f"invalid mutation: {title}", [policy(f"invalid-mutation-{index}", mutation)])
    deletes = {"resourceRules": [rule(operations=["DELETE"])]}
    yield case("", "an invalid binding", [binding("", "", matchResources=None, paramRef={})])
    yield case("", "a binding of deletes", [binding("unbound", "", matchResources=deletes)])
    yield from _requests(case, one)
    yield from _order(case)


def _requests(case: Any, one: Any) -> Iterator[Json]:
    """Yield requests of other kinds, and policies with conditions, variables and parameters."""
    merge = "application/merge-patch+json"
    label = _labels("{'by': 'policy'}")
    path = "/api/v1/namespaces/{}/configmaps/one"
    yield one(
        "requests",
        "updates, patches, applies and deletes",
        [_labels("{'seen': request.operation.lowerAscii()}")],
        create("requests", a="1"),
        request("PUT", path.format("requests"), config_map("requests", a="2")),
        request("PATCH", path.format("requests"), {"data": {"b": "2"}}, merge),
        request(
            "PATCH",
            path.format("requests") + "?fieldManager=me",
            config_map("requests", c="2"),
            "application/apply-patch+yaml",
        ),
        request("PATCH", path.format("requests") + "?dryRun=All", {"data": {"b": "3"}}, merge),
        request("DELETE", path.format("requests")),
    )
    for title, text in (("true", "true"), ("false", "false"), ("an error", "object.data.missing == 'x'")):
        for failure in ("Fail", "Ignore"):
            name = f"conditions-{title.replace(' ', '-')}-{failure.lower()}"
            conditions = [{"name": "c", "expression": text}]
            fields = {"matchConditions": conditions, "failurePolicy": failure}
            yield one(name, f"match conditions, {failure}: {title}", [label], create(name, word="w"), **fields)
    broken = applied("Object{data: {'a': object.data.missing}}")
    yield one("ignored", "an error that is ignored", [broken, label], create("ignored"), failurePolicy="Ignore")
    yield one("second", "an error after a mutation", [label, broken], create("second"))
    variables = [{"name": "n", "expression": "size(object.data)"}, {"name": "m", "expression": "string(variables.n)"}]
    yield one(
        "variables", "variables", [_labels("{'n': variables.m}")], create("variables", a="1"), variables=variables
    )
    lost = [{"name": "n", "expression": "object.data.missing"}]
    yield one("lost", "a variable that fails", [_labels("{'n': variables.n}")], create("lost", a="1"), variables=lost)
    first = [{"name": "n", "expression": "size(object.data)"}]
    grown = [applied("Object{data: {'b': string(variables.n)}}"), applied("Object{data: {'c': string(variables.n)}}")]
    yield one("grown", "a variable after a mutation", grown, create("grown", a="1"), variables=first)
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    named = {"matchConstraints": {"resourceRules": [rule("secrets")]}, "paramKind": kind}
    for title, reference, made in (
        ("by name", {"name": "given", "parameterNotFoundAction": "Deny"}, ["given"]),
        ("by selector", {"selector": {}, "parameterNotFoundAction": "Deny"}, ["a", "b"]),
        ("not found, deny", {"name": "given", "parameterNotFoundAction": "Deny"}, []),
        ("not found, allow", {"name": "given", "parameterNotFoundAction": "Allow"}, []),
        ("none", None, []),
    ):
        name = f"params-{title.replace(' ', '-').replace(',', '')}"
        given = [create(name, each, word=each) for each in made]
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": name}}
        only = {
            "matchConditions": [
                {"name": "c", "expression": "params == null || params.metadata.name != 'kube-root-ca.crt'"}
            ]
        }
        mutation = _labels("{params.metadata.name: params.data.word}")
        setup = [*given, policy(name, mutation, **named, **only), binding(name, name, paramRef=reference)]
        yield case(name, f"parameters: {title}", setup, request("POST", f"/api/v1/namespaces/{name}/secrets", body))
    excluded = {"resourceRules": [rule("*", apiGroups=[""])], "excludeResourceRules": [rule("configmaps")]}
    yield one("excluded", "excluded rules", [label], create("excluded"), matchConstraints=excluded)
    scale = {"resourceRules": [rule("deployments/scale")]}
    yield one(
        "scales",
        "a subresource",
        [applied("Object{spec: Object.spec{replicas: 7}}")],
        deployment("scales"),
        request("PATCH", "/apis/apps/v1/namespaces/scales/deployments/web/scale", {"spec": {"replicas": 3}}, merge),
        matchConstraints=scale,
    )
    name = "named"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made-by-name"}}
    match = {"resourceRules": [rule("namespaces", resourceNames=["made-by-name"])]}
    setup = [policy(name, _labels("{'ns': string(namespaceObject == null)}"), matchConstraints=match)]
    setup.append(binding(name, name, matchResources=None))
    yield case(name, "a namespace", setup, request("POST", "/api/v1/namespaces", space))


def _order(case: Any) -> Iterator[Json]:
    """Yield several policies for one request, whose order is random, with reinvocation."""

    def counted(key: str) -> Json:
        text = f"string(object.metadata.?labels['{key}'].orValue('')) + 'x'"
        return _labels(f"{{'{key}': {text}}}")

    made: list[Json]
    for title, reinvocations in (
        ("never", ("Never", "Never", "Never")),
        ("first if needed", ("IfNeeded", "Never", "Never")),
        ("last if needed", ("Never", "Never", "IfNeeded")),
        ("all if needed", ("IfNeeded", "IfNeeded", "IfNeeded")),
    ):
        namespace = f"order-{title.replace(' ', '-')}"
        made = []
        for suffix, reinvocation in zip("cab", reinvocations, strict=True):
            name = f"{namespace}-{suffix}"
            made += [policy(name, counted(suffix), reinvocationPolicy=reinvocation), binding(name, namespace)]
        yield case(namespace, f"order: {title}", made, create(namespace))
    for failure in ("Fail", "Ignore"):
        namespace = f"webhook-{failure.lower()}"
        hooks = webhooks("Mutating", namespace, [{"name": "c", "expression": "object.data.word == 'changed'"}], failure)
        hooks["webhooks"][0] |= in_namespace(namespace)
        made = [
            policy(namespace, applied("Object{data: {'word': 'changed'}}")),
            binding(namespace, namespace),
            request("POST", f"{ADMISSION}/mutatingwebhookconfigurations", hooks),
        ]
        yield case(namespace, f"a webhook after a policy, {failure}", made, create(namespace, word="w"))
    namespace = "validated"
    spec = {
        "matchConstraints": {"resourceRules": [rule()]},
        "validations": [{"expression": "object.data.word == 'changed'"}],
    }
    bound = {"policyName": namespace, "validationActions": ["Deny"], **binding(namespace, namespace)["body"]["spec"]}
    made = [
        policy(namespace, applied("Object{data: {'word': 'changed'}}")),
        binding(namespace, namespace),
        configured("ValidatingAdmissionPolicy", namespace, spec),
        configured("ValidatingAdmissionPolicyBinding", namespace, bound),
    ]
    yield case(namespace, "a validation after a policy", made, create(namespace, word="w"))
