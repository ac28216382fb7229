//! Runs without copies: what is lent, mapped or thrown away, to the byte, at both ends.

use super::support::{listen, plan, run, try_run};
use linerate_stream::{
    Limits, StreamError, StreamPlan,
    plan::{Amount, Direction, Reception, StreamEngine, ZeroCopySend},
    report::EndReport,
};

const DIRECTIONS: [Direction; 3] = [Direction::Send, Direction::Receive, Direction::Both];

/// The ways that this machine permits.
fn ways() -> Vec<ZeroCopySend> {
    let mut ways = vec![ZeroCopySend::MsgZerocopy];
    match linerate_os::zero_copy::Submissions::new() {
        Ok(_) => ways.push(ZeroCopySend::IoUring),
        Err(refusal) => eprintln!("SKIPPED: the part of zero_copy that is by io_uring: {refusal}"),
    }
    ways
}

/// All that an end lent is accounted for.
fn check_lent(end: &EndReport, by: ZeroCopySend, what: &StreamPlan) {
    let lent = end.lent().unwrap_or_else(|| panic!("nothing is told: {what:?}"));
    assert_eq!((lent.by, lent.completed), (by, lent.sends), "{what:?}");
    assert!(lent.sends > 0 && lent.copied <= lent.completed, "{lent:?} {what:?}");
}

/// INV-LENT-1, from one end to the other: odd sizes, fewer slots than what is in flight, every byte compared.
#[test]
fn what_is_lent_comes_as_it_was_in_every_direction() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for by in ways() {
        for engine in [StreamEngine::Plain, StreamEngine::User] {
            for direction in DIRECTIONS {
                for (streams, io_bytes, verify) in
                    [(1, 131_072, true), (3, 1001, true), (2, 5_000_011, true), (2, 65_537, false)]
                {
                    let asked = StreamPlan {
                        streams,
                        io_bytes,
                        verify,
                        direction,
                        engine,
                        zero_copy_send: Some(by),
                        ..plan(address)
                    };
                    let report = run(&asked);
                    let remote = report.remote.unwrap();
                    for &sends in direction.ways() {
                        let (sender, receiver) =
                            if sends { (&report.local, &remote) } else { (&remote, &report.local) };
                        assert_eq!((sender.bytes(true), receiver.bytes(false)), (1_000_003, 1_000_003));
                        check_lent(sender, by, &asked);
                        assert_eq!(receiver.lent().is_some(), direction == Direction::Both);
                    }
                }
            }
        }
    }
}

#[test]
fn io_of_a_single_byte_can_be_lent() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for by in ways() {
        for engine in [StreamEngine::Plain, StreamEngine::User] {
            let amount = Amount::Bytes(777);
            let asked = StreamPlan { io_bytes: 1, engine, amount, zero_copy_send: Some(by), ..plan(address) };
            check_lent(&run(&asked).local, by, &asked);
        }
    }
}

#[test]
fn files_are_sealed_into_what_is_lent() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    std::fs::write(&file, vec![7; 30_001]).unwrap();
    let asked = StreamPlan {
        engine: StreamEngine::User,
        send_file: Some(file),
        verify: false,
        zero_copy_send: Some(ZeroCopySend::MsgZerocopy),
        ..plan(address)
    };
    let report = run(&asked);
    assert_eq!(report.remote.unwrap().bytes(false), 1_000_003);
    check_lent(&report.local, ZeroCopySend::MsgZerocopy, &asked);
}

#[test]
fn what_is_mapped_and_what_is_copied_are_all_of_it() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    // Loopback copies what was lent into pages of its own, which can be mapped. How many are whole depends on how they meet.
    let mut mapped_of_lent_bytes = 0;
    for direction in DIRECTIONS {
        let lent = Some(ZeroCopySend::MsgZerocopy);
        for (streams, io_bytes, zero_copy_send) in
            [(1, 131_072, lent), (1, 1 << 20, lent), (3, 1001, None), (2, 5_000_011, None)]
        {
            let asked = StreamPlan {
                streams,
                io_bytes,
                direction,
                zero_copy_send,
                reception: Reception::Mapped,
                amount: Amount::Bytes(5_000_003),
                ..plan(address)
            };
            let report = run(&asked);
            let remote = report.remote.unwrap();
            for &sends in direction.ways() {
                let receiver = if sends { &remote } else { &report.local };
                let mapped = receiver.mapped().unwrap();
                assert_eq!(mapped.mapped_bytes + mapped.copied_bytes, 5_000_003, "{asked:?}");
                // Segments of loopback carry 65483 bytes, and the end of each is copied: that is told, if so much is.
                let mostly_copied =
                    receiver.streams.iter().filter_map(|stream| stream.mapped.as_ref()).any(|mapped| {
                        mapped.copied_bytes >= mapped.mapped_bytes && mapped.copied_bytes >= 4096
                    });
                assert_eq!(mapped.obstacle.is_some(), mostly_copied, "{mapped:?} {asked:?}");
                mapped_of_lent_bytes += if zero_copy_send.is_some() { mapped.mapped_bytes } else { 0 };
            }
        }
    }
    assert!(mapped_of_lent_bytes > 0);
}

#[test]
fn what_is_discarded_is_counted() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    for direction in DIRECTIONS {
        for (streams, io_bytes) in [(1, 131_072), (3, 1001)] {
            let asked = StreamPlan {
                streams,
                io_bytes,
                direction,
                verify: false,
                reception: Reception::Discarded,
                ..plan(address)
            };
            let report = run(&asked);
            let remote = report.remote.unwrap();
            for &sends in direction.ways() {
                let receiver = if sends { &remote } else { &report.local };
                assert_eq!(receiver.bytes(false), 1_000_003, "{asked:?}");
            }
        }
    }
}

#[test]
fn what_cannot_do_without_a_copy_is_refused_before_the_run() {
    let address = listen("127.0.0.1:0", None, Limits::default());
    let lent = Some(ZeroCopySend::MsgZerocopy);
    for asked in [
        StreamPlan { engine: StreamEngine::Kernel, zero_copy_send: lent, ..plan(address) },
        StreamPlan { engine: StreamEngine::User, reception: Reception::Mapped, ..plan(address) },
        StreamPlan { reception: Reception::Discarded, ..plan(address) },
    ] {
        assert!(matches!(try_run(&asked), Err(StreamError::Plan(_))), "{asked:?}");
    }
}
