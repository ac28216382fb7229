//! What a fixed choice of engine results in: which engine carries which part of the work.

use linerate_placement::{Capabilities, Carried, Lack, Name, Release, Verdict};

use crate::capacity::{Part, Prediction};
use crate::cost::Costing;
use crate::{Machine, Sender, Workload};

/// What a sender does here, if it is not all that its name says.
pub(crate) type Note = Option<String>;

impl Costing<'_> {
    /// The steady state of one choice for everything.
    pub(crate) fn predict_fixed(&self, sender: Sender) -> (Prediction, Note) {
        let (parts, note) = self.fixed_parts(sender);
        (self.predict(&parts), note)
    }

    /// Which sender carries which part when `sender` is asked for everything. The kernel carries what an adapter does not take.
    pub(crate) fn fixed_parts(&self, sender: Sender) -> (Vec<Part>, Note) {
        if sender != Sender::Nic {
            return (vec![Part::whole(sender)], None);
        }
        if let Verdict::Lacking(lack) = capabilities(self.machine, self.workload).nic {
            return (vec![Part::whole(Sender::Kernel)], Some(format!("carried by the kernel: {lack}")));
        }
        let share = self.machine.nic_flows as f64 / self.workload.connections as f64;
        if share >= 1.0 {
            return (vec![Part::whole(Sender::Nic)], None);
        }
        let parts = vec![
            Part { bytes: share, moved: share, ..Part::whole(Sender::Nic) },
            Part { bytes: 1.0 - share, moved: 1.0 - share, ..Part::whole(Sender::Kernel) },
        ];
        let note = format!(
            "the adapter keeps {} of {} flows, the kernel carries the others",
            self.machine.nic_flows, self.workload.connections
        );
        (parts, Some(note))
    }
}

/// What kernel and adapter of a machine carry of a workload, as placement wants to know it.
pub(crate) fn capabilities(machine: &Machine, workload: &Workload) -> Capabilities {
    let carried = Verdict::Carried(Carried { takes_new_keys: true });
    let combination = workload.combination();
    let nic = if !machine.nic_encrypts() {
        Verdict::Lacking(Lack::NoAdapter)
    } else if !machine.nic_ciphers.contains(&workload.cipher) {
        Verdict::Lacking(Lack::CipherNotInNic(combination.cipher))
    } else if !machine.nic_tls_versions.contains(&workload.tls) {
        Verdict::Lacking(Lack::VersionNotInNic {
            version: combination.version,
            driver: Name::new(&machine.nic_driver),
            release: Release::parse(&machine.kernel_release).unwrap_or(Release { major: 0, minor: 0 }),
        })
    } else {
        carried
    };
    // Linux gives a flow to an adapter that takes it; software cannot be asked for then.
    let kernel = match nic {
        Verdict::Carried(_) if machine.is_linux() => Verdict::Lacking(Lack::AdapterGoesFirst),
        _ => carried,
    };
    Capabilities { kernel, nic }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Constants, presets};

    #[test]
    fn what_an_adapter_does_not_take_the_kernel_carries_and_it_is_said() {
        let machine = presets::machine("connectx6-thread").unwrap();
        let mut workload = presets::workload("thread-10kb").unwrap();
        workload.tls = presets::workload("web").unwrap().tls;
        let costing = Costing { machine: &machine, workload: &workload, constants: &Constants::PRESENT };
        let (parts, note) = costing.fixed_parts(Sender::Nic);
        assert_eq!(parts, [Part::whole(Sender::Kernel)]);
        assert_eq!(note.unwrap(), "carried by the kernel: TLS 1.3 is not offloaded by mlx5_core on 6.7");
    }

    #[test]
    fn a_full_flow_table_leaves_the_rest_to_the_kernel() {
        let mut machine = presets::machine("netflix-rome-2021").unwrap();
        machine.nic_flows = 20_000;
        let workload = presets::workload("netflix").unwrap();
        let costing = Costing { machine: &machine, workload: &workload, constants: &Constants::PRESENT };
        let (parts, note) = costing.fixed_parts(Sender::Nic);
        assert_eq!((parts[0].bytes, parts[1].sender), (0.5, Sender::Kernel));
        assert!(note.unwrap().contains("20000 of 40000 flows"));
    }
}
