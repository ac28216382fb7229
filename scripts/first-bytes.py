#!/usr/bin/env python3
"""When the first bytes of a body can be read at the other end of a link with delay.

usage: first-bytes.py LINERATE CERTIFICATE KEY ROOT FILE [DELAY_MS [TIMES]]

Two network namespaces are joined by two tun devices and a thread for each direction that holds every packet back for
DELAY_MS (default 25: a round trip of 50 ms), so that no netem is needed. LINERATE, and nginx if it is installed, serve
ROOT in one; a client in the other fetches /FILE over a new connection each time (TLS 1.3), compares every byte with
ROOT/FILE, and prints medians in ms from the request until: the head, the first byte of the body, all of it.
Needs root, iproute2 and /dev/net/tun.
"""
import fcntl, os, select, shutil, signal, socket, ssl, statistics, struct, subprocess, sys, tempfile, threading, time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 1500
SERVER, CLIENT = "10.213.79.1", "10.213.79.2"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def tun(name):
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


def carry(source, target, delay_s):
    """Moves packets, each `delay_s` after it came."""
    waiting = []
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([source], [], [], timeout)[0]:
            try:
                while True:
                    waiting.append((time.monotonic() + delay_s, os.read(source, 65536)))
            except BlockingIOError:
                pass
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(target, waiting.pop(0)[1])


def fetch(port, name, expected):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    plain = socket.create_connection((SERVER, port), 10)
    # Else the request would wait until the client's Finished is acknowledged.
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with context.wrap_socket(plain, server_hostname="localhost") as stream:
        begin = time.monotonic()
        stream.sendall(f"GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        received, head_ms, first_ms, body = b"", None, None, 0
        while head_ms is None or len(received) - body < len(expected):
            piece = stream.recv(1 << 16)
            if not piece:
                sys.exit("the response ended early")
            received += piece
            now_ms = 1000 * (time.monotonic() - begin)
            if head_ms is None and b"\r\n\r\n" in received:
                head_ms, body = now_ms, received.index(b"\r\n\r\n") + 4
            if head_ms is not None and first_ms is None and len(received) > body:
                first_ms = now_ms
        if received[body:] != expected:
            sys.exit("the bytes differ")
        return head_ms, first_ms, now_ms


def main():
    if len(sys.argv) < 6 or os.geteuid() != 0:
        sys.exit(__doc__)
    linerate, certificate, key, root, name = sys.argv[1:6]
    delay_s = float(sys.argv[6] if len(sys.argv) > 6 else 25) / 1000
    times = int(sys.argv[7]) if len(sys.argv) > 7 else 15
    expected = open(os.path.join(root, name), "rb").read()
    servers, folder = [], tempfile.TemporaryDirectory()
    spaces = {end: f"first-bytes-{os.getpid()}-{end}" for end in ("server", "client")}
    try:
        ends = {}
        for end, address in (("server", SERVER), ("client", CLIENT)):
            device = f"fb{os.getpid() % 100000}{end[0]}"
            ip("netns", "add", spaces[end])
            ends[end] = tun(device)
            ip("link", "set", device, "netns", spaces[end])
            ip("-n", spaces[end], "address", "add", f"{address}/24", "dev", device)
            ip("-n", spaces[end], "link", "set", device, "mtu", str(MTU), "up")
        for source, target in (("server", "client"), ("client", "server")):
            threading.Thread(target=carry, args=(ends[source], ends[target], delay_s), daemon=True).start()
        within = ["ip", "netns", "exec", spaces["server"]]
        commands = {"linerate": (8443, [linerate, "serve", root, "--listen", f"{SERVER}:8443", "--cert", certificate,
                                        "--key", key, "--workers", "1"])}
        if shutil.which("nginx"):
            path = os.path.join(folder.name, "nginx.conf")
            with open(path, "w") as file:
                file.write(f"worker_processes 1; daemon off; pid {folder.name}/pid; error_log {folder.name}/error;\n"
                           f"events {{}}\nhttp {{ access_log off; sendfile on; tcp_nopush on; server {{\n"
                           f"listen {SERVER}:8444 ssl; root {root}; ssl_certificate {certificate};\n"
                           f"ssl_certificate_key {key}; ssl_protocols TLSv1.3; }} }}\n")
            commands["nginx"] = (8444, ["nginx", "-c", path])
        # The calibration of who runs this decides nothing.
        environment = os.environ | {"XDG_STATE_HOME": folder.name}
        for _, command in commands.values():
            servers.append(subprocess.Popen(within + command, stdout=subprocess.DEVNULL, env=environment))
        time.sleep(1)
        # Sockets belong to the namespace in which they were made.
        handle = os.open(f"/run/netns/{spaces['client']}", os.O_RDONLY)
        import ctypes
        if ctypes.CDLL(None, use_errno=True).setns(handle, 0x40000000) != 0:
            sys.exit("the client's namespace cannot be entered")
        seen = {server: [] for server in commands}
        for _ in range(times):
            for server, (port, _) in commands.items():
                seen[server].append(fetch(port, name, expected))
        print(f"round trip {2000 * delay_s:.0f} ms, /{name}, {len(expected)} bytes, {times} times; medians in ms")
        for server, rows in seen.items():
            head, first, whole = (statistics.median(column) for column in zip(*rows))
            print(f"{server:9} head {head:6.1f}   first byte of the body {first:6.1f}   all {whole:6.1f}")
    finally:
        for server in servers:
            server.send_signal(signal.SIGTERM)
        for space in spaces.values():
            subprocess.run(["ip", "netns", "delete", space], stderr=subprocess.DEVNULL)


main()
