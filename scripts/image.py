"""Makes an OCI image of linerate, without a daemon, a base image or root: the program, the shared libraries that it is linked
with, and nothing else: no shell, no package manager. Prints the archive's path and the image's digest.

    scripts/image.py [--binary FILE] [--output FOLDER] [--sysroot FOLDER] [--sbom FILE]

FILE is target/release/linerate unless told otherwise, FOLDER target/image. The libraries are those of the sysroot (`/`), which
has to be of the program's architecture; a static program needs none. The same program, libraries, commit and Python give the
same bytes.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parent.parent
# The user of the process, by number: no name service is asked. Distroless' images use the same.
USER = 65532
ARCHITECTURES = {62: ("amd64", "x86_64-linux-gnu"), 183: ("arm64", "aarch64-linux-gnu")}
PROGRAM = "usr/bin/linerate"
STATE = "var/lib/linerate"


class Unusable(Exception):
    """What the image cannot be made of, told to the operator."""


def elf(path, *options):
    """What readelf says about a file."""
    done = subprocess.run(["readelf", "--wide", *options, path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unusable(f"{path}: readelf cannot read it: {done.stderr.strip()}")
    return done.stdout


def architecture(path):
    """Its name in images, and in Debian's folders of libraries."""
    head = path.read_bytes()[:20]
    if head[:4] != b"\x7fELF" or len(head) < 20:
        raise Unusable(f"{path} is no ELF program")
    machine = struct.unpack_from("<H", head, 18)[0]
    if machine not in ARCHITECTURES:
        raise Unusable(f"{path} is for a machine of number {machine}; images are made for {', '.join(name for name, _ in ARCHITECTURES.values())}")
    return ARCHITECTURES[machine]


def libraries(program, sysroot, triple):
    """The libraries that a program needs, and theirs: path in the image, and where the file is."""
    found, waiting = {}, [program]
    folders = [f"lib/{triple}", f"usr/lib/{triple}", "lib64", "usr/lib64", "lib", "usr/lib"]
    if interpreter := re.search(r"interpreter: /([^\]]+)\]", elf(program, "--program-headers")):
        found[interpreter[1]] = sysroot / interpreter[1]
    while waiting:
        for name in re.findall(r"\(NEEDED\).*\[([^\]]+)\]", elf(waiting.pop(), "--dynamic")):
            if any(path.rsplit("/", 1)[-1] == name for path in found):
                continue
            at = next((f"{folder}/{name}" for folder in folders if (sysroot / folder / name).exists()), None)
            if at is None:
                raise Unusable(f"{program} needs {name}, which is not in {sysroot}")
            found[at] = sysroot / at
            waiting.append(sysroot / at)
    for path, file in found.items():
        if not file.exists():
            raise Unusable(f"{program} needs /{path}, which is not in {sysroot}")
    return found


def stripped(program):
    """The program without symbols, by the objcopy that knows its architecture."""
    name, triple = architecture(program)
    tool = "strip" if name == architecture(Path(sys.executable).resolve())[0] else f"{triple}-strip"
    with tempfile.TemporaryDirectory() as room:
        output = Path(room) / program.name
        try:
            subprocess.run([tool, "-o", output, program], check=True, capture_output=True)
            return output.read_bytes()
        except (OSError, subprocess.CalledProcessError):
            return program.read_bytes()


def layer(files, seconds):
    """A tar archive of path: (mode, owner, content); a folder's content is None. Folders above come by themselves."""
    entries = dict(files)
    for path in files:
        for folder in Path(path).parents:
            if str(folder) != ".":
                entries.setdefault(str(folder), (0o755, 0, None))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, (mode, owner, content) in sorted(entries.items()):
            entry = tarfile.TarInfo(path)
            entry.mode, entry.uid, entry.gid, entry.mtime = mode, owner, owner, seconds
            if content is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(content)
            archive.addfile(entry, None if content is None else io.BytesIO(content))
    return buffer.getvalue()


def configuration(name, created, labels, diff_id):
    """The image's configuration. Health checks are Docker's and podman's own field; Kubernetes has its probes."""
    return {
        "created": created,
        "architecture": name,
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": [f"/{PROGRAM}"],
            "Cmd": ["serve", "/srv", "--listen", "*:8443", "--admin", "9443"],
            "Env": [f"STATE_DIRECTORY=/{STATE}"],
            "ExposedPorts": {"8443/tcp": {}},
            "Volumes": {f"/{STATE}": {}},
            "WorkingDir": "/srv",
            # Drains: what is under way may end.
            "StopSignal": "SIGQUIT",
            "Healthcheck": {
                "Test": ["CMD", f"/{PROGRAM}", "load", "http://127.0.0.1:9443/healthz", "--requests", "1", "--connections", "1"],
                "Interval": 30_000_000_000,
                "Timeout": 5_000_000_000,
            },
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "linerate: scripts/image.py"}],
    }


def digest(content):
    """As images name their parts."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def archive(parts, seconds):
    """An OCI layout as one tar archive, and the digest of its image."""
    (layer_tar, config, version) = parts
    packed = gzip.compress(layer_tar, compresslevel=9, mtime=0)
    blobs = {}

    def blob(content, media_type, **more):
        blobs[f"blobs/sha256/{digest(content)[7:]}"] = content
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": digest(content), "size": len(content), **more}

    def text(value):
        return json.dumps(value, separators=(",", ":")).encode()

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(text(config), "config.v1+json"),
        "layers": [blob(packed, "layer.v1.tar+gzip")],
        "annotations": config["config"]["Labels"],
    }
    platform = {"architecture": config["architecture"], "os": "linux"}
    names = {"org.opencontainers.image.ref.name": f"localhost/linerate:{version}"}
    described = blob(text(manifest), "manifest.v1+json", platform=platform, annotations=names)
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [described]}
    files = {**blobs, "index.json": text(index), "oci-layout": text({"imageLayoutVersion": "1.0.0"})}
    return layer({path: (0o644, 0, content) for path, content in files.items()}, seconds), described["digest"]


def git(*arguments):
    """What git says, or nothing outside of a repository."""
    done = subprocess.run(["git", "-C", WORKSPACE, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def main():
    """From the command line to the archive."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--binary", type=Path, default=target / "release/linerate")
    parser.add_argument("--output", type=Path, default=target / "image")
    parser.add_argument("--sysroot", type=Path, default=Path("/"))
    parser.add_argument("--sbom", type=Path)
    arguments = parser.parse_args()

    version = re.search(r'^version = "(.+)"', (WORKSPACE / "Cargo.toml").read_text(), re.MULTILINE)[1]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or 0)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    if not arguments.binary.exists():
        raise Unusable(f"{arguments.binary} is missing: cargo build --release --package linerate")
    name, triple = architecture(arguments.binary)

    documents = "usr/share/doc/linerate"
    user = f"root:x:0:0:root:/:/nonexistent\nlinerate:x:{USER}:{USER}:linerate:/{STATE}:/nonexistent\n"
    files = {
        PROGRAM: (0o755, 0, stripped(arguments.binary)),
        "etc/passwd": (0o644, 0, user.encode()),
        "etc/group": (0o644, 0, f"root:x:0:\nlinerate:x:{USER}:\n".encode()),
        STATE: (0o700, USER, None),
        "srv": (0o755, 0, None),
        "tmp": (0o1777, 0, None),
    }
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{documents}/{licence}"] = (0o644, 0, (WORKSPACE / licence).read_bytes())
    if arguments.sbom:
        files[f"{documents}/sbom.cdx.json"] = (0o644, 0, arguments.sbom.read_bytes())
    needed = libraries(arguments.binary, arguments.sysroot, triple)
    for path, file in needed.items():
        files[path] = (0o755, 0, file.read_bytes())
    # The libraries are Debian's, or another distribution's: their licences go with them.
    for package in ("libc6", "libgcc-s1") if needed else ():
        terms = arguments.sysroot / "usr/share/doc" / package / "copyright"
        if terms.exists():
            files[f"usr/share/doc/{package}/copyright"] = (0o644, 0, terms.read_bytes())

    labels = {
        "org.opencontainers.image.title": "linerate",
        "org.opencontainers.image.description": "HTTPS file server that costs about as much as the cipher",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
        "org.opencontainers.image.revision": git("rev-parse", "HEAD"),
        "org.opencontainers.image.created": created,
    }
    tree = layer(files, seconds)
    image, named = archive((tree, configuration(name, created, labels, digest(tree)), version), seconds)
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"linerate-{version}-{name}.oci.tar"
    path.write_bytes(image)
    print(path, named)


if __name__ == "__main__":
    try:
        main()
    except Unusable as unusable:
        sys.exit(f"error: {unusable}")
