"""Whatever an author writes, the files of an installation contain that text, and nothing that follows from it.

Public reports of texts in descriptions that became expressions, documents or other types:
https://github.com/arttor/helmify/issues/142, https://github.com/kubeshop/testkube/pull/7549,
https://github.com/argoproj/argo-workflows/pull/16036, https://github.com/argoproj/argo-helm/issues/4096,
https://github.com/cdk8s-team/cdk8s-core/issues/1850, https://github.com/helm/helm-www/pull/2211.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ocf import component
from ocf.errors import OcfError
from ocf.manifests import Installation, InstallOptions, render
from ocf.manifests.formats import Format
from ocf.manifests.helm_templates import kept
from ocf.manifests.install_options import Project
from ocf.objects.documents import load_documents
from ocf.runtime.operator import Operator, OwnerType
from ocf.scaffold.operator_project import OperatorProject, render_operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ocf.objects import Manifest

PIECES: Final = [
    "{{ .Values.secret }}",
    "{{- end }}",
    "${{ secrets.TOKEN }}",
    "{{",
    "}}",
    "{",
    "@image@",
    "'@replicas@'",
    "@image_@",
    "{{ .Release.Namespace }}",
    "ocf-release-namespace",
    "ocf-release-namespace-x",
    "\n---\nkind: Secret",
    "\n...\n",
    "\n::set-env name=A::b\n",
    "\n  key: value",
    "a: b",
    "- a",
    "# a",
    "'",
    '"',
    "\\",
    "\t",
    "\r\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x1b[2J",
    "null",
    "0o14",
    "1_000",
    "12:30",
    "yes",
    "~",
    "!!python/name:os.system",
    "&a",
    "*a",
    "%YAML 1.2",
    "`",
    "=",
    "<<",
    "../",
    "shops",
    " ",
]
TEXTS: Final = st.one_of(st.text(max_size=8), st.lists(st.sampled_from(PIECES), max_size=4).map("".join))
GROUP: Final = "example.com"
RELEASE: Final = "in-release"


def definition_of(text: str, *, labels: Mapping[str, str], column: str) -> Manifest:
    schema = {
        "type": "object",
        "description": text,
        "properties": {"spec": {"type": "object", "properties": {"motto": {"type": "string", "default": text}}}},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": text, "description": text}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shops.{GROUP}", "labels": dict(labels), "annotations": {text: text}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Shop", "plural": "shops", "shortNames": [text]},
            "versions": [version],
        },
    }


@st.composite
def installations(draw: st.DrawFn) -> Installation | None:
    """Return an installation with any text in each field that an author may write.

    Of the fields that are checked, one has any text, or else nearly every example would be rejected; or none has. None
    if it is rejected.
    """
    own = draw(st.integers(0, 18))

    def text(field: int, usual: str) -> str:
        return draw(TEXTS) if own == field else usual

    definition = definition_of(draw(TEXTS), labels={draw(TEXTS): draw(TEXTS)}, column=draw(TEXTS))
    try:
        operator: Operator[Manifest] = Operator(
            name=text(0, "shops"),
            owner=OwnerType(f"{GROUP}/v1", "Shop", definition=definition),
            components=lambda _: (),
            published_conditions=[text(1, "Ready")],
            abnormal_conditions=[text(2, "Degraded")],
            failure_condition=text(3, ""),
        )
        web = component.Builder("web", condition_type=text(4, "WebReady")).build()
        options = InstallOptions(
            namespace=text(5, ""),
            image=text(6, ""),
            watch_namespaces=[name] if (name := text(7, "")) else [],
            project=Project(
                version=text(8, "1.2.0"),
                description=draw(TEXTS),
                authors=[(draw(TEXTS), draw(TEXTS))],
                links=[(draw(TEXTS), draw(TEXTS))],
                keywords=[draw(TEXTS)],
            ),
        )
    except OcfError:
        assert own in range(9)
        return None
    sample = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "metadata": {"name": "one"}, "spec": {"motto": draw(TEXTS)}}
    return Installation(operator, [web], options, [sample])


def read(text: str) -> list[Any]:
    """Return the documents of a file, which both parsers read as the same."""
    found = list(yaml.safe_load_all(text))
    assert list(load_documents(text)) == found
    return found


def files_of(installation: Installation | None, layout: Format) -> dict[str, str]:
    """Return the files; nothing if the installation is rejected."""
    if installation is None:
        return {}
    try:
        rendering = render(installation, layout)
    except OcfError:
        assert installation.options.watch_namespaces or layout is not Format.OLM
        return {}
    found = {**rendering.generated, **rendering.initial}
    for path in found:
        assert ".." not in PurePosixPath(path).parts
        assert not path.startswith("/")
    return found


@given(installations())
def test_a_kustomization_has_the_texts_as_they_are(installation: Installation | None) -> None:
    files = files_of(installation, Format.KUSTOMIZE)
    documents = {path: read(text) for path, text in files.items()}
    if installation is None or not files:
        return
    assert documents["base/definition.yaml"] == installation.definitions
    assert documents["base/deployment.yaml"] == [installation.deployment()]
    assert documents["base/roles.yaml"] == installation.roles()
    assert documents["base/namespace.yaml"] == [installation.namespace_object()]
    assert documents["components/monitoring/alerts.yaml"] == [installation.alerts()]
    assert documents["components/monitoring/dashboard.yaml"] == [installation.dashboard()]
    (overlay,) = documents["overlays/production/kustomization.yaml"]
    assert overlay.keys() - {"images"} == {"apiVersion", "kind", "resources"}
    for one in overlay.get("images", ()):
        assert f"{one['name']}:{one['newTag']}" == installation.image
        assert one["newName"] == f"registry.example.com/{one['name']}"


# Each expression of the charts, with what the values of a chart put in its place.
EXPRESSIONS: Final = {
    '{{ "{{" }}': "{{",
    "{{ .Release.Namespace }}": RELEASE,
    '"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"': "placed",
    "{{ .Values.image.pullPolicy }}": "placed",
    "{{- toYaml .Values.image.pullSecrets | nindent 8 }}": "placed",
    "{{ .Values.replicas }}": "placed",
    "{{- toYaml .Values.podAnnotations | nindent 8 }}": "placed",
    "{{- toYaml .Values.resources | nindent 10 }}": "placed",
    "{{- toYaml .Values.nodeSelector | nindent 8 }}": "placed",
    "{{- toYaml .Values.tolerations | nindent 8 }}": "placed",
    "{{- toYaml .Values.affinity | nindent 8 }}": "placed",
    "{{ .Values.serviceMonitor.interval }}": "placed",
    "{{- if .Values.crds.install }}\n": "",
    "{{- if .Values.networkPolicy.enabled }}\n": "",
    "{{- if .Values.serviceMonitor.enabled }}\n": "",
    "{{- if .Values.alerts.enabled }}\n": "",
    "{{- if .Values.dashboard.enabled }}\n": "",
    "{{- if gt (int .Values.replicas) 1 }}\n": "",
    "{{- end }}\n": "",
}
_EXPRESSION: Final = re.compile("|".join(map(re.escape, EXPRESSIONS)))


def evaluated(template: str) -> str:
    """Return what Helm makes of a template; each expression in it is one of a chart."""
    assert "{{" not in _EXPRESSION.sub("", template)
    return _EXPRESSION.sub(lambda found: EXPRESSIONS[found[0]], template)


def placed(manifest: Any) -> Iterator[str]:
    """Yield the keys whose value a chart has replaced."""
    for key, value in manifest.items() if isinstance(manifest, dict) else enumerate(manifest):
        if value == "placed":
            yield str(key)
        elif isinstance(value, dict | list):
            yield from placed(value)


VALUES: Final = {
    "replicas",
    "annotations",
    "imagePullSecrets",
    "nodeSelector",
    "tolerations",
    "affinity",
    "image",
    "imagePullPolicy",
    "resources",
}


@given(installations())
def test_a_chart_has_the_texts_as_they_are(installation: Installation | None) -> None:
    files = files_of(installation, Format.HELM)
    if installation is None or not files:
        return
    templates = {path: read(evaluated(text)) for path, text in files.items() if path.startswith("templates/")}
    assert templates["templates/definition.yaml"] == [kept(one) for one in installation.definitions]
    (deployment,) = templates["templates/deployment.yaml"]
    assert set(placed(deployment)) == VALUES
    assert all(set(placed(one)) <= {"interval"} for path in templates for one in templates[path] if one != deployment)
    assert templates["templates/alerts.yaml"][0]["spec"] == installation.alerts()["spec"]
    assert templates["templates/dashboard.yaml"][0]["data"] == installation.dashboard()["data"]
    for one in (one for found in templates.values() for one in found):
        assert one["metadata"].get("namespace", RELEASE) in (RELEASE, *installation.options.watch_namespaces)
    # Helm reads these as they are.
    (chart,) = read(files["Chart.yaml"])
    project = installation.options.project
    assert chart["description"] == (project.description or f"The operator {installation.name}.")
    assert (chart["version"], chart["name"]) == (project.version, installation.name)
    assert chart.get("keywords", []) == [*project.keywords]
    (values,) = read(files["values.yaml"])
    tag = values["image"]["tag"]
    assert f"{values['image']['repository']}{':' if tag else ''}{tag}" == installation.image
    assert json.loads(files["values.schema.json"])["additionalProperties"] is False


@given(installations())
def test_a_bundle_has_the_texts_as_they_are(installation: Installation | None) -> None:
    files = files_of(installation, Format.OLM)
    if installation is None or not files:
        return
    name = installation.name
    (version,) = read(files[f"manifests/{name}.clusterserviceversion.yaml"])
    project = installation.options.project
    assert version["metadata"]["annotations"]["description"] == (project.description or f"The operator {name}.")
    assert json.loads(version["metadata"]["annotations"]["alm-examples"]) == [*installation.examples]
    assert read(files[f"manifests/shops.{GROUP}.crd.yaml"]) == installation.definitions
    assert [line.split(" ")[0] for line in files["bundle.Dockerfile"].splitlines()] == [
        "#",
        "FROM",
        *["LABEL"] * 6,
        "COPY",
        "COPY",
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("../shops.example.com", id="another folder"),
        pytest.param("shops.example.com\nRUN curl", id="a line of its own"),
        pytest.param("/etc/shops", id="an absolute path"),
    ],
)
def test_the_name_of_a_definition_leaves_the_folder_of_a_bundle_in_no_way(name: str) -> None:
    definition = definition_of("a", labels={}, column="a")
    definition["metadata"]["name"] = name
    operator: Operator[Manifest] = Operator(
        name="shops", owner=OwnerType(f"{GROUP}/v1", "Shop", definition=definition), components=lambda _: ()
    )
    with pytest.raises(OcfError, match="invalid name"):
        render(Installation(operator, [], InstallOptions()), Format.OLM)


@pytest.mark.parametrize(
    ("image", "is_accepted"),
    [
        ("shops", True),
        ("shops:1.2.0", True),
        ("localhost:5000/shops:1.2.0_build", True),
        ("Registry.example.com/team/shop__s@sha256:" + "0" * 64, True),
        ("[::1]:5000/shops:1", True),
        ("123:1", True),
        ("a: b", False),
        ("shops:1\nname: other", False),
        ("{{ .Values.a }}", False),
        ("Shops:1", False),
        ("shops:", False),
        ("shops:1 # b", False),
    ],
)
def test_an_image_is_a_reference(image: str, *, is_accepted: bool) -> None:
    with nullcontext() if is_accepted else pytest.raises(OcfError, match="must be a reference"):
        InstallOptions(image=image)


@given(name=TEXTS, kind=TEXTS, group=TEXTS, version=TEXTS, own=st.integers(0, 4))
def test_a_new_project_has_a_workflow_without_any_name(
    name: str, kind: str, group: str, version: str, own: int
) -> None:
    """And a sample that parses to exactly the names; anything else is rejected."""
    given_ones = {"name": "shop-operator", "kind": "Shop", "group": "example.com", "version": "v1"}
    for number, (key, value) in enumerate({"name": name, "kind": kind, "group": group, "version": version}.items()):
        if own in (number, 4):
            given_ones[key] = value
    try:
        project = OperatorProject(**given_ones)  # type: ignore[arg-type]
    except OcfError:
        return
    files = render_operator(project, requirement="ocf", locks={})
    usual = render_operator(OperatorProject(name="shop-operator"), requirement="ocf", locks={})
    path = ".github/workflows/ci.yaml"
    assert files[path] == usual[path]
    (sample,) = (read(text) for path, text in files.items() if path.startswith("samples/"))
    assert [(one["apiVersion"], one["kind"]) for one in sample] == [
        (f"{project.group}/{project.version}", project.owner_kind)
    ]
