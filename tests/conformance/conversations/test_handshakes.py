"""Handshakes in unusual and in illegal shapes."""

from tlslite.constants import AlertDescription, AlertLevel, ContentType

from client import TLS12, TLS13, plain_record
from target import on_both_families

VERSIONS = [TLS12, TLS13]
# RFC 8446 4.1.3: what the end of ServerHello.random says where a server of TLS 1.3 speaks TLS 1.2.
DOWNGRADE = b"DOWNGRD\x01"


class FirstRecord:
    """Rewrites the first record that is sent, the ClientHello's. All others go as they are, or, where it is the last,
    nowhere: a server that has closed would answer them with a reset, which can take the place of its alert."""

    def __init__(self, rewrite, is_last=False):
        self._rewrite = rewrite
        self._is_last = is_last

    def __call__(self, record):
        rewrite, self._rewrite = self._rewrite, None
        if rewrite:
            return rewrite(record)
        return [] if self._is_last else [record]


def in_pieces(size):
    """Each handshake message of a record in records of `size` bytes."""

    def rewrite(record):
        payload = record[5:]
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)]
        return [b"".join(plain_record(ContentType.handshake, piece) for piece in pieces)]

    return FirstRecord(rewrite)


def with_record_inside(content_type, payload):
    """A ClientHello in two records, with another record between them."""

    def rewrite(record):
        hello = record[5:]
        return [
            plain_record(ContentType.handshake, hello[:40])
            + plain_record(content_type, payload)
            + plain_record(ContentType.handshake, hello[40:])
        ]

    return FirstRecord(rewrite)


@on_both_families
class Handshakes:
    def test_a_hello_in_records_of_any_size(self):
        for version in VERSIONS:
            for size in (1, 3, 4, 5, 41, 150):
                with self.subTest(version=version, size=size):
                    self.expect_file(self.connect(version, rewrite=in_pieces(size)))

    def test_another_record_inside_a_hello(self):
        others = {
            "an alert": (ContentType.alert, bytes([AlertLevel.warning, AlertDescription.user_canceled])),
            "application data": (ContentType.application_data, b"x"),
        }
        for version in VERSIONS:
            for name, other in others.items():
                with self.subTest(name, version=version):
                    client = self.connect(version, rewrite=with_record_inside(*other), finish=False)
                    self.expect_no_handshake(client, AlertDescription.unexpected_message)

    def test_an_empty_handshake_record_instead_of_a_hello(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(
                    version, rewrite=FirstRecord(lambda _: [plain_record(ContentType.handshake, b"")]), finish=False
                )
                # Of records that nothing protects RFC 8446 5.1 only says that they must not be empty.
                self.expect_no_handshake(client, AlertDescription.unexpected_message, AlertDescription.decode_error)

    def test_an_unknown_content_type_instead_of_a_hello(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(
                    version, rewrite=FirstRecord(lambda record: [b"\x63" + record[1:]]), finish=False
                )
                self.expect_no_handshake(client, AlertDescription.unexpected_message)

    def test_a_hello_longer_than_a_record_may_be(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                client = self.connect(
                    version,
                    rewrite=FirstRecord(lambda _: [plain_record(ContentType.handshake, b"\x01" * 17_000)]),
                    finish=False,
                )
                self.expect_no_handshake(client, AlertDescription.record_overflow)

    def test_change_cipher_spec_of_a_middlebox(self):
        def with_change_cipher_spec(record):
            return [record, plain_record(ContentType.change_cipher_spec, b"\x01")]

        self.expect_file(self.connect(TLS13, rewrite=FirstRecord(with_change_cipher_spec)))

    def test_change_cipher_spec_of_another_value(self):
        def with_other_value(record):
            return [record, plain_record(ContentType.change_cipher_spec, b"\x02")]

        client = self.connect(TLS13, rewrite=FirstRecord(with_other_value, is_last=True), finish=False)
        self.expect_no_handshake(client, AlertDescription.unexpected_message)

    def test_a_hello_is_asked_for_again(self):
        hellos = []
        client = self.connect(TLS13, edit_hello=lambda _, hello: hellos.append(hello), keyShares=[])
        self.assertEqual(len(hellos), 2)
        self.expect_file(client)

    def test_a_downgrade_is_marked(self):
        marked = self.connect(TLS12, edit_hello=None)
        self.assertEqual(marked.connection.server_randoms[-1][-8:], DOWNGRADE)
        self.expect_file(marked)
        unmarked = self.connect(TLS13)
        self.assertNotEqual(unmarked.connection.server_randoms[-1][-8:], DOWNGRADE)

    def test_a_forged_finished(self):
        def forge(record):
            # The last record of a client's handshake is the first protected one; nothing before it is.
            protected = record[0] == ContentType.application_data
            return [record[:-1] + bytes([record[-1] ^ 1]) if protected else record]

        client = self.connect(TLS13, rewrite=forge, finish=False)
        self.expect_no_handshake(client, AlertDescription.bad_record_mac)

    def test_a_ticket_resumes(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                first = self.connect(version)
                first.request("small.bin")
                # The library keeps tickets that it meets while it reads data itself.
                first.connection.read(min=1)
                again = self.connect(version, session=first.connection.session)
                self.assertTrue(again.connection.resumed)
                self.expect_file(again)
