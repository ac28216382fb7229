"""Runs one script of tlsfuzzer, bent to what this server offers.

    launch.py TLSFUZZER OUTCOMES SCRIPT [ARGUMENT...]

What became of each conversation is written to the file OUTCOMES, a JSON object a line: its name as `conversation`, and
as `failure` null or the error that ended it.

Many scripts for TLS 1.2 speak the RSA key exchange with a CBC cipher, or ECDHE with one. The server has neither, so
that they would end at its refusal, and nothing of what they are about would be tested. Three things are changed
before the script runs:

* the names of those suites stand for ECDHE with AES-128-GCM;
* a conversation that expects no ServerKeyExchange gets one, and a ClientHello the extensions that ECDHE needs;
* an address of IPv6 is connected to as such.

What is chosen at random is chosen by SEED, so that two runs are of the same conversations.
"""

import importlib
import json
import random
import socket
import sys

SEED = 20260101


def main():
    tlsfuzzer, outcomes, script = sys.argv[1:4]
    sys.path.insert(0, tlsfuzzer)
    sys.argv = [script] + sys.argv[4:]
    random.seed(SEED)
    rename_suites()
    connect_to_either_family()
    with open(outcomes, "w") as file:
        watch_conversations(file)
        importlib.import_module("tlsfuzzer._apps." + script.replace("-", "_")).main()


def rename_suites():
    """Lets the suites that scripts name and the server lacks stand for its own."""
    from tlslite.constants import CipherSuite

    by_key = {
        "TLS_RSA_WITH": "TLS_ECDHE_RSA_WITH",
        "TLS_ECDHE_RSA_WITH": "TLS_ECDHE_RSA_WITH",
        "TLS_ECDHE_ECDSA_WITH": "TLS_ECDHE_ECDSA_WITH",
    }
    by_cipher = {
        "AES_128_CBC_SHA": "AES_128_GCM_SHA256",
        "AES_128_CBC_SHA256": "AES_128_GCM_SHA256",
        "AES_256_CBC_SHA": "AES_256_GCM_SHA384",
    }
    own = {
        f"{key}_{cipher}": getattr(CipherSuite, f"{own_key}_{own_cipher}")
        for key, own_key in by_key.items()
        for cipher, own_cipher in by_cipher.items()
    }
    for name, suite in own.items():
        if hasattr(CipherSuite, name):
            setattr(CipherSuite, name, suite)


class EitherFamily:
    """The module `socket`, whose sockets are of the family of the address that they connect to."""

    class socket(socket.socket):
        def connect(self, address):
            if ":" in address[0]:
                timeout = self.gettimeout()
                self.close()
                self.__init__(socket.AF_INET6, socket.SOCK_STREAM)
                self.settimeout(timeout)
            super().connect(address)

    def __getattr__(self, name):
        return getattr(socket, name)


def connect_to_either_family():
    import tlsfuzzer.messages

    tlsfuzzer.messages.socket = EitherFamily()


def watch_conversations(outcomes):
    """Has each conversation adapted before it runs, and its outcome written down."""
    import tlsfuzzer.runner

    runner = tlsfuzzer.runner.Runner
    run = runner.run

    def watched(self):
        adapt(self.conversation)
        # Every script calls so what it loops over. A script that calls it otherwise ends here, and is noticed.
        name = sys._getframe(1).f_locals["c_name"]
        failure = None
        try:
            run(self)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            outcomes.write(json.dumps({"conversation": name, "failure": failure}) + "\n")
            outcomes.flush()

    runner.run = watched


def adapt(conversation):
    from tlsfuzzer.expect import ExpectServerKeyExchange
    from tlsfuzzer.messages import ClientHelloGenerator

    nodes = all_nodes(conversation)
    for node in nodes:
        expect_key_exchange(node)
    if any(isinstance(node, ExpectServerKeyExchange) for node in all_nodes(conversation)):
        for node in nodes:
            if isinstance(node, ClientHelloGenerator) and not node.ssl2:
                add_what_ecdhe_needs(node)


def all_nodes(conversation):
    """Every node that can be reached, each once."""
    found, waiting = {}, [conversation]
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in found:
            found[id(node)] = node
            waiting += [node.child, node.next_sibling]
    return list(found.values())


def expect_key_exchange(node):
    """Puts a ServerKeyExchange between the server's certificate and its ServerHelloDone."""
    from tlsfuzzer.expect import ExpectCertificate, ExpectServerHelloDone, ExpectServerKeyExchange

    if isinstance(node, ExpectCertificate) and isinstance(node.child, ExpectServerHelloDone):
        done = node.child
        node.add_child(ExpectServerKeyExchange()).add_child(done)


def add_what_ecdhe_needs(hello):
    """Without signature_algorithms a client takes SHA-1 alone, which the server does not sign with."""
    from tlsfuzzer.helpers import SIG_ALL
    from tlslite.constants import ExtensionType, GroupName
    from tlslite.extensions import SignatureAlgorithmsExtension, SupportedGroupsExtension

    hello.extensions = dict(hello.extensions or {})
    hello.extensions.setdefault(
        ExtensionType.supported_groups,
        SupportedGroupsExtension().create([GroupName.x25519, GroupName.secp256r1]),
    )
    hello.extensions.setdefault(
        ExtensionType.signature_algorithms, SignatureAlgorithmsExtension().create(SIG_ALL)
    )


main()
