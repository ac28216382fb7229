//! The threads that make keys, signatures and random numbers.
//!
//! The cryptographic library gathers entropy for each thread that does: tens of milliseconds of CPU time, and as many seconds on
//! an emulated machine. So a few threads do it for all others, for as long as the process lives. They also bound what
//! strangers' handshakes can take of a listener's processor.

use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, OnceLock, PoisonError, mpsc},
    thread,
};

/// The most threads.
const MOST: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

/// Nothing came of the work: its thread could not be had, or has ended by a fault of linerate's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NothingCame;

struct Keymakers {
    queue: mpsc::Sender<Work>,
}

impl Keymakers {
    fn start() -> Self {
        let (queue, work) = mpsc::channel::<Work>();
        let work = Arc::new(Mutex::new(work));
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST);
        for number in 0..threads {
            let work = Arc::clone(&work);
            // Where not one can be had, nothing comes of the work.
            let _ = thread::Builder::new().name(format!("keys-{number}")).spawn(move || {
                let _ = aws_lc_rs::rand::fill(&mut [0; 32]);
                loop {
                    let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    match next {
                        Ok(work) => work(),
                        Err(_) => return,
                    }
                }
            });
        }
        Self { queue }
    }
}

fn keymakers() -> &'static Keymakers {
    static KEYMAKERS: OnceLock<Keymakers> = OnceLock::new();
    KEYMAKERS.get_or_init(Keymakers::start)
}

/// Has `work` done by one of the threads, and waits for what comes of it.
pub(crate) fn done<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, NothingCame> {
    let (result, came) = mpsc::channel();
    let work: Work = Box::new(move || {
        // A fault of our own must not end the thread: others wait for it.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // The thread that waited may have given it up.
        let _ = outcome.map(|outcome| result.send(outcome));
    });
    keymakers().queue.send(work).map_err(|_| NothingCame)?;
    came.recv().map_err(|_| NothingCame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_and_a_panic_ends_nothing_else() {
        for _ in 0..2 * MOST {
            assert_eq!(done(|| -> u8 { panic!("a fault of the test's own") }), Err(NothingCame));
        }
        let threads: std::collections::BTreeSet<_> =
            (0..50).map(|_| done(|| thread::current().name().map(str::to_owned)).unwrap().unwrap()).collect();
        assert!(threads.len() <= MOST && threads.iter().all(|name| name.starts_with("keys-")), "{threads:?}");
    }
}
