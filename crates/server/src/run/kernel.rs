//! What this machine can carry beside the user engine: found out at start, anew at each reload, and told once.
//!
//! The self-test of kernel TLS takes one to two seconds in an emulated guest; on a real machine a tenth of a second or two is
//! expected, and not measured. An interface's features are behind a lock that other programs may hold. So at a reload a
//! thread of its own looks at both, while the server uses the old findings.

use crate::{placement::PlacementPlan, report, snapshot::Found, tls_setup};
use linerate_config::{EngineChoice, Settings};
use linerate_engine::{
    kernel::{self, Capabilities},
    nic::Adapters,
};
use linerate_os::kernel_tls::System;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// What may be carried elsewhere; `known` is what was found out before. Tells the operator what is new.
///
/// The kernel is tested only where connections may move there, by `plan` or because an adapter may take them: the test takes
/// its time. What the kernel could do is told all the same.
pub(super) fn find(settings: &Settings, plan: &PlacementPlan, known: &Found) -> Found {
    if !is_looked_for(settings) {
        return Found::default();
    }
    let adapters = Adapters::find(&known.adapters);
    let is_news = known.kernel.is_none() || adapters.note() != known.adapters.note();
    if is_news && (settings.engine == EngineChoice::Nic || adapters.any_on()) {
        report::note(&adapters.note());
    }
    let kernel = find_kernel(plan.may_use_kernel() || adapters.any_on(), known.kernel.as_ref());
    Found { kernel: Some(kernel), adapters: Arc::new(adapters) }
}

fn is_looked_for(settings: &Settings) -> bool {
    (tls_setup::is_wanted(settings) || settings.serves_nfs_over_tls())
        && settings.engine != EngineChoice::User
}

fn find_kernel(tested: bool, known: Option<&Arc<Capabilities>>) -> Arc<Capabilities> {
    if let Some(known) = known.filter(|known| known.lacks_nothing_that_may_come()) {
        return Arc::clone(known);
    }
    let found = Capabilities::find(&System, tested);
    let note = kernel::note(&found);
    if known.is_none_or(|known| kernel::note(known) != note) {
        report::note(&note);
    }
    for failure in found.failures() {
        report::warn(&format!(
            "the kernel engine is switched off for {failure}: this kernel failed the self-test"
        ));
    }
    Arc::new(found)
}

/// A look at the machine that is under way.
#[derive(Debug, Default)]
pub(super) struct Search(Option<JoinHandle<Found>>);

impl Search {
    /// Looks anew; a look that is under way is forgotten. Returns what holds until it is over.
    pub(super) fn begin(&mut self, settings: &Settings, plan: &PlacementPlan, known: &Found) -> Found {
        if !is_looked_for(settings) {
            self.0 = None;
            return Found::default();
        }
        let (settings, plan, before) = (settings.clone(), plan.clone(), known.clone());
        self.0 = Some(tokio::task::spawn_blocking(move || find(&settings, &plan, &before)));
        known.clone()
    }

    /// What was found, when that is known; never, while nobody looks.
    pub(super) async fn ended(&mut self) -> Found {
        let Some(search) = &mut self.0 else { return std::future::pending().await };
        let found = search.await;
        self.0 = None;
        found.unwrap_or_else(|_| {
            report::warn(
                "what the kernel carries could not be found out: everything stays on the user engine",
            );
            Found::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Basis;
    use linerate_config::Flags;
    use linerate_placement::Costs;
    use std::path::Path;

    fn settings(text: &str) -> Settings {
        let text = format!("{text}\n[[site]]\nroot = \"r\"\n");
        Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap()
    }

    /// Whether the kernel is looked at, and whether it is tested.
    const CASES: [(&str, bool, bool); 6] = [
        ("engine = \"user\"", false, false),
        ("engine = \"auto\"", true, false),
        ("engine = \"auto\"\n[placement]\ntrial_every = 100", true, true),
        ("engine = \"kernel\"", true, true),
        ("engine = \"nic\"", true, true),
        ("engine = \"kernel\"\nlisten = [\"http://127.0.0.1:80\"]", false, false),
    ];

    fn plan(settings: &Settings) -> PlacementPlan {
        PlacementPlan::new(settings, (Basis::Defaults, Costs::defaults()), 1)
    }

    #[test]
    fn the_kernel_is_looked_at_and_tested_for_those_that_may_use_it() {
        for (text, looks, tests) in CASES {
            let settings = settings(text);
            let found = find(&settings, &plan(&settings), &Found::default());
            assert_eq!(found.kernel.is_some(), looks, "{text}");
            assert_eq!(found.kernel.is_some_and(|kernel| kernel.tested()), tests, "{text}");
        }
    }

    #[tokio::test]
    async fn at_a_reload_the_old_findings_serve_until_the_new_are_there() {
        for (text, looks, tests) in CASES {
            let known =
                Found { kernel: Some(Arc::new(Capabilities::find(&System, false))), ..Found::default() };
            let mut search = Search::default();
            let settings = settings(text);
            let meanwhile = search.begin(&settings, &plan(&settings), &known);
            assert_eq!(meanwhile.kernel.is_some(), looks, "{text}");
            if looks {
                assert_eq!(
                    search.ended().await.kernel.is_some_and(|kernel| kernel.tested()),
                    tests,
                    "{text}"
                );
            }
            tokio::select! {
                biased;
                _ = search.ended() => panic!("nobody looks: {text}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}
