"""Manifests of bundles with something changed, and why such a bundle is refused."""

import json

import pytest

from tilewright.runtime import BundleError, read_bundle
from tilewright.runtime.bundles.bundle import manifest_hash


def change_manifest(path, change, seal=False):
    """Rewrites the manifest of a bundle folder, and its hash of itself where `seal` says so."""
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    if seal:
        manifest["hashes"]["manifest.json"] = manifest_hash(manifest)
    file.write_text(json.dumps(manifest))


def refusal(path) -> str:
    with pytest.raises(BundleError) as refused:
        read_bundle(path)
    return str(refused.value)
