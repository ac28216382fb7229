//! A model of FreeBSD's kernel TLS for tests on Linux: it makes real records over real sockets, and fails where it is told to.
//!
//! It keeps the habits of the original in which it differs from Linux': nothing is attached; a second key is `EALREADY`; a TLS 1.2
//! AES-GCM key comes with a salt alone, and explicit nonces begin at a random number; no call goes on in another's record, and none
//! tells the number of the next; a full socket takes the beginning of a call once so much room is there, and `sendfile` tells that as
//! an error beside the bytes; control records are taken whole or not at all; what was taken is in the socket's buffer, in order. A
//! socket has a mode, which anybody may ask for and set, and loss takes it out of an adapter.

use crate::{KernelKey, module::Shared};
use linerate_os::{
    kernel_tls::freebsd::{
        CMSG_DATA_OFFSET, CMSG_LEN_1, CMSG_SPACE_1, CRYPTO_AES_NIST_GCM_16, CRYPTO_CHACHA20_POLY1305,
        IPPROTO_TCP, SF_NODISKIO, Sockets, TCP_TLS_MODE_IFNET, TCP_TLS_MODE_NONE, TCP_TLS_MODE_SW,
        TLS_MAJOR_VER_ONE, TLS_MINOR_VER_THREE, TLS_MINOR_VER_TWO, TLS_SET_RECORD_TYPE, TlsEnable,
    },
    socket::{self, Follows},
};
use linerate_record::{Cipher, ContentType, Version};
use rustix::io::Errno;
use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    hash::{BuildHasher, RandomState},
    io,
    os::{fd::BorrowedFd, unix::fs::FileExt},
    sync::Arc,
    time::{Duration, Instant},
};

/// `kern.ipc.tls.maxlen`.
const RECORD_BYTES: usize = 16_384;
/// `sendfile` makes records of so many pages.
const PAGES: u64 = 4;
const PAGE_BYTES: u64 = 4096;
/// `SO_SNDLOWAT`.
const LEAST_ROOM_BYTES: usize = 2048;
/// Larger than what the model puts into a socket: that is what its own account is of.
const REAL_BUFFER_BYTES: usize = 1 << 20;

/// What the model does other than to work. All of it can be changed while it is in use.
#[derive(Debug)]
pub struct FreeBsdScript {
    /// The outcome of the next calls of each kind: an error, or `None` for success. Beyond the list all succeed.
    pub enable: Shared<VecDeque<Option<Errno>>>,
    /// The same for setting a mode.
    pub set_mode: Shared<VecDeque<Option<Errno>>>,
    /// The same for asking for it.
    pub mode: Shared<VecDeque<Option<Errno>>>,
    /// The same for control records.
    pub control: Shared<VecDeque<Option<Errno>>>,
    /// The same for `send` and `sendfile`. `EBUSY` and `EINTR` come behind the first record of a `sendfile` if
    /// `fails_midway` is set.
    pub data: Shared<VecDeque<Option<Errno>>>,
    /// A call that finds the socket full waits for room, instead of saying so: for sockets whose peer is another thread, and whose
    /// readiness is the real socket's.
    pub waits: Shared<bool>,
    /// Errors of `sendfile` come behind its first record.
    pub fails_midway: Shared<bool>,
    /// The interface takes connections: TLS 1.3, too.
    pub interface_takes: Shared<bool>,
    /// The socket's buffer has room for so many bytes.
    pub buffer_bytes: Shared<usize>,
    /// What was called, in order.
    pub log: Shared<Vec<&'static str>>,
    /// First explicit nonces that were begun with.
    pub first_nonces: Shared<Vec<u64>>,
    /// Records that were made.
    pub records: Shared<u64>,
    /// Flags of each `sendfile`.
    pub flags: Shared<Vec<i32>>,
}

impl Default for FreeBsdScript {
    fn default() -> Self {
        Self {
            enable: Shared::default(),
            set_mode: Shared::default(),
            mode: Shared::default(),
            control: Shared::default(),
            data: Shared::default(),
            waits: Shared::default(),
            fails_midway: Shared::default(),
            interface_takes: Shared::default(),
            buffer_bytes: Shared::of(32 * 1024),
            log: Shared::default(),
            first_nonces: Shared::default(),
            records: Shared::default(),
            flags: Shared::default(),
        }
    }
}

impl FreeBsdScript {
    fn outcome(&self, name: &'static str, list: &Shared<VecDeque<Option<Errno>>>) -> io::Result<()> {
        self.log.lock().push(name);
        match list.lock().pop_front().flatten() {
            Some(errno) => Err(errno.into()),
            None => Ok(()),
        }
    }

    /// How often that was called.
    #[must_use]
    pub fn calls(&self, name: &str) -> usize {
        self.log.lock().iter().filter(|called| **called == name).count()
    }
}

struct Session {
    key: KernelKey,
    mode: i32,
    /// Loss took it out of its interface.
    lost: bool,
}

/// The model.
#[derive(Default)]
pub struct FreeBsd {
    /// What it does other than to work.
    pub script: Arc<FreeBsdScript>,
    /// By the socket's own number: a set-up has a descriptor of its own.
    sessions: Arc<Shared<HashMap<u64, Session>>>,
}

impl Clone for FreeBsd {
    /// The same kernel.
    fn clone(&self) -> Self {
        Self { script: Arc::clone(&self.script), sessions: Arc::clone(&self.sessions) }
    }
}

fn number(socket: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(socket).unwrap().st_ino
}

fn failed<T>(errno: Errno) -> io::Result<T> {
    Err(errno.into())
}

impl FreeBsd {
    /// Loses so much of a connection that the kernel takes it out of its interface (`ktls_disable_ifnet`).
    pub fn lose(&self, socket: BorrowedFd<'_>) {
        if let Some(session) = self.sessions.lock().get_mut(&number(socket)) {
            session.mode = TCP_TLS_MODE_SW;
            session.lost = true;
        }
    }

    /// Takes every connection out of its interface.
    pub fn lose_all(&self) {
        for session in self.sessions.lock().values_mut() {
            session.mode = TCP_TLS_MODE_SW;
            session.lost = true;
        }
    }

    fn room(&self, socket: BorrowedFd<'_>) -> usize {
        let used = socket::unacknowledged_bytes(&socket).unwrap();
        self.script.buffer_bytes.get().saturating_sub(used as usize)
    }

    /// Puts a record into the socket's buffer.
    fn put(&self, socket: BorrowedFd<'_>, content_type: ContentType, payload: &[u8]) {
        let record = match self.sessions.lock().get_mut(&number(socket)) {
            Some(session) => session.key.record(content_type, payload),
            // A socket without a key sends what it is given.
            None => payload.to_vec(),
        };
        *self.script.records.lock() += 1;
        let sent = socket::send(&socket, &record, Follows::Nothing);
        match sent {
            Ok(sent) => assert_eq!(sent, record.len(), "the real buffer is larger than the model's"),
            // The peer is gone: the next call tells.
            Err(error) => assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        }
    }

    /// How much of `left` bytes is taken now; `None` where the socket counts as full.
    fn bite(&self, socket: BorrowedFd<'_>, left: usize) -> Option<usize> {
        let give_up = Instant::now() + Duration::from_secs(20);
        loop {
            let room = self.room(socket);
            if room > 0 && (room >= left || room >= LEAST_ROOM_BYTES) {
                return Some(left.min(room));
            }
            if !self.script.waits.get() || Instant::now() > give_up {
                return None;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Sockets for FreeBsd {
    fn enable_sending(&self, socket: BorrowedFd<'_>, key: &TlsEnable<'_>) -> io::Result<()> {
        self.script.outcome("enable", &self.script.enable)?;
        let (version, cipher) = match (key.version(), key.algorithm(), key.key().len()) {
            ((TLS_MAJOR_VER_ONE, TLS_MINOR_VER_TWO), CRYPTO_AES_NIST_GCM_16, 16) => {
                (Version::Tls12, Cipher::Aes128Gcm)
            }
            ((TLS_MAJOR_VER_ONE, TLS_MINOR_VER_TWO), CRYPTO_AES_NIST_GCM_16, 32) => {
                (Version::Tls12, Cipher::Aes256Gcm)
            }
            ((TLS_MAJOR_VER_ONE, TLS_MINOR_VER_TWO), CRYPTO_CHACHA20_POLY1305, 32) => {
                (Version::Tls12, Cipher::ChaCha20Poly1305)
            }
            ((TLS_MAJOR_VER_ONE, TLS_MINOR_VER_THREE), CRYPTO_AES_NIST_GCM_16, 16) => {
                (Version::Tls13, Cipher::Aes128Gcm)
            }
            ((TLS_MAJOR_VER_ONE, TLS_MINOR_VER_THREE), CRYPTO_AES_NIST_GCM_16, 32) => {
                (Version::Tls13, Cipher::Aes256Gcm)
            }
            ((TLS_MAJOR_VER_ONE, TLS_MINOR_VER_THREE), CRYPTO_CHACHA20_POLY1305, 32) => {
                (Version::Tls13, Cipher::ChaCha20Poly1305)
            }
            _ => return failed(Errno::INVAL),
        };
        let has_salt_alone = version == Version::Tls12 && cipher != Cipher::ChaCha20Poly1305;
        if key.vector().len() != if has_salt_alone { 4 } else { 12 } || !key.has_nothing_else() {
            return failed(Errno::INVAL);
        }
        let mut sessions = self.sessions.lock();
        if sessions.contains_key(&number(socket)) {
            return failed(Errno::ALREADY);
        }
        let mut vector = [0; 12];
        vector[..key.vector().len()].copy_from_slice(key.vector());
        if has_salt_alone {
            let first = RandomState::new().hash_one(number(socket));
            vector[4..].copy_from_slice(&first.to_be_bytes());
            self.script.first_nonces.lock().push(first);
        }
        let takes = self.script.interface_takes.get() && cipher != Cipher::ChaCha20Poly1305;
        socket2::SockRef::from(&socket).set_send_buffer_size(REAL_BUFFER_BYTES)?;
        let key = KernelKey::new(version, cipher, key.key(), vector, key.sequence());
        let mode = if takes { TCP_TLS_MODE_IFNET } else { TCP_TLS_MODE_SW };
        sessions.insert(number(socket), Session { key, mode, lost: false });
        Ok(())
    }

    fn sending_mode(&self, socket: BorrowedFd<'_>) -> io::Result<i32> {
        self.script.outcome("mode", &self.script.mode)?;
        Ok(self.sessions.lock().get(&number(socket)).map_or(TCP_TLS_MODE_NONE, |session| session.mode))
    }

    fn set_sending_mode(&self, socket: BorrowedFd<'_>, mode: i32) -> io::Result<()> {
        self.script.outcome("set_mode", &self.script.set_mode)?;
        let mut sessions = self.sessions.lock();
        // Without a key it succeeds and does nothing.
        let Some(session) = sessions.get_mut(&number(socket)) else { return Ok(()) };
        match mode {
            TCP_TLS_MODE_SW => session.mode = mode,
            TCP_TLS_MODE_IFNET if session.lost => return failed(Errno::NXIO),
            TCP_TLS_MODE_IFNET if session.mode == mode => return failed(Errno::ALREADY),
            TCP_TLS_MODE_IFNET if !self.script.interface_takes.get() => return failed(Errno::OPNOTSUPP),
            TCP_TLS_MODE_IFNET => session.mode = mode,
            _ => return failed(Errno::INVAL),
        }
        Ok(())
    }

    fn send_message(&self, socket: BorrowedFd<'_>, bytes: &[u8], control: &[u8]) -> io::Result<usize> {
        self.script.outcome("control", &self.script.control)?;
        let word = |place: usize| i32::from_ne_bytes(control[place..place + 4].try_into().unwrap());
        let header = (word(0), word(4), word(8), control.len());
        if header != (CMSG_LEN_1 as i32, IPPROTO_TCP, TLS_SET_RECORD_TYPE, CMSG_SPACE_1) || bytes.is_empty() {
            return failed(Errno::INVAL);
        }
        if bytes.len() > self.script.buffer_bytes.get() {
            return failed(Errno::MSGSIZE);
        }
        if bytes.len() > self.room(socket) {
            return failed(Errno::AGAIN);
        }
        self.put(socket, ContentType::from_wire(control[CMSG_DATA_OFFSET]).unwrap(), bytes);
        Ok(bytes.len())
    }

    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
        self.script.outcome("send", &self.script.data)?;
        if bytes.is_empty() {
            return failed(Errno::INVAL);
        }
        let mut taken = 0;
        while taken < bytes.len() {
            let Some(bite) = self.bite(socket, bytes.len() - taken) else { break };
            for record in bytes[taken..taken + bite].chunks(RECORD_BYTES) {
                self.put(socket, ContentType::ApplicationData, record);
            }
            taken += bite;
        }
        if taken == 0 { failed(Errno::AGAIN) } else { Ok(taken) }
    }

    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
        flags: i32,
    ) -> (io::Result<()>, u64) {
        self.script.flags.lock().push(flags);
        let mut wrong = self.script.outcome("sendfile", &self.script.data).err();
        if !self.script.fails_midway.get()
            && let Some(error) = wrong.take()
        {
            assert!(flags == SF_NODISKIO || Errno::from_io_error(&error) != Some(Errno::BUSY));
            return (Err(error), 0);
        }
        let file_bytes = file.metadata().unwrap().len();
        // No bytes are all bytes up to the end.
        let end = if length_bytes == 0 { file_bytes } else { file_bytes.min(offset + length_bytes as u64) };
        let (mut position, mut full) = (offset, false);
        while position < end && !full {
            let Some(bite) = self.bite(socket, (end - position) as usize) else {
                full = true;
                break;
            };
            let bite_end = position + bite as u64;
            while position < bite_end {
                // Whole pages, the first of them from within.
                let record_end = (position / PAGE_BYTES + PAGES) * PAGE_BYTES;
                let mut record = vec![0; (record_end.min(bite_end) - position) as usize];
                file.read_exact_at(&mut record, position).unwrap();
                self.put(socket, ContentType::ApplicationData, &record);
                position += record.len() as u64;
                if let Some(error) = wrong.take() {
                    return (Err(error), position - offset);
                }
            }
        }
        if full { (failed(Errno::AGAIN), position - offset) } else { (Ok(()), position - offset) }
    }

    fn leaves_by(&self, _: BorrowedFd<'_>) -> io::Result<String> {
        Ok("sim0".to_owned())
    }
}
