//! What the kernel carries: found out at start, again at a reload that has a reason to, and told once.

use crate::{
    engine::kernel::{self, Capabilities},
    report, tls_setup,
};
use linerate_config::{EngineChoice, Settings};
use linerate_os::kernel_tls::System;
use std::sync::Arc;

/// What the kernel engine may carry, if it is wanted; `known` is what was found out before. Tells the operator what is
/// new.
///
/// `auto` stays with the user engine until there is a cost model to choose by: measured, software kernel TLS is no
/// cheaper. What the kernel could do is told all the same.
pub(super) fn find(settings: &Settings, known: Option<&Arc<Capabilities>>) -> Option<Arc<Capabilities>> {
    if !tls_setup::is_wanted(settings) || settings.engine == EngineChoice::User {
        return None;
    }
    let wanted = settings.engine == EngineChoice::Kernel;
    if let Some(known) = known.filter(|known| known.lacks_nothing_that_may_come()) {
        return Some(Arc::clone(known)).filter(|_| wanted);
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

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_config::Flags;
    use std::path::Path;

    fn settings(text: &str) -> Settings {
        let text = format!("{text}\n[[site]]\nroot = \"r\"\n");
        Settings::from_toml(Path::new("f"), text.as_bytes(), &Flags::default()).unwrap()
    }

    #[test]
    fn only_the_engine_that_asks_for_it_gets_it() {
        for (text, expected) in [
            ("engine = \"user\"", false),
            ("engine = \"auto\"", false),
            ("engine = \"kernel\"", true),
            ("engine = \"kernel\"\nlisten = [\"http://127.0.0.1:80\"]", false),
        ] {
            assert_eq!(find(&settings(text), None).is_some(), expected, "{text}");
        }
    }
}
