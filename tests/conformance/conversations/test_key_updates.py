"""KeyUpdate, from both sides and in wrong shapes (RFC 8446 4.6.3)."""

from tlslite.constants import AlertDescription, ContentType, HandshakeType

from client import handshake_message
from target import on_both_families

NOT_REQUESTED, REQUESTED = b"\x00", b"\x01"
UPDATE = handshake_message(HandshakeType.key_update, NOT_REQUESTED)


def two_in_a_record(client):
    client.send(ContentType.handshake, UPDATE + UPDATE)


def data_inside(client):
    client.send(ContentType.handshake, UPDATE[:3])
    client.request("small.bin")
    client.send(ContentType.handshake, UPDATE[3:])


def old_key_behind_it(client):
    client.send(ContentType.handshake, UPDATE)
    client.request("small.bin")


def next_key_without_it(client):
    client.take_next_sending_key()
    client.request("small.bin")


def body(content):
    return lambda client: client.send_handshake(HandshakeType.key_update, content)


MALFORMED = [
    ("the value 2", AlertDescription.illegal_parameter, body(b"\x02")),
    ("the value 255", AlertDescription.illegal_parameter, body(b"\xff")),
    ("no body", AlertDescription.decode_error, body(b"")),
    ("a body of two bytes", AlertDescription.decode_error, body(b"\x00\x00")),
    ("two in a record", AlertDescription.unexpected_message, two_in_a_record),
    ("data inside one", AlertDescription.unexpected_message, data_inside),
    ("the old key behind one", AlertDescription.bad_record_mac, old_key_behind_it),
    ("the next key without one", AlertDescription.bad_record_mac, next_key_without_it),
]


@on_both_families
class KeyUpdates:
    def test_the_clients_are_taken(self):
        client = self.connect()
        for _ in range(5):
            client.update_key()
            self.expect_file(client)

    def test_one_that_asks_is_answered(self):
        client = self.connect()
        for _ in range(3):
            client.update_key(is_requested=True)
            client.request("small.bin")
            messages = []
            self.expect_body(client, others=messages)
            self.assertIn(UPDATE, messages, "no KeyUpdate of the server, or one that asks back")

    def test_several_that_ask_in_one_go_are_answered(self):
        client = self.connect()
        for _ in range(10):
            client.update_key(is_requested=True)
        client.request("small.bin")
        messages = []
        self.expect_body(client, others=messages)
        # One answer may stand for all that came before it.
        self.assertGreaterEqual(messages.count(UPDATE), 1)
        self.expect_file(client)

    def test_one_that_asks_in_a_download_is_answered(self):
        client = self.connect()
        client.request("large.bin")
        client.update_key(is_requested=True)
        messages = []
        self.expect_body(client, "large.bin", messages)
        # Where the whole response was on its way already, the answer comes behind it.
        client.request("small.bin")
        self.expect_body(client, others=messages)
        self.assertIn(UPDATE, messages)

    def test_one_in_pieces(self):
        for cut in range(1, len(UPDATE)):
            with self.subTest(cut=cut):
                client = self.connect()
                client.send(ContentType.handshake, UPDATE[:cut])
                client.send(ContentType.handshake, UPDATE[cut:])
                client.take_next_sending_key()
                self.expect_file(client)

    def test_each_malformed_one_gets_its_alert(self):
        for what, description, send in MALFORMED:
            with self.subTest(what):
                client = self.connect()
                self.expect_file(client)
                send(client)
                self.expect_refusal(client, description, what)
