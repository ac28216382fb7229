//! What this machine can carry beside the user engine: found out at start, anew at each reload, and told once.
//!
//! The self-test of kernel TLS takes a tenth of a second or two, and an interface's features are behind a lock that others
//! may hold: at a reload both are looked at on a thread of their own, while the old findings serve.

use crate::{
    engine::{
        kernel::{self, Capabilities},
        nic::Adapters,
    },
    report,
    snapshot::Found,
    tls_setup,
};
use linerate_config::{EngineChoice, Settings};
use linerate_os::kernel_tls::System;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// What may be carried elsewhere, if that is wanted; `known` is what was found out before. Tells the operator what is new.
///
/// `auto` stays with the user engine until there is a cost model to choose by: measured, software kernel TLS is no
/// cheaper. What the kernel could do is told all the same.
pub(super) fn find(settings: &Settings, known: &Found) -> Found {
    if !is_looked_for(settings) {
        return Found::default();
    }
    let wanted = matches!(settings.engine, EngineChoice::Kernel | EngineChoice::Nic);
    let kernel = find_kernel(wanted, known.kernel.as_ref());
    if !wanted {
        return Found::default();
    }
    let adapters = Adapters::find(&known.adapters);
    if settings.engine == EngineChoice::Nic {
        report::note(&adapters.note());
    }
    Found { kernel, adapters: Arc::new(adapters) }
}

fn is_looked_for(settings: &Settings) -> bool {
    tls_setup::is_wanted(settings) && settings.engine != EngineChoice::User
}

fn find_kernel(wanted: bool, known: Option<&Arc<Capabilities>>) -> Option<Arc<Capabilities>> {
    if let Some(known) = known.filter(|known| known.lacks_nothing_that_may_come()) {
        return Some(Arc::clone(known));
    }
    let found = Capabilities::find(&System, wanted);
    report::note(&kernel::note(&found));
    for failure in found.failures() {
        report::warn(&format!(
            "the kernel engine is switched off for {failure}: this kernel failed the self-test"
        ));
    }
    wanted.then(|| Arc::new(found))
}

/// A look at the machine that is under way.
#[derive(Debug, Default)]
pub(super) struct Search(Option<JoinHandle<Found>>);

impl Search {
    /// Looks anew; a look that is under way is forgotten. Returns what holds until it is over.
    pub(super) fn begin(&mut self, settings: &Settings, known: &Found) -> Found {
        if !is_looked_for(settings) {
            self.0 = None;
            return Found::default();
        }
        let (settings, before) = (settings.clone(), known.clone());
        self.0 = Some(tokio::task::spawn_blocking(move || find(&settings, &before)));
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
    use linerate_config::Flags;
    use std::path::Path;

    fn settings(text: &str) -> Settings {
        let text = format!("{text}\n[[site]]\nroot = \"r\"\n");
        Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap()
    }

    const CASES: [(&str, bool); 5] = [
        ("engine = \"user\"", false),
        ("engine = \"auto\"", false),
        ("engine = \"kernel\"", true),
        ("engine = \"nic\"", true),
        ("engine = \"kernel\"\nlisten = [\"http://127.0.0.1:80\"]", false),
    ];

    #[test]
    fn only_the_engines_that_ask_for_it_get_it() {
        for (text, expected) in CASES {
            let found = find(&settings(text), &Found::default());
            assert_eq!(found.kernel.is_some(), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn at_a_reload_the_old_findings_serve_until_the_new_are_there() {
        for (text, expected) in CASES {
            let known =
                Found { kernel: Some(Arc::new(Capabilities::find(&System, false))), ..Found::default() };
            let mut search = Search::default();
            let meanwhile = search.begin(&settings(text), &known);
            let looks = !text.contains("user") && !text.contains("http:");
            assert_eq!(meanwhile.kernel.is_some(), looks, "{text}");
            if looks {
                assert_eq!(search.ended().await.kernel.is_some(), expected, "{text}");
            }
            tokio::select! {
                biased;
                _ = search.ended() => panic!("nobody looks: {text}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}
