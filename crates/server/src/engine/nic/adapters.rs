//! The adapters of this machine that encrypt, or could: found at start and at a reload.

use super::{Proof, Witness, memory::Memory};
use linerate_os::{adapter, kernel_tls::Calls};
use linerate_placement::{Cipher, Combination, Lack, Name, Release, Version};
use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    os::fd::BorrowedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// The feature by ethtool's name.
const FEATURE: &str = "tls-hw-tx-offload";

/// Adapters, and the interfaces that lead to them.
#[derive(Debug, Default)]
pub(crate) struct Adapters {
    /// By the names of interfaces: the adapter itself, and what stands upon it (bonds, VLANs).
    by_interface: BTreeMap<String, Arc<Adapter>>,
    pub(crate) witness: Arc<Witness>,
}

/// One that encrypts, or could.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) name: String,
    driver: adapter::Driver,
    /// Whether it is told to ([`FEATURE`]).
    is_on: bool,
    release: Release,
    /// Our connections that it has.
    flows: Arc<AtomicU64>,
    /// In the order of [`Combination::ALL`].
    memories: [Mutex<Memory>; Combination::ALL.len()],
}

impl Adapters {
    /// Looks at all interfaces of this network namespace. Where nothing can be found out there are none. What was learnt by
    /// `known` is forgotten: somebody may have changed something.
    pub(crate) fn find(known: &Self) -> Self {
        let mut found = Self { witness: Arc::clone(&known.witness), ..Self::default() };
        let Ok(entries) = fs::read_dir("/sys/class/net") else { return found };
        let interfaces: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let mut adapters = BTreeMap::new();
        for interface in &interfaces {
            for port in adapter::ports(interface).unwrap_or_default() {
                let adapter = adapters.entry(port).or_insert_with_key(|port| Adapter::find(port, known));
                let Some(adapter) = adapter else { continue };
                let other = found.by_interface.get(interface);
                // Of a bond's ports, one that is switched on speaks for all.
                if !other.is_some_and(|other| other.is_on) {
                    found.by_interface.insert(interface.clone(), Arc::clone(adapter));
                }
            }
        }
        found
    }

    /// For tests: one, by which everything leaves.
    #[cfg(test)]
    pub(crate) fn of(interface: &str, adapter: Adapter) -> Self {
        let by_interface = BTreeMap::from([(interface.to_owned(), Arc::new(adapter))]);
        Self { by_interface, witness: Arc::default() }
    }

    /// Whether one of them is switched on.
    pub(crate) fn any_on(&self) -> bool {
        self.by_interface.values().any(|adapter| adapter.is_on)
    }

    /// The adapter by which a connection leaves, if it is one of them. A route that cannot be found out leads to none.
    pub(crate) fn towards(&self, calls: &dyn Calls, socket: BorrowedFd<'_>) -> Option<Arc<Adapter>> {
        if self.by_interface.is_empty() {
            return None;
        }
        let interface = calls.leaves_by(socket).ok()?;
        self.by_interface.get(&interface).cloned()
    }

    /// What there is, in a line.
    pub(crate) fn note(&self) -> String {
        let mut adapters: Vec<&Arc<Adapter>> = self.by_interface.values().collect();
        adapters.sort_by(|one, other| one.name.cmp(&other.name));
        adapters.dedup_by(|one, other| one.name == other.name);
        if adapters.is_empty() {
            return format!("TLS in the adapter: no interface of this network namespace has {FEATURE}");
        }
        let mut text = String::from("TLS in the adapter:");
        for (number, adapter) in adapters.iter().enumerate() {
            let name = &adapter.name;
            let comma = if number > 0 { "," } else { "" };
            let how = if adapter.is_on {
                "on".to_owned()
            } else {
                format!("could, and is off (ethtool -K {name} {FEATURE} on, then reload)")
            };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma} {name} ({}) {how}", adapter.driver_in_words());
        }
        text
    }
}

impl Adapter {
    fn find(name: &str, known: &Adapters) -> Option<Arc<Self>> {
        let state = *adapter::feature_states(name).ok()?.get(FEATURE)?;
        (state.on || state.changeable).then(|| {
            let driver = adapter::driver(name).unwrap_or_default();
            // Those that it has stay there, whatever is reloaded.
            let flows = known.by_interface.get(name).map(|known| Arc::clone(&known.flows));
            Arc::new(Self { flows: flows.unwrap_or_default(), ..Self::new(name, driver, state.on) })
        })
    }

    pub(crate) fn new(name: &str, driver: adapter::Driver, is_on: bool) -> Self {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            name: name.to_owned(),
            driver,
            is_on,
            release: Release::parse(&release).unwrap_or(Release { major: 0, minor: 0 }),
            flows: Arc::default(),
            memories: Default::default(),
        }
    }

    fn driver_in_words(&self) -> String {
        let adapter::Driver { name, firmware, .. } = &self.driver;
        if firmware.is_empty() { name.clone() } else { format!("{name}, firmware {firmware}") }
    }

    fn memory(&self, combination: Combination) -> std::sync::MutexGuard<'_, Memory> {
        let place = Combination::ALL.iter().position(|&one| one == combination).unwrap_or_default();
        self.memories[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Our connections that it has.
    pub(crate) fn flows(&self) -> u64 {
        self.flows.load(Ordering::Relaxed)
    }

    /// What stands against giving it a connection now, as far as is known without trying.
    pub(crate) fn known_lack(&self, combination: Combination) -> Option<Lack> {
        self.never_takes(combination).or_else(|| {
            let memory = self.memory(combination);
            (!memory.may_be_tried(Instant::now())).then(|| self.why_not(combination, memory.was_carried()))
        })
    }

    /// What is known beforehand, and does not pass.
    fn never_takes(&self, combination: Combination) -> Option<Lack> {
        if !self.is_on {
            return Some(Lack::FeatureOff(Name::new(&self.name)));
        }
        // Linux has it in software alone (`offloadable` of net/tls/tls.h), whatever the adapter could do.
        if combination.cipher == Cipher::ChaCha20Poly1305 {
            return Some(Lack::CipherNotInNic(combination.cipher));
        }
        None
    }

    /// What stands against giving it a connection now. Asking means to try.
    pub(crate) fn objects(&self, combination: Combination) -> Option<Lack> {
        if let Some(lack) = self.never_takes(combination) {
            return Some(lack);
        }
        let mut memory = self.memory(combination);
        if memory.may_try(Instant::now()) {
            return None;
        }
        Some(self.why_not(combination, memory.was_carried()))
    }

    /// Why it did not take the last one, as far as can be told: the kernel does not say.
    fn why_not(&self, combination: Combination, was_carried: bool) -> Lack {
        if !was_carried && combination.version == Version::Tls13 {
            let (version, release) = (combination.version, self.release);
            return Lack::VersionNotInNic { version, driver: Name::new(&self.driver.name), release };
        }
        Lack::AdapterRefuses { adapter: Name::new(&self.name), flows: self.flows() }
    }

    /// What came of a set-up: remembered, and where the adapter has it, counted until the flow ends.
    pub(crate) fn learn(self: &Arc<Self>, combination: Combination, proof: Proof) -> Option<Flow> {
        match proof {
            Proof::Adapter => {
                self.memory(combination).carried();
                self.flows.fetch_add(1, Ordering::Relaxed);
                Some(Flow(Arc::clone(&self.flows)))
            }
            Proof::Software => {
                self.memory(combination).refused(Instant::now());
                None
            }
            Proof::Unproven => None,
        }
    }
}

/// A connection that an adapter has; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Flow(Arc<AtomicU64>);

impl Drop for Flow {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TLS12: Combination = Combination { version: Version::Tls12, cipher: Cipher::Aes128Gcm };
    const TLS13: Combination = Combination { version: Version::Tls13, cipher: Cipher::Aes256Gcm };

    fn adapter(is_on: bool) -> Arc<Adapter> {
        let driver = adapter::Driver { name: "mlx5_core".into(), ..adapter::Driver::default() };
        Arc::new(Adapter::new("eth0", driver, is_on))
    }

    #[test]
    fn what_it_does_not_take_is_learnt_for_each_version_and_cipher() {
        let adapter = adapter(true);
        assert_eq!(adapter.objects(TLS12), None);
        let flow = adapter.learn(TLS12, Proof::Adapter);
        assert!(flow.is_some() && adapter.flows() == 1);
        assert_eq!(adapter.objects(TLS12), None);
        assert_eq!(adapter.known_lack(TLS13), None, "looking is not trying");
        assert_eq!(adapter.objects(TLS13), None, "one tries");
        assert!(adapter.known_lack(TLS13).is_some());
        assert!(adapter.learn(TLS13, Proof::Software).is_none());
        let why = adapter.objects(TLS13).unwrap();
        assert!(why.to_string().starts_with("TLS 1.3 is not offloaded by mlx5_core on "), "{why}");
        assert_eq!(adapter.objects(TLS12), None, "the other is not touched by it");
        adapter.learn(TLS12, Proof::Software);
        let why = adapter.objects(TLS12).unwrap().to_string();
        assert_eq!(why, "eth0 takes no more flows at the moment (it has 1 of ours)");
        drop(flow);
        assert_eq!(adapter.flows(), 0);
    }

    #[test]
    fn what_is_known_beforehand_is_not_tried() {
        assert_eq!(adapter(false).objects(TLS12), Some(Lack::FeatureOff(Name::new("eth0"))));
        let chacha = Combination { version: Version::Tls12, cipher: Cipher::ChaCha20Poly1305 };
        assert_eq!(adapter(true).objects(chacha), Some(Lack::CipherNotInNic(chacha.cipher)));
    }

    #[test]
    fn what_there_is_is_told_with_what_to_do() {
        let none = Adapters::default().note();
        assert!(none.ends_with("no interface of this network namespace has tls-hw-tx-offload"), "{none}");
        let off = Arc::try_unwrap(adapter(false)).unwrap();
        let note = Adapters::of("bond0", off).note();
        assert!(
            note.ends_with(
                "eth0 (mlx5_core) could, and is off (ethtool -K eth0 tls-hw-tx-offload on, then reload)"
            ),
            "{note}"
        );
    }

    /// On a machine without such an adapter nothing is found, and nothing fails.
    #[test]
    fn this_machine_can_be_looked_at() {
        let found = Adapters::find(&Adapters::default());
        assert!(!found.note().is_empty());
        assert!(!found.by_interface.contains_key("lo"), "{found:?}");
    }
}
