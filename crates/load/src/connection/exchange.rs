//! One request's way: when it was due, what has come, and whether it is what was asked for.

use std::time::Instant;

use super::Connection;
use crate::{
    fault::Fault,
    report::Mismatch,
    request::Span,
    response::{Piece, Response},
    response_fault::ResponseFault,
    verify::Compared,
    workbench::{Form, Workbench},
};

/// A request that was sent, and its response as far as it has come.
pub(super) struct Exchange {
    /// Which of the origin's requests.
    form: usize,
    span: Option<Span>,
    /// When it was sent, or should have been.
    pub(super) due: Instant,
    first_byte: Option<Instant>,
    pub(super) response: Response,
    /// Where in the file the next byte of the body belongs.
    offset: u64,
    /// Bytes of the body received.
    body_bytes: u64,
    /// It came, but is not what was asked for; counted once.
    failed: bool,
    /// Bytes received after the head that were thrown away without a look at their records.
    pub(super) thrown_away_bytes: u64,
}

impl Exchange {
    pub(super) fn new(form: usize, span: Option<Span>, due: Instant) -> Self {
        Self {
            form,
            span,
            due,
            first_byte: None,
            response: Response::new(),
            offset: 0,
            body_bytes: 0,
            failed: false,
            thrown_away_bytes: 0,
        }
    }

    /// Whether a byte of the response has come.
    pub(super) fn has_begun(&self) -> bool {
        self.first_byte.is_some()
    }

    pub(super) fn stage(&self) -> &'static str {
        if self.has_begun() { "response" } else { "first byte" }
    }

    /// Looks at the head: is it the answer to what was asked?
    fn take_head(&mut self, form: &Form, bench: &mut Workbench<'_>) {
        let Some(&head) = self.response.head() else { return };
        *bench.tally.statuses.entry(head.status).or_default() += 1;
        if let Some((span, whole_bytes)) = head.content_range
            && head.status == 206
        {
            form.request.learn_length(whole_bytes);
            self.offset = span.0;
        }
        if let Some(kind) = self.objection(form, &head) {
            self.fail(&kind, bench);
        }
    }

    fn objection(&self, form: &Form, head: &crate::response::Head) -> Option<String> {
        let source_bytes = form.source.as_ref().map(|source| source.length_bytes);
        match (head.status, self.span) {
            (206, Some((first, last))) => {
                let Some((came, whole_bytes)) = head.content_range else {
                    return Some("response: 206 without Content-Range".to_owned());
                };
                let asked = (first, last.min(whole_bytes.saturating_sub(1)));
                if came != asked {
                    return Some("response: another range than was asked for".to_owned());
                }
                if source_bytes.is_some_and(|bytes| bytes != whole_bytes) {
                    return Some("verify: another length than the source".to_owned());
                }
            }
            (200, Some(_)) => return Some("response: the range was ignored (200)".to_owned()),
            (206, None) => return Some("response: 206 to a request for the whole".to_owned()),
            (200..=299, _) => {}
            (status, _) => return Some(format!("status {status}")),
        }
        (head.encoded && source_bytes.is_some()).then(|| "verify: the body is encoded".to_owned())
    }

    fn fail(&mut self, kind: &str, bench: &mut Workbench<'_>) {
        if !std::mem::replace(&mut self.failed, true) {
            bench.tally.fail(kind);
        }
    }

    fn take_body(&mut self, bytes: &[u8], form: &Form, bench: &mut Workbench<'_>) -> Result<(), Fault> {
        bench.tally.totals.body_bytes += bytes.len() as u64;
        if let Some(source) = &form.source
            && !self.failed
        {
            let compared = source.compare(self.offset, bytes, &mut bench.compared).map_err(Fault::Source)?;
            if let Compared::Differs { offset, wanted, received } = compared {
                self.fail("verify: a byte differs", bench);
                bench.tally.mismatch(Mismatch {
                    url: form.url.clone(),
                    file: source.path.display().to_string(),
                    offset,
                    wanted,
                    received: Some(received),
                });
            }
        }
        self.offset += bytes.len() as u64;
        self.body_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Whether the body was as long as its source.
    fn check_length(&mut self, form: &Form, bench: &mut Workbench<'_>) {
        let Some(source) = form.source.as_ref().filter(|_| !self.failed) else { return };
        let wanted_bytes = match self.response.head().and_then(|head| head.content_range) {
            Some(((first, last), _)) => last - first + 1,
            None => source.length_bytes,
        };
        if self.body_bytes != wanted_bytes {
            let offset = self.offset;
            self.fail("verify: another length than the source", bench);
            bench.tally.mismatch(Mismatch {
                url: form.url.clone(),
                file: source.path.display().to_string(),
                offset,
                wanted: None,
                received: None,
            });
        }
    }
}

impl Connection {
    /// Takes bytes of responses.
    pub(super) fn take_plaintext(
        &mut self,
        bytes: &[u8],
        bench: &mut Workbench<'_>,
        now: Instant,
    ) -> Result<(), Fault> {
        let run = bench.run;
        let origin = &run.origins[self.origin];
        let mut rest = bytes;
        while let Some(exchange) = &mut self.exchange {
            let form = &origin.forms[exchange.form];
            if exchange.first_byte.is_none() && !rest.is_empty() {
                exchange.first_byte = Some(now);
                bench.tally.first_byte.record(now.saturating_duration_since(exchange.due));
            }
            let (taken, piece) = exchange.response.next(rest).map_err(Fault::Response)?;
            rest = &rest[taken..];
            match piece {
                Piece::More => return Ok(()),
                Piece::Head => exchange.take_head(form, bench),
                Piece::Body(body) => exchange.take_body(body, form, bench)?,
                Piece::Done => self.complete(bench, now),
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(Fault::Response(ResponseFault("bytes that nobody asked for")))
        }
    }

    /// The response is over.
    pub(super) fn complete(&mut self, bench: &mut Workbench<'_>, now: Instant) {
        let Some(mut exchange) = self.exchange.take() else { return };
        let run = bench.run;
        exchange.check_length(&run.origins[self.origin].forms[exchange.form], bench);
        bench.tally.totals.responses += 1;
        bench.tally.latency.record(now.saturating_duration_since(exchange.due));
        if let Some(first_byte) = exchange.first_byte {
            bench.tally.transfer.record(now - first_byte);
        }
        self.closing = run.closes || exchange.response.head().is_some_and(|head| head.closes);
    }
}
