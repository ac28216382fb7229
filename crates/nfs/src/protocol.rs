//! The server's side of the protocol: which program a record calls, and what can be answered at once.

use crate::{
    Client, Identity, Limits, Sizes, System,
    reply::Draft,
    request::{Body, Pending, Request},
    v3,
    v4::{self, Arrival, Circumstances, Principal, State},
};
use linerate_rpc::{
    Call, Credential, NoCall,
    reply::{self, AuthenticationError, CallError, Denial},
};
use std::{borrow::Cow, time::Duration};

/// NFS' program number (RFC 8881 section 2.5).
pub const NFS_PROGRAM: u32 = 100_003;
/// MOUNT's program number (RFC 1813 section 5.1).
pub const MOUNT_PROGRAM: u32 = 100_005;
const V3: u32 = 3;
const V4: u32 = 4;
const NULL: u32 = 0;
const COMPOUND: u32 = 1;

/// What a server knows beside its files: limits, clients and sessions. One value for all its threads and connections.
#[derive(Debug)]
pub struct Protocol {
    pub(crate) limits: Limits,
    pub(crate) name: Vec<u8>,
    pub(crate) state: State,
}

/// Whether a listener speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPolicy {
    /// It does not.
    Off,
    /// It does with clients that ask for it.
    Offered,
    /// In the clear it answers nothing but NULL, and MOUNT, which Linux' client always calls in the clear.
    Required,
}

/// What becomes of a record.
#[derive(Debug)]
#[must_use]
pub enum Step<'a> {
    /// This is the reply.
    Reply(Vec<u8>),
    /// This is the reply. What the client sends behind its call belongs to a TLS handshake, and so does what is sent behind the reply.
    StartTls(Vec<u8>),
    /// The call is to be evaluated.
    Evaluate(Box<Request<'a>>),
    /// It was no call: the connection is to be ended.
    End,
}

impl Protocol {
    /// A server that was just started.
    ///
    /// `name` tells servers apart: a client that finds the same name at two addresses takes them for one server (RFC 8881 section 2.10.5).
    /// It is the same after each start, and at most 1024 bytes. `seed` is another one after each start, from a source of
    /// random numbers: identifiers of clients and sessions are made of it.
    #[must_use]
    pub fn new(limits: Limits, name: &[u8], seed: u128) -> Self {
        let name = name.get(..NAME_LIMIT_BYTES).unwrap_or(name).to_vec();
        Self { limits, name, state: State::new(limits, seed) }
    }

    /// The longest record that a client may send, in bytes: for [`linerate_rpc::Records`].
    #[must_use]
    pub fn call_limit_bytes(&self) -> usize {
        self.limits.call_bytes as usize
    }

    /// How much is kept about clients now.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.state.sizes()
    }

    /// Takes a record that `client` sent. `now` is the time since any moment, and always the same one.
    pub fn take<'a>(&self, record: &'a [u8], client: &Client, tls: TlsPolicy, now: Duration) -> Step<'a> {
        let call = match Call::parse(record) {
            Ok(call) => call,
            Err(NoCall::Denied { transaction, denial }) => {
                return Step::Reply(reply::denied(transaction, denial));
            }
            Err(NoCall::Malformed) => return Step::End,
        };
        let denied = |error| Step::Reply(reply::denied(call.transaction, Denial::Authentication(error)));
        let is_null = call.procedure == NULL;
        let identity = match &call.credential {
            Credential::None => Identity::Nobody,
            Credential::System(system) => Identity::System(System {
                user: system.user,
                group: system.group,
                groups: system.groups.clone(),
            }),
            Credential::Tls if is_null && tls != TlsPolicy::Off && client.tls.is_none() => {
                return Step::StartTls(reply::start_tls(call.transaction));
            }
            Credential::Tls => return denied(AuthenticationError::BadCredential),
        };
        let failed = |error| Step::Reply(reply::failed(call.transaction, error));
        let is_mount = call.program == MOUNT_PROGRAM;
        if tls == TlsPolicy::Required && client.tls.is_none() && !is_null && !is_mount {
            return denied(AuthenticationError::TooWeak);
        }
        let evaluate = |body| {
            Step::Evaluate(Box::new(Request {
                transaction: call.transaction,
                identity: identity.clone(),
                arguments: Cow::Borrowed(call.arguments.rest()),
                body,
            }))
        };
        match (call.program, call.version, call.procedure) {
            (NFS_PROGRAM, V3 | V4, NULL) | (MOUNT_PROGRAM, V3, NULL) => null(call.transaction),
            (NFS_PROGRAM, V4, COMPOUND) => self.compound(&call, record.len(), identity, now),
            (NFS_PROGRAM, V3, procedure) => match v3::Procedure::of(procedure) {
                Some(procedure) => evaluate(Body::V3(procedure)),
                None => failed(CallError::NoSuchProcedure),
            },
            (MOUNT_PROGRAM, V3, procedure) => match v3::MountProcedure::of(procedure) {
                Some(procedure) => evaluate(Body::Mount(procedure)),
                None => failed(CallError::NoSuchProcedure),
            },
            (NFS_PROGRAM, V4, _) => failed(CallError::NoSuchProcedure),
            (NFS_PROGRAM, ..) => failed(CallError::NoSuchVersion { lowest: V3, highest: V4 }),
            (MOUNT_PROGRAM, ..) => failed(CallError::NoSuchVersion { lowest: V3, highest: V3 }),
            _ => failed(CallError::NoSuchProgram),
        }
    }

    fn compound<'a>(
        &self,
        call: &Call<'a>,
        call_bytes: usize,
        identity: Identity,
        now: Duration,
    ) -> Step<'a> {
        let mut reader = call.arguments;
        let Ok(header) = v4::Header::read(&mut reader) else {
            return Step::Reply(reply::failed(call.transaction, CallError::BadArguments));
        };
        let principal = match &identity {
            Identity::Nobody => Principal::Nobody,
            Identity::System(system) => Principal::User(system.user),
        };
        let circumstances = self.circumstances(&principal, call_bytes, now);
        let mut draft = Draft::<()>::accepted(call.transaction);
        match v4::arrive(&header, &mut reader, &circumstances, &mut draft) {
            Arrival::Answered => Step::Reply(whole(draft, call.transaction)),
            Arrival::Claimed(sequenced) => Step::Evaluate(Box::new(Request {
                transaction: call.transaction,
                identity,
                arguments: Cow::Borrowed(call.arguments.rest()),
                body: Body::Compound(Pending {
                    sequenced,
                    principal,
                    call_bytes,
                    now,
                    behind_sequence_bytes: call.arguments.rest().len() - reader.rest().len(),
                    memories: Vec::new(),
                }),
            })),
        }
    }

    pub(crate) fn circumstances<'a>(
        &'a self,
        principal: &'a Principal,
        call_bytes: usize,
        now: Duration,
    ) -> Circumstances<'a> {
        Circumstances {
            state: &self.state,
            limits: &self.limits,
            server_name: &self.name,
            principal,
            call_bytes,
            now,
        }
    }
}

/// The longest name of a server (`NFS4_OPAQUE_LIMIT`).
const NAME_LIMIT_BYTES: usize = 1024;

fn null<'a>(transaction: u32) -> Step<'a> {
    Step::Reply(whole(Draft::<()>::accepted(transaction), transaction))
}

/// The bytes of a reply without files.
fn whole(mut draft: Draft<()>, transaction: u32) -> Vec<u8> {
    match reply::finish(&mut draft.bytes, 0) {
        Ok(()) => draft.bytes.into_bytes(),
        Err(_) => reply::failed(transaction, CallError::Failed),
    }
}
