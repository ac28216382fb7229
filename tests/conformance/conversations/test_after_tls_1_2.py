"""Handshake messages behind a handshake of TLS 1.2: a wish to renegotiate is declined, all else is a fault."""

from tlslite.constants import AlertDescription, AlertLevel, ContentType, HandshakeType

from client import TLS12, handshake_message
from target import on_both_families

DECLINED = (AlertLevel.warning, AlertDescription.no_renegotiation)


def hello_again(client):
    """The ClientHello that began the connection, as a message."""
    return client.tap.records_sent[0][5:]


@on_both_families
class BehindTls12:
    def test_a_hello_is_declined(self):
        client = self.connect(TLS12)
        self.expect_file(client)
        client.send(ContentType.handshake, hello_again(client))
        self.assertEqual(client.receive_alert(), DECLINED)
        self.expect_file(client)

    def test_a_hello_in_two_records_is_declined(self):
        for cut in (1, 3, 4, 5, 40):
            with self.subTest(cut=cut):
                client = self.connect(TLS12)
                hello = hello_again(client)
                client.send(ContentType.handshake, hello[:cut])
                client.send(ContentType.handshake, hello[cut:])
                self.assertEqual(client.receive_alert(), DECLINED)
                self.expect_file(client)

    def test_other_messages_are_a_fault(self):
        others = {
            "HelloRequest": (HandshakeType.hello_request, b""),
            "ClientKeyExchange": (HandshakeType.client_key_exchange, bytes([32]) + bytes(32)),
            "Finished": (HandshakeType.finished, bytes(12)),
            "Certificate": (HandshakeType.certificate, bytes(3)),
            "KeyUpdate": (HandshakeType.key_update, b"\x00"),
            "an unknown one": (99, b"x"),
        }
        for what, (handshake_type, content) in others.items():
            with self.subTest(what):
                client = self.connect(TLS12)
                self.expect_file(client)
                client.send(ContentType.handshake, handshake_message(handshake_type, content))
                self.expect_refusal(client, AlertDescription.unexpected_message, what)

    def test_change_cipher_spec_is_a_fault(self):
        client = self.connect(TLS12)
        self.expect_file(client)
        client.send(ContentType.change_cipher_spec, b"\x01")
        self.expect_refusal(client, AlertDescription.unexpected_message, "change_cipher_spec")
