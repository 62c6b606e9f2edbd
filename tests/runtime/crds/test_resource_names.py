"""Names of a custom resource: what a real API server rejects is an error where the resource is declared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from pydantic import BaseModel

from ocf.cluster.client import ApiServerCluster
from ocf.errors import BuildError, InvalidError, ManifestError
from ocf.objects import Manifest
from ocf.runtime.crds import CamelModel, CRDVersion, CustomResource, VersionedResource, crd


class Shop(BaseModel):
    spec: dict[str, str] = {}


class ShopSpec(CamelModel):
    open: bool = True


@dataclass(frozen=True)
class Names:
    """The names of a resource; empty ones follow from the kind."""

    group: str = "resource-names.example.com"
    version: str = "v1"
    kind: str = "Shop"
    plural: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()

    @property
    def further(self) -> dict[str, Any]:
        """Everything but group and version, as arguments."""
        return {name: value for name, value in vars(self).items() if name not in {"group", "version"}}

    def definition(self) -> Manifest:
        """The definition, written by hand."""
        plural = self.plural or f"{self.kind.lower()}s"
        names = {
            "kind": self.kind,
            "listKind": f"{self.kind}List",
            "plural": plural,
            "singular": self.kind.lower(),
            "shortNames": [*self.short_names],
            "categories": [*self.categories],
        }
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": self.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{self.group}"},
            "spec": {"group": self.group, "scope": "Namespaced", "names": names, "versions": [version]},
        }


REJECTED: Final = [
    pytest.param(Names(group="example"), "group", '"example": should be a domain', id="a group without a dot"),
    pytest.param(Names(group="Example.com"), "group", '"Example.com": a lowercase', id="a group in upper case"),
    pytest.param(Names(group="example.com/v1"), "group", "RFC 1123 subdomain", id="a group with its version"),
    pytest.param(Names(group=f"{'a' * 60}.{'b.' * 100}com"), "group", "no more than 253", id="a long group"),
    pytest.param(Names(group=f"{'a.' * 122}example"), "name", "no more than 253", id="a group too long for the plural"),
    pytest.param(Names(version="1"), "version", '"1": a DNS-1035 label', id="a version that is a number"),
    pytest.param(Names(version="v1.2"), "version", '"v1.2": a DNS-1035 label', id="a version with a dot"),
    pytest.param(Names(version="V1"), "version", '"V1": a DNS-1035 label', id="a version in upper case"),
    # https://github.com/kubernetes-sigs/vsphere-csi-driver/issues/327
    pytest.param(Names(kind="shops.names.com"), "kind", "may have mixed case", id="a kind with dots"),
    # https://github.com/cloud-ark/kubeplus/issues/1208
    pytest.param(Names(kind="Shop1.0"), "kind", "may have mixed case", id="a kind with a version"),
    pytest.param(Names(kind="My_Shop"), "kind", "may have mixed case", id="a kind with an underscore"),
    pytest.param(Names(kind="Café"), "kind", "may have mixed case", id="a kind beyond ASCII"),
    pytest.param(Names(kind="S" * 60), "kind", "no more than 63", id="a kind that is too long with List"),
    # https://github.com/kubernetes-sigs/kubebuilder/issues/1969
    pytest.param(Names(plural="Shops"), "plural", '"Shops": a DNS-1035 label', id="a plural in upper case"),
    pytest.param(Names(plural="shops.names"), "plural", "DNS-1035 label", id="a plural with a dot"),
    pytest.param(Names(plural="s" * 64), "plural", "no more than 63", id="a long plural"),
    pytest.param(Names(short_names=["SH"]), "short_names", '"SH": a DNS-1035 label', id="a short name in upper case"),
    pytest.param(Names(short_names=["sh", ""]), "short_names", '"": a DNS-1035 label', id="an empty short name"),
    pytest.param(Names(categories=["my shops"]), "categories", "DNS-1035 label", id="a category with a space"),
]
ACCEPTED: Final = [
    # https://github.com/kubernetes-sigs/kubebuilder/issues/3784
    pytest.param(Names(kind="DNS", plural="dns"), id="a kind in upper case"),
    pytest.param(Names(kind="sheep", plural="sheep"), id="a plural like the singular"),
    pytest.param(Names(kind="S" * 59), id="the longest kind"),
    pytest.param(Names(version="latest"), id="a version without a number"),
    pytest.param(Names(short_names=["sh", "sh", "shop"]), id="a short name twice, and one like the singular"),
    pytest.param(Names(group="a-1.b"), id="a group with digits and dashes"),
]


def declare(names: Names) -> VersionedResource:
    return VersionedResource(names.group, [CRDVersion(names.version, Shop)], **names.further)


@pytest.mark.parametrize(("names", "argument", "problem"), REJECTED)
def test_a_name_that_the_api_server_rejects_is_an_error_with_its_argument(
    names: Names, argument: str, problem: str
) -> None:
    with pytest.raises(BuildError) as declared:
        declare(names)
    with pytest.raises(ManifestError) as generated:
        crd(names.group, CRDVersion(names.version, Shop), **names.further)

    assert [(one.path, problem in one.detail) for one in generated.value.problems] == [(argument, True)]
    assert f"{argument}: {generated.value.problems[0].detail}" in str(declared.value)


@pytest.mark.parametrize(("names", "argument", "problem"), REJECTED)
async def test_the_api_server_rejects_it(
    names: Names, argument: str, problem: str, envtest_cluster: ApiServerCluster
) -> None:
    with pytest.raises(InvalidError) as rejected:
        await envtest_cluster.create(names.definition(), field_manager="test", dry_run=True)

    assert problem.rpartition('": ')[2] in str(rejected.value), argument


@pytest.mark.parametrize("names", ACCEPTED)
async def test_what_the_api_server_accepts_is_not_an_error(names: Names, envtest_cluster: ApiServerCluster) -> None:
    await envtest_cluster.create(names.definition(), field_manager="test", dry_run=True)

    await envtest_cluster.create(declare(names).definition(), field_manager="test", dry_run=True)


def test_all_names_are_reported_at_once_by_the_class() -> None:
    with pytest.raises(BuildError) as raised:

        class My_Shop(  # noqa: N801 (the case)
            CustomResource[ShopSpec], group="example", version="1", short_names=["SH"], categories=["All"]
        ):
            pass

    fields = [problem.split(": ")[1] for problem in raised.value.problems]
    assert fields == ["group", "version", "kind", "short_names", "categories"]


def test_a_text_is_not_a_list_of_names() -> None:
    """A text is a sequence too, of its letters: each of them would be a valid short name."""
    with pytest.raises(BuildError, match=r'short_names: must be a list of names, such as \["sh"\], not a text'):
        VersionedResource("resource-names.example.com", [CRDVersion("v1", Shop)], short_names="sh")
    with pytest.raises(ManifestError, match=r'categories: must be a list of names, such as \["all"\], not a text'):
        crd("resource-names.example.com", CRDVersion("v1", Shop), categories="all")
