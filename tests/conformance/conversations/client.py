"""A TLS client on tlslite-ng that can break every rule: it edits its hello, rewrites the records of its handshake, and
seals whatever it likes afterwards."""

import socket

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.constants import AlertDescription, AlertLevel, ContentType, HandshakeType
from tlslite.errors import TLSAbruptCloseError, TLSRemoteAlert
from tlslite.messages import ClientHello, Message
from tlslite.handshakehelpers import HandshakeHelpers

# For any one answer of the server; generous, because machines that run tests are busy.
PATIENCE_S = 30
TLS12, TLS13 = (3, 3), (3, 4)
# What stands for a FIN, and for a reset.
END, RESET = "end", "reset"


class Tap:
    """A socket that lets the records of the handshake be rewritten on their way out."""

    def __init__(self, stream, rewrite):
        self._stream = stream
        self._rewrite = rewrite
        self.records_sent = []

    def sendall(self, data):
        for record in split_records(bytes(data)):
            self.records_sent.append(record)
            for piece in self._rewrite(record) if self._rewrite else [record]:
                self._stream.sendall(piece)

    def send(self, data):
        self.sendall(data)
        return len(data)

    def send_as_it_is(self, data):
        """Bytes that are no whole records, or not to be rewritten."""
        self._stream.sendall(data)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def split_records(data):
    while data:
        length = 5 + int.from_bytes(data[3:5], "big")
        yield data[:length]
        data = data[length:]


def plain_record(content_type, payload, version=(3, 3)):
    """A record that nothing protects."""
    return bytes([content_type, *version]) + len(payload).to_bytes(2, "big") + bytes(payload)


class Connection(TLSConnection):
    """tlslite-ng's connection; `edit_hello` may change each ClientHello before it is sent."""

    def __init__(self, stream, edit_hello):
        super().__init__(stream)
        self._edit_hello = edit_hello
        self.server_randoms = []

    def _sendMsg(self, msg, *others, **named):
        if self._edit_hello and isinstance(msg, ClientHello):
            self._edit_hello(self, msg)
        return super()._sendMsg(msg, *others, **named)

    def _getMsg(self, *expected, **named):
        for result in super()._getMsg(*expected, **named):
            if getattr(result, "handshakeType", None) == HandshakeType.server_hello:
                self.server_randoms.append(bytes(result.random))
            yield result


class Client:
    """A connection to the server. Where `finish` is false the handshake is left to the caller."""

    def __init__(self, address, version=TLS13, edit_hello=None, rewrite=None, session=None, finish=True, **settings):
        self.version = version
        stream = socket.create_connection(address, PATIENCE_S)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tap = Tap(stream, rewrite)
        self.connection = Connection(self.tap, edit_hello)
        # The server's answer to what breaks a rule is read by this client, not by the library.
        self.connection.closeSocket = False
        self.settings = settings_for(version, **settings)
        self._session = session
        if finish:
            self.handshake()

    def handshake(self):
        self.connection.handshakeClientCert(session=self._session, settings=self.settings, serverName="localhost")

    def handshake_alert(self):
        """Does a handshake that the server must refuse, and returns the description of its fatal alert."""
        try:
            self.handshake()
        except TLSRemoteAlert as alert:
            if alert.level != AlertLevel.fatal:
                raise AssertionError(f"a warning ended the handshake: {alert}") from alert
            return alert.description
        # A client of TLS 1.3 has all that it waits for before the server has seen all of the client's.
        return self.receive_fatal_alert()

    def close(self):
        self.tap.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # What is sent.

    def send(self, content_type, payload=b""):
        """A sealed record."""
        self.pad(0)
        self._send(content_type, payload)

    def send_padded(self, content_type, payload, padding_bytes):
        self.pad(padding_bytes)
        self._send(content_type, payload)
        self.pad(0)

    def pad(self, padding_bytes):
        self.connection._recordLayer.padding_cb = lambda *_: padding_bytes

    def _send(self, content_type, payload):
        for _ in self.connection._recordLayer.sendRecord(Message(content_type, bytearray(payload))):
            pass
        self.connection.sock.flush()

    def send_as_it_is(self, data):
        """Bytes that nothing protects."""
        self.tap.send_as_it_is(data)

    def send_handshake(self, handshake_type, body=b""):
        self.send(ContentType.handshake, handshake_message(handshake_type, body))

    def update_key(self, is_requested=False):
        """A KeyUpdate; what follows is under the next key."""
        self.send_handshake(HandshakeType.key_update, bytes([is_requested]))
        self.take_next_sending_key()

    def take_next_sending_key(self):
        session = self.connection.session
        layer = self.connection._recordLayer
        session.cl_app_secret, session.sr_app_secret = layer.calcTLS1_3KeyUpdate_reciever(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret
        )

    def request(self, name, *fields):
        lines = [f"GET /{name} HTTP/1.1", "Host: localhost", *fields, "", ""]
        self.send(ContentType.application_data, "\r\n".join(lines).encode())

    # What comes.

    def receive(self):
        """The next record as (content type, plaintext), or END or RESET. The server's KeyUpdates are acted on."""
        try:
            header, parser = next(r for r in self.connection._recordLayer.recvRecord() if r not in (0, 1))
        except TLSAbruptCloseError:
            return END, b""
        except ConnectionResetError:
            return RESET, b""
        payload = bytes(parser.bytes)
        if self.version == TLS13 and header.type == ContentType.handshake and payload[0] == HandshakeType.key_update:
            self._take_next_receiving_key()
        return header.type, payload

    def _take_next_receiving_key(self):
        session = self.connection.session
        layer = self.connection._recordLayer
        session.cl_app_secret, session.sr_app_secret = layer.calcTLS1_3KeyUpdate_sender(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret
        )

    def receive_data(self, others=None):
        """The next application data; handshake messages that come before it are appended to `others`."""
        while True:
            content_type, payload = self.receive()
            if content_type == ContentType.application_data:
                return payload
            if content_type != ContentType.handshake:
                raise AssertionError(f"{name_of(content_type)} {payload!r} instead of application data")
            if others is not None:
                others.append(payload)

    def receive_body(self, body_bytes, others=None):
        """The body of a response whose body is as long as that."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive_data(others)
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise AssertionError(f"the response is {head!r}")
        body = bytearray(body)
        while len(body) < body_bytes:
            body += self.receive_data(others)
        return bytes(body)

    def receive_alert(self):
        """The next alert as (level, description); whatever comes before it is passed over."""
        while True:
            content_type, payload = self.receive()
            if content_type == ContentType.alert:
                return tuple(payload)
            if content_type in (END, RESET):
                raise AssertionError(f"{content_type} instead of an alert")

    def receive_fatal_alert(self):
        """The description of the fatal alert that comes next, behind which the server closes."""
        level, description = self.receive_alert()
        if level != AlertLevel.fatal:
            raise AssertionError(f"a warning: {AlertDescription.toStr(description)}")
        ending, payload = self.receive()
        if ending not in (END, RESET):
            raise AssertionError(f"{name_of(ending)} {payload!r} behind a fatal alert")
        return description


def settings_for(version, **changes):
    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = version
    settings.cipherNames = ["aes128gcm", "aes256gcm", "chacha20-poly1305"]
    settings.keyShares = ["x25519"]
    for name, value in changes.items():
        if not hasattr(settings, name):
            raise AttributeError(f"tlslite-ng has no setting {name}")
        setattr(settings, name, value)
    return settings


def handshake_message(handshake_type, body=b""):
    return bytes([handshake_type]) + len(body).to_bytes(3, "big") + bytes(body)


def bind_again(connection, hello, settings):
    """Computes the binders of a ClientHello anew, after it was edited."""
    HandshakeHelpers.update_binders(hello, connection._handshake_hash, settings.pskConfigs, None, None)


def name_of(content_type):
    return content_type if isinstance(content_type, str) else ContentType.toStr(content_type)
