"""A hash of the sources that determine bundles, so that changed ones invalidate caches."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

SOURCES = (
    "compiler/**/*.py",
    "dialects/**/*.py",
    "passes/**/*.py",
    "runtime/*.py",  # its tables, which the compiler takes
    "runtime/bundles/*.py",
)


@functools.cache
def source_digest() -> str:
    """SHA-256 of the sources that make a bundle: 64 hexadecimal digits."""
    return digest_of(Path(__file__).parent.parent)


def digest_of(root: Path) -> str:
    """The digest of the sources under another root."""
    total = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in root.glob(pattern)):
        content = path.read_bytes()
        total.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return total.hexdigest()
