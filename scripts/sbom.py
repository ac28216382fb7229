"""Writes what a linerate is made of, as CycloneDX 1.5 (JSON): the crates that are linked into the program, with the checksums
of Cargo.lock; with --program also the packages that its shared libraries are from (dpkg), or with --packages those of a list, a line
of name, version and architecture each. The same commit and packages give the same bytes.

    scripts/sbom.py [--target TRIPLE] [--program FILE | --packages LIST] OUTPUT
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent


def licence(terms):
    """CycloneDX' form of a crate's licence; `A/B` is an old way to write `A OR B`."""
    return [{"expression": re.sub(r"\s*/\s*", " OR ", terms)}] if terms else []


def packages(program):
    """The packages of the shared libraries of a program of this machine, by dpkg."""
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for path in sorted(set(re.findall(r"(/\S+)", libraries))):
        owner = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, check=False).stdout
        if match := re.match(r"([^:,\s]+)", owner):
            form = "--showformat=${Package}\t${Version}\t${Architecture}\n"
            yield subprocess.run(["dpkg-query", "--show", form, match[1]], check=True, capture_output=True, text=True).stdout.split()


def main():
    """From Cargo's resolution to the list."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu")
    libraries = parser.add_mutually_exclusive_group()
    libraries.add_argument("--program", type=Path)
    libraries.add_argument("--packages", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    command = ["cargo", "tree", "--locked", "--package", "linerate", "--edges", "normal,no-proc-macro", "--target", arguments.target,
               "--prefix", "none", "--no-dedupe", "--format", "{p}\t{l}"]
    tree = subprocess.run(command, cwd=WORKSPACE, check=True, capture_output=True, text=True).stdout
    with open(WORKSPACE / "Cargo.lock", "rb") as file:
        locked = {(each["name"], each["version"]): each.get("checksum") for each in tomllib.load(file)["package"]}
    found = {}
    for line in tree.splitlines():
        if match := re.match(r"(\S+) v(\S+)[^\t]*\t(.*)", line):
            found[match[1], match[2]] = match[3]
    version = next(version for name, version in found if name == "linerate")

    def component(name, its_version, terms):
        entry = {
            "type": "library",
            "bom-ref": f"pkg:cargo/{name}@{its_version}",
            "name": name,
            "version": its_version,
            "purl": f"pkg:cargo/{name}@{its_version}",
            "licenses": licence(terms),
        }
        if checksum := locked[name, its_version]:
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return entry

    def package(name, its_version, architecture):
        purl = f"pkg:deb/debian/{name}@{its_version}?arch={architecture}"
        return {"type": "library", "bom-ref": purl, "name": name, "version": its_version, "purl": purl}

    listed = [line.split() for line in arguments.packages.read_text().splitlines()] if arguments.packages else []
    system = sorted({tuple(each) for each in (packages(arguments.program) if arguments.program else listed)})
    own = {"type": "application", "bom-ref": f"pkg:cargo/linerate@{version}", "name": "linerate", "version": version}
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own, "properties": [{"name": "linerate:target", "value": arguments.target}]},
        "components": [component(*key, terms) for key, terms in sorted(found.items()) if key[0] != "linerate"]
        + [package(*each) for each in system],
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(bom, indent=1) + "\n", encoding="utf-8")
    print(f"{arguments.output}: {len(bom['components'])} components")


if __name__ == "__main__":
    sys.exit(main())
