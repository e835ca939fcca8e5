"""Writes the SBOM that the wheel contains (PEP 770): the packages that it requires, in the format of CycloneDX.

It is a build hook of hatchling. The versions are ranges, since an installer chooses them; an SBOM of an installation is
made by a scanner. The file depends on nothing but ``pyproject.toml``, so that builds stay reproducible.
"""

import json
import tempfile
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SPECIFICATION = "1.6"


class SbomHook(BuildHookInterface[Any]):
    """Adds the SBOM to each wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file, and name it to hatchling."""
        if version != "editable":
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name) / f"{self.metadata.core.name}.cdx.json"
            file.write_text(json.dumps(sbom(self.metadata), indent=2) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(file))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the file, which is in the wheel now."""
        if version != "editable":
            self._folder.cleanup()


def sbom(metadata: Any) -> dict[str, Any]:
    """Return the SBOM of a project.

    Args:
        metadata: the ``ProjectMetadata`` of hatchling.
    """
    core = metadata.core
    ours = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{core.name}@{metadata.version}",
        "name": core.name,
        "version": metadata.version,
        "description": core.description,
        "purl": f"pkg:pypi/{core.name}@{metadata.version}",
        "licenses": [{"license": {"id": core.license_expression or core.license}}],
    }
    components = list(_components(core))
    content = json.dumps([ours, components])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": ours},
        "components": components,
        "dependencies": [{"ref": ours["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}],
    }


def _components(core: Any) -> Any:
    """Yield each required package once: those of the package itself, then those that only extras require."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"ranges": [], "extras": []})
    for extra, requirements in [("", core.dependencies), *core.config["optional-dependencies"].items()]:
        for text in requirements:
            requirement = Requirement(text)
            name = str(canonicalize_name(requirement.name))
            if name != core.name:  # an extra that includes another one
                found[name]["ranges"].append(str(requirement.specifier))
                found[name]["extras"].append(extra)
    for name, each in found.items():
        properties = {"followup:versions": " or ".join(sorted({*each["ranges"]}))}
        if "" not in each["extras"]:
            properties["followup:extras"] = ", ".join(dict.fromkeys(each["extras"]))
        yield {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "purl": f"pkg:pypi/{name}",
            "scope": "required" if "" in each["extras"] else "optional",
            "properties": [{"name": key, "value": value} for key, value in properties.items()],
        }
