//! The receiving end of a stream, by engine.

use super::{
    Job, LOOK, Moved, Outcome, RECEIVED_FROM_BYTES, kernel::KernelReceiving, protection::Protection,
};
use crate::{
    group::{Group, Lane},
    handshake::Secured,
    keys::Keys,
    pacer::Pacer,
    plan::Reception,
    report::MappedReport,
    wait,
};
use linerate_engine::{
    pattern::Pattern,
    receive::{Arrival, Connection, End, Fault, mapped, plain, user::Incoming},
};
use linerate_os::{
    kernel_tls::System,
    pages::Pages,
    socket::{self, Follows},
};
use linerate_record::Channel;
use std::{
    io::{self, Read},
    os::fd::AsFd,
    thread,
    time::Instant,
};

/// What a TLS stream reads at once, at least and at most: many records, whatever the I/O size of the sender.
const TLS_READ_BYTES: (usize, usize) = (64 * 1024, 256 * 1024);
/// What is mapped at once, at least.
const LEAST_MAPPING_BYTES: usize = 256 * 1024;
/// The kernel wakes a receiver for at least so many bytes, and need not wait for more: fewer wake-ups cost less.
const LOW_WATER_BYTES: (usize, usize) = (64 * 1024, 128 * 1024);

/// Receives until the other end has ended the stream.
pub(super) fn run(lane: &Lane, protection: Protection, job: &Job, group: &Group, began: Instant) -> Outcome {
    let mut receiver = Receiver {
        lane,
        group,
        began,
        moved: Moved::default(),
        pattern: job.pattern(lane),
        pacer: job.rate_bits.map(|rate_bits| Pacer::new(began, rate_bits)),
    };
    let (least, most) = TLS_READ_BYTES;
    let tls_read_bytes = job.buffer_bytes(job.io_bytes.clamp(least, most));
    let waits_for_more = !matches!(protection, Protection::KernelReceiving(_));
    let received = receiver.prepare(job, waits_for_more).and_then(|()| match protection {
        Protection::Plain => match job.reception {
            Reception::Copied => receiver.receive_plain(job.buffer_bytes(job.io_bytes)),
            Reception::Mapped => {
                receiver.receive_mapped(job.buffer_bytes(job.io_bytes.max(LEAST_MAPPING_BYTES)))
            }
            Reception::Discarded => receiver.discard(job.buffer_bytes(job.io_bytes)),
        },
        Protection::User(secured) => receiver.receive_records(*secured, tls_read_bytes),
        Protection::KernelReceiving(kernel) => receiver.receive_opened(*kernel, tls_read_bytes),
        Protection::KernelSending(_) => Err("it was made ready to send".to_owned()),
    });
    Outcome { moved: receiver.moved, fault: received.err() }
}

struct Receiver<'a> {
    lane: &'a Lane,
    group: &'a Group,
    began: Instant,
    moved: Moved,
    pattern: Option<Pattern>,
    pacer: Option<Pacer>,
}

impl Receiver<'_> {
    fn prepare(&mut self, job: &Job, waits_for_more: bool) -> Result<(), String> {
        let (least, most) = LOW_WATER_BYTES;
        // What comes slowly is taken as it comes. The kernel's TLS takes records as they come, too.
        let low_water_bytes =
            if self.pacer.is_some() || !waits_for_more { 1 } else { job.io_bytes.clamp(least, most) };
        socket::set_receive_low_water(&self.lane.socket, low_water_bytes).map_err(failed)
    }

    /// A socket that waits, and not one that is asked and waited for: a system call less for each wait.
    ///
    /// A read goes on in the buffer where the last one ended, up to the buffer's end: so the distance to the kernel's pages
    /// ([`RECEIVED_FROM_BYTES`]) stays, however much a read gives.
    fn receive_plain(&mut self, read_bytes: usize) -> Result<(), String> {
        self.lane.socket.set_nonblocking(false).map_err(failed)?;
        let mut pages = Pages::allocated(RECEIVED_FROM_BYTES + read_bytes);
        let buffer = &mut pages[RECEIVED_FROM_BYTES..RECEIVED_FROM_BYTES + read_bytes];
        let mut position = 0;
        loop {
            self.wait_for_turn();
            match (&self.lane.socket).read(&mut buffer[position..]) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    self.moved.calls += 1;
                    take(&mut self.moved, self.pattern, &buffer[position..position + bytes]);
                    position = (position + bytes) % read_bytes;
                    self.lane.tell(self.moved.bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The pages that segments arrived in are mapped; what cannot be mapped is copied.
    fn receive_mapped(&mut self, read_bytes: usize) -> Result<(), String> {
        let socket = self.lane.socket.as_fd();
        let mut incoming = mapped::Incoming::new(socket, read_bytes, read_bytes).map_err(|error| {
            format!("received pages cannot be mapped (TCP_ZEROCOPY_RECEIVE, Linux 4.18): {error}")
        })?;
        let mut receive = || {
            loop {
                self.wait_for_turn();
                let (moved, pattern) = (&mut self.moved, self.pattern);
                let arrival = incoming.turn(socket, |bytes| take(moved, pattern, bytes));
                if self.arrived(arrival)? {
                    return Ok(());
                }
            }
        };
        let received = receive();
        self.moved.mapped = Some(MappedReport {
            mapped_bytes: incoming.mapped_bytes(),
            copied_bytes: incoming.copied_bytes(),
            obstacle: incoming.obstacle(socket).map(|obstacle| obstacle.to_string()),
        });
        received
    }

    /// What comes is counted, and thrown away.
    fn discard(&mut self, read_bytes: usize) -> Result<(), String> {
        let mut scratch = vec![0; read_bytes];
        loop {
            self.wait_for_turn();
            let arrival = plain::turn_discarding(self.lane.socket.as_fd(), &mut scratch);
            if let Ok(Arrival::Came { data_bytes, .. }) = arrival {
                self.moved.bytes += data_bytes;
            }
            if self.arrived(arrival)? {
                return Ok(());
            }
        }
    }

    /// Waits until what comes next is due, if there is a rate.
    fn wait_for_turn(&self) {
        while let Some(pacer) = self.pacer
            && let delay = pacer.delay(self.moved.bytes, Instant::now())
            && !delay.is_zero()
            && !self.group.is_cut()
        {
            thread::sleep(delay.min(LOOK));
        }
    }

    fn receive_records(&mut self, secured: Secured, read_bytes: usize) -> Result<(), String> {
        let Secured { mut channel, mut rest, .. } = secured;
        let mut incoming = Incoming::default();
        let mut answers = Vec::new();
        let mut buffer = vec![0; read_bytes];
        let (pattern, began) = (self.pattern, self.began);
        let moved = &mut self.moved;
        let connection = of_lane(self.lane, &mut channel, &mut answers, began);
        incoming
            .take_records(connection, &mut rest, |bytes| take(moved, pattern, bytes))
            .map_err(|fault| fault.to_string())?;
        loop {
            self.wait_for_turn();
            let moved = &mut self.moved;
            let connection = of_lane(self.lane, &mut channel, &mut answers, began);
            let arrival = incoming.turn(connection, &mut buffer, |bytes| take(moved, pattern, bytes));
            self.moved.key_updates = channel.key_updates_received();
            self.answer(&mut channel, &mut answers)?;
            if self.arrived(arrival)? {
                return Ok(());
            }
        }
    }

    /// The same where the kernel opens the records.
    fn receive_opened(&mut self, kernel: KernelReceiving, read_bytes: usize) -> Result<(), String> {
        let KernelReceiving { mut channel, mut incoming, .. } = kernel;
        let mut answers = Vec::new();
        let mut buffer = vec![0; read_bytes];
        let (pattern, began) = (self.pattern, self.began);
        loop {
            self.wait_for_turn();
            let moved = &mut self.moved;
            let connection = of_lane(self.lane, &mut channel, &mut answers, began);
            let arrival =
                incoming.turn(&System, connection, &mut buffer, |bytes| take(moved, pattern, bytes));
            self.moved.key_updates = channel.key_updates_received();
            self.answer(&mut channel, &mut answers)?;
            if self.arrived(arrival)? {
                return Ok(());
            }
        }
    }

    /// What a turn came to; waits where there is nothing more. True at the stream's end.
    fn arrived(&mut self, arrival: Result<Arrival, Fault>) -> Result<bool, String> {
        match arrival.map_err(|fault| words(&fault))? {
            Arrival::Came { drained, .. } => {
                self.moved.calls += 1;
                self.lane.tell(self.moved.bytes);
                if drained {
                    // Behind the stream's end comes the connection's, which ends this wait, too.
                    wait::for_bytes(&self.lane.socket).map_err(failed)?;
                }
                Ok(false)
            }
            Arrival::Nothing => wait::for_bytes(&self.lane.socket).map_err(failed).map(|()| false),
            Arrival::End(End::Announced) => Ok(true),
            Arrival::End(End::CutOff) => Err("the other end closed it without close_notify".to_owned()),
        }
    }

    /// Sends what the record layer has to say: alerts, and the key update that the sender asked for.
    fn answer(&self, channel: &mut Channel<Keys>, answers: &mut Vec<u8>) -> Result<(), String> {
        if channel.owes_key_update() {
            channel.prepare_sending(answers).map_err(|fault| fault.to_string())?;
        }
        let mut left = &answers[..];
        while !left.is_empty() {
            match socket::send(&self.lane.socket, left, Follows::Nothing) {
                Ok(sent) => left = &left[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait::for_room(&self.lane.socket).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        answers.clear();
        Ok(())
    }
}

fn of_lane<'a>(
    lane: &'a Lane,
    channel: &'a mut Channel<Keys>,
    answers: &'a mut Vec<u8>,
    began: Instant,
) -> Connection<'a, Keys> {
    let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Connection { socket: lane.socket.as_fd(), channel, now_ms, answers }
}

/// Takes what came of the stream.
fn take(moved: &mut Moved, pattern: Option<Pattern>, bytes: &[u8]) {
    if let Some(pattern) = pattern
        && moved.wrong.is_none()
    {
        moved.wrong = pattern.check(moved.bytes, bytes).err();
    }
    moved.bytes += bytes.len() as u64;
}

fn failed(error: io::Error) -> String {
    format!("the connection failed: {error}")
}

fn words(fault: &Fault) -> String {
    match fault {
        Fault::Record(fault) => format!("the record layer refused: {fault}"),
        fault => fault.to_string(),
    }
}
