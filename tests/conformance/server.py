"""The server that is tested: a site with certificates of ECDSA, RSA and Ed25519, on IPv4 and IPv6."""

import pathlib
import re
import subprocess
import time

START_LIMIT_S = 60
HOSTS = {"4": "127.0.0.1", "6": "::1"}
NAMES = "subjectAltName=DNS:localhost,DNS:localhost4,DNS:localhost6,DNS:example.com,IP:127.0.0.1,IP:::1"
KEYS = {
    "ecdsa": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["rsa:2048"],
    "ed25519": ["ed25519"],
}


class Server:
    """A `linerate serve` that runs as long as the block it is used for."""

    def __init__(self, binary, work, files, arguments=()):
        """`work` is a folder for certificates and logs, `files` the site's: bytes by name."""
        self._work = work
        self._log = work / "server.log"
        site = work / "site"
        site.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (site / name).write_bytes(content)
        self._command = [binary, "serve", site, *arguments]
        for host in ("127.0.0.1:0", "[::1]:0"):
            self._command += ["--listen", host]
        for name, kind in KEYS.items():
            certificate, key = self._certificate(name, kind)
            self._command += ["--cert", certificate, "--key", key]

    def _certificate(self, name, kind):
        certificate, key = self._work / f"{name}.pem", self._work / f"{name}-key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-nodes", "-newkey", *kind, "-keyout", key, "-out", certificate]
            + ["-days", "30", "-subj", "/CN=localhost", "-addext", NAMES],
            check=True,
            capture_output=True,
        )
        return certificate, key

    def __enter__(self):
        # What it keeps for itself stays below the work folder.
        environment = {"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(self._work / "state")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment)
        self._ports = self._wait_for_ports()
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(START_LIMIT_S)

    def _wait_for_ports(self):
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            text = pathlib.Path(self._log).read_text(errors="replace")
            four = re.search(r"https://127\.0\.0\.1:(\d+)/", text)
            six = re.search(r"https://\[::1\]:(\d+)/", text)
            if four and six:
                return {"4": int(four[1]), "6": int(six[1])}
            self.expect_alive()
            time.sleep(0.02)
        raise SystemExit(f"the server does not listen after {START_LIMIT_S} s: {self._log}")

    def address(self, family):
        """Host and port."""
        return HOSTS[family], self._ports[family]

    def expect_alive(self):
        if self._process.poll() is not None:
            raise SystemExit(f"the server has ended with status {self._process.returncode}: {self._log}")
