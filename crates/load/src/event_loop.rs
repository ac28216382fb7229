//! What every thread of a run does, whatever its connections speak: it waits for sockets, begins to count after the
//! warm-up, ends with the time or with the last response, and says what it cost.

use std::{
    io,
    net::SocketAddr,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use linerate_os::{
    processor,
    socket::{Socket, SocketShape},
    usage::{self, ThreadCpu},
};
use mio::{Events, Interest, Poll, Token, unix::SourceFd};

use crate::{
    LoadError,
    alarm::Alarm,
    cost::Waited,
    fault::Fault,
    job::{Job, Outcome},
    shared::Shared,
    tally::Tally,
};

/// Events taken from the kernel at once.
const EVENTS: usize = 1024;
/// The longest sleep: how late a stop or the end of the time may be noticed by a thread with nothing to do.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);
/// How often connections that wait for too long are looked for.
const SWEEP: Duration = Duration::from_millis(250);
/// The alarm's token; connections have their index.
const ALARM: Token = Token(usize::MAX);

/// A connection of which the kernel tells, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) index: usize,
    /// The peer has closed its side.
    pub(crate) end_is_near: bool,
}

/// A thread's waiting and measuring.
pub(crate) struct EventLoop<'run> {
    pub(crate) job: Job,
    pub(crate) shared: &'run Shared,
    /// When all threads began.
    pub(crate) start: Instant,
    measure_from: Instant,
    stop_at: Option<Instant>,
    poll: Poll,
    events: Events,
    alarm: Alarm,
    /// When it rings, if that is still to come.
    alarm_at: Option<Instant>,
    swept: Instant,
    /// What had been used when measuring began.
    measured: Option<(Instant, ThreadCpu, Waited)>,
    last_end: Option<Instant>,
    looks: u64,
    fruitful_looks: u64,
}

impl<'run> EventLoop<'run> {
    /// Has the calling thread `prepare` what it needs, and waits until all threads have, so that it is in no figure.
    ///
    /// # Errors
    /// The CPU cannot be had, or no descriptor is left.
    pub(crate) fn begin<T>(
        job: Job,
        shared: &'run Shared,
        prepare: impl FnOnce(&Job) -> T,
    ) -> Result<(Self, T), LoadError> {
        if let Some(cpu) = job.cpu {
            processor::pin_current_thread(cpu).map_err(|source| LoadError::Pin { cpu, source })?;
        }
        let system = |source| LoadError::System { what: "waiting for sockets cannot be set up", source };
        let poll = Poll::new().map_err(system)?;
        let alarm = Alarm::new(poll.registry(), ALARM).map_err(system)?;
        let prepared = prepare(&job);
        let start = shared.wait_for_begin();
        let measure_from = start + job.warm_up;
        let event_loop = Self {
            shared,
            start,
            measure_from,
            stop_at: job.measure.map(|time| measure_from + time),
            poll,
            events: Events::with_capacity(EVENTS),
            alarm,
            alarm_at: None,
            swept: start,
            measured: None,
            last_end: None,
            looks: 0,
            fruitful_looks: 0,
            job,
        };
        Ok((event_loop, prepared))
    }

    /// Whether the run is over. Begins to count when the warm-up is.
    pub(crate) fn is_over(&mut self, now: Instant, tally: &mut Tally) -> bool {
        if self.measured.is_none() && now >= self.measure_from {
            tally.forget_the_warm_up();
            let cpu = usage::current_thread().unwrap_or_default();
            self.measured = Some((now.min(self.measure_from), cpu, Waited::now()));
            (self.looks, self.fruitful_looks) = (0, 0);
        }
        self.shared.is_stopped() || self.stop_at.is_some_and(|end| now >= end)
    }

    /// Whether it is time to look for connections that wait for too long.
    pub(crate) fn is_time_to_sweep(&mut self, now: Instant) -> bool {
        let is_time = now.saturating_duration_since(self.swept) >= SWEEP;
        if is_time {
            self.swept = now;
        }
        is_time
    }

    /// Waits for a socket, until `next` at the latest; only looks where there is more to do.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub(crate) fn wait(&mut self, next: Option<Instant>, more_to_do: bool) -> Result<(), LoadError> {
        let system = |source| LoadError::System { what: "waiting for sockets failed", source };
        let now = Instant::now();
        let mut timeout = LONGEST_SLEEP;
        let measuring = Some(self.measure_from).filter(|from| *from > now);
        for at in [self.stop_at, measuring, next].into_iter().flatten() {
            timeout = timeout.min(at.saturating_duration_since(now));
        }
        if self.job.spin || more_to_do {
            timeout = Duration::ZERO;
        }
        // One alarm that rings too early costs a turn of the loop; a time limit of each wait costs a timer that is started
        // and stopped, twice out of a virtual machine.
        let wake_at = now + timeout;
        if !timeout.is_zero() && self.alarm_at.is_none_or(|at| at > wake_at) {
            self.alarm.set(timeout).map_err(system)?;
            self.alarm_at = Some(wake_at);
        }
        match self.poll.poll(&mut self.events, timeout.is_zero().then_some(Duration::ZERO)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(system(error)),
            _ => {}
        }
        self.looks += 1;
        self.fruitful_looks += u64::from(!self.events.is_empty() || more_to_do);
        Ok(())
    }

    /// Puts the connections that the kernel told of into `told`.
    pub(crate) fn take_told(&mut self, told: &mut Vec<Told>) {
        told.clear();
        for event in &self.events {
            match event.token() {
                ALARM => self.alarm_at = None,
                Token(index) => told.push(Told { index, end_is_near: event.is_read_closed() }),
            }
        }
    }

    /// A connection that is being made, of which the kernel tells when it can be read from or written to.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn connect(
        &self,
        address: SocketAddr,
        shape: SocketShape,
        index: usize,
    ) -> io::Result<Socket> {
        let socket = self.shared.local.connect(address, shape)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), Token(index), interest)?;
        Ok(socket)
    }

    /// A socket that can be written to is told of with each piece that arrives, one that need not be is not: then the
    /// kernel forgets what was received before it was asked, instead of waking us for it.
    ///
    /// # Errors
    /// The kernel's; none is known.
    pub(crate) fn watch_writing(
        &self,
        socket: &Socket,
        index: usize,
        (wanted, watches): (bool, &mut bool),
    ) -> Result<(), Fault> {
        if wanted == *watches {
            return Ok(());
        }
        *watches = wanted;
        let interest = if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let descriptor = socket.as_raw_fd();
        let registry = self.poll.registry();
        registry.reregister(&mut SourceFd(&descriptor), Token(index), interest).map_err(Fault::Socket)
    }

    /// A request has ended, well or not.
    pub(crate) fn ended(&mut self) {
        self.last_end = Some(Instant::now());
        self.shared.request_ended();
    }

    /// Tells the progress line how far this thread is.
    pub(crate) fn publish(&self, tally: &Tally) {
        use std::sync::atomic::Ordering::Relaxed;
        let progress = &self.shared.progress[self.job.thread as usize];
        progress.responses.store(tally.totals.responses, Relaxed);
        progress.body_bytes.store(tally.totals.body_bytes, Relaxed);
        if !tally.errors.is_empty() {
            progress.errors.store(tally.errors.values().sum(), Relaxed);
        }
    }

    /// When the run ended: with a number of requests with the last response; with a time, with that.
    pub(crate) fn end(&self) -> Instant {
        let now = Instant::now();
        match self.stop_at {
            Some(end) => now.min(end),
            None if self.shared.is_stopped() => self.last_end.unwrap_or(now),
            None => now,
        }
    }

    /// What came of it until [`Self::end`]. Connections stay open until all threads have said that.
    pub(crate) fn finish(self, to: Instant, tally: Tally) -> Outcome {
        let (from, cpu, waited_s, tally) = match self.measured {
            Some((from, before, waited)) => {
                let after = usage::current_thread().unwrap_or_default();
                let cpu = ThreadCpu {
                    user_s: after.user_s - before.user_s,
                    system_s: after.system_s - before.system_s,
                };
                (from, cpu, waited.elapsed_s(), tally)
            }
            // It was broken off while warming up.
            None => (to, ThreadCpu::default(), None, Tally::default()),
        };
        self.shared.wait_for_release();
        let looks = self.looks.max(1) as f64;
        let fruitful_looks = self.job.spin.then(|| self.fruitful_looks as f64 / looks);
        Outcome { tally, from, to: to.max(from), cpu, waited_s, fruitful_looks }
    }
}
