"""Early data that the server refuses: it offers none, and a client may send some all the same (RFC 8446 4.2.10)."""

from tlslite.constants import ContentType, ExtensionType
from tlslite.errors import TLSError
from tlslite.extensions import TLSExtension

from client import END, RESET, bind_again, plain_record
from target import on_both_families

# Of a ticket that the server never gave, so that it refuses the early data, and the handshake is a full one.
KEYS = [(b"a ticket of another server", b"\x5a" * 32, "sha256")]
CHANGE_CIPHER_SPEC = plain_record(ContentType.change_cipher_spec, b"\x01")
# Records and the bytes in each: few and long, many and short, all below 2^14 bytes.
SHAPES = [(1, 1), (1, 16_000), (5, 1_000), (8, 400), (32, 30), (4, 4_000), (15, 1_071)]


class OfferEarlyData:
    """Announces early data in the first ClientHello, and sends records that nobody can open behind it."""

    def __init__(self, records):
        self.records = records
        self.hellos = 0

    def edit(self, connection, hello):
        self.hellos += 1
        if self.hellos == 1:
            key = hello.extensions.pop()
            early = TLSExtension(extType=ExtensionType.early_data).create(bytearray())
            hello.extensions += [early, key]
        else:
            # RFC 8446 4.1.2: the second hello has none.
            hello.extensions = [e for e in hello.extensions if e.extType != ExtensionType.early_data]
        bind_again(connection, hello, self.settings)

    def rewrite(self, record):
        pieces = [record]
        if record[0] == ContentType.handshake and self.records:
            # In one write with the hello, as clients send it.
            pieces = [record + b"".join(self.records)]
            self.records = []
        return pieces

    def client(self, conversation, **settings):
        client = conversation.connect(
            edit_hello=self.edit, rewrite=self.rewrite, finish=False, pskConfigs=KEYS, **settings
        )
        self.settings = client.settings
        return client


def unopenable(length):
    """A record that looks protected; what it holds is unlike a tag of any key."""
    return plain_record(ContentType.application_data, b"\xa5" * (length + 17))


@on_both_families
class RefusedEarlyData:
    def test_of_every_shape_is_passed_over(self):
        for count, length in SHAPES:
            with self.subTest(records=count, bytes=length):
                client = OfferEarlyData([unopenable(length)] * count).client(self)
                client.handshake()
                self.expect_file(client)

    def test_behind_and_between_change_cipher_spec_is_passed_over(self):
        for name, records in {
            "before": [CHANGE_CIPHER_SPEC, unopenable(1_000), unopenable(1_000)],
            "between": [unopenable(1_000), CHANGE_CIPHER_SPEC, unopenable(1_000)],
        }.items():
            with self.subTest(name):
                client = OfferEarlyData(records).client(self)
                client.handshake()
                self.expect_file(client)

    def test_is_passed_over_when_another_hello_is_asked_for(self):
        offer = OfferEarlyData([unopenable(1_000)] * 5)
        client = offer.client(self, keyShares=[])
        client.handshake()
        self.assertEqual(offer.hellos, 2)
        self.expect_file(client)

    def test_without_end_is_cut(self):
        client = OfferEarlyData([unopenable(16_000)] * 40).client(self)
        try:
            client.handshake()
            ending, _ = client.receive()
        except TimeoutError:
            raise
        except (OSError, TLSError):
            # An alert, or a reset in its place: the server has closed on what it had not read.
            return
        self.assertIn(ending, [ContentType.alert, END, RESET])
