"""Writes JSON schemas of Kubernetes' objects, as kubeconform reads them, from the OpenAPI description in the sources of
Kubernetes itself. Unknown fields are refused.

    scripts/kubernetes-schemas.py SWAGGER OUTPUT KIND...      KIND: like apps/v1/Deployment, or v1/Service
"""

import json
import sys
from pathlib import Path


def strict(value):
    """The schema in draft 7, which refuses what it does not name."""
    if isinstance(value, list):
        return [strict(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("format") == "int-or-string":
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    result = {key: strict(each) for key, each in value.items() if not key.startswith("x-") and key != "description"}
    if isinstance(value.get("properties"), dict) and "additionalProperties" not in value:
        if not value.get("x-kubernetes-preserve-unknown-fields"):
            result["additionalProperties"] = False
    return result


def referred(definitions, name, seen):
    """All that a definition stands on, itself included."""
    if name not in seen:
        seen.add(name)
        for text in json.dumps(definitions[name]).split('"#/definitions/')[1:]:
            referred(definitions, text.split('"', 1)[0], seen)
    return seen


def main(swagger, output, *kinds):
    """From the description to a file a kind, named as kubeconform asks for it."""
    definitions = json.loads(Path(swagger).read_text(encoding="utf-8"))["definitions"]
    by_kind = {}
    for name, definition in definitions.items():
        for of in definition.get("x-kubernetes-group-version-kind", []):
            by_kind["/".join(filter(None, (of["group"], of["version"], of["kind"])))] = name
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        name = by_kind[kind]
        parts = {each: strict(definitions[each]) for each in sorted(referred(definitions, name, set()))}
        *group, version, plain = kind.split("/")
        # The apiVersion and kind are the object's own; Kubernetes leaves them optional.
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": f"#/definitions/{name}", "definitions": parts}
        parts_of_name = [plain, *(each.split(".")[0] for each in group), version]
        (folder / f"{'-'.join(parts_of_name).lower()}.json").write_text(json.dumps(schema), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
