//! Both ends of a run in one report, and what in them does not agree.

use crate::{
    StreamPlan, StreamReport,
    control::message::Request,
    report::{Connected, EndReport, Interval},
};

/// What a run left.
pub(super) struct Conducted {
    pub(super) local: EndReport,
    pub(super) remote: Option<EndReport>,
    pub(super) intervals: Vec<Interval>,
    pub(super) interrupted: bool,
}

/// Puts both ends together, and says what does not agree.
pub(super) fn report(
    plan: &StreamPlan,
    request: &Request,
    started_unix_s: u64,
    connected: Vec<Connected>,
    conducted: Conducted,
) -> StreamReport {
    let Conducted { local, remote, intervals, interrupted } = conducted;
    let mut faults: Vec<String> = local.fault.iter().cloned().collect();
    for (end, name) in [(Some(&local), "here"), (remote.as_ref(), "at the listener")] {
        let Some(end) = end else { continue };
        if name != "here" {
            faults.extend(end.fault.iter().map(|fault| format!("at the listener: {fault}")));
        }
        for stream in &end.streams {
            let number = stream.number;
            faults.extend(stream.fault.iter().map(|fault| format!("stream {number}, {name}: {fault}")));
            faults.extend(
                stream
                    .wrong_at
                    .map(|offset| format!("stream {number}, {name}: the byte at offset {offset} is wrong")),
            );
        }
    }
    if let (Some(remote), true) = (&remote, faults.is_empty()) {
        faults.extend(disagreements(&local, remote));
    }
    StreamReport {
        command: plan.command.clone(),
        started_unix_s,
        host: plan.host.clone(),
        port: plan.port,
        engine: plan.engine,
        receive_engine: plan.receive_engine,
        zero_copy_send: plan.zero_copy_send,
        reception: plan.reception,
        direction: plan.direction,
        streams: plan.streams,
        io_bytes: plan.io_bytes,
        amount: plan.amount,
        rate_bits: request.rate_bits,
        verified: plan.verify,
        connected,
        intervals,
        local,
        remote,
        interrupted,
        faults,
    }
}

/// Every byte that one end sent has come to the other.
fn disagreements(local: &EndReport, remote: &EndReport) -> Vec<String> {
    let pairs = local.streams.iter().zip(&remote.streams);
    pairs
        .filter(|(here, there)| here.bytes != there.bytes || here.number != there.number)
        .map(|(here, there)| {
            let (sent, received) = if here.sends { (here, there) } else { (there, here) };
            format!("stream {}: {} bytes were sent, and {} came", here.number, sent.bytes, received.bytes)
        })
        .collect()
}
