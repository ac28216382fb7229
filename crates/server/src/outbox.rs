//! A queue to a thread of its own, for what may have to wait and must not make the server wait: lines for standard
//! error and for the access log, notices to the service manager. The thread ends with the process, whatever it waits for.

use std::{
    io,
    sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// How often a caller that waits for a full queue tries again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// What waits is delivered in order, by one thread.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    queue: SyncSender<Message<T>>,
}

enum Message<T> {
    Deliver(T),
    /// All that was put before is delivered.
    Reached(Sender<()>),
}

impl<T: Send + 'static> Outbox<T> {
    /// Starts the thread; at most `capacity` items wait for it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        thread_name: &str,
        capacity: usize,
        mut deliver: impl FnMut(T) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, messages) = sync_channel(capacity);
        let mut run = move |messages: Receiver<Message<T>>| {
            for message in messages {
                match message {
                    Message::Deliver(item) => deliver(item),
                    // The caller may have stopped waiting.
                    Message::Reached(answer) => drop(answer.send(())),
                }
            }
        };
        thread::Builder::new().name(thread_name.to_owned()).spawn(move || run(messages))?;
        Ok(Self { queue })
    }

    /// Hands `item` over without waiting; `false` if there was no room.
    pub(crate) fn put(&self, item: T) -> bool {
        self.queue.try_send(Message::Deliver(item)).is_ok()
    }

    /// Waits until all that was put before is delivered, no longer than `limit`. `false` if it was not.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let (answer, reached) = channel();
        let mut message = Message::Reached(answer);
        while let Err(TrySendError::Full(unsent)) = self.queue.try_send(message) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(RETRY_INTERVAL);
            message = unsent;
        }
        reached.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_stuck_makes_nobody_wait() {
        let (arrived, arrivals) = channel();
        let (release, released) = channel::<()>();
        let outbox = Outbox::start("stuck", 3, move |item: u32| {
            let _ = arrived.send(item);
            let _ = released.recv();
        });
        let outbox = outbox.unwrap();
        assert!(outbox.put(0));
        assert_eq!(arrivals.recv(), Ok(0), "it is being delivered, and stuck");
        let taken: Vec<_> = (1..=5).filter(|item| outbox.put(*item)).collect();
        assert_eq!(taken, [1, 2, 3]);
        let started = Instant::now();
        assert!(!outbox.flush(Duration::from_millis(20)));
        assert!(started.elapsed() < Duration::from_secs(5));
        drop(release);
        assert!(outbox.flush(Duration::from_secs(10)));
        assert_eq!(arrivals.try_iter().collect::<Vec<_>>(), taken, "in order, before the flush was over");
    }
}
