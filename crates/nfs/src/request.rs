//! A call that has to look at files.

use crate::{
    Caller, Client, FileSystem, Identity, Operations, Protocol, Waiting,
    reply::{Draft, Reply, Report},
    v3,
    v4::{self, Compound, Memory, Principal, Sequenced},
};
use linerate_rpc::{
    reply::{self, CallError},
    xdr::Reader,
};
use std::{borrow::Cow, time::Duration};

/// A call to be evaluated. It may be evaluated more than once: first on a worker's thread, where nothing waits, and then where waiting is
/// allowed. A slot of its session is taken until this is dropped.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) transaction: u32,
    pub(crate) identity: Identity,
    /// The procedure's.
    pub(crate) arguments: Cow<'a, [u8]>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Compound(Pending),
    V3(v3::Procedure),
    Mount(v3::MountProcedure),
}

/// A compound behind its SEQUENCE.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) sequenced: Sequenced,
    pub(crate) principal: Principal,
    pub(crate) call_bytes: usize,
    /// When the call came.
    pub(crate) now: Duration,
    pub(crate) behind_sequence_bytes: usize,
    pub(crate) memories: Vec<Memory>,
}

/// What an evaluation has led to.
#[derive(Debug)]
#[must_use]
pub enum Evaluated<F> {
    /// This is the reply. The slot may be left free before it is sent.
    Reply(Reply<F>),
    /// Something is not in the kernel's caches: to be evaluated again with [`Waiting::Allowed`].
    WouldWait,
}

impl Request<'_> {
    /// The same, with the call's bytes: for another thread.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        let Request { transaction, identity, arguments, body } = self;
        Request { transaction, identity, arguments: Cow::Owned(arguments.into_owned()), body }
    }

    /// Carries out what is asked. `client` is the peer whose record this was.
    pub fn evaluate<F: FileSystem>(
        &mut self,
        protocol: &Protocol,
        files: &F,
        client: &Client,
        waiting: Waiting,
    ) -> Evaluated<F::File> {
        let mut draft = Draft::accepted(self.transaction);
        let Self { identity, arguments, body, .. } = self;
        let is_mount = matches!(body, Body::Mount(_));
        let caller = Caller { client, identity, waiting, is_mount };
        let outcome = match body {
            Body::Compound(pending) => pending.evaluate(protocol, files, &caller, arguments, &mut draft),
            Body::V3(procedure) => {
                let outcome = v3::call(*procedure, files, &caller, &protocol.limits, arguments, &mut draft);
                of_v3(outcome, procedure.label())
            }
            Body::Mount(procedure) => {
                let outcome = v3::mount(*procedure, files, &caller, arguments, &mut draft);
                of_v3(outcome, procedure.label())
            }
        };
        match outcome.map(|report| draft.finish(report)) {
            Ok(Ok(reply)) => Evaluated::Reply(reply),
            Ok(Err(_)) => self.failed(CallError::Failed),
            Err(Unfinished::WouldWait) if waiting == Waiting::Forbidden => Evaluated::WouldWait,
            // The file system has broken its word.
            Err(Unfinished::WouldWait) => self.failed(CallError::Failed),
            Err(Unfinished::BadArguments) => self.failed(CallError::BadArguments),
        }
    }

    fn failed<F>(&self, error: CallError) -> Evaluated<F> {
        let procedure = match &self.body {
            Body::Compound(_) => v4::COMPOUND_LABEL,
            Body::V3(procedure) => procedure.label(),
            Body::Mount(procedure) => procedure.label(),
        };
        let status = match error {
            CallError::BadArguments => "GARBAGE_ARGS",
            _ => "SYSTEM_ERR",
        };
        let report = Report { procedure, operations: Operations::default(), status };
        Evaluated::Reply(Reply::of_bytes(reply::failed(self.transaction, error), report))
    }
}

/// Why an evaluation has no results.
enum Unfinished {
    WouldWait,
    BadArguments,
}

fn of_v3(outcome: Result<&'static str, v3::Stop>, procedure: &'static str) -> Result<Report, Unfinished> {
    match outcome {
        Ok(status) => Ok(Report { procedure, operations: Operations::default(), status }),
        Err(v3::Stop::WouldWait) => Err(Unfinished::WouldWait),
        // A status is a result.
        Err(v3::Stop::BadArguments | v3::Stop::With(_)) => Err(Unfinished::BadArguments),
    }
}

impl Pending {
    fn evaluate<F: FileSystem>(
        &mut self,
        protocol: &Protocol,
        files: &F,
        caller: &Caller<'_>,
        arguments: &[u8],
        draft: &mut Draft<F::File>,
    ) -> Result<Report, Unfinished> {
        let Self { sequenced, principal, call_bytes, now, behind_sequence_bytes, memories } = self;
        let circumstances = protocol.circumstances(principal, *call_bytes, *now);
        // It was read before.
        let header = v4::Header::read(&mut Reader::new(arguments)).map_err(|_| Unfinished::BadArguments)?;
        let reader = Reader::new(arguments.get(*behind_sequence_bytes..).unwrap_or_default());
        let compound = Compound { header, reader, sequenced, memories };
        let report = v4::evaluate(files, caller, compound, &circumstances, draft)
            .map_err(|_| Unfinished::WouldWait)?;
        v4::keep(sequenced, memories, draft);
        Ok(report)
    }
}
