//! What makes the records.

use std::fmt;

/// What encrypts the bulk of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// Our own batched record engine, in user space.
    User,
    /// The operating system's TLS in software: Linux kTLS, FreeBSD's KTLS in `TCP_TLS_MODE_SW`.
    Kernel,
    /// The network adapter, while it transmits.
    Nic,
}

impl Engine {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 3] = [Self::User, Self::Kernel, Self::Nic];

    /// Its name in the configuration, metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Nic => "nic",
        }
    }

    /// The engine of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How an adapter takes part. [`Engine::Nic`] is one of these; which, is the system's and the device's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NicMode {
    /// Linux: `tls-hw-tx-offload`; the kernel keeps TCP, the adapter encrypts records as they pass. A flow that is there
    /// stays there until it ends.
    LinuxInline,
    /// FreeBSD: `TCP_TLS_MODE_IFNET`, the same; a flow can move between kernel and adapter (`TCP_TXTLS_MODE`).
    FreeBsdIfnet,
    /// FreeBSD: `TCP_TLS_MODE_TOE`, TCP itself is in the adapter (Chelsio T6). Chosen when the connection is accepted,
    /// never during it.
    FreeBsdToe,
    /// A processor on the adapter that ends TLS for the host (BlueField, Stingray): to the host it looks like plaintext,
    /// and there is nothing to place.
    Dpu,
}

impl NicMode {
    /// Whether a flow can leave the adapter again, as FreeBSD has it do when it loses packets.
    #[must_use]
    pub fn can_leave(self) -> bool {
        matches!(self, Self::FreeBsdIfnet)
    }

    /// Whether a connection that the kernel carries can still move there: FreeBSD's `ktls_set_tx_mode` switches between the
    /// two either way (sys/kern/uipc_ktls.c); Linux takes a key once.
    #[must_use]
    pub fn can_enter_from_kernel(self) -> bool {
        matches!(self, Self::FreeBsdIfnet)
    }

    /// Whether a connection that is under way can move there.
    #[must_use]
    pub fn can_enter_midway(self) -> bool {
        matches!(self, Self::LinuxInline | Self::FreeBsdIfnet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_engines() {
        for engine in Engine::ALL {
            assert_eq!(Engine::named(engine.name()), Some(engine));
            assert_eq!(engine.to_string(), engine.name());
        }
        assert_eq!(Engine::named("plain"), None);
    }

    #[test]
    fn only_freebsd_takes_flows_back() {
        assert!(NicMode::FreeBsdIfnet.can_leave() && NicMode::FreeBsdIfnet.can_enter_midway());
        assert!(!NicMode::LinuxInline.can_leave() && NicMode::LinuxInline.can_enter_midway());
        assert!(
            NicMode::FreeBsdIfnet.can_enter_from_kernel() && !NicMode::LinuxInline.can_enter_from_kernel()
        );
        assert!(!NicMode::FreeBsdToe.can_enter_midway() && !NicMode::Dpu.can_enter_midway());
    }
}
