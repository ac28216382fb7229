//! A model of Linux' `tls` module for tests: it makes real records over real sockets on any machine, and fails where it
//! is told to.
//!
//! It keeps the habits of the original that have bitten people: a record stays open while more is announced; a call may
//! take less than it is given, or nothing; what TCP has no room for stays in the module after the call has succeeded,
//! leaves later by itself, and is lost when the socket is closed before.

use crate::{KernelKey, receiving::Receiver};
use linerate_os::{
    kernel_tls::{Calls, Carrier, Carriers, DirectionKey, Habits, HandedOver, Opened, System},
    socket::{self, Follows},
};
use linerate_record::{Cipher, ContentType, Version};
use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    fs::File,
    io::{self, Write},
    net::TcpStream,
    os::{fd::BorrowedFd, unix::fs::FileExt},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

/// A part of the script: set-ups run on threads of their own.
#[derive(Debug, Default)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    pub(crate) fn of(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, value: T) {
        *self.lock() = value;
    }
}

impl<T: Copy> Shared<T> {
    pub fn get(&self) -> T {
        *self.lock()
    }
}

/// An adapter that may take connections over. The default is none, on a kernel that tells nothing of sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nic {
    /// It takes what it is given, but TLS 1.3.
    pub takes: bool,
    /// How long the caller waits for a set-up.
    pub set_up_ms: u64,
    /// The kernel tells whether an adapter or its own code has a socket.
    pub tells_sockets: bool,
    /// Connections that another process hands over while a set-up is made.
    pub others: u64,
    /// The counts are of another network namespace.
    pub counts_nothing: bool,
}

/// What the model does other than to work. All of it can be changed while it is in use.
#[derive(Debug, Default)]
pub struct Script {
    /// The outcome of the next calls of each kind: an error's number, or `None` for success. Beyond the list all succeed.
    pub attach: Shared<VecDeque<Option<i32>>>,
    /// The same for `install`.
    pub install: Shared<VecDeque<Option<i32>>>,
    /// The same for `install_receiving`.
    pub install_receiving: Shared<VecDeque<Option<i32>>>,
    /// The same for `receive`.
    pub receive: Shared<VecDeque<Option<i32>>>,
    /// The same for `send_control`.
    pub control: Shared<VecDeque<Option<i32>>>,
    /// The same for `sequence`.
    pub sequence: Shared<VecDeque<Option<i32>>>,
    /// The same for `send` and `send_file`.
    pub data: Shared<VecDeque<Option<i32>>>,
    /// A second key is refused, as before Linux 6.14.
    pub one_key_only: Shared<bool>,
    /// `TLS_RX_EXPECT_NO_PAD` is refused, as before Linux 6.0.
    pub no_padding_unknown: Shared<bool>,
    /// Zero-copy is refused, as before Linux 5.19.
    pub zero_copy_unknown: Shared<bool>,
    /// Files are sent wrongly while zero-copy is on.
    pub zero_copy_corrupts: Shared<bool>,
    /// Each call of data takes so many bytes at most; 0 is any number.
    pub bite_bytes: Shared<usize>,
    /// Every other call of data or control finds the socket full.
    pub full_every_other_time: Shared<bool>,
    /// The byte at this place of all that `send_file` sent is sent wrong.
    pub corrupt_byte: Shared<Option<u64>>,
    /// A call that finds records waiting for TCP waits with them, instead of saying that the socket is full: for
    /// sockets whose peer is another thread, and whose readiness is the real socket's.
    pub waits: Shared<bool>,
    /// The adapter.
    pub nic: Shared<Nic>,
    handed_over: Shared<(u64, u64)>,
    /// What was called, in order.
    pub log: Shared<Vec<&'static str>>,
    turn: Shared<usize>,
    file_bytes: Shared<u64>,
}

impl Script {
    fn outcome(&self, name: &'static str, list: &Shared<VecDeque<Option<i32>>>) -> io::Result<()> {
        self.log.lock().push(name);
        match list.lock().pop_front().flatten() {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(()),
        }
    }

    fn is_full_now(&self) -> bool {
        self.turn.set(self.turn.get() + 1);
        self.full_every_other_time.get() && self.turn.get() % 2 == 1
    }

    /// How often that was called.
    #[must_use]
    pub fn calls(&self, name: &str) -> usize {
        self.log.lock().iter().filter(|called| **called == name).count()
    }
}

/// What the module keeps of a socket.
#[derive(Default)]
struct Context {
    key: Option<KernelKey>,
    receiver: Option<Receiver>,
    expects_no_padding: bool,
    open: Vec<u8>,
    zero_copy: bool,
    carrier: Option<Carrier>,
    /// Carries on what TCP had no room for.
    work: Option<JoinHandle<()>>,
}

fn kernel_key(key: &DirectionKey<'_>) -> KernelKey {
    KernelKey::new(key.version, key.cipher, key.key, *key.vector, key.sequence)
}

/// The model.
#[derive(Default)]
pub struct Simulated {
    /// What it does other than to work.
    pub script: Arc<Script>,
    /// By cookie: a set-up has a descriptor of its own.
    contexts: Shared<HashMap<u64, Context>>,
}

const ENOPROTOOPT: i32 = 92;
const EBUSY: i32 = 16;
const EEXIST: i32 = 17;
const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;
const RECORD_BYTES: usize = 16_384;

impl Simulated {
    fn context<T>(
        &self,
        socket: BorrowedFd<'_>,
        act: impl FnOnce(&mut Context) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut contexts = self.contexts.lock();
        let context = contexts.get_mut(&cookie(socket));
        act(context.ok_or_else(|| io::Error::from_raw_os_error(ENOPROTOOPT))?)
    }

    /// A first key: the adapter takes the connection, or the kernel keeps it.
    fn set_up(&self, version: Version) -> Carrier {
        let nic = self.script.nic.get();
        std::thread::sleep(Duration::from_millis(nic.set_up_ms));
        let takes = nic.takes && version == Version::Tls12;
        if !nic.counts_nothing {
            let mut counts = self.script.handed_over.lock();
            counts.0 += u64::from(takes) + nic.others;
            counts.1 += u64::from(!takes);
        }
        if takes { Carrier::Adapter } else { Carrier::Software }
    }

    /// Ready for a call that sends: nothing waits for TCP, and the script has nothing against it.
    fn ready(&self, context: &mut Context) -> io::Result<()> {
        if let Some(work) = context.work.take() {
            if !self.script.waits.get() && !work.is_finished() {
                context.work = Some(work);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            work.join().unwrap();
        }
        if self.script.is_full_now() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    }

    /// Takes a part of `bytes` into the open record, and lets it leave if it is full or nothing follows.
    fn take(&self, socket: BorrowedFd<'_>, bytes: &[u8], follows: Follows) -> io::Result<usize> {
        self.context(socket, |context| {
            self.ready(context)?;
            let bite = match self.script.bite_bytes.get() {
                0 => usize::MAX,
                bite => bite,
            };
            let taken = bytes.len().min(bite).min(RECORD_BYTES - context.open.len());
            context.open.extend_from_slice(&bytes[..taken]);
            let ends = taken == bytes.len() && follows == Follows::Nothing;
            if ends || context.open.len() == RECORD_BYTES {
                leave_open(socket, context);
            }
            Ok(taken)
        })
    }
}

fn cookie(socket: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(socket).unwrap().st_ino
}

fn leave_open(socket: BorrowedFd<'_>, context: &mut Context) {
    let open = std::mem::take(&mut context.open);
    let record = context.key.as_mut().unwrap().record(ContentType::ApplicationData, &open);
    leave(socket, context, record);
}

/// Gives a record to TCP; what it does not take follows when it does, unless the socket is closed before.
fn leave(socket: BorrowedFd<'_>, context: &mut Context, record: Vec<u8>) {
    if let Some(work) = context.work.take() {
        work.join().unwrap();
    }
    let sent = socket::send(&socket, &record, Follows::Nothing).unwrap_or(0);
    if sent == record.len() {
        return;
    }
    let mut socket = TcpStream::from(socket.try_clone_to_owned().unwrap());
    context.work = Some(std::thread::spawn(move || {
        let mut rest = &record[sent..];
        while !rest.is_empty() {
            match socket.write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                // Closed before: lost.
                Err(_) => return,
            }
        }
    }));
}

impl Calls for Simulated {
    fn habits(&self) -> Habits {
        Habits::LINUX
    }

    fn set_carrier(&self, _: BorrowedFd<'_>, _: Carrier) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn attach(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.script.outcome("attach", &self.script.attach)?;
        match self.contexts.lock().entry(cookie(socket)) {
            Entry::Occupied(_) => Err(io::Error::from_raw_os_error(EEXIST)),
            Entry::Vacant(place) => {
                place.insert(Context::default());
                Ok(())
            }
        }
    }

    fn install_receiving(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        self.script.outcome("install_receiving", &self.script.install_receiving)?;
        self.context(socket, |context| {
            let may = key.version == Version::Tls13 && !self.script.one_key_only.get();
            match &mut context.receiver {
                Some(_) if !may => Err(io::Error::from_raw_os_error(EBUSY)),
                Some(receiver) => {
                    receiver.install(key);
                    Ok(())
                }
                None => {
                    let pauses = !self.script.one_key_only.get();
                    context.receiver = Some(Receiver::new(key, pauses));
                    Ok(())
                }
            }
        })
    }

    fn expect_no_padding(&self, socket: BorrowedFd<'_>, expected: bool) -> io::Result<()> {
        if self.script.no_padding_unknown.get() {
            return Err(io::Error::from_raw_os_error(ENOPROTOOPT));
        }
        self.context(socket, |context| {
            let receiver = context.receiver.as_ref().filter(|receiver| receiver.version() == Version::Tls13);
            receiver.ok_or_else(|| io::Error::from_raw_os_error(EINVAL))?;
            context.expects_no_padding = expected;
            Ok(())
        })
    }

    fn receive(&self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Opened> {
        self.script.outcome("receive", &self.script.receive)?;
        self.context(socket, |context| {
            let receiver = context.receiver.as_mut();
            receiver.ok_or_else(|| io::Error::from_raw_os_error(ENOPROTOOPT))?.receive(socket, buffer)
        })
    }

    fn install(&self, socket: BorrowedFd<'_>, key: &DirectionKey<'_>) -> io::Result<()> {
        self.script.outcome("install", &self.script.install)?;
        self.context(socket, |context| {
            let may = key.version == Version::Tls13 && !self.script.one_key_only.get();
            if context.key.is_some() && !may {
                return Err(io::Error::from_raw_os_error(EBUSY));
            }
            if context.key.is_none() {
                context.carrier = Some(self.set_up(key.version));
            } else if context.carrier == Some(Carrier::Adapter) {
                return Err(io::Error::from_raw_os_error(EOPNOTSUPP));
            }
            context.key = Some(kernel_key(key));
            Ok(())
        })
    }

    fn carriers(&self, socket: BorrowedFd<'_>) -> io::Result<Carriers> {
        let tells = self.script.nic.get().tells_sockets;
        self.context(socket, |context| {
            Ok(Carriers {
                sending: context.carrier.filter(|_| tells),
                receiving: context.receiver.as_ref().filter(|_| tells).map(|_| Carrier::Software),
                expects_no_padding: context.expects_no_padding && tells,
            })
        })
    }

    fn leaves_by(&self, _: BorrowedFd<'_>) -> io::Result<String> {
        Ok("sim0".to_owned())
    }

    fn handed_over(&self) -> io::Result<HandedOver> {
        self.script.log.lock().push("handed_over");
        let (to_adapters, to_software) = self.script.handed_over.get();
        Ok(HandedOver { to_adapters, to_software })
    }

    fn sequence(&self, socket: BorrowedFd<'_>, _: Version, _: Cipher) -> io::Result<u64> {
        self.script.outcome("sequence", &self.script.sequence)?;
        self.context(socket, |context| Ok(context.key.as_ref().unwrap().sequence()))
    }

    fn set_zero_copy(&self, socket: BorrowedFd<'_>, allowed: bool) -> io::Result<()> {
        self.script.log.lock().push(if allowed { "zero-copy on" } else { "zero-copy off" });
        if self.script.zero_copy_unknown.get() {
            return Err(io::Error::from_raw_os_error(ENOPROTOOPT));
        }
        self.context(socket, |context| {
            context.zero_copy = allowed;
            Ok(())
        })
    }

    fn send_control(&self, socket: BorrowedFd<'_>, content_type: u8, bytes: &[u8]) -> io::Result<()> {
        self.script.outcome("control", &self.script.control)?;
        self.context(socket, |context| {
            self.ready(context)?;
            if !context.open.is_empty() {
                leave_open(socket, context);
            }
            let content_type = ContentType::from_wire(content_type).unwrap();
            let record = context.key.as_mut().unwrap().record(content_type, bytes);
            leave(socket, context, record);
            Ok(())
        })
    }

    fn taken_bytes(&self, socket: BorrowedFd<'_>) -> io::Result<u64> {
        System.taken_bytes(socket)
    }

    fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8], follows: Follows) -> io::Result<usize> {
        self.script.outcome("send", &self.script.data)?;
        self.take(socket, bytes, follows)
    }

    fn send_file(
        &self,
        socket: BorrowedFd<'_>,
        file: &File,
        offset: u64,
        length_bytes: usize,
    ) -> io::Result<usize> {
        self.script.outcome("send_file", &self.script.data)?;
        let mut sent = 0;
        while sent < length_bytes {
            let mut bytes = vec![0; (length_bytes - sent).min(RECORD_BYTES)];
            let read = file.read_at(&mut bytes, offset + sent as u64)?;
            if read == 0 {
                break;
            }
            let already = self.script.file_bytes.get();
            if let Some(place) = self.script.corrupt_byte.get()
                && (already..already + read as u64).contains(&place)
            {
                bytes[(place - already) as usize] ^= 1;
            }
            let corrupts = self.script.zero_copy_corrupts.get();
            if corrupts && self.context(socket, |context| Ok(context.zero_copy))? {
                bytes[0] ^= 1;
            }
            let follows = if sent + read < length_bytes { Follows::More } else { Follows::Nothing };
            match self.take(socket, &bytes[..read], follows) {
                Ok(taken) => {
                    sent += taken;
                    self.script.file_bytes.set(already + taken as u64);
                    if taken < read && self.script.bite_bytes.get() > 0 {
                        break;
                    }
                }
                Err(error) if sent > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }
}
