"""Records after the handshake: legal ones are taken, each illegal one gets the alert that the RFCs name."""

from tlslite.constants import AlertDescription, AlertLevel, ContentType, HandshakeType

from client import END, TLS12, TLS13, plain_record
from target import on_both_families

VERSIONS = [TLS12, TLS13]
MOST_BYTES = 1 << 14


def request_of(length, name="small.bin"):
    """A request that is so many bytes long."""
    head = f"GET /{name} HTTP/1.1\r\nHost: localhost\r\nX: "
    return (head + "y" * (length - len(head) - 4) + "\r\n\r\n").encode()


def seal(content_type, payload=b""):
    return lambda client: client.send(content_type, payload)


def plain(content_type, payload):
    return lambda client: client.send_as_it_is(plain_record(content_type, payload))


def empty_without_end(client):
    for _ in range(100):
        client.send(ContentType.application_data)


ILLEGAL = [
    ("2^14 + 1 bytes of plaintext", AlertDescription.record_overflow, seal(ContentType.application_data, b"x" * (MOST_BYTES + 1))),
    ("a header of 65535 bytes", AlertDescription.record_overflow, lambda c: c.send_as_it_is(b"\x17\x03\x03\xff\xff")),
    ("an unprotected record", AlertDescription.bad_record_mac, plain(ContentType.application_data, b"x" * 40)),
    ("an unknown content type outside", AlertDescription.unexpected_message, plain(99, b"x" * 40)),
    ("an empty handshake record", AlertDescription.unexpected_message, seal(ContentType.handshake)),
    ("an empty alert", AlertDescription.unexpected_message, seal(ContentType.alert)),
    ("an alert of one byte", AlertDescription.decode_error, seal(ContentType.alert, b"\x01")),
    ("empty records without end", AlertDescription.unexpected_message, empty_without_end),
]
ILLEGAL_IN = {
    TLS12: [
        ("a header one byte too long", AlertDescription.record_overflow, lambda c: c.send_as_it_is(b"\x17\x03\x03\x48\x01")),
    ],
    TLS13: [
        ("a header one byte too long", AlertDescription.record_overflow, lambda c: c.send_as_it_is(b"\x17\x03\x03\x41\x01")),
        ("padding beyond 2^14 + 1 bytes", AlertDescription.record_overflow, lambda c: c.send_padded(ContentType.application_data, b"x", MOST_BYTES)),
        ("nothing but zeros", AlertDescription.unexpected_message, seal(0, b"\x00" * 40)),
        ("an unknown content type inside", AlertDescription.unexpected_message, seal(99, b"x")),
        ("change_cipher_spec behind the handshake", AlertDescription.unexpected_message, plain(ContentType.change_cipher_spec, b"\x01")),
        ("an unprotected alert", AlertDescription.unexpected_message, plain(ContentType.alert, bytes([AlertLevel.fatal, 80]))),
        ("a ClientHello", AlertDescription.unexpected_message, lambda c: c.send_handshake(HandshakeType.client_hello, b"\x03\x03" + bytes(40))),
        ("a Finished", AlertDescription.unexpected_message, lambda c: c.send_handshake(HandshakeType.finished, bytes(32))),
        ("an EndOfEarlyData", AlertDescription.unexpected_message, lambda c: c.send_handshake(HandshakeType.end_of_early_data)),
    ],
}


@on_both_families
class Records:
    def test_each_illegal_record_gets_its_alert(self):
        for version in VERSIONS:
            for what, description, send in ILLEGAL + ILLEGAL_IN[version]:
                with self.subTest(what, version=version):
                    client = self.connect(version)
                    self.expect_file(client)
                    send(client)
                    self.expect_refusal(client, description, what)

    def test_an_illegal_record_in_a_download_gets_its_alert(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(version)
                client.request("endless.bin")
                client.receive_data()
                client.send(ContentType.handshake)
                self.expect_refusal(client, AlertDescription.unexpected_message, "an empty handshake record")

    def test_records_of_full_length(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(version)
                client.send(ContentType.application_data, request_of(MOST_BYTES))
                self.expect_body(client)
        client = self.connect(TLS13)
        client.send_padded(ContentType.application_data, request_of(100), MOST_BYTES - 100)
        self.expect_body(client)

    def test_empty_records_between_others(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(version)
                text = request_of(200)
                for at in range(0, len(text), 20):
                    client.send(ContentType.application_data)
                    client.send(ContentType.application_data, text[at : at + 20])
                self.expect_body(client)

    def test_close_notify_is_answered(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(version)
                self.expect_file(client)
                client.send(ContentType.alert, bytes([AlertLevel.warning, AlertDescription.close_notify]))
                self.assertEqual(client.receive_alert(), (AlertLevel.warning, AlertDescription.close_notify))
                self.assertEqual(client.receive(), (END, b""))

    def test_close_notify_ends_a_last_response(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(version)
                client.request("large.bin", "Connection: close")
                self.expect_body(client, "large.bin")
                self.assertEqual(client.receive(), (ContentType.alert, b"\x01\x00"))
                self.assertEqual(client.receive(), (END, b""))

    def test_a_warning_changes_nothing(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(version)
                client.send(ContentType.alert, bytes([AlertLevel.warning, AlertDescription.user_canceled]))
                self.expect_file(client)
