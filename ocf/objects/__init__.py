"""Manifests and models: reading, writing, identity, quantities, label selectors, field paths."""

from ocf.objects.manifest import PREFIX, Manifest, ObjectKey, copy_json, split_api_version

__all__ = ["PREFIX", "Manifest", "ObjectKey", "copy_json", "split_api_version"]
