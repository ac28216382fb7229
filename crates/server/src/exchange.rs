//! Requests and their responses on one connection, one after the other.

mod answer;
mod body;

use crate::{
    access_log::{Entry, Protection as LoggedProtection, RequestLine},
    client::Client,
    ending::Ending,
    hot_file::HotFile,
    link::{Linger, Link},
    metrics::{Engine, Label as _},
    nfs::Mappings,
    report,
    snapshot::Snapshot,
    view::Recent,
    watch::{Expiry, Stage},
    workplace::Workplace,
};
use answer::{Answer, Room};
use arc_swap::ArcSwap;
use linerate_config::LogFormat;
use linerate_content::Cache;
use linerate_http::{Request, RequestError, parse_request};
use linerate_placement::Decision;
use linerate_record::KeySource;
use std::{cell::RefCell, rc::Rc, sync::Arc, time::Instant};

/// What a request is answered from, the same for all requests of a connection.
pub(crate) struct Service {
    pub(crate) workplace: Rc<Workplace>,
    pub(crate) files: RefCell<Cache<HotFile>>,
    /// Of files that NFS clients read.
    pub(crate) mappings: Mappings,
    pub(crate) snapshots: Arc<ArcSwap<Snapshot>>,
    pub(crate) log_format: LogFormat,
}

/// Serves requests until the connection ends.
pub(crate) async fn serve<K: KeySource>(
    link: &mut Link<K>,
    service: &Service,
    client: &Client,
) -> (Ending, Linger) {
    loop {
        match serve_one(link, service, client).await {
            Ok(Next::Request) => {}
            // A client that pipelines, or has not read the last head yet, may still send.
            Ok(Next::Close) => return (Ending::Served, Linger::UntilPeerCloses),
            Err(ending) => {
                let linger = match ending {
                    Ending::BadRequest | Ending::Record(_) => Linger::UntilPeerCloses,
                    // A request may be on its way.
                    Ending::Expired(Expiry::Drain | Expiry::Deadline(Stage::Idle)) => Linger::Briefly,
                    _ => Linger::No,
                };
                return (ending, linger);
            }
        }
    }
}

/// Whether the connection goes on.
enum Next {
    Request,
    Close,
}

/// Buffers larger than this are given back between requests.
const KEPT_BUFFER_BYTES: usize = 2048;

async fn serve_one<K: KeySource>(
    link: &mut Link<K>,
    service: &Service,
    client: &Client,
) -> Result<Next, Ending> {
    let mut buffer = std::mem::take(link.arrived());
    // The time for the head runs from its first byte, also if that came with the request before.
    link.begin(if buffer.is_empty() { Stage::Idle } else { Stage::Head });
    let (parsed, snapshot) = loop {
        let snapshot = service.snapshots.load_full();
        match parse_request(&buffer, &snapshot.request_limits) {
            Ok(None) => {}
            Ok(Some(parsed)) => break (Ok(parsed), snapshot),
            Err(error) => break (Err(error), snapshot),
        }
        drop(snapshot);
        if !receive_more(link, &mut buffer).await? {
            return Ok(Next::Close);
        }
    };
    if !link.can_send() {
        // The peer asked for a key update that the kernel cannot make: no other response may begin under the old key
        // (RFC 8446 4.6.3). A request that is not answered can be sent again elsewhere.
        return Ok(Next::Close);
    }
    let started = Instant::now();
    let (request, used) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let answer = answer::to_no_request(&buffer, error, service, &snapshot, client);
            let refused = Refused { line: RequestLine::of(&buffer), error };
            return refuse(link, service, client, &refused, answer, started).await;
        }
    };
    let mut body = body::RequestBody::new(&request);
    let room = Room {
        may_persist: link.can_continue() && !body.forbids_persistence(),
        records: link.records_left(),
    };
    // The file may have to be looked up on a disk: that is no time of the client's.
    link.begin_own_work();
    let mut answer = answer::prepare(&request, service, &snapshot, client, room).await;
    let (persists, is_last) = (answer.persists, answer.is_last);
    link.ends_behind((!persists || is_last) && body.is_over());
    let sent = send(link, service, &mut answer).await;
    log(service, client, Asked::Request(&request), &sent, answer.status, started);
    if let Err(ending @ (Ending::Changed(_) | Ending::Unreadable(_))) = &sent.result {
        report::warn(&format!("{}: {ending}; the connection to {} was cut", request.target, client.address));
    }
    sent.result?;
    // In the clear the kernel may still be sending from the file itself.
    if sent.engine == Engine::Plain
        && let Some((file, announced)) = answer.large_file()
    {
        link.look_after(file, announced, request.target);
    }

    let keep = body.drain(link, buffer, used).await?;
    match keep {
        // A TLS 1.2 connection ends at its record limit.
        Some(rest) if persists && !is_last && link.can_send() => {
            give_back(link, rest);
            Ok(Next::Request)
        }
        // Also where the body was too long to read, or not announced: what follows must not be taken for a request.
        _ => Ok(Next::Close),
    }
}

/// Bytes behind a request are the beginning of the next.
fn give_back<K: KeySource>(link: &mut Link<K>, mut rest: Vec<u8>) {
    let arrived = link.arrived();
    rest.append(arrived);
    if rest.is_empty() && rest.capacity() > KEPT_BUFFER_BYTES {
        rest = Vec::new();
    }
    *arrived = rest;
}

/// Waits for more of a head. False if the peer closed between two requests.
async fn receive_more<K: KeySource>(link: &mut Link<K>, buffer: &mut Vec<u8>) -> Result<bool, Ending> {
    let was_empty = buffer.is_empty();
    *link.arrived() = std::mem::take(buffer);
    if !link.receive_some().await? {
        return if was_empty { Ok(false) } else { Err(Ending::PeerClosed) };
    }
    *buffer = std::mem::take(link.arrived());
    if was_empty {
        link.begin(Stage::Head);
    }
    Ok(true)
}

/// What was received in place of a request.
struct Refused {
    line: RequestLine,
    error: RequestError,
}

/// What a response answers.
#[derive(Clone, Copy)]
enum Asked<'a> {
    Request(&'a Request<'a>),
    Refused(&'a Refused),
}

impl<'a> Asked<'a> {
    fn request(self) -> Option<&'a Request<'a>> {
        match self {
            Self::Request(request) => Some(request),
            Self::Refused(_) => None,
        }
    }

    fn refused(self) -> Option<&'a Refused> {
        match self {
            Self::Request(_) => None,
            Self::Refused(refused) => Some(refused),
        }
    }

    /// Method, target and version.
    fn line(self) -> [&'a str; 3] {
        match self {
            Self::Request(request) => [request.method.as_str(), request.target, request.stated_version],
            Self::Refused(refused) => refused.line.words(),
        }
    }
}

/// Sends the answer to what is no request and ends the connection.
async fn refuse<K: KeySource>(
    link: &mut Link<K>,
    service: &Service,
    client: &Client,
    refused: &Refused,
    mut answer: Answer,
    started: Instant,
) -> Result<Next, Ending> {
    link.ends_behind(true);
    let sent = send(link, service, &mut answer).await;
    log(service, client, Asked::Refused(refused), &sent, answer.status, started);
    sent.result?;
    Err(Ending::BadRequest)
}

/// How far a response got.
struct Sent {
    /// Bytes of its content, without the head, that the socket took: as logs are expected to tell it.
    content_bytes: u64,
    /// The engine that carried its last byte.
    engine: Engine,
    /// Another carried some before: the connection was promoted in the middle.
    changed_engine: bool,
    /// Why, with TLS.
    decision: Option<Decision>,
    result: Result<(), Ending>,
}

async fn send<K: KeySource>(link: &mut Link<K>, service: &Service, answer: &mut Answer) -> Sent {
    let mut queue = answer.take_pieces(&service.workplace, link.is_tls());
    let total_bytes = queue.remaining_bytes();
    link.content_is_immutable(answer.immutable);
    let result = link.send(&mut queue).await;
    service.workplace.return_head(queue.take_spare());
    // The content is the response's end: all of it is left as long as some of the head is.
    let content_bytes = answer.content_bytes.saturating_sub(total_bytes.saturating_sub(link.taken_bytes()));
    let engine = link.engine();
    let changed_engine = link.moved_within_response();
    let decision = link.decision();
    if let (Some(decision), Some(combination)) = (decision, link.combination()) {
        link.note_placement(Recent { decision, combination, content_bytes, at_ms: 0 });
    }
    Sent { content_bytes, engine, changed_engine, decision, result }
}

fn log(service: &Service, client: &Client, asked: Asked<'_>, sent: &Sent, status: u16, started: Instant) {
    let duration = started.elapsed();
    let workplace = &service.workplace;
    workplace.metrics.respond(status, sent.engine);
    // INV-PLACE-3: here and nowhere else.
    if let Some(decision) = &sent.decision {
        workplace.metrics.place(decision);
    }
    workplace.metrics.request_seconds.observe(duration);
    let Some(sink) = &workplace.log else { return };
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let request = asked.request();
    let [method, target, http_version] = asked.line();
    let (referer, user_agent) = (
        text(request.and_then(|request| request.referer)),
        text(request.and_then(|request| request.user_agent)),
    );
    let entry = Entry {
        peer: client.address.ip(),
        unix_seconds: Workplace::unix_seconds(),
        method,
        target,
        http_version,
        host: request.and_then(|request| request.authority).map(|authority| authority.host),
        status,
        bytes: sent.content_bytes,
        referer: referer.as_deref(),
        user_agent: user_agent.as_deref(),
        protection: client.tls.as_ref().map(|tls| LoggedProtection {
            version: tls.version,
            cipher: tls.cipher,
            server_name: tls.server_name.as_deref(),
            resumed: tls.resumed,
        }),
        engine: match sent.engine {
            Engine::Kernel if sent.changed_engine => "user+kernel",
            Engine::Nic if sent.changed_engine => "user+nic",
            engine => engine.label(),
        },
        reason: sent.decision.map(|decision| decision.reason.label()),
        duration,
        complete: sent.result.is_ok(),
        refused: asked.refused().map(|refused| refused.error.explanation()),
    };
    sink.line(|line| entry.write(service.log_format, line));
}
