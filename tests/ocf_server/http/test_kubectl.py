"""kubectl on the embedded cluster, where it differs from a real one; `tests/clients/test_kubectl.py` has the rest."""

from tests.kubectl import Kubectl


async def test_each_request_is_that_of_an_administrator(kubectl: Kubectl) -> None:
    assert "admin" in (await kubectl("auth", "whoami")).out


async def test_a_namespace_is_deleted_without_controllers(kubectl: Kubectl) -> None:
    await kubectl("create", "configmap", "settings", "-n", "shop")
    await kubectl("delete", "namespace", "shop", "--timeout=600s")
    assert "shop" not in (await kubectl("get", "ns", "-o", "name")).out
