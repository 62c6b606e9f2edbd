"""The ServiceAccount primitive: static, with three categories in their order."""

from ocf.concepts import Graceful, Operational, Suspendable
from ocf.objects import Manifest
from ocf.primitives import serviceaccount

BASE: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "shop"}}


def built(mutate: object) -> serviceaccount.Resource:
    return serviceaccount.Builder(BASE).with_mutation(serviceaccount.Mutation("m", mutate)).build()  # type: ignore[arg-type]  # lambdas of the rows


def test_it_is_static() -> None:
    resource = serviceaccount.Builder(BASE).build()
    assert resource.identity == "v1/ServiceAccount/shop/web"
    for concept in (Graceful, Operational, Suspendable):
        assert not isinstance(resource, concept)


def test_the_categories_run_in_their_order() -> None:
    ran: list[str] = []

    def mutate(m: serviceaccount.Mutator) -> None:
        m.edit_automount(lambda _: ran.append("automount"))
        m.edit_image_pull_secrets(lambda _: ran.append("pull secrets"))
        m.edit_object_metadata(lambda _: ran.append("metadata"))

    built(mutate).render()
    assert ran == ["metadata", "pull secrets", "automount"]


def test_the_short_forms() -> None:
    def mutate(m: serviceaccount.Mutator) -> None:
        m.ensure_image_pull_secret("a")
        m.ensure_image_pull_secret("b")
        m.remove_image_pull_secret("a")
        m.set_automount_service_account_token(False)

    assert built(mutate).render() == {
        **BASE,
        "imagePullSecrets": [{"name": "b"}],
        "automountServiceAccountToken": False,
    }


def test_the_token_can_be_unset() -> None:
    base = {**BASE, "automountServiceAccountToken": False}
    unset = serviceaccount.Mutation("unset", lambda m: m.set_automount_service_account_token(None))
    assert serviceaccount.Builder(base).with_mutation(unset).build().render() == BASE
