//! `tlshd` (ktls-utils), which makes the TLS handshakes of the kernel's NFS server and client: its configuration and start, as
//! lines of a script. The script runs by `ip netns exec`, so in a mount namespace of its own.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;

use crate::certificate::Certificate;
use crate::client::shell_quoted;

/// The end of a connection that it serves, as its configuration names sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Server,
    Client,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    fn other(self) -> &'static str {
        match self {
            Self::Server => Self::Client.name(),
            Self::Client => Self::Server.name(),
        }
    }
}

/// Writes its files to `folder` and starts it. It trusts `authority`, and shows `identity` if there is one. `peer` is where the
/// other end is.
pub(crate) fn script(
    end: End,
    folder: &Path,
    peer: IpAddr,
    authority: &Path,
    identity: Option<&Certificate>,
) -> String {
    let (name, other) = (end.name(), end.other());
    let folder = shell_quoted(&folder.to_string_lossy());
    let mut script = format!(
        "# It wants a name for the other end's address.
printf '127.0.0.1 localhost\\n{peer} {other}.example\\n' >{folder}/hosts-{name}
mount --bind {folder}/hosts-{name} /etc/hosts
cat >{folder}/tlshd-{name}.conf <<'END'
[authenticate.{name}]
x509.truststore={}
",
        authority.display()
    );
    if let Some(Certificate { chain, key }) = identity {
        let (chain, key) = (chain.display(), key.display());
        let _ = writeln!(script, "x509.certificate={chain}\nx509.private_key={key}");
    }
    let _ = writeln!(script, "END\ntlshd -s -c {folder}/tlshd-{name}.conf >&2 &");
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_a_name_for_the_other_and_shows_what_it_has() {
        let identity = Certificate { chain: "/run/me.pem".into(), key: "/run/me.key".into() };
        let peer = [10, 0, 0, 1].into();
        let of =
            |end, identity| script(end, Path::new("/run/it's"), peer, Path::new("/run/ca.pem"), identity);
        let client = of(End::Client, Some(&identity));
        for wanted in [
            "\\n10.0.0.1 server.example\\n' >'/run/it'\\''s'/hosts-client\n",
            "[authenticate.client]\nx509.truststore=/run/ca.pem\nx509.certificate=/run/me.pem\nx509.private_key=/run/me.key\nEND\n",
            "tlshd -s -c '/run/it'\\''s'/tlshd-client.conf >&2 &\n",
        ] {
            assert!(client.contains(wanted), "{wanted}: {client}");
        }
        let server = of(End::Server, None);
        assert!(server.contains("[authenticate.server]") && server.contains(" client.example"), "{server}");
        assert!(!server.contains("x509.certificate"), "{server}");
    }
}
