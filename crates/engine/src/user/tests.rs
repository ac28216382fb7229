//! The user engine against an [`Opener`]: whatever is sealed opens to the pieces, byte for byte.

use super::*;
use crate::{
    Piece,
    source::{OpenFile, Source},
};
use linerate_record::{
    Cipher, Event, KeyUpdateRate, Opener, RecordError, RecordHeader, RecordLimit, TrafficKey, Version,
};
use std::{
    fs::File,
    io::Write,
    os::unix::fs::FileExt,
    rc::Rc,
    time::{Duration, SystemTime},
};

struct Counting(Version, Cipher, u32);

fn key(version: Version, cipher: Cipher, number: u32) -> TrafficKey {
    let bytes = number.to_be_bytes().repeat(8);
    TrafficKey::new(version, cipher, &bytes[..cipher.key_bytes()], bytes[..12].try_into().unwrap()).unwrap()
}

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
    let key = key(version, cipher, 1);
    Channel::new(
        Sealer::new(&key, 0, RecordLimit::of(cipher).lowered_to(limit)).unwrap(),
        Opener::new(&key, 0).unwrap(),
        Counting(version, cipher, 1),
        KeyUpdateRate::new(u32::MAX),
    )
}

fn open_all(receiver: &mut Channel<Counting>, wire: &[u8], plaintext: &mut Vec<u8>) {
    let mut wire = wire.to_vec();
    let mut rest = &mut wire[..];
    while !rest.is_empty() {
        let header = RecordHeader::parse(rest, receiver.incoming_layout()).unwrap().unwrap();
        let (record, behind) = rest.split_at_mut(header.record_bytes());
        if let Event::Data(range) = receiver.receive(record, 0).unwrap() {
            plaintext.extend_from_slice(&record[range]);
        }
        rest = behind;
    }
}

fn temporary(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// A file to be read, or to be sealed from a mapping.
fn source(file: &File, is_mapped: bool) -> Rc<OpenFile> {
    let file = file.try_clone().unwrap();
    if is_mapped { OpenFile::mapped(file).unwrap() } else { OpenFile::of(file).unwrap() }
}

/// Sends `pieces` batch by batch and returns what a receiver makes of it.
fn through(
    version: Version,
    cipher: Cipher,
    limit: u64,
    pieces: impl IntoIterator<Item = Piece>,
    sizing: Sizing,
) -> Vec<u8> {
    let mut batch = Batch::new(sizing.batch_bytes);
    let (mut sender, mut receiver) = (channel(version, cipher, limit), channel(version, cipher, limit));
    let mut queue: Queue = pieces.into_iter().collect();
    let mut plaintext = Vec::new();
    while !queue.is_done() {
        let sealed = batch.seal(&mut sender, &mut queue, sizing).unwrap();
        assert!(matches!(sealed, Sealed::Records), "{sealed:?}");
        assert!(!batch.sealed().is_empty());
        open_all(&mut receiver, batch.sealed(), &mut plaintext);
    }
    plaintext
}

#[test]
fn what_is_sealed_opens_to_the_pieces() {
    let bytes = content(200_003);
    let file = temporary(&bytes);
    let head = content(317);
    // Bytes of a head, then a range of the file.
    let cases: [&[(usize, Range<u64>)]; 6] = [
        &[(317, 0..0)],
        &[(317, 0..200_003)],
        &[(317, 1..2)],
        &[(317, 16_383..16_385 + 32_768)],
        &[(0, 7..7 + 16_384)],
        &[(317, 100..101), (3, 199_999..200_003), (0, 5..70_000), (1, 0..0)],
    ];
    for version in [Version::Tls12, Version::Tls13] {
        for cipher in Cipher::ALL {
            for (case, is_mapped) in cases.iter().flat_map(|case| [(case, false), (case, true)]) {
                let source = source(&file, is_mapped);
                let (mut pieces, mut expected) = (Vec::new(), Vec::new());
                for (head_bytes, range) in *case {
                    pieces.push(Piece::Bytes(head[..*head_bytes].to_vec()));
                    pieces.push(Piece::file(&source, range.clone()));
                    expected.extend_from_slice(&head[..*head_bytes]);
                    expected.extend_from_slice(&bytes[range.start as usize..range.end as usize]);
                }
                for (record_bytes, batch_bytes, opening_bytes) in [
                    (16_384, 131_072, 0),
                    (16_384, 131_072, 13_032),
                    (16_384, 16_384, 0),
                    (16_384, 16_384, 20_000),
                    (1369, 65_536, 3000),
                    (16_384, 100_001, 0),
                ] {
                    let sizing = Sizing { record_bytes, batch_bytes, opening_bytes };
                    let got = through(version, cipher, u64::MAX, pieces.clone(), sizing);
                    assert!(got == expected, "{version:?} {cipher:?} {case:?} {sizing:?} {is_mapped}");
                }
            }
        }
    }
}

#[test]
fn key_updates_fall_between_records_wherever_the_limit_says() {
    let bytes = content(300_000);
    let file = temporary(&bytes);
    for limit in [3, 4, 5, 9, 50] {
        for is_mapped in [false, true] {
            let pieces = [Piece::file(&source(&file, is_mapped), 0..300_000)];
            let sizing = Sizing { record_bytes: 4096, batch_bytes: 65_536, opening_bytes: 0 };
            let got = through(Version::Tls13, Cipher::Aes128Gcm, limit, pieces, sizing);
            assert!(got == bytes, "limit {limit}");
        }
    }
}

/// INV-FILE-1: a file that got shorter ends the response; nothing is padded.
#[test]
fn a_truncated_file_is_a_fault_at_the_right_byte() {
    let bytes = content(100_000);
    let sizing = Sizing { record_bytes: 16_384, batch_bytes: 65_536, opening_bytes: 0 };
    for mapped in [false, true] {
        let file = temporary(&bytes);
        let mut queue = Queue::from_iter([Piece::file(&source(&file, mapped), 0..100_000)]);
        let mut batch = Batch::new(sizing.batch_bytes);
        let mut sender = channel(Version::Tls13, Cipher::Aes256Gcm, u64::MAX);
        assert!(matches!(batch.seal(&mut sender, &mut queue, sizing), Ok(Sealed::Records)));
        file.set_len(70_001).unwrap();
        match batch.seal(&mut sender, &mut queue, sizing) {
            Err(Fault::Changed(change)) => {
                assert_eq!(change, Change::CutShort(70_001), "mapped: {mapped}");
            }
            other => panic!("{other:?}"),
        }
        assert!(batch.sealed().is_empty(), "nothing of the doubtful batch may leave");
    }
}

/// What becomes of a file of 100,000 bytes, mapped or not, of which 49,152 were sealed before `change` was made to it.
fn after(mapped: bool, change: impl Fn(&mut File)) -> Result<Sealed, Fault> {
    let file = temporary(&content(100_000));
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    let writer = &mut file.try_clone().unwrap();
    let mut queue = Queue::from_iter([Piece::file(&source(&file, mapped), 0..100_000)]);
    let sizing = Sizing { record_bytes: 16_384, batch_bytes: 3 * 16_406, opening_bytes: 0 };
    let mut batch = Batch::new(sizing.batch_bytes);
    let mut sender = channel(Version::Tls13, Cipher::Aes256Gcm, u64::MAX);
    assert!(matches!(batch.seal(&mut sender, &mut queue, sizing), Ok(Sealed::Records)));
    assert_eq!(queue.remaining_bytes(), 100_000 - 49_152);
    change(writer);
    loop {
        let sealed = batch.seal(&mut sender, &mut queue, sizing);
        match &sealed {
            // What was cut away and written anew is not in memory: it is fetched, as where waiting is allowed.
            Ok(Sealed::Cold(FileRange { range, .. })) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                file.read_exact_at(&mut bytes, range.start).unwrap();
                continue;
            }
            _ => assert_eq!(
                sealed.is_err(),
                batch.sealed().is_empty(),
                "nothing of a doubtful batch may leave"
            ),
        }
        if sealed.is_err() || queue.is_done() {
            return sealed;
        }
    }
}

/// INV-FILE-2: the rest of a page that was cut in its middle reads as zeros, and raises no signal.
#[test]
fn one_byte_cut_off_within_a_page_is_noticed() {
    for mapped in [false, true] {
        match after(mapped, |file| file.set_len(99_999).unwrap()) {
            Err(Fault::Changed(change)) => assert_eq!(change, Change::CutShort(99_999), "{mapped}"),
            other => panic!("{other:?}, mapped: {mapped}"),
        }
    }
}

/// INV-FILE-1: a file that was overwritten ends the response. One that has grown is what it was, and more.
#[test]
fn an_overwritten_file_is_a_fault_and_one_that_grew_is_none() {
    for mapped in [false, true] {
        let overwritten = |change| matches!(change, Err(Fault::Changed(Change::Overwritten)));
        assert!(overwritten(after(mapped, |file| {
            assert_eq!(file.write_at(b"other", 60_000).unwrap(), 5);
        })));
        // Cut short and as long again, as `cp` does with what is there.
        assert!(overwritten(after(mapped, |file| {
            file.set_len(0).unwrap();
            file.set_len(100_000).unwrap();
        })));
        let grown = after(mapped, |file| assert_eq!(file.write_at(b"more", 100_000).unwrap(), 4));
        assert!(matches!(grown, Ok(Sealed::Records)));
        // Another owner's rights, another name: its bytes are the same.
        let touched = after(mapped, |file| {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o640);
            file.set_permissions(permissions).unwrap();
        });
        assert!(matches!(touched, Ok(Sealed::Records)));
    }
}

/// The kernel sets a file's time before its length: between the two a file that grows looks overwritten.
#[test]
fn a_file_that_is_about_to_grow_is_no_fault_unless_the_response_ends_there() {
    for (grows, moment) in [(true, Moment::Midway), (false, Moment::Midway), (true, Moment::AtTheEnd)] {
        let file = temporary(&content(100_000));
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        let source: Rc<dyn Source> = source(&file, false);
        file.set_modified(SystemTime::now()).unwrap();
        let change = source.change(moment).unwrap();
        assert_eq!(change, (moment == Moment::AtTheEnd).then_some(Change::Overwritten));
        if grows {
            file.set_len(100_004).unwrap();
        }
        let change = source.change(Moment::AtTheEnd).unwrap();
        assert_eq!(change, (!grows).then_some(Change::Overwritten));
        // A while later it can be told in the middle, too; so can a time that nobody's write gives a file.
        file.set_len(100_000).unwrap();
        for modified in
            [SystemTime::now() - Duration::from_secs(1), SystemTime::now() + Duration::from_secs(60)]
        {
            file.set_modified(modified).unwrap();
            assert_eq!(source.change(Moment::Midway).unwrap(), Some(Change::Overwritten));
        }
    }
}

#[test]
fn a_tls12_connection_ends_at_its_limit() {
    let bytes = content(100_000);
    let file = temporary(&bytes);
    let sizing = Sizing { record_bytes: 1000, batch_bytes: 16_384, opening_bytes: 0 };
    let mut batch = Batch::new(sizing.batch_bytes);
    let mut sender = channel(Version::Tls12, Cipher::Aes128Gcm, 7);
    let mut queue = Queue::from_iter([Piece::file(&source(&file, false), 0..100_000)]);
    assert!(matches!(batch.seal(&mut sender, &mut queue, sizing), Ok(Sealed::Records)));
    assert_eq!(queue.remaining_bytes(), 95_000, "seven records less the two kept back");
    let fault = batch.seal(&mut sender, &mut queue, sizing).unwrap_err();
    assert!(matches!(fault, Fault::Record(RecordError::KeyExhausted)));
}

#[test]
fn the_seeded_faults_of_many_small_turns_lose_nothing() {
    let bytes = content(140_000);
    let mut seed = 42u64;
    let mut random = move |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % bound
    };
    // Two files, each of them read and mapped, as those of several responses may be.
    let halves = [&bytes[..70_000], &bytes[70_000..]];
    let files = halves.map(temporary);
    let sources = [(0, false), (0, true), (1, false), (1, true)]
        .map(|(number, is_mapped)| (halves[number], source(&files[number], is_mapped)));
    for _ in 0..400 {
        let (mut pieces, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..=random(5) {
            let joint = content(random(90) as usize);
            let (half, source) = &sources[random(4) as usize];
            let start = random(70_000);
            let range = start..start + random(70_000 - start) + 1;
            expected.extend_from_slice(&joint);
            expected.extend_from_slice(&half[range.start as usize..range.end as usize]);
            pieces.extend([Piece::Bytes(joint), Piece::file(source, range)]);
        }
        let sizing = Sizing {
            record_bytes: 1 + random(16_384) as usize,
            batch_bytes: 1 + random(200_000) as usize,
            opening_bytes: random(40_000) as usize,
        };
        let got = through(Version::Tls13, Cipher::Aes128Gcm, 3 + random(40), pieces.clone(), sizing);
        assert!(got == expected, "{pieces:?} {sizing:?}");
    }
}

/// Where the records of a batch end.
fn ends(mut sealed: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = sealed {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        ends.push(ends.last().unwrap_or(&0) + 5 + length);
        sealed = &rest[length..];
    }
    ends
}

#[test]
fn what_leaves_in_the_first_round_trip_is_whole_records() {
    let bytes = content(100_000);
    let file = temporary(&bytes);
    let sealed = |is_mapped, opening_bytes| {
        let sizing = Sizing { record_bytes: 16_384, batch_bytes: 65_160, opening_bytes };
        let mut batch = Batch::new(sizing.batch_bytes);
        let mut sender = channel(Version::Tls13, Cipher::Aes256Gcm, u64::MAX);
        let body = Piece::file(&source(&file, is_mapped), 0..100_000);
        let mut queue = Queue::from_iter([Piece::Bytes(content(250)), body]);
        batch.seal(&mut sender, &mut queue, sizing).unwrap();
        ends(batch.sealed())
    };
    // The head has a record of its own before a mapping.
    let head_end = 250 + 22;
    assert_eq!(sealed(true, 13_032), [head_end, 13_032, 29_438, 45_844, 62_250, 65_160]);
    assert_eq!(sealed(false, 13_032), [13_032, 29_438, 45_844, 62_250, 65_160]);
    // Hardly anything would go in: it is left as it is.
    assert_eq!(sealed(true, head_end + 1000), sealed(true, 0));
}
