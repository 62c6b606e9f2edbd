"""Golden files: comparison, diffs, missing files and updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ocf import component
from ocf.concepts import Data
from ocf.errors import ConfigError
from ocf.objects import Manifest, copy_json, load_document
from ocf.objects.documents import load_documents
from ocf.primitives import deployment, hpa
from ocf.testing import assert_golden, serialize

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from ocf.component import Component
    from ocf.objects import ObjectKey


@pytest.fixture
def web(web_base: Manifest) -> deployment.Resource:
    return deployment.Builder(web_base).build()


class Plain:
    """A resource of the user's own, without the engine."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    @property
    def key(self) -> ObjectKey:
        raise NotImplementedError

    identity = "plain"

    def render(self, *, suspended: bool = False, ignore_fields: Collection[tuple[str, ...]] = ()) -> Manifest:
        assert (suspended, ignore_fields) == (False, ())
        manifest: Manifest = copy_json(self._manifest)
        return manifest


class TestSerialize:
    def test_a_resource_is_one_document(self, web: deployment.Resource) -> None:
        assert load_document(serialize(web)) == web.render()

    def test_a_component_is_its_resources_in_order(self, subject: Component) -> None:
        documents = load_documents(serialize(subject))
        assert list(documents) == subject.render()
        assert serialize(subject).count("---\n") == 1

    def test_resources_that_are_not_managed_are_omitted(self, web: deployment.Resource, hpa_base: Manifest) -> None:
        scaler = hpa.Builder(hpa_base).build()
        builder = component.Builder("web", condition_type="WebReady")
        assert (
            serialize(builder.with_resource(web, read_only=True).with_resource(scaler, delete_when=True).build()) == ""
        )

    def test_a_field_that_an_autoscaler_sets_is_omitted(self, web_base: Manifest, hpa_base: Manifest) -> None:
        web_base["spec"]["replicas"] = 4
        web, scaler = deployment.Builder(web_base).build(), hpa.Builder(hpa_base).build()
        builder = component.Builder("web", condition_type="WebReady").with_resource(web)
        assert "\n  replicas:" in serialize(builder.build())
        assert "\n  replicas:" not in serialize(builder.with_resource(scaler).build())

    def test_it_is_the_same_every_time(self, subject: Component) -> None:
        assert serialize(subject) == serialize(subject)

    def test_empty_fields_are_omitted_at_the_top_level_only(self) -> None:
        nested = {"template": {"metadata": {"creationTimestamp": None}, "status": {}}}
        metadata = {"name": "a", "creationTimestamp": None}
        found = load_document(serialize(Plain({"kind": "X", "metadata": metadata, "spec": nested, "status": {}})))
        assert found == {"kind": "X", "metadata": {"name": "a"}, "spec": nested}
        shown = {"kind": "X", "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"a": 1}}
        assert load_document(serialize(Plain(shown))) == shown

    @pytest.mark.promise("secrets")
    def test_secrets_are_redacted(self) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"token": "hunter2"}}
        assert "hunter2" not in serialize(Plain(secret))

    def test_a_cell_has_to_be_seeded(self, web_base: Manifest) -> None:
        host = Data[str]("db-host")

        def mutate(m: deployment.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("host", host.require()))

        web = deployment.Builder(web_base).with_mutation(deployment.Mutation("host", mutate)).build()
        with pytest.raises(ConfigError, match="db-host"):
            serialize(web)
        with host.seeded("db.shop"):
            assert "host: db.shop" in serialize(web)


class TestAssertGolden:
    def test_update_writes_file_and_folders_and_the_check_succeeds(self, tmp_path: Path, subject: Component) -> None:
        path = tmp_path / "deep" / "er" / "web.yaml"
        assert_golden(path, subject, update=True)
        assert path.read_text() == serialize(subject)
        assert_golden(path, subject)
        assert_golden(str(path), subject)

    def test_a_missing_file_says_how_to_create_it(self, tmp_path: Path, subject: Component) -> None:
        with pytest.raises(AssertionError, match=r"web\.yaml does not exist; create it with `pytest --ocf-update-gold"):
            assert_golden(tmp_path / "web.yaml", subject)
        assert list(tmp_path.iterdir()) == []

    def test_the_diff_leads_from_the_golden_file_to_the_rendered_text(self, tmp_path: Path, subject: Component) -> None:
        path = tmp_path / "web.yaml"
        golden = serialize(subject).replace("maxReplicas: 10", "maxReplicas: 11")
        path.write_text(golden)
        with pytest.raises(AssertionError) as failed:
            assert_golden(path, subject)
        lines = str(failed.value).splitlines()
        assert lines[:2] == [f"--- {path}", "+++ rendered now"]
        assert "-  maxReplicas: 11" in lines
        assert "+  maxReplicas: 10" in lines
        assert len(lines) == 11
        assert path.read_text() == golden

    def test_update_replaces_the_file(self, tmp_path: Path, subject: Component) -> None:
        path = tmp_path / "web.yaml"
        path.write_text("old")
        assert_golden(path, subject, update=True)
        assert_golden(path, subject)

    def test_other_line_endings_are_a_difference(self, tmp_path: Path, subject: Component) -> None:
        path = tmp_path / "web.yaml"
        path.write_bytes(serialize(subject).replace("\n", "\r\n").encode())
        with pytest.raises(AssertionError):
            assert_golden(path, subject)
