//! Messages for the operator: standard error, one line each, as service managers collect them.
//!
//! A thread of their own writes them: the reader of standard error may stop reading, and a full pipe must not hold up a
//! worker (INV-LOG-1).

use crate::outbox::Outbox;
use std::{
    backtrace::{Backtrace, BacktraceStatus},
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Messages that may wait for the thread that writes them; what comes beyond that is dropped and counted.
const WAITING_MESSAGES: usize = 1024;
/// How long [`settle`] waits for a reader of standard error that does not read.
const PATIENCE: Duration = Duration::from_millis(500);

/// Messages dropped since the start.
static DROPPED: AtomicU64 = AtomicU64::new(0);
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Something to know.
pub(crate) fn note(message: &str) {
    line("", message);
}

/// Something to look into; the server goes on.
pub(crate) fn warn(message: &str) {
    line("warning: ", message);
}

/// Messages that were dropped because nobody read those before them.
pub(crate) fn dropped_messages() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Has panics reported like all other messages. The standard library's hook writes to standard error at once, where a
/// worker would wait for the reader (INV-LOG-1).
pub(crate) fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        let thread = thread::current();
        let thread = thread.name().unwrap_or("a thread");
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let payload = panic.payload();
        let why = payload.downcast_ref::<&str>().copied();
        let why = why.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason");
        warn(&format!("a fault in linerate itself: {thread} panicked at {place}: {why}; please report it"));
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            backtrace.to_string().lines().for_each(note);
        }
    }));
}

/// Panics since the start.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Waits a moment until what was said is written: for the control thread, before it tells others that something is
/// done, and before the process ends.
pub(crate) fn settle() {
    if let Some(outbox) = outbox() {
        outbox.flush(PATIENCE);
    }
}

fn line(prefix: &str, message: &str) {
    // Control characters are replaced so that a file's name cannot forge a line.
    let clean: String = message.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    let line = format!("linerate: {prefix}{clean}\n");
    match outbox() {
        Some(outbox) if outbox.put(line) => {}
        // Without a thread nothing is said: it could be a worker that would have to wait.
        _ => {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Started with the first message.
fn outbox() -> Option<&'static Outbox<String>> {
    static OUTBOX: OnceLock<Option<Outbox<String>>> = OnceLock::new();
    let start = || Outbox::start("messages", WAITING_MESSAGES, writer(io::stderr())).ok();
    OUTBOX.get_or_init(start).as_ref()
}

/// Writes lines, and behind each how many were dropped since that was last said.
fn writer(mut target: impl Write) -> impl FnMut(String) {
    let mut told = 0;
    move |line| {
        // Nobody is left to tell if standard error is gone; the server goes on all the same.
        let _ = target.write_all(line.as_bytes());
        let dropped = dropped_messages();
        if dropped != told {
            let count = dropped.wrapping_sub(told);
            let _ = writeln!(
                target,
                "linerate: warning: {count} messages were dropped: nobody read those before"
            );
            told = dropped;
        }
    }
}
