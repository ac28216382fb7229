//! The networks of a run: each is brought up when a point first asks for it, and stays until the run is over.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use crate::definition::Workload;
use crate::error::{Error, Result};
use crate::network::{Esp, Network, NetworkKind, Sending, VETH_SERVER};
use crate::result::NetworkUsed;
use crate::servers::Candidate;

/// What a point asks of its network.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NetworkSetting {
    pub(crate) kind: NetworkKind,
    /// How the server's end sends; as the machine does where there is none.
    pub(crate) sending: Option<Sending>,
    /// What seals all that goes over it.
    pub(crate) esp: Option<Esp>,
    /// The server, by its place in the run, that has it for itself: the kernel has one NFS server in a namespace.
    pub(crate) only_of: Option<usize>,
}

impl NetworkSetting {
    /// That of a load of `candidate`, which is `server` by its place in the run.
    pub(super) fn of(server: usize, candidate: &Candidate, workload: &Workload) -> Self {
        Self {
            kind: workload.network,
            sending: workload.sending.clone(),
            esp: candidate.esp(),
            only_of: candidate.is_alone_in_its_network().then_some(server),
        }
    }

    /// In words, as variables are written.
    pub(super) fn title(&self) -> String {
        let network = match self.kind {
            NetworkKind::Host => None,
            NetworkKind::Loopback => Some("loopback".to_owned()),
            NetworkKind::VETH => Some("veth".to_owned()),
            NetworkKind::Veth { mtu_bytes } => Some(format!("veth-{mtu_bytes}")),
        };
        let esp = self.esp.map(|esp| format!("esp-{}", esp.mode()));
        let sending = self.sending.as_ref().map(|Sending { congestion_control, queue_discipline }| {
            let queue = queue_discipline.as_ref().map(|queue| format!("+{queue}")).unwrap_or_default();
            format!("{congestion_control}{queue}")
        });
        network.into_iter().chain(sending).chain(esp).collect::<Vec<_>>().join("-")
    }
}

/// The networks of a run.
#[derive(Debug)]
pub(crate) struct Networks {
    /// Where servers listen on the machine's own network.
    address: IpAddr,
    /// The interface whose counters show the load there, where it was named.
    interface: Option<String>,
    /// Clients run on this machine, and can be put into a namespace.
    clients_are_here: bool,
    up: BTreeMap<NetworkSetting, std::result::Result<(Network, NetworkUsed), String>>,
}

impl Networks {
    /// None of them is up yet.
    pub(crate) fn new(address: IpAddr, interface: Option<String>, clients_are_here: bool) -> Self {
        Self { address, interface, clients_are_here, up: BTreeMap::new() }
    }

    /// Every address at which a server may have to show its certificate.
    pub(super) fn addresses(&self) -> [IpAddr; 3] {
        [self.address, Ipv4Addr::LOCALHOST.into(), VETH_SERVER.into()]
    }

    /// Brings up what a point asks for, if it is not up, and tells what it is.
    ///
    /// # Errors
    /// Why it cannot be had, in words.
    pub(crate) fn bring_up(&mut self, setting: &NetworkSetting) -> std::result::Result<&NetworkUsed, String> {
        if !self.up.contains_key(setting) {
            let made = self.make(setting).map_err(|error| format!("{}: {error}", setting.title()));
            let made = made.map(|network| {
                let used = network.used();
                (network, used)
            });
            self.up.insert(setting.clone(), made);
        }
        match &self.up[setting] {
            Ok((_, used)) => Ok(used),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// A network that was brought up, and what it is.
    pub(crate) fn of(&self, setting: &NetworkSetting) -> Option<(&Network, &NetworkUsed)> {
        let (network, used) = self.up.get(setting)?.as_ref().ok()?;
        Some((network, used))
    }

    fn make(&self, NetworkSetting { kind, sending, esp, only_of: _ }: &NetworkSetting) -> Result<Network> {
        let host = || Network::host(self.address, self.interface.clone());
        if *kind != NetworkKind::Host && !self.clients_are_here {
            return Err(Error::Machine("the clients are other machines".to_owned()));
        }
        match (kind, sending) {
            (NetworkKind::Veth { mtu_bytes }, sending) => Network::veth(sending.as_ref(), *mtu_bytes, *esp),
            (NetworkKind::Loopback, sending) => Network::loopback(sending.as_ref()),
            (NetworkKind::Host, None) => Ok(host()),
            (NetworkKind::Host, Some(sending)) if self.address.is_loopback() => {
                // The machine's own serves as well, where only root could make one.
                Network::loopback(Some(sending))
                    .or_else(|error| if sending.is_of_host() { Ok(host()) } else { Err(error) })
            }
            (NetworkKind::Host, Some(sending)) if sending.is_of_host() => Ok(host()),
            (NetworkKind::Host, Some(_)) => Err(Error::Machine(format!(
                "{} is this machine's own, and it sends in another way: sysctl net.ipv4.tcp_congestion_control, tc qdisc",
                self.address
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(sending: &str) -> NetworkSetting {
        NetworkSetting { sending: Sending::parse(sending), ..NetworkSetting::default() }
    }

    #[test]
    fn what_the_machine_does_anyway_needs_nobody() {
        let mut networks = Networks::new([127, 0, 0, 1].into(), None, true);
        networks.bring_up(&NetworkSetting::default()).unwrap();
        let (network, used) = networks.of(&NetworkSetting::default()).unwrap();
        assert_eq!(network.at_client(vec!["load".to_owned()]), ["load"]);
        assert_eq!((used.path.as_str(), network.interface()), ("loopback", Some("lo")));
        let current = used.congestion_control.value().unwrap().clone();
        networks.bring_up(&asking(&current)).unwrap();
    }

    #[test]
    fn what_cannot_be_had_is_said_with_the_setting_and_not_tried_again() {
        let mut networks = Networks::new([127, 0, 0, 1].into(), None, true);
        let first = networks.bring_up(&asking("nonesuch+fq")).unwrap_err();
        assert!(first.starts_with("nonesuch+fq: "), "{first}");
        assert_eq!(networks.bring_up(&asking("nonesuch+fq")), Err(first));
        assert!(networks.of(&asking("nonesuch+fq")).is_none());
    }

    #[test]
    fn other_machines_cannot_be_put_into_a_namespace() {
        let mut networks = Networks::new([192, 0, 2, 1].into(), None, false);
        let veth = NetworkSetting { kind: NetworkKind::VETH, ..NetworkSetting::default() };
        assert_eq!(networks.bring_up(&veth), Err("veth: the clients are other machines".to_owned()));
        let error = networks.bring_up(&asking("nonesuch")).unwrap_err();
        assert!(error.contains("192.0.2.1 is this machine's own, and it sends in another way"), "{error}");
    }
}
