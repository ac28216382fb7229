//! Handing the sending direction over: to a model of the kernel that makes its records as `net/tls/tls_sw.c` does.

use linerate_kernel_model::KernelKey;
use linerate_record::{
    AlertDescription, Channel, Cipher, ContentType, Event, HandOverFault, Handover, KeySource, KeyUpdateRate,
    KeyUpdateRequest, Opener, RecordError, RecordHeader, RecordLimit, Sealer, TrafficKey, Version,
};
use std::collections::HashSet;

const COMBINATIONS: [(Version, Cipher); 6] = [
    (Version::Tls12, Cipher::Aes128Gcm),
    (Version::Tls12, Cipher::Aes256Gcm),
    (Version::Tls12, Cipher::ChaCha20Poly1305),
    (Version::Tls13, Cipher::Aes128Gcm),
    (Version::Tls13, Cipher::Aes256Gcm),
    (Version::Tls13, Cipher::ChaCha20Poly1305),
];

fn key(version: Version, cipher: Cipher, number: u8) -> TrafficKey {
    TrafficKey::new(version, cipher, &vec![number; cipher.key_bytes()], [number ^ 0xA5; 12]).unwrap()
}

/// The next keys count up.
struct Counting(Version, Cipher, u8);

impl KeySource for Counting {
    fn next_sending_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.2 += 1;
        Ok(key(self.0, self.1, self.2))
    }
    fn next_receiving_key(&mut self) -> Result<TrafficKey, RecordError> {
        self.next_sending_key()
    }
}

fn channel(version: Version, cipher: Cipher, limit: u64) -> Channel<Counting> {
    let limit = RecordLimit::of(cipher).lowered_to(limit);
    Channel::new(
        // As TLS 1.2's Finished leaves it.
        Sealer::keeping(key(version, cipher, 1), 1, limit).unwrap(),
        Opener::new(&key(version, cipher, 1), 1).unwrap(),
        Counting(version, cipher, 1),
        KeyUpdateRate::new(1000),
    )
}

fn kernel_key(handover: &Handover<'_>) -> KernelKey {
    let (version, cipher) = (handover.version(), handover.cipher());
    KernelKey::new(version, cipher, handover.key(), *handover.vector(), handover.sequence())
}

fn take<T>(kernel: &mut Option<T>, made: T) -> Result<(), ()> {
    *kernel = Some(made);
    Ok(())
}

/// INV-NONCE-3: the peer opens everything across the switch, and no nonce of the wire comes twice.
#[test]
fn records_go_on_across_the_switch_and_no_nonce_comes_twice() {
    for (version, cipher) in COMBINATIONS {
        for switch_at in [0, 1, 2, 17, 300] {
            let (mut sender, mut receiver) =
                (channel(version, cipher, u64::MAX), channel(version, cipher, u64::MAX));
            let mut explicit = HashSet::new();
            let mut arrive = |mut record: Vec<u8>, text: &[u8]| {
                let layout = receiver.incoming_layout();
                assert_eq!(
                    RecordHeader::parse(&record, layout).unwrap().unwrap().record_bytes(),
                    record.len()
                );
                if layout.prefix_bytes() > 5 {
                    assert!(explicit.insert(record[5..13].to_vec()), "{version:?} {cipher:?} at {switch_at}");
                }
                match receiver.receive(&mut record, 0).unwrap() {
                    Event::Data(range) => assert_eq!(&record[range], text),
                    other => panic!("{other:?}"),
                }
            };
            for number in 0..switch_at {
                let text = format!("ours {number}");
                let mut record = Vec::new();
                sender
                    .sealer()
                    .unwrap()
                    .seal_append(ContentType::ApplicationData, text.as_bytes(), &mut record)
                    .unwrap();
                arrive(record, text.as_bytes());
            }
            let mut kernel = None;
            sender.hand_over(true, |handover| take(&mut kernel, kernel_key(handover))).unwrap();
            let mut kernel = kernel.unwrap();
            assert_eq!(kernel.sequence(), 1 + switch_at);
            for number in 0..300 {
                let text = format!("the kernel's {number}");
                arrive(kernel.record(ContentType::ApplicationData, text.as_bytes()), text.as_bytes());
            }
        }
    }
}

#[test]
fn a_refused_switch_leaves_all_as_it_was_and_a_successful_one_ends_sealing_here() {
    for (version, cipher) in COMBINATIONS {
        let mut sender = channel(version, cipher, u64::MAX);
        assert_eq!(sender.hand_over(true, |_| Err("no module")), Err(HandOverFault::Refused("no module")));
        assert!(!sender.is_handed_over() && sender.keeps_key());
        let mut outgoing = Vec::new();
        sender.sealer().unwrap().seal_append(ContentType::ApplicationData, b"on", &mut outgoing).unwrap();
        let mut receiver = channel(version, cipher, u64::MAX);
        assert!(matches!(receiver.receive(&mut outgoing, 0), Ok(Event::Data(_))));

        sender.hand_over(true, |_| Ok::<_, ()>(())).unwrap();
        assert!(sender.is_handed_over() && !sender.keeps_key());
        assert!(matches!(sender.sealer(), Err(RecordError::Misuse(_))), "nothing is sealed here any more");
        let again = sender.hand_over(true, |_| -> Result<(), ()> { panic!("there is no second switch") });
        assert!(matches!(again, Err(HandOverFault::NotReady(_))));
        // What would have been sealed waits as a control record instead.
        outgoing.clear();
        sender.alert(AlertDescription::CloseNotify, &mut outgoing).unwrap();
        assert!(outgoing.is_empty());
        let record = sender.next_control().unwrap();
        assert_eq!((record.content_type(), record.payload()), (ContentType::Alert, &[1, 0][..]));
    }
}

/// INV-NONCE-3 where the switch takes its time: in between nobody seals, and it ends in one of two ways.
#[test]
fn while_the_sealing_half_is_lent_nobody_seals() {
    for (version, cipher) in COMBINATIONS {
        let mut sender = channel(version, cipher, u64::MAX);
        let lent = sender.lend().unwrap();
        // It goes to another thread and comes back.
        let (lent, sequence) = std::thread::spawn(move || {
            let handover = lent.handover().unwrap();
            let (sequence, shown) = (handover.sequence(), format!("{handover:?}"));
            assert!(shown.contains("sequence: 1") && !shown.contains("1, 1"), "{shown}");
            drop(handover);
            (lent, sequence)
        })
        .join()
        .unwrap();
        assert_eq!(sequence, 1);
        assert!(matches!(sender.sealer(), Err(RecordError::Misuse(_))));
        assert!(matches!(sender.lend(), Err(RecordError::Misuse(_))));
        assert!(sender.prepare_sending(&mut Vec::new()).is_err());
        assert!(!sender.is_handed_over() && !sender.can_send());
        assert_eq!((sender.version(), sender.cipher(), sender.remaining_records()), (version, cipher, 0));

        sender.take_back(lent);
        let mut outgoing = Vec::new();
        sender.sealer().unwrap().seal_append(ContentType::ApplicationData, b"on", &mut outgoing).unwrap();
        let mut receiver = channel(version, cipher, u64::MAX);
        assert!(matches!(receiver.receive(&mut outgoing, 0), Ok(Event::Data(_))));

        let remaining = sender.remaining_records();
        let lent = sender.lend().unwrap();
        assert_eq!(lent.handover().unwrap().sequence(), 2);
        sender.handed_over(lent, true);
        assert!(sender.is_handed_over() && sender.remaining_records() == remaining);
        assert_eq!(sender.can_change_key(), version == Version::Tls13);
    }
    // A channel that has lost its sealing half can neither seal nor send close_notify.
    let mut sender = channel(Version::Tls13, Cipher::Aes128Gcm, u64::MAX);
    drop(sender.lend().unwrap());
    assert!(sender.alert(AlertDescription::CloseNotify, &mut Vec::new()).is_err());
}

#[test]
fn what_is_not_ready_is_not_tried() {
    let never = |_: &Handover<'_>| -> Result<(), ()> { panic!("it must not be tried") };
    let (version, cipher) = (Version::Tls13, Cipher::Aes128Gcm);
    let mut closed = channel(version, cipher, u64::MAX);
    closed.alert(AlertDescription::CloseNotify, &mut Vec::new()).unwrap();
    let mut owing = channel(version, cipher, u64::MAX);
    let mut update = first_kernel_key(version, cipher).record(ContentType::Handshake, &[24, 0, 0, 1, 1]);
    assert!(matches!(owing.receive(&mut update, 0), Ok(Event::KeyUpdate(_))));
    let mut used_up = channel(version, cipher, 3);
    used_up.sealer().unwrap().seal_append(ContentType::Alert, &[1, 90], &mut Vec::new()).unwrap();
    let key_not_kept = Channel::new(
        Sealer::new(&key(version, cipher, 1), 1, RecordLimit::of(cipher)).unwrap(),
        Opener::new(&key(version, cipher, 1), 1).unwrap(),
        Counting(version, cipher, 1),
        KeyUpdateRate::new(1),
    );
    assert!(!key_not_kept.keeps_key());
    for (what, mut channel) in
        [("closed", closed), ("owing", owing), ("used up", used_up), ("key not kept", key_not_kept)]
    {
        let refused = channel.hand_over(true, never);
        assert!(matches!(refused, Err(HandOverFault::NotReady(_))), "{what}: {refused:?}");
        assert!(!channel.is_handed_over(), "{what}");
    }
}

/// INV-RECEIVE-1: the opener of records elsewhere goes on at the number where ours stopped, with the key that arrived last, and
/// nothing is opened here any more.
#[test]
fn receiving_goes_on_elsewhere_at_the_number_where_it_stopped() {
    for (version, cipher) in COMBINATIONS {
        let mut receiver = channel_keeping_the_receiving_key(version, cipher);
        let mut peer = channel(version, cipher, u64::MAX);
        let mut key_number = 1;
        let mut opened = 1;
        let seal = |peer: &mut Channel<Counting>| {
            let mut record = Vec::new();
            peer.sealer().unwrap().seal_append(ContentType::ApplicationData, b"text", &mut record).unwrap();
            record
        };
        if version == Version::Tls13 {
            let mut record = Vec::new();
            peer.update_key(KeyUpdateRequest::NotRequested).unwrap();
            assert!(peer.prepare_sending(&mut record).unwrap());
            assert!(matches!(receiver.receive(&mut record, 0), Ok(Event::KeyUpdate(_))));
            (key_number, opened) = (2, 0);
        } else {
            assert!(peer.update_key(KeyUpdateRequest::NotRequested).is_err());
        }
        for _ in 0..5 {
            assert!(matches!(receiver.receive(&mut seal(&mut peer), 0), Ok(Event::Data(_))));
            opened += 1;
        }
        let refused = receiver.hand_over_receiving(|_| Err("no module"));
        assert_eq!(refused, Err(HandOverFault::Refused("no module")));
        assert!(matches!(receiver.receive(&mut seal(&mut peer), 0), Ok(Event::Data(_))));
        opened += 1;
        receiver
            .hand_over_receiving(|handover| {
                assert_eq!(handover.sequence(), opened);
                assert_eq!(handover.key(), vec![key_number; cipher.key_bytes()]);
                // The salt, or all of it: what the peer's nonces are made from.
                assert_eq!(handover.vector()[..4], [key_number ^ 0xA5; 4]);
                Ok::<_, ()>(())
            })
            .unwrap();
        assert!(receiver.receiving_is_handed_over() && !receiver.keeps_receiving_key());
        assert!(matches!(receiver.receive(&mut seal(&mut peer), 0), Err(RecordError::Misuse(_))));
        assert!(receiver.skip_record().is_err());
    }
}

/// What the kernel opened means the same, and the key behind a key update goes to it.
#[test]
fn what_was_opened_elsewhere_is_understood_here() {
    let never = |_: &Handover<'_>| -> Result<(), ()> { panic!("there is no new key") };
    let (version, cipher) = (Version::Tls13, Cipher::Aes128Gcm);
    let promoted = || {
        let mut receiver = channel_keeping_the_receiving_key(version, cipher);
        receiver.hand_over_receiving(|_| Ok::<_, ()>(())).unwrap();
        receiver
    };
    let mut receiver = promoted();
    assert_eq!(
        receiver.receive_opened(ContentType::ApplicationData, b"data", 0, never),
        Ok(Event::Data(0..4))
    );
    let event = receiver.receive_opened(ContentType::Handshake, &[24, 0, 0, 1, 1], 0, |handover| {
        assert_eq!((handover.sequence(), handover.key()), (0, &[2; 16][..]));
        Ok::<_, ()>(())
    });
    assert_eq!(event, Ok(Event::KeyUpdate(KeyUpdateRequest::Requested)));
    assert!(receiver.owes_key_update() && receiver.key_updates_received() == 1);
    assert_eq!(receiver.receive_opened(ContentType::Alert, &[1, 0], 0, never), Ok(Event::CloseNotify));
    // INV-OPEN-1: whatever was at fault is the end.
    type Feed = fn(&mut Channel<Counting>) -> Result<Event, HandOverFault<&'static str>>;
    let faults: [Feed; 4] = [
        |channel| channel.receive_opened(ContentType::Alert, &[], 0, |_| Ok(())),
        |channel| channel.receive_opened(ContentType::ChangeCipherSpec, &[1], 0, |_| Ok(())),
        |channel| channel.receive_opened(ContentType::Handshake, &[24, 0, 0, 1, 0], 0, |_| Err("EBUSY")),
        |channel| {
            channel.receive_opened(ContentType::Handshake, &[24, 0], 0, |_| Ok(()))?;
            channel.receive_opened(ContentType::ApplicationData, b"between", 0, |_| Ok(()))
        },
    ];
    for fault in faults {
        let mut receiver = promoted();
        assert!(fault(&mut receiver).is_err());
        let behind = receiver.receive_opened(ContentType::ApplicationData, b"behind", 0, never);
        assert!(matches!(behind, Err(HandOverFault::NotReady(RecordError::Misuse(_)))), "{behind:?}");
    }
    let mut ours = channel(version, cipher, u64::MAX);
    assert!(ours.receive_opened(ContentType::ApplicationData, b"here", 0, never).is_err());
    let not_kept = ours.hand_over_receiving(never);
    assert!(matches!(not_kept, Err(HandOverFault::NotReady(_))) && !ours.receiving_is_handed_over());
}

fn channel_keeping_the_receiving_key(version: Version, cipher: Cipher) -> Channel<Counting> {
    Channel::new(
        Sealer::keeping(key(version, cipher, 1), 1, RecordLimit::of(cipher)).unwrap(),
        Opener::keeping(key(version, cipher, 1), 1).unwrap(),
        Counting(version, cipher, 1),
        KeyUpdateRate::new(1000),
    )
}

/// The key that channels of these tests begin with, in the kernel.
fn first_kernel_key(version: Version, cipher: Cipher) -> KernelKey {
    KernelKey::new(version, cipher, &vec![1; cipher.key_bytes()], [1 ^ 0xA5; 12], 1)
}

#[test]
fn a_key_update_leaves_under_the_old_key_and_what_follows_under_the_new() {
    let (version, cipher) = (Version::Tls13, Cipher::Aes256Gcm);
    let (mut sender, mut receiver) = (channel(version, cipher, 10), channel(version, cipher, 10));
    let mut kernel = None;
    sender.hand_over(true, |handover| take(&mut kernel, kernel_key(handover))).unwrap();
    let mut kernel = kernel.unwrap();
    let mut updates = 0;
    for number in 0..200u8 {
        if sender.prepare_sending(&mut Vec::new()).unwrap() {
            let control = *sender.next_control().unwrap();
            assert!(kernel.sequence() < 10, "INV-LIMIT-1");
            let mut record = kernel.record(control.content_type(), control.payload());
            assert!(matches!(receiver.receive(&mut record, 0), Ok(Event::KeyUpdate(_))));
            let mut next = None;
            assert!(sender.control_left(|handover| take(&mut next, kernel_key(handover))).unwrap());
            kernel = next.unwrap();
            assert_eq!(kernel.sequence(), 0);
            updates += 1;
        }
        assert!(sender.remaining_records() > 0);
        let mut record = kernel.record(ContentType::ApplicationData, &[number]);
        sender.spend(1);
        assert!(matches!(receiver.receive(&mut record, 0), Ok(Event::Data(_))));
    }
    assert!(updates >= 20 && sender.key_updates_sent() == updates);
    // A key that is refused after the update has left cannot be made good.
    while !sender.prepare_sending(&mut Vec::new()).unwrap() {
        sender.spend(1);
    }
    assert_eq!(sender.control_left(|_| Err("EBUSY")), Err(HandOverFault::Refused("EBUSY")));
}

/// A count that is known to be at its most is replaced by the exact one, and never counts what waits twice.
#[test]
fn counts_are_corrected() {
    let mut sender = channel(Version::Tls13, Cipher::Aes128Gcm, 100);
    sender.hand_over(true, |_| Ok::<_, ()>(())).unwrap();
    assert_eq!(sender.remaining_records(), 97);
    sender.spend(90);
    assert_eq!(sender.remaining_records(), 7);
    sender.count_from(21);
    assert_eq!(sender.remaining_records(), 77);
    sender.alert(AlertDescription::NoRenegotiation, &mut Vec::new()).unwrap();
    assert_eq!(sender.remaining_records(), 76);
    sender.count_from(21);
    assert_eq!(sender.remaining_records(), 76);
    sender.spend(u64::MAX);
    assert_eq!(sender.remaining_records(), 0);
}

/// Linux before 6.14, and TLS 1.2 anywhere: the key stays, and the connection ends in time.
#[test]
fn where_the_key_cannot_be_changed_the_connection_ends_in_time() {
    for (version, takes_new_keys) in
        [(Version::Tls13, false), (Version::Tls12, false), (Version::Tls12, true)]
    {
        let mut sender = channel(version, Cipher::Aes128Gcm, 100);
        sender.hand_over(takes_new_keys, |_| Ok::<_, ()>(())).unwrap();
        assert!(sender.can_send());
        sender.spend(72);
        assert!(!sender.can_send(), "less than a quarter is left: no other response begins");
        assert_eq!(sender.prepare_sending(&mut Vec::new()), Ok(false), "the one under way goes on");
        sender.spend(50);
        assert_eq!(sender.prepare_sending(&mut Vec::new()), Err(RecordError::KeyExhausted));
    }
    let mut sender = channel(Version::Tls13, Cipher::Aes128Gcm, 100);
    sender.hand_over(false, |_| Ok::<_, ()>(())).unwrap();
    let mut update =
        first_kernel_key(Version::Tls13, Cipher::Aes128Gcm).record(ContentType::Handshake, &[24, 0, 0, 1, 1]);
    assert!(matches!(sender.receive(&mut update, 0), Ok(Event::KeyUpdate(_))));
    assert_eq!(sender.prepare_sending(&mut Vec::new()), Ok(false), "an answer would break the stream");
    assert!(sender.next_control().is_none());
    assert!(!sender.can_send(), "no other response begins");
}
