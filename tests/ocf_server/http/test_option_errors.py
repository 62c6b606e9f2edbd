"""Options that contradict each other, as the real API server and the embedded one reject them."""

import json

from tests.ocf_server.http.conftest import Either


async def test_the_two_options_of_propagation_exclude_each_other(either: Either) -> None:
    body = json.dumps({"propagationPolicy": "Orphan", "orphanDependents": False})
    reply = await either.ask("DELETE", f"{either.path}/configmaps/none", body)
    assert reply.status == 422
    assert json.loads(reply.text)["message"] == (
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": '
        "orphanDependents and deletionPropagation cannot be both set"
    )


async def test_a_get_at_a_version_of_the_future_times_out(either: Either) -> None:
    reply = await either.ask("GET", f"{either.path}/configmaps/none?resourceVersion=99999999")
    assert reply.status == 504
    assert "Too large resource version: 99999999, current: " in json.loads(reply.text)["message"]
