"""Which release of another compiler a command is for."""

from __future__ import annotations

from importlib import metadata

from ...runtime.errors import LaunchError


def unfit(package: str, release: str, error: Exception) -> LaunchError:
    """What to say where a compiler's parts are not found that a command needs."""
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        return LaunchError(f"{package}: must be installed; pip install '{package}=={release}.*'")
    rule = f"must be of release {release}, which has the parts that this command needs"
    return LaunchError(f"{package}: {rule}, got {found} ({error})")
