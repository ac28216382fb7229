//! What the kernel of this machine carries, found out by doing it: a pair of connected sockets for each version and
//! cipher.

use super::self_test::{self, ZeroCopy};
use linerate_os::{
    kernel_tls::{Calls, DirectionKey},
    socket,
};
use linerate_placement::{self as placement, Combination, Engine, Lack, Verdict, Version};
use rustix::io::Errno;
use std::{fmt, io, net::TcpStream, os::fd::AsFd};

/// How the kernel carries a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// It takes another key for a connection that has one (TLS 1.3, Linux 6.14).
    pub takes_new_keys: bool,
    /// It knows `TLS_TX_ZEROCOPY_RO`, and bytes were right with it.
    pub zero_copy: bool,
}

/// Why the kernel does not carry a combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// As placement calls it.
    pub lack: Lack,
    /// What the self-test found wrong, or why the combination could not be tried, in words.
    pub detail: String,
}

impl From<Lack> for Objection {
    fn from(lack: Lack) -> Self {
        Self { lack, detail: String::new() }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lack {
            Lack::Module => formatter.write_str(
                "no: the tls module is not loaded (modprobe tls; deploy/linerate.modules-load does it at boot)",
            ),
            Lack::NotInKernel(_) => formatter.write_str("no: this kernel does not have it"),
            Lack::SelfTest(_) => write!(formatter, "switched off, the self-test failed: {}", self.detail),
            _ => write!(formatter, "not known: {}", self.detail),
        }
    }
}

/// What was found out about the kernel, as placement calls it.
#[must_use]
pub fn verdict(found: Result<Carried, &Objection>) -> Verdict {
    match found {
        Ok(carried) => Verdict::Carried(placement::Carried { takes_new_keys: carried.takes_new_keys }),
        Err(objection) => Verdict::Lacking(objection.lack),
    }
}

/// What became of each of [`Combination::ALL`].
#[derive(Debug)]
pub struct Capabilities {
    verdicts: [Result<Carried, Objection>; Combination::ALL.len()],
    tested: bool,
    /// What the self-test found wrong, in words.
    failures: Vec<String>,
}

impl Capabilities {
    /// Tries each combination on a pair of sockets; with `tested`, each that the kernel takes is put through the
    /// self-test, too, and switched off if it fails.
    pub fn find(calls: &dyn Calls, tested: bool) -> Self {
        let mut failures = Vec::new();
        let verdicts = Combination::ALL.map(|combination| {
            let carried = probe(calls, combination)?;
            if tested { test(calls, combination, carried, &mut failures) } else { Ok(carried) }
        });
        Self { verdicts, tested, failures }
    }

    /// What there is to know of a combination.
    pub fn verdict(&self, combination: Combination) -> Result<Carried, &Objection> {
        self.verdicts[combination.index()].as_ref().map(|carried| *carried)
    }

    /// Combinations with what became of them.
    pub fn all(&self) -> impl Iterator<Item = (Combination, Result<Carried, &Objection>)> {
        Combination::ALL.into_iter().map(|combination| (combination, self.verdict(combination)))
    }

    /// Whether the combinations went through the self-test.
    pub fn tested(&self) -> bool {
        self.tested
    }

    /// Whether all is there that could be: a module that is not loaded now may be later.
    pub fn lacks_nothing_that_may_come(&self) -> bool {
        self.tested
            && !self.verdicts.iter().any(|verdict| {
                matches!(verdict, Err(Objection { lack: Lack::Module | Lack::NotKnown(_), .. }))
            })
    }

    /// What the self-test found wrong and switched off, in words.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }
}

/// Puts a combination through the self-test, without zero-copy and with it: each is switched off alone.
fn test(
    calls: &dyn Calls,
    combination: Combination,
    carried: Carried,
    failures: &mut Vec<String>,
) -> Result<Carried, Objection> {
    if let Err(how) = self_test::run(calls, combination, carried, ZeroCopy::No) {
        failures.push(format!("{}: {how}", combination.label()));
        return Err(Objection { lack: Lack::SelfTest(combination), detail: how });
    }
    if carried.zero_copy
        && let Err(how) = self_test::run(calls, combination, carried, ZeroCopy::Yes)
    {
        failures.push(format!("{} with zero-copy: {how}", combination.label()));
        return Ok(Carried { zero_copy: false, ..carried });
    }
    Ok(carried)
}

/// Sets one connection up. Nothing is sent over it.
fn probe(calls: &dyn Calls, combination: Combination) -> Result<Carried, Objection> {
    let Combination { version, cipher } = combination;
    let (ours, _theirs) = probe_socket(calls)?;
    let key = [0x6B; 32];
    let sending =
        DirectionKey { version, cipher, key: &key[..cipher.key_bytes()], vector: &[0x1F; 12], sequence: 0 };
    calls.install(ours.as_fd(), &sending).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::INVAL | Errno::NOENT) => Lack::NotInKernel(combination).into(),
        _ => not_known("no key could be installed")(error),
    })?;
    if calls.habits().tells_sequence {
        calls
            .sequence(ours.as_fd(), sending.version, sending.cipher)
            .map_err(not_known("the kernel does not tell how many records it has made"))?;
    }
    Ok(Carried {
        // The connection ends here: another key for it is only a question.
        takes_new_keys: version == Version::Tls13 && calls.install(ours.as_fd(), &sending).is_ok(),
        zero_copy: calls.set_zero_copy(ours.as_fd(), true).is_ok(),
    })
}

/// Two connected sockets, to the first of which the module is attached.
pub(crate) fn probe_socket(calls: &dyn Calls) -> Result<(TcpStream, TcpStream), Objection> {
    let (ours, theirs) =
        socket::connected_pair(None).map_err(not_known("two sockets on 127.0.0.1 could not be connected"))?;
    calls.attach(ours.as_fd()).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT) => Lack::Module.into(),
        _ => not_known("the tls module could not be attached")(error),
    })?;
    Ok((ours, theirs))
}

fn not_known(doing: &'static str) -> impl Fn(io::Error) -> Objection {
    move |error| Objection { lack: Lack::NotKnown(Engine::Kernel), detail: format!("{doing}: {error}") }
}
