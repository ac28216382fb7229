//! A link on FreeBSD's kernel TLS and its adapters, against the model of that kernel.

use super::*;
use crate::{
    link::Link,
    metrics::{Engine, LeftAdapter},
    placement::{Basis, PlacementPlan},
    workplace::Workplace,
};
use linerate_config::{Flags, Settings};
use linerate_engine::{
    Piece,
    kernel::peer::Peer,
    nic::{Adapters, route::Route},
    source::OpenFile,
};
use linerate_kernel_model::{FreeBsd, FreeBsdScript, channel, content, temporary};
use linerate_os::{kernel_tls::freebsd::KernelTls, socket::connected_pair};
use linerate_placement::{Cipher, Costs};
use linerate_record::Version;
use rustix::io::Errno;
use std::{path::Path, rc::Rc, thread::JoinHandle};

const BYTES: usize = 300_001;

/// One connection, with the NIC engine for everything, on an adapter that takes what it is given.
struct Fixture {
    workplace: Rc<Workplace>,
    kernel: FreeBsd,
    link: Link<linerate_kernel_model::Counting>,
    reader: JoinHandle<Vec<u8>>,
    expected: Vec<u8>,
}

impl Fixture {
    fn new() -> Self {
        let kernel = FreeBsd::default();
        kernel.script.interface_takes.set(true);
        kernel.script.waits.set(true);
        let carried = Arc::new(kernel::Capabilities::find(&KernelTls(FreeBsd::default()), false));
        let text = "engine = \"nic\"\n[placement]\nlearning = false\n[[site]]\nroot = \"r\"\n";
        let settings = Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap();
        let plan = PlacementPlan::new(&settings, (Basis::Defaults, Costs::defaults()), 1)
            .with_found(Some(&carried), false);
        let mut workplace = Workplace::of_test(plan, 60_000, 0);
        workplace.calls = Arc::new(KernelTls(kernel.clone()));
        workplace.kernel.replace(Some(carried));
        let [interface, adapter, driver] = ["sim0", "sim0", "mce"].map(str::to_owned);
        let route = Route { interface, adapter, driver, is_on: true, obstacle: None };
        workplace.adapters.replace(Arc::new(Adapters::of(vec![route])));
        let workplace = Rc::new(workplace);
        let (ours, theirs) = connected_pair(None).unwrap();
        let end = || channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX);
        let mut peer = Peer::new(end());
        let reader = std::thread::spawn(move || {
            loop {
                match peer.receive(&theirs, 65_536) {
                    Ok(0) => return peer.opened,
                    Ok(_) => peer.open().unwrap(),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let stream = tokio::net::TcpStream::from_std(ours).unwrap();
        let watch = workplace.watches.enter();
        let link = Link::tls(stream, watch, Rc::clone(&workplace), end(), Vec::new());
        Self { workplace, kernel, link, reader, expected: Vec::new() }
    }

    fn script(&self) -> &FreeBsdScript {
        &self.kernel.script
    }

    /// Sends a response, and says which engine had its end.
    async fn send(&mut self, immutable: bool) -> Result<Engine, Ending> {
        let (head, body) = (content(317), content(BYTES));
        let file = OpenFile::of(temporary(&body)).unwrap();
        self.expected.extend(head.iter().chain(&body));
        let mut queue = Queue::from_iter([Piece::Bytes(head), Piece::file(&file, 0..BYTES as u64)]);
        self.link.content_is_immutable(immutable);
        self.link.send(&mut queue).await.map(|()| self.link.engine())
    }

    fn left(&self, why: LeftAdapter) -> u64 {
        self.workplace.metrics.nic_left.of(why).value()
    }

    fn finish(self) {
        drop(self.link);
        assert!(self.reader.join().unwrap() == self.expected);
    }
}

/// INV-NIC-1: TLS 1.3 reaches the adapter, and the socket's mode is the proof.
#[tokio::test]
async fn what_never_changes_goes_by_the_adapter_and_loss_brings_it_back() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Nic);
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Nic);
    fixture.kernel.lose_all();
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Kernel);
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Kernel);
    assert_eq!((fixture.left(LeftAdapter::Loss), fixture.left(LeftAdapter::FilesMayChange)), (1, 0));
    assert_eq!(fixture.script().calls("enable"), 1);
    fixture.finish();
}

/// INV-NIC-3
#[tokio::test]
async fn what_may_change_is_not_given_to_an_adapter_and_taken_back_from_one() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.send(false).await.unwrap(), Engine::User);
    assert_eq!(fixture.script().calls("enable"), 0);
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Nic);
    assert_eq!(fixture.send(false).await.unwrap(), Engine::Kernel);
    assert_eq!((fixture.left(LeftAdapter::Loss), fixture.left(LeftAdapter::FilesMayChange)), (0, 1));
    fixture.finish();
}

#[tokio::test]
async fn a_connection_that_cannot_be_taken_back_ends_before_a_file_that_may_change() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Nic);
    fixture.script().set_mode.lock().push_back(Some(Errno::NOBUFS));
    let sent_before = fixture.expected.len();
    assert!(matches!(fixture.send(false).await, Err(Ending::Socket(_))));
    fixture.expected.truncate(sent_before);
    fixture.finish();

    // The kernel may have been quicker: then it has left, and that is all.
    let mut fixture = Fixture::new();
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Nic);
    fixture.kernel.lose_all();
    fixture.script().set_mode.lock().push_back(Some(Errno::BUSY));
    assert_eq!(fixture.send(false).await.unwrap(), Engine::Kernel);
    assert_eq!(fixture.left(LeftAdapter::Loss), 1);
    fixture.finish();

    let mut fixture = Fixture::new();
    assert_eq!(fixture.send(true).await.unwrap(), Engine::Nic);
    fixture.script().mode.lock().push_back(Some(Errno::CONNRESET));
    assert!(matches!(fixture.send(true).await, Err(Ending::Socket(_))), "nobody knows what has it");
    fixture.expected.truncate(sent_before);
    fixture.finish();
}
