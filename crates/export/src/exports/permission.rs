//! Which exports a call may look into, and what its caller may do there; refusals are counted.

use super::Exports;
use crate::{Export, IdentityRule, Refusal, access::Wish, attributes::Facts, node::Node};
use linerate_nfs::{Caller, Fault};
use std::sync::Arc;

impl Exports {
    pub(super) fn refuse(&self, refusal: Refusal) -> Fault {
        self.refusals.count(refusal);
        match refusal {
            Refusal::NoTls | Refusal::Tls | Refusal::NoCertificate => Fault::WrongSecurity,
            Refusal::Handle => Fault::BadHandle,
            _ => Fault::Denied,
        }
    }

    pub(super) fn admit(&self, export: &Export, caller: &Caller<'_>) -> Result<(), Fault> {
        judge(export, caller).map_err(|refusal| self.refuse(refusal))
    }

    /// Counts what the kernel, or the rule about users, does not permit.
    pub(super) fn counted(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Denied => self.refuse(Refusal::Permission),
            // Descriptors are short: those for what may be asked next are given up first.
            Fault::Busy => {
                self.release();
                Fault::Busy
            }
            other => other,
        }
    }

    pub(super) fn permit(
        &self,
        caller: &Caller<'_>,
        export: &Export,
        facts: &Facts,
        wish: Wish,
    ) -> Result<(), Fault> {
        if export.identity().allows(caller.identity, facts, wish) {
            Ok(())
        } else {
            Err(self.refuse(Refusal::Permission))
        }
    }

    /// Whether the caller may look for names in this directory. What it is now is asked only where that matters.
    pub(super) fn permit_search(&self, caller: &Caller<'_>, directory: &Node) -> Result<(), Fault> {
        if directory.export.identity() == IdentityRule::Server {
            return Ok(());
        }
        self.permit(caller, &directory.export, &directory.facts()?, Wish::Execute)
    }

    pub(super) fn admitted<'a>(&'a self, caller: &'a Caller<'_>) -> impl Iterator<Item = &'a Arc<Export>> {
        self.exports.iter().filter(|export| judge(export, caller).is_ok())
    }
}

/// Whether a call may look into an export. For a MOUNT in the clear the connection need not be as good as the files' has to be
/// ([`Caller::is_mount`]).
fn judge(export: &Export, caller: &Caller<'_>) -> Result<(), Refusal> {
    match export.clients().admit(caller.client) {
        Err(Refusal::NoTls | Refusal::NoCertificate) if caller.is_mount && caller.client.tls.is_none() => {
            Ok(())
        }
        judged => judged,
    }
}
