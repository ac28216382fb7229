"""What all conversations share: the server that `run.py` started, and its files."""

import random
import sys
import unittest

from client import Client

# Names and contents of the site, of odd lengths. The library's ciphers are written in Python, so that no client can
# read more than a few records in good time; the largest file, which no socket's buffers hold, is never read to its end.
FILES = {
    "small.bin": random.Random(1).randbytes(257),
    "large.bin": random.Random(2).randbytes(50_003),
    "endless.bin": random.Random(3).randbytes(12_000_003),
}
# Set by `run.py`.
server = None


class Conversation(unittest.TestCase):
    """Conversations over one family of addresses."""

    family = None

    def connect(self, *arguments, **named):
        """A client, which is closed when the test has ended."""
        client = Client(server.address(self.family), *arguments, **named)
        self.addCleanup(client.close)
        return client

    def expect_file(self, client, name="small.bin"):
        """Asks for a file and compares every byte."""
        client.request(name)
        self.expect_body(client, name)

    def expect_body(self, client, name="small.bin", others=None):
        self.assertTrue(client.receive_body(len(FILES[name]), others) == FILES[name], "other bytes than the file's")

    def expect_refusal(self, client, description, what):
        self.assertEqual(client.receive_fatal_alert(), description, what)

    def expect_no_handshake(self, client, *descriptions):
        """Does a handshake that the server must end with one of these alerts."""
        self.assertIn(client.handshake_alert(), descriptions)


def on_both_families(conversations):
    """Makes of a class two, for IPv4 and IPv6."""
    module = sys.modules[conversations.__module__]
    for family in "46":
        name = f"{conversations.__name__}IPv{family}"
        setattr(module, name, type(name, (conversations, Conversation), {"family": family, "__module__": module.__name__}))
    return conversations
