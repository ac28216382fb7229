//! A link whose connection an adapter may take, against the model of kernel TLS and of an adapter.

use super::*;
use crate::{
    link::{Link, Protection},
    metrics::{Engine, KernelRefused},
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
use linerate_kernel_model::{Counting, Nic, Script, Simulated, channel, content, temporary};
use linerate_os::socket::connected_pair;
use linerate_placement::{Cipher, Costs, EngineCosts, Name};
use linerate_record::{Channel, ContentType, RecordError, Version};
use std::{net::TcpStream, path::Path, rc::Rc, thread::JoinHandle};

const BYTES: usize = 300_001;

/// With the NIC engine for everything.
fn workplace(nic: Nic, is_on: bool) -> (Rc<Workplace>, Arc<Script>) {
    workplace_with("nic", Costs::defaults(), nic, is_on)
}

/// By costs by which the adapter pays at once, and the kernel saves something, too. There are eight set-ups, and so many
/// more in a second.
fn auto(set_ups_per_s: f64) -> (Rc<Workplace>, Arc<Script>) {
    let mut costs = Costs::defaults();
    costs.nic_limits.set_ups_per_s = set_ups_per_s;
    for (engine, per_byte_ns) in [(Placed::User, 1.0), (Placed::Kernel, 0.5), (Placed::Nic, 0.1)] {
        costs.set(engine, Cipher::Aes128Gcm, EngineCosts { per_byte_ns, ..EngineCosts::FREE });
    }
    workplace_with("auto", costs, TAKES, true)
}

fn workplace_with(engine: &str, costs: Costs, nic: Nic, is_on: bool) -> (Rc<Workplace>, Arc<Script>) {
    let calls = Simulated::default();
    calls.script.waits.set(true);
    calls.script.nic.set(nic);
    let script = Arc::clone(&calls.script);
    let carried = Arc::new(kernel::Capabilities::find(&Simulated::default(), false));
    let text = format!("engine = \"{engine}\"\n[placement]\nlearning = false\n[[site]]\nroot = \"r\"\n");
    let settings = Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap();
    let plan = PlacementPlan::new(&settings, (Basis::Defaults, costs), 1).with_found(Some(&carried), false);
    let mut workplace = Workplace::of_test(plan, 60_000, 0);
    workplace.calls = Arc::new(calls);
    workplace.kernel.replace(Some(carried));
    workplace.adapters.replace(Arc::new(Adapters::of(vec![route(is_on, None)])));
    (Rc::new(workplace), script)
}

/// By the interface that the model of kernel TLS names.
fn route(is_on: bool, obstacle: Option<Lack>) -> Route {
    let [interface, adapter] = ["sim0", "sim0"].map(str::to_owned);
    Route { interface, adapter, driver: String::new(), is_on, obstacle }
}

/// Opens all that arrives, until the connection ends.
fn reader(theirs: TcpStream, channel: Channel<Counting>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut peer = Peer::new(channel);
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
    })
}

/// Sends a head and a file over a link; returns the engine that had the connection at the end, and how long the worker was
/// held up at most.
async fn send(workplace: &Rc<Workplace>, version: Version) -> (Engine, Duration) {
    let (ours, theirs) = connected_pair(None).unwrap();
    let reader = reader(theirs, channel(version, Cipher::Aes128Gcm, u64::MAX));
    let stream = tokio::net::TcpStream::from_std(ours).unwrap();
    let mut link = Link::tls(
        stream,
        workplace.watches.enter(),
        Rc::clone(workplace),
        channel(version, Cipher::Aes128Gcm, u64::MAX),
        Vec::new(),
    );
    let (head, body) = (content(317), content(BYTES));
    let file = temporary(&body);
    let file = OpenFile::of(file).unwrap();
    let mut queue = Queue::from_iter([Piece::Bytes(head.clone()), Piece::file(&file, 0..BYTES as u64)]);
    let mut longest = Duration::ZERO;
    let other = async {
        loop {
            let before = Instant::now();
            tokio::time::sleep(Duration::from_millis(2)).await;
            longest = longest.max(before.elapsed());
        }
    };
    tokio::select! {
        sent = link.send(&mut queue) => sent.unwrap(),
        () = other => {}
    }
    let engine = link.engine();
    link.secure().unwrap().wait_for_departure(&link.wire).await.unwrap();
    drop(link);
    assert!(reader.join().unwrap() == [head, body].concat(), "{engine:?}");
    (engine, longest)
}

/// The handshake's last records wait for the first response, and its end for the end of the connection: one segment.
#[tokio::test]
async fn what_begins_and_ends_a_connection_leaves_with_its_response() {
    let (workplace, _) = auto(1.0);
    let mut held_bytes = Vec::new();
    // The kernel holds a segment back for 200 ms: a machine that is too busy for that at one time is not at all.
    for _ in 0..50 {
        let (ours, theirs) = connected_pair(None).unwrap();
        let channel = channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX);
        let reader = reader(theirs, self::channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX));
        let stream = tokio::net::TcpStream::from_std(ours).unwrap();
        let mut link =
            Link::tls(stream, workplace.watches.enter(), Rc::clone(&workplace), channel, Vec::new());
        let Protection::Tls(secure) = &mut link.protection else { panic!("it was made so") };
        let waiting = secure.unsent.behind();
        let mut seal = |bytes| {
            let sealer = secure.channel.sealer().unwrap();
            sealer.seal_append(ContentType::ApplicationData, bytes, waiting).unwrap();
        };
        seal(b"first");
        link.ends_behind(true);
        let mut queue = Queue::from_iter([Piece::Bytes(content(317))]);
        link.send(&mut queue).await.unwrap();
        held_bytes.push(linerate_os::socket::not_sent_bytes(&link.wire.stream).unwrap());
        link.close(&Ending::Served, crate::link::Linger::No).await;
        assert!(reader.join().unwrap() == [b"first".to_vec(), content(317)].concat());
        if held_bytes.last() == Some(&(5 + 317 + 2 * 22)) {
            return;
        }
    }
    panic!("held back: {held_bytes:?}");
}

/// INV-ORDER-1: no engine seals behind bytes that the socket has not taken, not even when asked to.
#[tokio::test]
async fn nothing_is_sealed_while_sealed_bytes_wait() {
    let (workplace, _) = auto(1.0);
    let (ours, theirs) = connected_pair(None).unwrap();
    let channel = channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX);
    let stream = tokio::net::TcpStream::from_std(ours).unwrap();
    let mut link = Link::tls(stream, workplace.watches.enter(), Rc::clone(&workplace), channel, Vec::new());
    let Protection::Tls(secure) = &mut link.protection else { panic!("it was made so") };
    let waiting = secure.unsent.behind();
    secure.channel.sealer().unwrap().seal_append(ContentType::ApplicationData, b"first", waiting).unwrap();
    let mut queue = Queue::from_iter([Piece::Bytes(b"second".to_vec())]);
    assert!(matches!(link.turn(&mut queue), Err(Ending::Record(RecordError::Misuse(_)))));
    assert_eq!(queue.remaining_bytes(), 6);
    // What sends a response lets it go first.
    let reader = reader(theirs, self::channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX));
    link.send(&mut queue).await.unwrap();
    drop(link);
    assert_eq!(reader.join().unwrap(), b"firstsecond");
}

fn set_ups(workplace: &Workplace, outcome: SetUp) -> u64 {
    workplace.metrics.nic_set_ups.of(outcome).value()
}

fn refused(workplace: &Workplace, reason: KernelRefused) -> u64 {
    workplace.metrics.kernel_refused.of(reason).value()
}

const TAKES: Nic = Nic { takes: true, set_up_ms: 0, tells_sockets: true, others: 0, counts_nothing: false };

#[tokio::test]
async fn who_has_the_connection_is_told_and_every_byte_arrives() {
    for tells_sockets in [true, false] {
        for (takes, version, engine, outcome) in [
            (true, Version::Tls12, Engine::Nic, SetUp::Adapter),
            (false, Version::Tls12, Engine::Kernel, SetUp::Software),
            (true, Version::Tls13, Engine::Kernel, SetUp::Software),
        ] {
            let (workplace, _) = workplace(Nic { takes, tells_sockets, ..TAKES }, true);
            assert_eq!(send(&workplace, version).await.0, engine);
            assert_eq!(set_ups(&workplace, outcome), 1, "{engine:?}");
        }
    }
    let (workplace, _) = workplace(Nic { others: 1, tells_sockets: false, ..TAKES }, true);
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Kernel);
    assert_eq!(set_ups(&workplace, SetUp::Unproven), 1, "what is not proved is the kernel's");
}

/// Every order of failure before the switch: the sealing half comes back, and the user engine goes on.
#[tokio::test]
async fn a_set_up_that_fails_leaves_the_connection_with_the_user_engine() {
    for attach in [true, false] {
        let (workplace, script) = workplace(TAKES, true);
        let list = if attach { &script.attach } else { &script.install };
        list.lock().push_back(Some(12));
        assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::User);
        assert_eq!(set_ups(&workplace, SetUp::Refused), 1);
        assert_eq!(refused(&workplace, KernelRefused::System), 1);
        // Nothing is learnt from it about the adapter but that one tries at a time.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Nic);
    }
}

/// What the adapter refused once is not tried again at once; what it takes is.
#[tokio::test]
async fn a_refusal_is_remembered_for_its_version() {
    let (workplace, _) = workplace(TAKES, true);
    assert_eq!(send(&workplace, Version::Tls13).await.0, Engine::Kernel);
    assert_eq!(send(&workplace, Version::Tls13).await.0, Engine::User);
    assert_eq!(refused(&workplace, KernelRefused::NotInNic), 1);
    for _ in 0..2 {
        assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Nic);
    }
    assert_eq!((set_ups(&workplace, SetUp::Software), set_ups(&workplace, SetUp::Adapter)), (1, 2));
}

#[tokio::test]
async fn an_adapter_that_is_off_is_not_asked() {
    let (workplace, script) = workplace(TAKES, false);
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::User);
    assert_eq!(refused(&workplace, KernelRefused::FeatureOff), 1);
    assert_eq!(script.calls("attach"), 0);
}

/// A connection by a bond that hands none down is not given to the kernel's software for nothing.
#[tokio::test]
async fn an_adapter_beneath_what_hands_nothing_down_is_not_asked() {
    let (workplace, script) = workplace(TAKES, true);
    let lack = Lack::BondPolicy(Name::new("sim0"));
    workplace.adapters.replace(Arc::new(Adapters::of(vec![route(true, Some(lack))])));
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::User);
    assert_eq!(refused(&workplace, KernelRefused::NoAdapter), 1);
    assert_eq!(script.calls("attach"), 0);
}

/// INV-NIC-2: the worker does other things while the firmware takes its time.
#[tokio::test]
async fn others_go_on_while_a_connection_is_set_up() {
    let (workplace, _) = workplace(Nic { set_up_ms: 2_000, ..TAKES }, true);
    let started = Instant::now();
    let (engine, longest) = send(&workplace, Version::Tls12).await;
    assert_eq!(engine, Engine::Nic);
    assert!(started.elapsed() >= Duration::from_secs(2));
    assert!(longest < Duration::from_secs(1), "the worker was held up for {longest:?}");
}

/// INV-PLACE-1: a connection whose set-up finds no free thread gives the set-up back.
#[tokio::test]
async fn a_set_up_that_is_not_made_is_given_back() {
    let (workplace, script) = auto(0.01);
    let before = workplace.placer.set_ups().0;
    let places: Vec<_> = std::iter::from_fn(|| workplace.set_ups.enter()).collect();
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::User);
    assert_eq!(script.calls("attach"), 0);
    assert_eq!(workplace.placer.set_ups().0, before, "set-ups that are left");
    drop(places);
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Nic);
    assert!(workplace.placer.set_ups().0 < before, "this one was made");
}

#[tokio::test]
async fn what_set_ups_take_is_told_to_the_placer() {
    let (workplace, script) = auto(850.0);
    let most_per_s = workplace.placer.set_ups().1;
    // Two spans of a tenth of a second: in the second one each takes four times as long.
    for set_up_ms in [15, 60] {
        script.nic.set(Nic { set_up_ms, ..TAKES });
        assert_eq!(workplace.placer.set_ups().1, most_per_s);
        for _ in 0..8 {
            assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Nic);
        }
    }
    assert!(workplace.placer.set_ups().1 < most_per_s, "set-ups a second");
}

/// INV-PLACE-1: Linux asks the adapter for connections that are meant for the kernel, too.
#[tokio::test]
async fn a_move_to_the_kernel_spends_a_set_up_where_the_adapter_goes_first() {
    let (workplace, script) = auto(0.01);
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Nic);
    script.nic.set(Nic { takes: false, ..TAKES });
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Kernel, "somebody has to try");
    // From now on it is known to refuse, and decided for the kernel.
    let before = workplace.placer.set_ups().0;
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::Kernel);
    assert!(workplace.placer.set_ups().0 < before);
    while workplace.placer.take_set_up().is_none() {}
    let asked = script.calls("attach");
    assert_eq!(send(&workplace, Version::Tls12).await.0, Engine::User);
    assert_eq!(script.calls("attach"), asked);
}

/// Plaintext bytes of the records of TLS 1.3 that are whole in `sealed`: each has a header of 5 bytes, and 17 behind its
/// plaintext.
fn whole_plaintext_bytes(mut sealed: &[u8]) -> u64 {
    let mut plaintext_bytes = 0;
    while let Some((header, rest)) = sealed.split_at_checked(5) {
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let Some((_, behind)) = rest.split_at_checked(length) else { break };
        plaintext_bytes += length as u64 - 17;
        sealed = behind;
    }
    plaintext_bytes
}

#[tokio::test]
async fn what_the_socket_took_of_a_response_that_is_cut_is_counted_and_no_more() {
    let body = content(4_000_037);
    let head = content(317);
    let file = temporary(&body);
    let file = OpenFile::of(file).unwrap();
    for is_secure in [true, false] {
        let (workplace, _) = workplace_with("user", Costs::defaults(), TAKES, false);
        let (ours, mut theirs) = connected_pair(Some(20_000)).unwrap();
        let stream = tokio::net::TcpStream::from_std(ours).unwrap();
        let (watch, own) = (workplace.watches.enter(), Rc::clone(&workplace));
        let mut link = if is_secure {
            Link::tls(stream, watch, own, channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX), Vec::new())
        } else {
            Link::plain(stream, watch, own)
        };
        let mut queue =
            Queue::from_iter([Piece::Bytes(head.clone()), Piece::file(&file, 0..body.len() as u64)]);
        let total_bytes = queue.remaining_bytes();
        // Nobody reads: it is cut wherever it has come to by then.
        let sent = tokio::time::timeout(Duration::from_millis(100), link.send(&mut queue)).await;
        assert!(sent.is_err(), "the sockets do not hold it all");
        let (engine, taken_bytes) = (link.engine(), link.taken_bytes());
        assert_eq!(workplace.metrics.response_bytes.of(engine).value(), taken_bytes);
        if is_secure {
            let sealed_bytes = total_bytes - queue.remaining_bytes();
            assert!(sealed_bytes > taken_bytes, "some was sealed for nothing: {sealed_bytes}, {taken_bytes}");
        }
        drop(link);
        theirs.set_nonblocking(false).unwrap();
        let mut received = Vec::new();
        std::io::Read::read_to_end(&mut theirs, &mut received).unwrap();
        let came_bytes = if is_secure { whole_plaintext_bytes(&received) } else { received.len() as u64 };
        assert!(came_bytes > 0);
        assert_eq!(taken_bytes, came_bytes, "over TLS: {is_secure}");
    }
}
