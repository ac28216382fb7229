//! From a request to what is sent: which site, which file, which head.

use super::Service;
use crate::{
    client::Client,
    hot_file::CachedFile,
    hot_file::HotFile,
    site_headers::{PathHeaders, RulePath},
    sites::Site,
    snapshot::Snapshot,
    workplace::Workplace,
};
use linerate_content::{
    Blocking, CONTENT_SECURITY_POLICY, Content, ContentError, Directory, ListingView, Root, Served,
};
use linerate_engine::{Piece, Queue, plain::COPIED_BYTES, source::Source};
use linerate_http::{
    Body, DecodedPath, HeaderField, HeaderName, MediaType, Method, Representation, Request, RequestError,
    Responder, ResponsePlan, Status, Validators, decode_path,
};
use linerate_os::{file::Stamp, mapping::Mapping};
use linerate_record::MAX_PLAINTEXT_BYTES;
use std::{borrow::Cow, fs::File, io, rc::Rc, sync::Arc, time::Instant};

/// What can be asked of a file.
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// Of a listing: there is a page and a document.
const VARY_BY_ACCEPT: HeaderField = HeaderField::constant(HeaderName::VARY, "Accept");

/// Of a listing, where the operator has none.
const LISTING_POLICY: HeaderField =
    HeaderField::constant(HeaderName::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);

/// Of a listing, where the operator says nothing else.
const REVALIDATED: HeaderField = HeaderField::constant(HeaderName::CACHE_CONTROL, "no-cache");

/// A response, ready to be sent.
pub(super) struct Answer {
    head: Vec<u8>,
    body: Body,
    /// What ranges of `body` are of: a file, or a page that was made for the request.
    file: Option<CachedFile>,
    page: Vec<u8>,
    pub(super) status: u16,
    /// Bytes of content, wherever they are.
    pub(super) content_bytes: u64,
    /// The head says that the connection goes on.
    pub(super) persists: bool,
    /// The file is never changed in place.
    pub(super) immutable: bool,
    /// It does not go on although the client would like it to: it has no room for another response.
    pub(super) is_last: bool,
}

/// What a connection has left for responses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// It may go on after this response.
    pub(super) may_persist: bool,
    /// Records that can still be sent; `None` is no limit.
    pub(super) records: Option<u64>,
}

impl Room {
    /// Whether another response fits behind one of so many bytes.
    fn is_left_behind(self, response_bytes: u64) -> bool {
        /// Records that are not full: a head of its own, the last one, one that a turn's end cuts short.
        const PART_FILLED: u64 = 3;
        /// A small response.
        const ANOTHER: u64 = 2;
        let needed = (response_bytes / MAX_PLAINTEXT_BYTES as u64).saturating_add(PART_FILLED + ANOTHER);
        self.records.is_none_or(|records| needed <= records)
    }
}

impl Answer {
    /// A response whose content, if any, is in the head already.
    pub(super) fn of_page(head: Vec<u8>, plan: ResponsePlan, persists: bool) -> Self {
        Self {
            head,
            body: plan.body,
            file: None,
            page: Vec::new(),
            status: plan.status.code(),
            content_bytes: plan.content_bytes,
            persists,
            is_last: false,
            immutable: false,
        }
    }

    /// Takes what is to be sent out of the response, in its order; `is_secure` if the engine can seal from a mapping.
    pub(super) fn take_pieces(&mut self, workplace: &Workplace, is_secure: bool) -> Queue {
        let mut queue = Queue::default();
        queue.push(Piece::Bytes(std::mem::take(&mut self.head)));
        let source = self.file.as_ref().map(|entry| Rc::new(self.source(entry, workplace, is_secure)));
        let content = |start: u64, end: u64| match &source {
            Some(source) => Piece::file(source, start..end),
            // Ranges of a page were computed from its length.
            None => {
                let within =
                    |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(self.page.len());
                Piece::Bytes(self.page[within(start)..within(end)].to_vec())
            }
        };
        match &mut self.body {
            Body::None => {}
            Body::Range(range) => queue.push(content(range.start, range.end())),
            Body::Multipart(multipart) => {
                for part in &mut multipart.parts {
                    queue.push(Piece::Bytes(std::mem::take(&mut part.preamble)));
                    queue.push(content(part.range.start, part.range.end()));
                }
                queue.push(Piece::Bytes(std::mem::take(&mut multipart.closing)));
            }
        }
        queue
    }

    fn source(&self, entry: &CachedFile, workplace: &Workplace, is_secure: bool) -> SentFile {
        let may_be_mapped = is_secure && matches!(self.body, Body::Range(_));
        let is_mapped = may_be_mapped && entry.extension.mapping(&entry.content, workplace).is_some();
        SentFile { announced: stamp(&entry.content), file: CachedFile::clone(entry), is_mapped }
    }

    /// The file, and what the head says of it, if more of it was sent than an engine copies
    /// ([`COPIED_BYTES`]).
    pub(super) fn large_file(&self) -> Option<(&CachedFile, Stamp)> {
        let entry = self.file.as_ref().filter(|_| self.content_bytes > COPIED_BYTES as u64)?;
        Some((entry, stamp(&entry.content)))
    }
}

/// A file that a response is made from.
struct SentFile {
    file: CachedFile,
    announced: Stamp,
    is_mapped: bool,
}

impl Source for SentFile {
    fn file(&self) -> &File {
        self.file.content.file()
    }

    fn announced(&self) -> &Stamp {
        &self.announced
    }

    fn mapping(&self) -> Option<&Mapping> {
        self.file.extension.mapping_made().filter(|_| self.is_mapped)
    }
}

/// What a file was like when it was opened.
fn stamp(content: &Content) -> Stamp {
    let modified = content.modified();
    Stamp {
        length_bytes: content.length_bytes(),
        modified_unix_s: modified.unix_seconds,
        modified_nanoseconds: modified.nanoseconds,
    }
}

/// Finds out what a request is answered with.
pub(super) async fn prepare(
    request: &Request<'_>,
    service: &Service,
    snapshot: &Snapshot,
    client: &Client,
    room: Room,
) -> Answer {
    let head = service.workplace.lend_head();
    let (over_tls, ranges_limit) = (client.tls.is_some(), snapshot.ranges_limit);
    let mut draft = Draft { request, service, room, ranges_limit, over_tls, headers: None, head };
    let host = requested_host(request, client);
    let may_answer = Snapshot::may_answer_for(client.tls.as_ref(), host);
    let Some(site) = site_for(host, snapshot).filter(|_| may_answer) else {
        // No site's headers: the client would take them, HSTS above all, for those of a host that is not served here.
        return draft.page(Status::MisdirectedRequest, "This server does not answer for that host name.");
    };
    let decoded = decode_path(request.path);
    let rule_path = match &decoded {
        Ok(path) => RulePath { relative: &path.relative, is_directory: path.is_directory },
        // What does not decode is held against the rules as it came.
        Err(_) => request
            .path
            .strip_prefix('/')
            .map_or(RulePath::ROOT, |path| RulePath { relative: path.as_bytes(), is_directory: false }),
    };
    draft.headers = Some(site.headers(rule_path, over_tls));
    if client.redirect {
        return draft.redirect_to_https(host, snapshot);
    }
    match request.method {
        Method::Get | Method::Head => {}
        Method::Options => return draft.finish(|responder, head| responder.options(ALLOW, head)),
        Method::Other(_) => return draft.finish(|responder, head| responder.method_not_allowed(ALLOW, head)),
    }
    match decoded {
        Ok(path) => draft.content(site, &path).await,
        Err(error) => draft.page(error.status(), error.explanation()),
    }
}

/// Answers what could not be read as a request; nothing follows on the connection.
///
/// The headers are those of the site that the connection was made for: browsers meet this, too, when their cookies have
/// outgrown a head (431), and RFC 6797 section 7.1 asks for HSTS on every response over TLS.
pub(super) fn to_no_request(
    received: &[u8],
    error: RequestError,
    service: &Service,
    snapshot: &Snapshot,
    client: &Client,
) -> Answer {
    let host = client.tls.as_ref().and_then(|tls| tls.server_name.as_deref()).unwrap_or_default();
    let headers = site_for(host, snapshot).map(|site| site.headers(RulePath::ROOT, client.tls.is_some()));
    let date = service.workplace.date();
    let responder =
        with_headers(Responder::without_request(received, &date, crate::SERVER), headers.as_deref());
    let mut head = Vec::new();
    let plan = responder.error(error.status(), error.explanation(), &mut head);
    Answer::of_page(head, plan, false)
}

/// The site that answers for a host; where none is said, the default one.
fn site_for<'a>(host: &str, snapshot: &'a Snapshot) -> Option<&'a Site> {
    if host.is_empty() { snapshot.sites.default_site() } else { snapshot.sites.for_host(host) }
}

/// A site's headers, or the standard ones where no site is known.
fn with_headers<'a>(responder: Responder<'a>, headers: Option<&'a PathHeaders>) -> Responder<'a> {
    let Some(headers) = headers else { return responder };
    let cache_control = headers.cache_control.as_ref().map(HeaderField::value);
    responder.with_headers(&headers.block).with_cache_control(cache_control)
}

/// The host that a request is for. HTTP/1.0 need not say it; then it is the one that the client connected to by name.
fn requested_host<'a>(request: &Request<'a>, client: &'a Client) -> &'a str {
    let said = request.authority.map_or("", |authority| authority.host);
    let asked_for = client.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
    if said.is_empty() { asked_for.unwrap_or_default() } else { said }
}

/// One request on its way to an answer.
struct Draft<'a, 'r> {
    request: &'a Request<'r>,
    service: &'a Service,
    room: Room,
    ranges_limit: usize,
    over_tls: bool,
    /// Those of the site for this path, once the site is known.
    headers: Option<Cow<'a, PathHeaders>>,
    head: Vec<u8>,
}

impl<'a> Draft<'a, '_> {
    /// Writes the head by `write`.
    fn finish(&mut self, write: impl Fn(&Responder<'_>, &mut Vec<u8>) -> ResponsePlan) -> Answer {
        let workplace = &self.service.workplace;
        let mut head = std::mem::take(&mut self.head);
        let mut is_last = false;
        let (plan, persists) = {
            let date = workplace.date();
            let mut responder =
                Responder::for_request(self.request, &date, crate::SERVER, self.room.may_persist)
                    .with_ranges_limit(self.ranges_limit);
            responder = with_headers(responder, self.headers.as_deref());
            let mut plan = write(&responder, &mut head);
            // Only the plan tells how long the response is.
            if responder.persist && !self.room.is_left_behind(head.len() as u64 + plan.content_bytes) {
                is_last = true;
                responder.persist = false;
                head.clear();
                plan = write(&responder, &mut head);
            }
            (plan, responder.persist)
        };
        let mut answer = Answer::of_page(head, plan, persists);
        answer.is_last = is_last;
        answer
    }

    fn page(&mut self, status: Status, explanation: &str) -> Answer {
        self.finish(|responder, head| responder.error(status, explanation, head))
    }

    /// 308 to the same place over TLS.
    fn redirect_to_https(&mut self, host: &str, snapshot: &Snapshot) -> Answer {
        if host.is_empty() {
            return self.page(Status::MisdirectedRequest, "This server does not answer for that host name.");
        }
        let Some(port) = snapshot.https_port else {
            return self.page(Status::ServiceUnavailable, "There is no TLS listener to go to.");
        };
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let path = if self.request.path.starts_with('/') { self.request.path } else { "/" };
        let query = self.request.query.map_or(String::new(), |query| format!("?{query}"));
        let location = format!("https://{host}{port}{path}{query}");
        self.finish(|responder, head| responder.redirect(Status::PermanentRedirect, &location, head))
    }

    async fn content(&mut self, site: &'a Site, path: &DecodedPath<'_>) -> Answer {
        let found = match self.look_up(&site.root, path, Blocking::CachedOnly) {
            Err(ContentError::WouldBlock) => self.look_up_elsewhere(&site.root, path).await,
            found => found,
        };
        match found {
            Ok(Served::File(file)) => {
                if let Some(relative) = file.content.index_path() {
                    let path = RulePath { relative, is_directory: false };
                    self.headers = Some(site.headers(path, self.over_tls));
                }
                let mut answer = self.file(file);
                answer.immutable = site.is_immutable();
                answer
            }
            Ok(Served::NeedsSlash) => {
                let location = path.directory_location(self.request.query);
                self.finish(|responder, head| responder.redirect(Status::MovedPermanently, &location, head))
            }
            Ok(Served::Listing(directory)) => self.listing(&site.root, directory).await,
            Err(error) => self.refusal(&error),
        }
    }

    fn look_up(
        &self,
        root: &Root,
        path: &DecodedPath<'_>,
        blocking: Blocking,
    ) -> Result<Served<HotFile>, ContentError> {
        let accepted = self.request.accepted_codings();
        let files = &self.service.files;
        let look_up = || files.borrow_mut().lookup(root, path, &accepted, Instant::now(), blocking);
        match look_up() {
            Err(ContentError::DescriptorsExhausted) => {
                // Cached files are descriptors that can be given up, and then there are those in reserve: a client
                // that has a connection is served before another is taken.
                files.borrow_mut().clear();
                self.service.workplace.reserve.with(look_up, is_exhausted)
            }
            found => found,
        }
    }

    /// The same on a thread that may wait for the disk: the names were not in the kernel's cache (INV-COLD-1).
    async fn look_up_elsewhere(
        &self,
        root: &Arc<Root>,
        path: &DecodedPath<'_>,
    ) -> Result<Served<HotFile>, ContentError> {
        self.service.workplace.metrics.cold_reads.increment();
        let (elsewhere, raw_path) = (Arc::clone(root), self.request.path.to_owned());
        let accepted = self.request.accepted_codings();
        let also_accepted = self.request.accepted_codings();
        let look_up = Arc::new(move || {
            // It decoded before, so it decodes again.
            let path = decode_path(&raw_path).map_err(|_| ContentError::Contended)?;
            elsewhere.lookup(&path, &also_accepted, Blocking::Allowed)
        });
        let found = loop {
            let look_up = Arc::clone(&look_up);
            let found = tokio::task::spawn_blocking(move || look_up()).await;
            match found.unwrap_or_else(|error| Err(blocked_pool(error))) {
                Err(error) if is_exhausted(&error) && self.service.workplace.reserve.release() => {}
                found => break found?,
            }
        };
        Ok(match found {
            linerate_content::Found::File(content) => {
                let mut files = self.service.files.borrow_mut();
                Served::File(files.insert(root.id(), path, &accepted, content, Instant::now()))
            }
            linerate_content::Found::NeedsSlash => Served::NeedsSlash,
            linerate_content::Found::Listing(directory) => Served::Listing(directory),
        })
    }

    fn file(&mut self, file: CachedFile) -> Answer {
        let request = self.request;
        let mut answer = {
            let content = &file.content;
            let representation = Representation {
                length_bytes: content.length_bytes(),
                validators: Validators {
                    etag: Some(content.etag()),
                    modified_unix_s: Some(content.modified().unix_seconds),
                },
                media_type: content.media_type(),
                content_coding: content.coding(),
                varies_by_coding: content.varies(),
            };
            self.finish(|responder, head| responder.file(request, &representation, head))
        };
        answer.file = Some(file);
        answer
    }

    /// A directory as a page or as JSON; read and written on a thread that may wait.
    async fn listing(&mut self, root: &Arc<Root>, directory: Directory) -> Answer {
        let view = ListingView::parse(self.request.query.map(str::as_bytes), self.request.accept);
        let elsewhere = Arc::clone(root);
        let listed = tokio::task::spawn_blocking(move || {
            elsewhere.list(directory).map(|mut listing| listing.render(view))
        })
        .await
        .unwrap_or_else(|error| Err(blocked_pool(error)));
        let rendered = match listed {
            Ok(rendered) => rendered,
            Err(error) => return self.refusal(&error),
        };
        let mut headers = self.headers.take().unwrap_or_default().into_owned();
        // Of several lines of Vary all count, so that the operator's own one can stay.
        headers.block.add(VARY_BY_ACCEPT);
        if !headers.block.has(&HeaderName::CONTENT_SECURITY_POLICY) {
            headers.block.add(LISTING_POLICY);
        }
        headers.cache_control.get_or_insert(REVALIDATED);
        self.headers = Some(Cow::Owned(headers));
        let representation = Representation {
            length_bytes: rendered.body.len() as u64,
            validators: Validators { etag: None, modified_unix_s: None },
            media_type: MediaType { name: rendered.media_type, charset: None },
            content_coding: None,
            varies_by_coding: false,
        };
        let request = self.request;
        let mut answer = self.finish(|responder, head| responder.file(request, &representation, head));
        answer.page = rendered.body;
        answer
    }

    fn refusal(&mut self, error: &ContentError) -> Answer {
        let (status, explanation) = match error.status() {
            403 => (Status::Forbidden, "This is not served."),
            404 => (Status::NotFound, "There is nothing at this address."),
            503 => (Status::ServiceUnavailable, "The server is short of resources; try again in a moment."),
            _ => (Status::InternalServerError, "The server could not read this."),
        };
        if let ContentError::System { .. } = error {
            crate::report::warn(&format!("{}: {error}", self.request.path));
        }
        self.page(status, explanation)
    }
}

fn is_exhausted(error: &ContentError) -> bool {
    matches!(error, ContentError::DescriptorsExhausted)
}

/// The pool of threads is shut down, or the work on it panicked.
fn blocked_pool(error: tokio::task::JoinError) -> ContentError {
    ContentError::System { operation: "waiting for another thread", source: io::Error::other(error) }
}
