"""The command in the text of a forbidden request prints the role that allows it."""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

import pytest

from ocf.errors import ForbiddenError, api_error
from tests.kubectl import Kubectl

TOWN: Final = 'in the namespace "town"'
EVERYWHERE: Final = "at the cluster scope"


@pytest.mark.parametrize(
    ("what", "who", "resource", "group", "scope"),
    [
        ('deployments.apps "web"', "jane", "update deployments/scale", "apps", TOWN),
        ("pods", "jane", "list pods", "", EVERYWHERE),
        ('shops.example.com "a"', "system:serviceaccount:a:b", "patch shops", "example.com", TOWN),
        ('userextras.a.io "view"', "op", "impersonate userextras/scopes", "authentication.k8s.io", EVERYWHERE),
    ],
    ids=["a subresource", "a list", "a kind that is not served", "an impersonation"],
)
async def test_the_command_prints_the_role_with_the_rule(  # noqa: PLR0917 (one row)
    kubectl: Kubectl, what: str, who: str, resource: str, group: str, scope: str
) -> None:
    verb, _, name = resource.partition(" ")
    message = f'{what} is forbidden: User "{who}" cannot {verb} resource "{name}" in API group "{group}" {scope}'
    error = api_error(message, code=403, reason="Forbidden")
    assert isinstance(error, ForbiddenError)
    text, _, command = str(error).partition(", as printed by ")
    rule = json.loads(re.findall(r"the rule (\{.*\}) of a", text)[0])

    done = await kubectl(*shlex.split(command.replace("--output=yaml", "--output=json"))[1:])
    role = json.loads(done.out)

    assert role["rules"] == [rule]
    assert role["metadata"].get("namespace", "") == ("town" if scope == TOWN else "")
