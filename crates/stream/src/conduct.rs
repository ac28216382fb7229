//! A run from its beginning to its end, as the thread with the control connection sees it: the other end's words, its
//! life, and the patience with streams that do not end. The same at both ends.

use crate::{
    control::{
        link::{ControlLink, LinkFault},
        message::Message,
    },
    data::{self, Running},
    group::Group,
    machine::Moment,
    report::{CpuTime, EndReport},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How often the other end is told that this one lives.
const ALIVE_INTERVAL: Duration = Duration::from_millis(500);
/// An end that says nothing for so long, while no byte moves on any stream, is gone.
const SILENCE: Duration = Duration::from_millis(1800);
/// How long a look at the control connection may last.
const LOOK: Duration = Duration::from_millis(25);
/// After a look that took so long this process did not run: nothing can be said about the other end.
const OWN_PAUSE: Duration = Duration::from_millis(500);
/// Streams that are to end and do not move for so long are cut.
const ENDING_TIME: Duration = Duration::from_secs(3);
/// Streams that are to end and do not are cut after this in any case.
const LONGEST_ENDING: Duration = Duration::from_secs(60);

/// When something last moved.
#[derive(Debug)]
struct Progress {
    seen: u64,
    since: Instant,
}

impl Progress {
    fn new(now: Instant) -> Self {
        Self { seen: 0, since: now }
    }

    /// For how long nothing has moved.
    fn standstill(&mut self, seen: u64, now: Instant) -> Duration {
        if seen != self.seen {
            *self = Self { seen, since: now };
        }
        now.saturating_duration_since(self.since)
    }
}

/// A run that has begun.
pub(crate) struct Conduct<'a> {
    link: &'a mut ControlLink,
    group: Arc<Group>,
    other: &'static str,
    began: Instant,
    last_look: Instant,
    last_said: Instant,
    last_heard: Instant,
    progress: Progress,
    stopped: Option<Instant>,
    ending: Progress,
    machine: Option<Moment>,
    cpu: CpuTime,
    link_is_lost: bool,
    /// The first thing that went wrong.
    pub(crate) fault: Option<String>,
}

impl<'a> Conduct<'a> {
    /// The run begins. `other` is what the other end is called in messages.
    pub(crate) fn begin(link: &'a mut ControlLink, group: &Arc<Group>, other: &'static str) -> Self {
        let (machine, cpu) = (Moment::now(), data::cpu_time());
        let now = group.begin();
        Self {
            link,
            group: Arc::clone(group),
            other,
            began: now,
            last_look: now,
            last_said: now,
            last_heard: now,
            progress: Progress::new(now),
            stopped: None,
            ending: Progress::new(now),
            machine,
            cpu,
            link_is_lost: false,
            fault: None,
        }
    }

    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Streams that this end sends stop.
    pub(crate) fn stop(&mut self) {
        self.group.stop();
        if self.stopped.is_none() {
            let now = Instant::now();
            self.stopped = Some(now);
            self.ending = Progress::new(now);
        }
    }

    /// The same at both ends.
    pub(crate) fn stop_both(&mut self) {
        if self.stopped.is_none() {
            self.say(&Message::Stop {});
        }
        self.stop();
    }

    /// Notes what went wrong, if it is the first, and stops both ends.
    pub(crate) fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
        self.stop_both();
    }

    fn say(&mut self, message: &Message) {
        if self.link_is_lost {
            return;
        }
        self.last_said = Instant::now();
        if let Err(fault) = self.link.send(message) {
            self.lose(&fault.to_string());
        }
    }

    /// The other end is gone: nothing more can come of the streams.
    fn lose(&mut self, why: &str) {
        self.link_is_lost = true;
        self.fault.get_or_insert(format!("{} is gone: {why}", self.other));
        self.stop();
        self.group.cut();
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.link_is_lost
    }

    /// Waits a moment, at most until `until`, and sees to all that is due. Gives what the other end says, unless it is only
    /// that it lives, or that both are to stop.
    pub(crate) fn look(&mut self, until: Instant) -> Option<Message> {
        let before = Instant::now();
        if before.saturating_duration_since(self.last_look) > OWN_PAUSE {
            self.last_heard = before;
            self.progress.since = before;
        }
        let until = until.min(before + LOOK);
        let said = if self.link_is_lost {
            std::thread::sleep(until.saturating_duration_since(before));
            None
        } else {
            match self.link.receive(until) {
                Ok(said) => said,
                Err(fault) => {
                    self.lose(&fault.to_string());
                    None
                }
            }
        };
        let now = Instant::now();
        self.last_look = now;
        if said.is_some() {
            self.last_heard = now;
        } else {
            self.look_for_life(now);
        }
        if now.saturating_duration_since(self.last_said) >= ALIVE_INTERVAL {
            self.say(&Message::Alive {});
        }
        if self.group.has_failed() && self.stopped.is_none() {
            self.stop_both();
        }
        self.look_for_the_end(now);
        match said {
            Some(Message::Alive {}) => None,
            Some(Message::Stop {}) => {
                self.stop();
                None
            }
            other => other,
        }
    }

    fn look_for_life(&mut self, now: Instant) {
        let silence = now.saturating_duration_since(self.last_heard);
        // What moves is asked of each socket: only where there is reason to.
        if self.link_is_lost || silence < SILENCE / 2 {
            return;
        }
        let standstill = self.progress.standstill(self.group.progress(), now);
        if silence >= SILENCE && standstill >= SILENCE / 2 {
            self.lose(&format!("nothing was heard of it for {:.1} s", silence.as_secs_f64()));
        }
    }

    fn look_for_the_end(&mut self, now: Instant) {
        let Some(stopped) = self.stopped else { return };
        if self.group.is_cut() || self.group.all_ended() {
            return;
        }
        let standstill = self.ending.standstill(self.group.progress(), now);
        if standstill >= ENDING_TIME || now.saturating_duration_since(stopped) >= LONGEST_ENDING {
            self.fault.get_or_insert("streams that were to end did not, and were cut".to_owned());
            self.group.cut();
        }
    }

    /// All streams have ended: what this end measured.
    pub(crate) fn end(self, running: Vec<Running>) -> EndReport {
        let mut cpu = data::cpu_time();
        cpu.user_s -= self.cpu.user_s;
        cpu.system_s -= self.cpu.system_s;
        let mut streams = Vec::with_capacity(running.len());
        for one in running {
            let (end, used) = one.join();
            cpu.add(used);
            streams.push(end);
        }
        streams.sort_by_key(|stream| stream.number);
        let machine = Moment::now().zip(self.machine).map(|(now, before)| now.since(&before));
        let seconds = streams.iter().map(|stream| stream.seconds).fold(0.0, f64::max);
        EndReport { streams, cpu, machine, seconds, fault: self.fault }
    }
}

/// A message that has to come next.
pub(crate) fn expect(link: &mut ControlLink, deadline: Instant) -> Result<Message, LinkFault> {
    loop {
        match link.receive(deadline)? {
            Some(Message::Alive {}) => {}
            Some(message) => return Ok(message),
            None => return Err(LinkFault::Silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_lasts_from_the_last_change() {
        let start = Instant::now();
        let after = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut progress = Progress::new(start);
        assert_eq!(progress.standstill(0, after(10)), Duration::from_millis(10));
        assert_eq!(progress.standstill(5, after(20)), Duration::ZERO);
        assert_eq!(progress.standstill(5, after(50)), Duration::from_millis(30));
    }
}
