//! The adapters of this machine that encrypt, or could: found at start and at a reload.

use super::{
    Proof, Witness,
    memory::Memory,
    route::{Interface, Route, TLS_FEATURE, routes},
};
use linerate_os::{
    adapter::{self, Beneath, Driver},
    kernel_tls::Calls,
};
use linerate_placement::{Combination, Lack, Name, Release, Version};
use std::{
    collections::BTreeMap,
    fmt::Write,
    os::fd::BorrowedFd,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// Adapters, and the interfaces that lead to them.
#[derive(Debug, Default)]
pub struct Adapters {
    /// By the names of interfaces: the adapter itself, and what stands upon it (bonds, VLANs).
    by_interface: BTreeMap<String, Arc<Egress>>,
    /// Proves which connections they have.
    pub witness: Arc<Witness>,
}

/// How connections through an interface leave by the adapter that encrypts, or could.
#[derive(Debug)]
pub struct Egress {
    route: Route,
    adapter: Arc<Adapter>,
}

/// An adapter that encrypts, or could; several interfaces may leave by it.
#[derive(Debug)]
struct Adapter {
    name: String,
    driver: Driver,
    release: Release,
    /// Our connections that it has.
    flows: Arc<AtomicU64>,
    /// In the order of [`Combination::ALL`].
    memories: [Mutex<Memory>; Combination::ALL.len()],
}

impl Adapters {
    /// Looks at all interfaces of this network namespace. Where nothing can be found out there are none. What was learnt by
    /// `known` is forgotten: somebody may have changed something.
    pub fn find(known: &Self) -> Self {
        let folder = Path::new("/sys/class/net");
        let own = adapter::interfaces().unwrap_or_default();
        // What stands beneath an interface is told by /sys alone, and that may show another namespace.
        let folder = adapter::shows(folder, &own).then_some(folder);
        let interfaces: Vec<Interface> =
            own.into_iter().map(|interface| ask(folder, interface.name)).collect();
        Self::on(routes(&interfaces), known)
    }

    fn on(routes: Vec<Route>, known: &Self) -> Self {
        let mut adapters = BTreeMap::new();
        let egresses = routes.into_iter().map(|route| {
            let adapter = adapters.entry(route.adapter.clone());
            let adapter = Arc::clone(adapter.or_insert_with_key(|name| Adapter::find(name, known)));
            (route.interface.clone(), Arc::new(Egress { route, adapter }))
        });
        Self { by_interface: egresses.collect(), witness: Arc::clone(&known.witness) }
    }

    /// The adapters that these routes lead to, of which nothing is learnt yet.
    #[must_use]
    pub fn of(routes: Vec<Route>) -> Self {
        Self::on(routes, &Self::default())
    }

    /// Whether one of them is switched on, and gets connections.
    pub fn any_on(&self) -> bool {
        self.by_interface.values().any(|egress| egress.route.is_on && egress.route.obstacle.is_none())
    }

    /// The adapter by which a connection leaves, if it is one of them. A route that cannot be found out leads to none.
    pub fn towards(&self, calls: &dyn Calls, socket: BorrowedFd<'_>) -> Option<Arc<Egress>> {
        if self.by_interface.is_empty() {
            return None;
        }
        let interface = calls.leaves_by(socket).ok()?;
        self.by_interface.get(&interface).cloned()
    }

    /// What there is, in a line.
    pub fn note(&self) -> String {
        let mut egresses: Vec<&Arc<Egress>> = self.by_interface.values().collect();
        if egresses.is_empty() {
            return format!("TLS in the adapter: no interface of this network namespace has {TLS_FEATURE}");
        }
        let kept: Vec<String> = egresses
            .iter()
            .filter_map(|egress| Some((&egress.route, egress.route.obstacle?)))
            .map(|(route, obstacle)| {
                format!("; connections by {} stay in software: {obstacle}", route.interface)
            })
            .collect();
        egresses.sort_by(|one, other| one.adapter.name.cmp(&other.adapter.name));
        egresses.dedup_by(|one, other| one.adapter.name == other.adapter.name);
        let mut text = String::from("TLS in the adapter:");
        for (number, egress) in egresses.iter().enumerate() {
            let name = &egress.adapter.name;
            let comma = if number > 0 { "," } else { "" };
            let how = if egress.route.is_on {
                "on".to_owned()
            } else {
                format!("could, and is off (ethtool -K {name} {TLS_FEATURE} on, then reload)")
            };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma} {name} ({}) {how}", egress.adapter.driver_in_words());
        }
        text + &kept.concat()
    }
}

/// Asks the kernel for an interface.
fn ask(folder: Option<&Path>, name: String) -> Interface {
    let states = adapter::feature_states(&name).ok();
    let alone = || Beneath { ports: vec![name.clone()], ..Beneath::default() };
    let beneath = folder.and_then(|folder| adapter::beneath(folder, &name).ok());
    Interface {
        driver: adapter::driver(&name).unwrap_or_default().name,
        feature: states.and_then(|states| states.get(TLS_FEATURE).copied()),
        beneath: beneath.unwrap_or_else(alone),
        name,
    }
}

impl Egress {
    /// What stands against giving it a connection now, as far as is known without trying.
    pub fn known_lack(&self, combination: Combination) -> Option<Lack> {
        self.route.never_takes(combination).or_else(|| {
            let memory = self.adapter.memory(combination);
            (!memory.may_be_tried(Instant::now())).then(|| self.why_not(combination, memory.was_carried()))
        })
    }

    /// What stands against giving it a connection now. Asking means to try.
    pub fn objects(&self, combination: Combination) -> Option<Lack> {
        if let Some(lack) = self.route.never_takes(combination) {
            return Some(lack);
        }
        let mut memory = self.adapter.memory(combination);
        if memory.may_try(Instant::now()) {
            return None;
        }
        Some(self.why_not(combination, memory.was_carried()))
    }

    /// Whether Linux would ask the adapter all the same, if kernel TLS were switched on for the connection.
    pub fn may_be_asked(&self, combination: Combination) -> bool {
        self.route.never_takes(combination).is_none()
    }

    /// Why it did not take the last one, as far as can be told: the kernel does not say.
    fn why_not(&self, combination: Combination, was_carried: bool) -> Lack {
        let Combination { version, .. } = combination;
        let (adapter, release) = (&self.adapter, self.adapter.release);
        if !was_carried {
            if let Some((lack, _)) = self.route.foreseen(combination, release) {
                return lack;
            }
            if version == Version::Tls13 {
                return Lack::VersionNotInNic { version, driver: Name::new(&self.route.driver), release };
            }
        }
        Lack::AdapterRefuses { adapter: Name::new(&adapter.name), flows: adapter.flows() }
    }

    /// What came of a set-up: remembered, and where the adapter has it, counted until the flow ends.
    pub fn learn(&self, combination: Combination, proof: Proof) -> Option<Flow> {
        let adapter = &self.adapter;
        match proof {
            Proof::Adapter => {
                adapter.memory(combination).carried();
                adapter.flows.fetch_add(1, Ordering::Relaxed);
                Some(Flow(Arc::clone(&adapter.flows)))
            }
            Proof::Software => {
                adapter.memory(combination).refused(Instant::now());
                None
            }
            Proof::Unproven => None,
        }
    }
}

impl Adapter {
    fn find(name: &str, known: &Adapters) -> Arc<Self> {
        // Those that it has stay there, whatever is reloaded.
        let known = known.by_interface.values().find(|egress| egress.adapter.name == name);
        Arc::new(Self {
            name: name.to_owned(),
            driver: adapter::driver(name).unwrap_or_default(),
            release: Release::parse(&linerate_os::facts::release()).unwrap_or(Release { major: 0, minor: 0 }),
            flows: known.map(|egress| Arc::clone(&egress.adapter.flows)).unwrap_or_default(),
            memories: Default::default(),
        })
    }

    fn driver_in_words(&self) -> String {
        let Driver { name, firmware, .. } = &self.driver;
        if firmware.is_empty() { name.clone() } else { format!("{name}, firmware {firmware}") }
    }

    fn memory(&self, combination: Combination) -> std::sync::MutexGuard<'_, Memory> {
        self.memories[combination.index()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Our connections that it has.
    fn flows(&self) -> u64 {
        self.flows.load(Ordering::Relaxed)
    }
}

/// A connection that an adapter has; counted until it is dropped.
#[derive(Debug)]
pub struct Flow(Arc<AtomicU64>);

impl Drop for Flow {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_placement::Cipher;

    const TLS12: Combination = Combination { version: Version::Tls12, cipher: Cipher::Aes128Gcm };
    const TLS13: Combination = Combination { version: Version::Tls13, cipher: Cipher::Aes256Gcm };

    fn route(interface: &str, is_on: bool, obstacle: Option<Lack>) -> Route {
        let [interface, adapter, driver] = [interface, "eth0", "mlx5_core"].map(str::to_owned);
        Route { interface, adapter, driver, is_on, obstacle }
    }

    fn egress(is_on: bool) -> Arc<Egress> {
        Arc::clone(&Adapters::of(vec![route("eth0", is_on, None)]).by_interface["eth0"])
    }

    #[test]
    fn what_it_does_not_take_is_learnt_for_each_version_and_cipher() {
        let egress = egress(true);
        assert_eq!(egress.objects(TLS12), None);
        let flow = egress.learn(TLS12, Proof::Adapter);
        assert!(flow.is_some() && egress.adapter.flows() == 1);
        assert_eq!(egress.objects(TLS12), None);
        assert_eq!(egress.known_lack(TLS13), None, "looking is not trying");
        assert_eq!(egress.objects(TLS13), None, "one tries");
        assert!(egress.known_lack(TLS13).is_some());
        assert!(egress.learn(TLS13, Proof::Software).is_none());
        let why = egress.objects(TLS13).unwrap();
        assert!(why.to_string().starts_with("TLS 1.3 is not offloaded by mlx5_core on "), "{why}");
        assert_eq!(egress.objects(TLS12), None, "the other is not touched by it");
        egress.learn(TLS12, Proof::Software);
        let why = egress.objects(TLS12).unwrap().to_string();
        assert_eq!(why, "eth0 takes no more flows at the moment (it has 1 of ours)");
        drop(flow);
        assert_eq!(egress.adapter.flows(), 0);
    }

    #[test]
    fn what_is_known_beforehand_is_not_tried() {
        assert_eq!(egress(false).objects(TLS12), Some(Lack::FeatureOff(Name::new("eth0"))));
        let chacha = Combination { version: Version::Tls12, cipher: Cipher::ChaCha20Poly1305 };
        assert_eq!(egress(true).objects(chacha), Some(Lack::CipherNotInNic(chacha.cipher)));
    }

    /// Connections by a bond that hands none down leave the adapter's memory alone: others reach it by another egress.
    #[test]
    fn ways_to_an_adapter_share_what_it_has_and_took() {
        let policy = Lack::BondPolicy(Name::new("bond0"));
        let routes = vec![route("bond0", true, Some(policy)), route("eth0", true, None)];
        let adapters = Adapters::of(routes);
        let [bond, port] = ["bond0", "eth0"].map(|name| &adapters.by_interface[name]);
        assert_eq!((bond.objects(TLS12), bond.may_be_asked(TLS12)), (Some(policy), false));
        assert_eq!((port.objects(TLS12), port.may_be_asked(TLS12)), (None, true));
        let flow = port.learn(TLS12, Proof::Adapter);
        assert_eq!(bond.adapter.flows(), 1);
        // What it has, it has after a reload.
        let anew = Adapters::on(vec![route("eth0", true, None)], &adapters);
        assert_eq!(anew.by_interface["eth0"].adapter.flows(), 1);
        drop(flow);
        let alone = Adapters::of(vec![route("bond0", true, Some(policy))]);
        assert!(adapters.any_on() && !alone.any_on());
        let note = alone.note();
        let kept = "; connections by bond0 stay in software: bond0 hands no connections to adapters (ip link set bond0";
        assert!(note.starts_with("TLS in the adapter: eth0 (") && note.contains(kept), "{note}");
    }

    #[test]
    fn what_there_is_is_told_with_what_to_do() {
        let none = Adapters::default().note();
        assert!(none.ends_with("no interface of this network namespace has tls-hw-tx-offload"), "{none}");
        let note = Adapters::of(vec![route("bond0", false, None)]).note();
        assert!(
            note.ends_with("could, and is off (ethtool -K eth0 tls-hw-tx-offload on, then reload)"),
            "{note}"
        );
    }

    #[test]
    fn each_adapter_is_told_once_with_its_driver() {
        let [bond, first] = [("bond0", true), ("sim0", true)]
            .map(|(interface, is_on)| Route { adapter: "sim0".to_owned(), ..route(interface, is_on, None) });
        let second = Route { adapter: "sim1".to_owned(), ..route("sim1", false, None) };
        let note = Adapters::of(vec![bond, first, second]).note();
        let off = "could, and is off (ethtool -K sim1 tls-hw-tx-offload on, then reload)";
        assert_eq!(note, format!("TLS in the adapter: sim0 () on, sim1 () {off}"));
        let words = |firmware: &str| {
            let driver =
                Driver { name: "mlx5_core".to_owned(), firmware: firmware.to_owned(), ..Driver::default() };
            adapter(driver, 6).driver_in_words()
        };
        assert_eq!([words(""), words("22.41")], ["mlx5_core", "mlx5_core, firmware 22.41"]);
    }

    fn adapter(driver: Driver, major: u16) -> Adapter {
        let (name, release) = ("sim0".to_owned(), Release { major, minor: 0 });
        Adapter { name, driver, release, flows: Arc::default(), memories: Default::default() }
    }

    /// Of a kernel that is newer than what is known here.
    #[test]
    fn a_version_that_was_never_taken_is_the_likely_reason() {
        let adapter = Arc::new(adapter(Driver::default(), 9));
        let egress = Egress { route: route("sim0", true, None), adapter };
        let why = [TLS12, TLS13].map(|combination| {
            egress.learn(combination, Proof::Software);
            egress.objects(combination).unwrap().label()
        });
        assert_eq!(why, ["adapter_refuses", "version_not_in_nic"]);
    }

    #[test]
    fn a_connection_leaves_by_the_interface_of_its_route() {
        let calls = linerate_kernel_model::Simulated::default();
        let (ours, _theirs) = linerate_os::socket::connected_pair(None).unwrap();
        let towards = |interface| {
            let adapters = Adapters::of(vec![route(interface, true, None)]);
            adapters.towards(&calls, std::os::fd::AsFd::as_fd(&ours)).is_some()
        };
        assert!(towards("sim0") && !towards("eth0"));
    }

    /// On a machine without such an adapter nothing is found, and nothing fails.
    #[test]
    fn this_machine_can_be_looked_at() {
        let found = Adapters::find(&Adapters::default());
        assert!(!found.note().is_empty());
        assert!(!found.by_interface.contains_key("lo"), "{found:?}");
    }
}
