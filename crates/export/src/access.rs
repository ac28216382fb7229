//! What a user may do with an object.

use crate::attributes::Facts;
use linerate_nfs::Identity;

/// By whom permission is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdentityRule {
    /// What the server's own user may read, every client may (all are squashed to that user).
    #[default]
    Server,
    /// In addition the permission bits must allow it to the user and groups that the call states by AUTH_SYS. Root, and calls
    /// without AUTH_SYS, count as user and group 65534. Nobody but the client vouches for these numbers, and access control lists are
    /// not looked at.
    Client,
}

/// The number of the user and group that root is squashed to, as NFS servers have it by default.
pub(crate) const NOBODY: u32 = 65_534;

/// The permission bits' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Read,
    /// Of a directory: search.
    Execute,
}

impl IdentityRule {
    /// Whether the rule, without what the server's user may, lets the call have its wish.
    pub(crate) fn allows(self, identity: &Identity, facts: &Facts, wish: Wish) -> bool {
        if self == Self::Server {
            return true;
        }
        let (user, group, groups) = match identity {
            Identity::System(system) => (system.user, system.group, system.groups.as_slice()),
            Identity::Nobody => (NOBODY, NOBODY, &[][..]),
        };
        let squashed = |number: u32| if number == 0 { NOBODY } else { number };
        let is_of_group =
            squashed(group) == facts.group || groups.iter().any(|&further| squashed(further) == facts.group);
        // The first class that fits decides, also where another would allow more (POSIX).
        let class_bits = if squashed(user) == facts.user {
            6
        } else if is_of_group {
            3
        } else {
            0
        };
        let wanted = match wish {
            Wish::Read => 4,
            Wish::Execute => 1,
        };
        u32::from(facts.mode) >> class_bits & wanted == wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_nfs::System;

    fn facts(mode: u16, user: u32, group: u32) -> Facts {
        Facts { mode, user, group, ..Facts::default() }
    }

    fn identity(user: u32, group: u32, groups: &[u32]) -> Identity {
        Identity::System(System { user, group, groups: groups.to_vec() })
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        let rule = IdentityRule::Client;
        for (mode, identity, reads, executes) in [
            (0o400, identity(7, 1, &[]), true, false),
            (0o044, identity(7, 8, &[]), false, false),
            (0o050, identity(1, 8, &[]), true, true),
            (0o050, identity(1, 2, &[5, 8]), true, true),
            (0o004, identity(1, 8, &[]), false, false),
            (0o005, identity(1, 2, &[3]), true, true),
            (0o750, identity(1, 2, &[]), false, false),
        ] {
            let facts = facts(mode, 7, 8);
            let allowed = [Wish::Read, Wish::Execute].map(|wish| rule.allows(&identity, &facts, wish));
            assert_eq!(allowed, [reads, executes], "{mode:o} {identity:?}");
        }
    }

    #[test]
    fn root_and_strangers_are_nobody() {
        let rule = IdentityRule::Client;
        let roots = facts(0o700, 0, 0);
        for identity in [identity(0, 0, &[0]), Identity::Nobody] {
            assert!(!rule.allows(&identity, &roots, Wish::Read), "{identity:?}");
            assert!(rule.allows(&identity, &facts(0o400, NOBODY, 1), Wish::Read), "{identity:?}");
            assert!(IdentityRule::Server.allows(&identity, &roots, Wish::Read));
        }
    }
}
