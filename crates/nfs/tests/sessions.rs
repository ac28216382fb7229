//! Clients, sessions and slots (RFC 8881 sections 2.10, 18.35, 18.36 and 18.46).

mod support;

use linerate_nfs::{Evaluated, Limits, Step, TlsPolicy, Waiting};
use std::time::Duration;
use support::{
    Answer, CHANNEL, Conversation,
    bytes::{text, u32s, u64s},
    call, create_session, exchange_id,
    memory::MemoryFiles,
    op,
    status::{
        BADSESSION, BADSLOT, BADXDR, CLID_INUSE, CLIENTID_BUSY, COMPLETE_ALREADY, DELAY, ENCR_ALG_UNSUPP,
        INVAL, NOENT, NOSPC, NOT_ONLY_OP, NOT_SAME, OK, OP_NOT_IN_SESSION, PERM, REP_TOO_BIG,
        REP_TOO_BIG_TO_CACHE, REQ_TOO_BIG, SEQ_FALSE_RETRY, SEQ_MISORDERED, SEQUENCE_POS, STALE_CLIENTID,
        TOO_MANY_OPS, TOOSMALL,
    },
    system,
};

const UPDATE: u32 = 0x4000_0000;
const CONFIRMED: u32 = 0x8000_0000;

fn conversation() -> Conversation {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    conversation.establish(CHANNEL);
    conversation
}

fn root() -> Vec<u8> {
    u32s(&[op::PUTROOTFH])
}

fn get_handle() -> Vec<u8> {
    u32s(&[op::GETFH])
}

fn open_file() -> Vec<u8> {
    let owner = [u64s(&[1]), text(b"owner")].concat();
    [u32s(&[op::OPEN, 0, 1, 0]), owner, u32s(&[0, 0]), text(b"file")].concat()
}

/// Client, next sequence, flags.
fn exchanged(answer: &Answer) -> (u64, u32, u32) {
    assert_eq!(answer.status, OK);
    let mut results = answer.results();
    results.take(8);
    (results.u64(), results.u32(), results.u32())
}

#[test]
fn a_retry_gets_the_reply_that_was_kept() {
    let mut conversation = conversation();
    let operations = [conversation.sequence(1, 2, true), root(), open_file()];
    let first = conversation.compound(&operations);
    assert_eq!(first.status, OK);
    assert!(conversation.protocol.sizes().kept_replies_bytes > 0);
    // An OPEN that was carried out again would have another stateid.
    for _ in 0..3 {
        assert_eq!(conversation.compound(&operations), first);
    }
    let next = [conversation.sequence(2, 2, false), root(), open_file()];
    assert_ne!(conversation.compound(&next).results[44..], first.results[44..]);
    assert_eq!(conversation.protocol.sizes().kept_replies_bytes, 0, "the slot has another call now");
    assert_eq!(conversation.compound(&operations).status, SEQ_MISORDERED);
}

#[test]
fn a_retry_whose_reply_was_not_kept_is_evaluated_again() {
    let mut conversation = conversation();
    let operations = [conversation.sequence(1, 0, false), root(), get_handle()];
    let first = conversation.compound(&operations);
    assert_eq!((first.status, conversation.protocol.sizes().kept_replies_bytes), (OK, 0));
    assert_eq!(conversation.compound(&operations), first);
    // More slots are in use by then.
    let mut operations = operations;
    operations[0][28..32].copy_from_slice(&[0, 0, 0, 7]);
    assert_eq!(conversation.compound(&operations), first);
}

#[test]
fn another_call_with_the_number_of_the_last_is_refused() {
    let mut conversation = conversation();
    for is_kept in [false, true] {
        let slot = u32::from(is_kept);
        let sequence = conversation.sequence(1, slot, is_kept);
        assert_eq!(conversation.compound(&[sequence.clone(), root(), get_handle()]).status, OK);
        assert_eq!(conversation.compound(&[sequence, root()]).status, SEQ_FALSE_RETRY);
    }
}

#[test]
fn numbers_in_a_slot_follow_each_other() {
    let mut conversation = conversation();
    for (sequence, status) in
        [(0, SEQ_MISORDERED), (2, SEQ_MISORDERED), (1, OK), (3, SEQ_MISORDERED), (2, OK), (1, SEQ_MISORDERED)]
    {
        let answer = conversation.compound(&[conversation.sequence(sequence, 0, false)]);
        assert_eq!((answer.status, answer.count), (status, 1), "{sequence}");
    }
}

#[test]
fn slots_do_not_know_of_each_other() {
    let mut conversation = conversation();
    for (slot, status) in [(0, OK), (7, OK), (8, BADSLOT), (u32::MAX, BADSLOT)] {
        assert_eq!(conversation.compound(&[conversation.sequence(1, slot, false)]).status, status, "{slot}");
    }
}

#[test]
fn a_slot_is_busy_as_long_as_its_call_is_evaluated() {
    let mut conversation = conversation();
    conversation.files.is_cold.set(true);
    let operations = [conversation.sequence(1, 0, false), root(), u32s(&[op::ACCESS, 1])];
    let arguments = support::compound(2, &operations);
    let record = call(900, &system(1000), [100_003, 4, 1], &arguments);
    let take =
        |record| conversation.protocol.take(record, &conversation.client, TlsPolicy::Off, conversation.now);
    let Step::Evaluate(mut request) = take(&record) else { panic!("it looks at files") };
    let evaluated = request.evaluate(
        &conversation.protocol,
        &conversation.files,
        &conversation.client,
        Waiting::Forbidden,
    );
    assert!(matches!(evaluated, Evaluated::WouldWait));
    let waiting = request.into_owned();
    let status =
        |conversation: &mut Conversation, operations: &[Vec<u8>]| conversation.compound(operations).status;
    assert_eq!(status(&mut conversation, &operations), DELAY, "the same, on another connection");
    let next = [conversation.sequence(2, 0, false)];
    assert_eq!(status(&mut conversation, &next), DELAY, "the next");
    let elsewhere = [conversation.sequence(1, 1, false)];
    assert_eq!(status(&mut conversation, &elsewhere), OK);
    // The connection is gone, and with it the call. Its retry is as good as the first.
    drop(waiting);
    assert_eq!(status(&mut conversation, &operations), OK);
    assert_eq!(status(&mut conversation, &next), OK);
}

#[test]
fn what_is_cold_is_evaluated_again_and_changes_nothing_twice() {
    let mut conversation = conversation();
    let complete = u32s(&[op::RECLAIM_COMPLETE, 0]);
    conversation.files.is_cold.set(true);
    let operations = [complete.clone(), root(), u32s(&[op::ACCESS, 1]), complete.clone(), root()];
    let answer = conversation.operations(&operations);
    assert_eq!(conversation.files.waited.get(), 1);
    // The first is the first again; the second was never reached before.
    assert_eq!((answer.status, answer.count), (COMPLETE_ALREADY, 5));
    // Reply kept: a retry does not find that it is complete already.
    let retried = conversation.sequence(conversation.slots[0], 0, false);
    let all: Vec<_> = [retried].into_iter().chain(operations).collect();
    assert_eq!(conversation.compound(&all), answer);
}

#[test]
fn calls_and_replies_keep_to_the_channel() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    conversation.establish([0, 512, 512, 256, 4, 1]);
    let again: Vec<_> = (0..4).map(|_| root()).collect();
    assert_eq!(conversation.operations(&again).status, TOO_MANY_OPS);
    conversation.slots[0] -= 1;
    assert_eq!(conversation.operations(&again[..3]).status, OK);

    let long_name = [u32s(&[op::LOOKUP]), text(&[b'n'; 400])].concat();
    let answer = conversation.operations(&[root(), long_name]);
    assert_eq!((answer.status, answer.count), (REQ_TOO_BIG, 1));
    conversation.slots[0] -= 1;

    // All attributes, twice, and then a third time.
    let all = u32s(&[op::GETATTR, 3, u32::MAX, 0x00be_ffff, 0]);
    let answer = conversation.operations(&[root(), all.clone(), all.clone()]);
    assert_eq!((answer.status, answer.count), (REP_TOO_BIG, 4));
    assert!(answer.bytes.len() <= 512 + 8);

    // It would fit, but not into what is to be kept.
    let sequence = conversation.sequence(conversation.slots[0] + 1, 0, true);
    let answer = conversation.compound(&[sequence, root(), all.clone()]);
    assert_eq!((answer.status, answer.count), (REP_TOO_BIG_TO_CACHE, 3));
    conversation.slots[0] += 1;
    assert_eq!(conversation.operations(&[root(), all]).status, OK);
}

#[test]
fn a_channel_is_cut_to_the_limits() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    let id = conversation.exchange_id(b"me", 1);
    for channel in [[0, 100, 4096, 0, 8, 8], [0, 4096, 100, 0, 8, 8]] {
        assert_eq!(conversation.create_session(id, channel).status, TOOSMALL, "{channel:?}");
    }
    for channel in [[0, 4096, 4096, 0, 0, 8], [0, 4096, 4096, 0, 8, 0]] {
        assert_eq!(conversation.create_session(id, channel).status, INVAL, "{channel:?}");
    }
    let answer = conversation.create_session(id, [99, u32::MAX, u32::MAX, u32::MAX, u32::MAX, u32::MAX]);
    let mut results = answer.results();
    results.take(8 + 16 + 8);
    let fore: Vec<u32> = (0..7).map(|_| results.u32()).collect();
    let limits = Limits::default();
    let reply_bytes = limits.read_bytes + limits.reply_bytes;
    let expected =
        [limits.call_bytes, reply_bytes, limits.cached_reply_bytes, limits.operations, limits.slots];
    assert_eq!(fore, [&[0], expected.as_slice(), &[0]].concat());
}

#[test]
fn after_a_restart_the_session_is_unknown_and_the_client_too() {
    let mut conversation = conversation();
    let (client, _, _) = exchanged(&conversation.compound(&[exchange_id(b"a client", 1, 0)]));
    conversation.restart();
    let answer = conversation.operations(&[root()]);
    assert_eq!((answer.status, answer.count), (BADSESSION, 1));
    let destroy = [u32s(&[op::DESTROY_SESSION]), conversation.session.clone()].concat();
    assert_eq!(conversation.compound(&[destroy]).status, BADSESSION);
    assert_eq!(conversation.create_session((client, 2), CHANNEL).status, STALE_CLIENTID);
    conversation.establish(CHANNEL);
    assert_eq!(conversation.operations(&[root()]).status, OK);
}

/// The cases of RFC 8881 section 18.35.4.
#[test]
fn a_clients_record_is_found_made_and_replaced() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    let exchange = |conversation: &mut Conversation, verifier, flags| {
        conversation.compound(&[exchange_id(b"me", verifier, flags)])
    };
    // 7: nothing to update.
    assert_eq!(exchange(&mut conversation, 1, UPDATE).status, NOENT);
    // 1 and 4: a new record, and another in its place.
    let (first, sequence, flags) = exchanged(&exchange(&mut conversation, 1, 0));
    assert_eq!((sequence, flags & CONFIRMED), (1, 0));
    let (second, ..) = exchanged(&exchange(&mut conversation, 1, 0));
    assert_ne!(first, second);
    assert_eq!(conversation.create_session((first, 1), CHANNEL).status, STALE_CLIENTID);
    assert_eq!(conversation.create_session((second, 1), CHANNEL).status, OK);
    // 2 and 6: the same, confirmed.
    for flags in [0, UPDATE] {
        let (again, sequence, flags) = exchanged(&exchange(&mut conversation, 1, flags));
        assert_eq!((again, sequence, flags & CONFIRMED), (second, 2, CONFIRMED));
    }
    // 8: a client that was started anew has nothing to update.
    assert_eq!(exchange(&mut conversation, 2, UPDATE).status, NOT_SAME);
    // 9 and 3: another user.
    conversation.credential = system(8);
    assert_eq!(exchange(&mut conversation, 1, UPDATE).status, PERM);
    assert_eq!(exchange(&mut conversation, 1, 0).status, CLID_INUSE);
    conversation.credential = system(1000);
    // 5: started anew. The old record is there until the new one is confirmed.
    let (third, ..) = exchanged(&exchange(&mut conversation, 2, 0));
    assert_eq!((conversation.protocol.sizes().clients, conversation.protocol.sizes().sessions), (2, 1));
    assert_eq!(conversation.create_session((third, 1), CHANNEL).status, OK);
    assert_eq!((conversation.protocol.sizes().clients, conversation.protocol.sizes().sessions), (1, 1));
    // 3: another user, when the one before has not been heard of for longer than its lease.
    conversation.now += Limits::default().lease + Duration::from_secs(1);
    conversation.credential = system(8);
    let (fourth, ..) = exchanged(&exchange(&mut conversation, 1, 0));
    assert_ne!(fourth, third);
    assert_eq!((conversation.protocol.sizes().clients, conversation.protocol.sizes().sessions), (1, 0));
}

#[test]
fn only_who_made_a_record_confirms_it() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    let id = conversation.exchange_id(b"me", 1);
    conversation.credential = system(8);
    assert_eq!(conversation.create_session(id, CHANNEL).status, CLID_INUSE);
    conversation.credential = system(1000);
    assert_eq!(conversation.create_session(id, CHANNEL).status, OK);
}

#[test]
fn a_record_that_nothing_confirms_is_gone_with_its_lease() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    let (first, second) = (conversation.exchange_id(b"one", 1), conversation.exchange_id(b"two", 1));
    conversation.now += Limits::default().lease;
    assert_eq!(conversation.create_session(first, CHANNEL).status, OK);
    conversation.now += Duration::from_millis(1);
    assert_eq!(conversation.create_session(second, CHANNEL).status, STALE_CLIENTID);
    assert_eq!(conversation.protocol.sizes().clients, 1);
}

#[test]
fn a_session_that_keeps_no_reply_has_none_kept() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    conversation.establish([0, 4096, 4096, 79, 8, 1]);
    let kept = [conversation.sequence(1, 0, true)];
    let answer = conversation.compound(&kept);
    assert_eq!((answer.status, answer.count), (REP_TOO_BIG_TO_CACHE, 1));
    // Nothing has happened to the slot.
    assert_eq!(conversation.compound(&[conversation.sequence(1, 0, false)]).status, OK);
    conversation.establish([0, 4096, 4096, 80, 8, 1]);
    let kept = [conversation.sequence(1, 0, true)];
    assert_eq!(conversation.compound(&kept).status, OK);
}

#[test]
fn creating_a_session_is_answered_once() {
    let mut conversation = Conversation::new(MemoryFiles::sample());
    let (client, sequence) = conversation.exchange_id(b"me", 1);
    assert_eq!(conversation.create_session((client, sequence + 1), CHANNEL).status, SEQ_MISORDERED);
    assert_eq!(conversation.create_session((client, sequence - 1), CHANNEL).status, SEQ_MISORDERED);
    let first = conversation.create_session((client, sequence), CHANNEL);
    assert_eq!(first.status, OK);
    assert_eq!(conversation.create_session((client, sequence), CHANNEL), first);
    assert_eq!(conversation.protocol.sizes().sessions, 1);
    let second = conversation.create_session((client, sequence + 1), CHANNEL);
    assert_ne!(second, first);
    assert_eq!(conversation.create_session((client, sequence), CHANNEL).status, SEQ_MISORDERED);
}

#[test]
fn nobody_has_more_sessions_than_allowed_and_no_more_clients_are_known() {
    let limits = Limits { clients: 3, sessions_per_client: 2, ..Limits::default() };
    let mut conversation = Conversation::with(limits, MemoryFiles::sample());
    let (client, sequence) = conversation.exchange_id(b"a", 1);
    for (more, status) in [(0, OK), (1, OK), (2, NOSPC), (2, NOSPC)] {
        assert_eq!(conversation.create_session((client, sequence + more), CHANNEL).status, status);
    }
    // Records that nothing has confirmed make room, the eldest first.
    let b = conversation.exchange_id(b"b", 1);
    conversation.now += Duration::from_secs(1);
    let c = conversation.exchange_id(b"c", 1);
    let d = conversation.exchange_id(b"d", 1);
    assert_eq!(conversation.protocol.sizes().clients, 3);
    assert_eq!(conversation.create_session(b, CHANNEL).status, STALE_CLIENTID);
    assert_eq!(conversation.create_session(c, CHANNEL).status, OK);
    assert_eq!(conversation.create_session(d, CHANNEL).status, OK);
    // Those with sessions do not, within their lease.
    let exchange = |conversation: &mut Conversation| conversation.compound(&[exchange_id(b"e", 1, 0)]).status;
    assert_eq!(exchange(&mut conversation), DELAY);
    conversation.now += limits.lease - Duration::from_secs(1);
    conversation.exchange_id(b"a", 1);
    assert_eq!(exchange(&mut conversation), DELAY);
    conversation.now += Duration::from_millis(1001);
    assert_eq!(exchange(&mut conversation), OK);
    assert_eq!((conversation.protocol.sizes().clients, conversation.protocol.sizes().sessions), (2, 2));
}

#[test]
fn who_is_silent_for_long_is_forgotten() {
    let limits = Limits::default();
    let mut conversation = conversation();
    conversation.now += limits.silence;
    conversation.exchange_id(b"b", 1);
    assert_eq!((conversation.protocol.sizes().clients, conversation.protocol.sizes().sessions), (2, 1));
    conversation.now += limits.lease;
    conversation.exchange_id(b"c", 1);
    assert_eq!((conversation.protocol.sizes().clients, conversation.protocol.sizes().sessions), (2, 0));
    assert_eq!(conversation.operations(&[root()]).status, BADSESSION);
}

#[test]
fn a_client_is_kept_by_its_calls() {
    let limits = Limits { clients: 1, ..Limits::default() };
    let mut conversation = Conversation::with(limits, MemoryFiles::sample());
    conversation.establish(CHANNEL);
    let exchange = |conversation: &mut Conversation| conversation.compound(&[exchange_id(b"b", 1, 0)]).status;
    for _ in 0..5 {
        conversation.now += limits.lease;
        assert_eq!(exchange(&mut conversation), DELAY);
        assert_eq!(conversation.operations(&[root()]).status, OK);
    }
    conversation.now += limits.lease + Duration::from_secs(1);
    assert_eq!(exchange(&mut conversation), OK);
    assert_eq!(conversation.operations(&[root()]).status, BADSESSION);
}

#[test]
fn replies_are_kept_as_long_as_there_is_room() {
    let limits = Limits { cached_replies_bytes: 300, ..Limits::default() };
    let mut conversation = Conversation::with(limits, MemoryFiles::sample());
    conversation.establish(CHANNEL);
    for slot in 0..8 {
        let sequence = conversation.sequence(1, slot, true);
        assert_eq!(conversation.compound(&[sequence, root(), get_handle()]).status, OK);
        assert!(conversation.protocol.sizes().kept_replies_bytes <= 300);
    }
    assert!(conversation.protocol.sizes().kept_replies_bytes > 100);
    // The last was not kept, and is evaluated again.
    let sequence = conversation.sequence(1, 7, true);
    assert_eq!(conversation.compound(&[sequence, root(), get_handle()]).status, OK);
    let destroy = [u32s(&[op::DESTROY_SESSION]), conversation.session.clone()].concat();
    assert_eq!(conversation.compound(&[destroy]).status, OK);
    assert_eq!(conversation.protocol.sizes().kept_replies_bytes, 0);
}

#[test]
fn sessions_and_clients_end() {
    let mut conversation = conversation();
    let (client, ..) = exchanged(&conversation.compound(&[exchange_id(b"a client", 1, 0)]));
    let destroy_client = [u32s(&[op::DESTROY_CLIENTID]), u64s(&[client])].concat();
    let destroy_session = [u32s(&[op::DESTROY_SESSION]), conversation.session.clone()].concat();
    assert_eq!(conversation.compound(std::slice::from_ref(&destroy_client)).status, CLIENTID_BUSY);
    // Its own session ends with the last operation only.
    let answer = conversation.operations(&[destroy_session.clone(), root()]);
    assert_eq!((answer.status, answer.count), (NOT_ONLY_OP, 2));
    let answer = conversation.operations(std::slice::from_ref(&destroy_session));
    assert_eq!((answer.status, answer.count), (OK, 2));
    assert_eq!(conversation.compound(&[destroy_session]).status, BADSESSION);
    assert_eq!(conversation.compound(std::slice::from_ref(&destroy_client)).status, OK);
    assert_eq!(conversation.compound(&[destroy_client]).status, STALE_CLIENTID);
    assert_eq!(conversation.protocol.sizes(), linerate_nfs::Sizes::default());
}

#[test]
fn what_stands_alone_and_what_does_not() {
    let mut conversation = conversation();
    let session = conversation.session.clone();
    let bind =
        |direction| [u32s(&[op::BIND_CONN_TO_SESSION]), session.clone(), u32s(&[direction, 0])].concat();
    for (operations, status, count) in [
        (vec![], OK, 0),
        (vec![root()], OP_NOT_IN_SESSION, 1),
        (vec![u32s(&[op::RECLAIM_COMPLETE, 0])], OP_NOT_IN_SESSION, 1),
        (vec![exchange_id(b"me", 1, 0), root()], NOT_ONLY_OP, 1),
        (vec![create_session((1, 1), CHANNEL), root()], NOT_ONLY_OP, 1),
        (vec![bind(1), root()], NOT_ONLY_OP, 1),
        (vec![bind(1)], OK, 1),
        (vec![bind(3)], OK, 1),
        (vec![bind(2)], INVAL, 1),
        (vec![bind(7)], INVAL, 1),
        (vec![bind(9)], BADXDR, 1),
        (vec![[u32s(&[op::BIND_CONN_TO_SESSION]), vec![0; 16], u32s(&[1, 0])].concat()], BADSESSION, 1),
        (vec![u32s(&[99])], 10044, 1),
        (vec![u32s(&[0])], 10044, 1),
    ] {
        let answer = conversation.compound(&operations);
        assert_eq!((answer.status, answer.count), (status, count), "{operations:?}");
    }
    // Within a session.
    let sequence = conversation.sequence(1, 5, false);
    for (operations, status, count) in [
        (vec![sequence], SEQUENCE_POS, 2),
        (vec![bind(1)], NOT_ONLY_OP, 2),
        (vec![root(), exchange_id(b"me", 1, 0), root()], OK, 4),
        (vec![u32s(&[op::SET_SSV])], INVAL, 2),
        (vec![u32s(&[op::BACKCHANNEL_CTL, 7, 1, 0])], OK, 2),
        (vec![u32s(&[op::RENEW, 0, 0])], 10004, 2),
    ] {
        let answer = conversation.operations(&operations);
        assert_eq!((answer.status, answer.count), (status, count), "{operations:?}");
    }
}

#[test]
fn minor_versions_that_there_are_not() {
    let mut conversation = conversation();
    for (minor_version, status) in [(0, 10021), (1, OK), (2, OK), (3, 10021)] {
        conversation.minor_version = minor_version;
        let answer = conversation.compound(&[exchange_id(b"me", 1, 0)]);
        assert_eq!((answer.status, answer.count), (status, u32::from(status == OK)), "{minor_version}");
    }
}

#[test]
fn protection_of_state_that_there_is_not() {
    let mut conversation = conversation();
    let exchange = |flags: u32, protection: &[u32]| {
        [u32s(&[op::EXCHANGE_ID]), vec![0; 8], text(b"me"), u32s(&[flags]), u32s(protection)].concat()
    };
    for (operation, status) in [
        (exchange(0, &[0, 0]), OK),
        (exchange(0x1_0103, &[0, 0]), OK),
        (exchange(CONFIRMED, &[0, 0]), INVAL),
        (exchange(0x8, &[0, 0]), INVAL),
        (exchange(0, &[1, 0, 0, 0]), INVAL),
        (exchange(0, &[2, 0, 0, 0, 0, 0, 0]), ENCR_ALG_UNSUPP),
        (exchange(0, &[3, 0]), BADXDR),
        (exchange(0, &[0, 2]), BADXDR),
        (exchange(0, &[0]), BADXDR),
    ] {
        assert_eq!(conversation.compound(std::slice::from_ref(&operation)).status, status, "{operation:?}");
    }
    // SUPP_FENCE_OPS, which the first minor version does not have.
    for (minor_version, status) in [(1, INVAL), (2, OK)] {
        conversation.minor_version = minor_version;
        assert_eq!(conversation.compound(&[exchange(4, &[0, 0])]).status, status);
    }
}

#[test]
fn reclaiming_ends_once() {
    let mut conversation = conversation();
    let complete = |one| vec![root(), u32s(&[op::RECLAIM_COMPLETE, one])];
    assert_eq!(conversation.operations(&[u32s(&[op::RECLAIM_COMPLETE, 1])]).status, 10020);
    assert_eq!(conversation.operations(&complete(1)).status, OK);
    assert_eq!(conversation.operations(&complete(0)).status, OK);
    assert_eq!(conversation.operations(&complete(0)).status, COMPLETE_ALREADY);
    assert_eq!(conversation.operations(&complete(1)).status, OK);
}
