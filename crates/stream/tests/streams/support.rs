//! A listener in this process, and runs against it.

use linerate_stream::{
    Limits, Listener, ListenerSettings, Secret, StreamError, StreamPlan, StreamReport, Watch,
    report::{Connected, Interval},
};
use std::{net::SocketAddr, sync::atomic::AtomicBool, thread};

pub(crate) const SECRET: &[u8] = b"a secret of the tests, long enough";

/// A listener on `address` that lasts as long as the process. Gives where it listens.
pub(crate) fn listen(address: &str, secret: Option<&[u8]>, limits: Limits) -> SocketAddr {
    let folder = tempfile::tempdir().unwrap();
    let settings = ListenerSettings {
        address: address.parse().unwrap(),
        secret: secret.map(|secret| Secret::new(secret).unwrap()),
        limits,
        cpus: Vec::new(),
        certificate: linerate_tls::development_certificate(folder.path()).unwrap().files,
    };
    let listener = Listener::bind(settings, |_| {}).unwrap();
    let address = listener.address();
    thread::spawn(move || listener.serve());
    address
}

/// A plan of one stream of a megabyte, to there.
pub(crate) fn plan(address: SocketAddr) -> StreamPlan {
    StreamPlan {
        amount: linerate_stream::plan::Amount::Bytes(1_000_003),
        verify: true,
        ..StreamPlan::new(address.ip().to_string(), address.port())
    }
}

/// Is told, and tells nobody.
pub(crate) struct Quiet;

impl Watch for Quiet {
    fn connected(&mut self, _streams: &[Connected]) {}

    fn interval(&mut self, _interval: &Interval) {}
}

pub(crate) fn try_run(plan: &StreamPlan) -> Result<StreamReport, StreamError> {
    linerate_stream::run(plan, &AtomicBool::new(false), &mut Quiet)
}

/// A run in which nothing went wrong.
pub(crate) fn run(plan: &StreamPlan) -> StreamReport {
    let report = try_run(plan).unwrap();
    assert_eq!(report.faults, Vec::<String>::new(), "{plan:?}");
    report
}
