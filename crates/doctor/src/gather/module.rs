//! Whether the `tls` module is there. FreeBSD's kernel TLS is a part of its kernel.

use linerate_environment::{Files, Reading};

use crate::facts::Module;

/// What the files say.
pub(super) fn state(files: &Files<'_>) -> Module {
    if !linerate_os::kernel_tls::IS_A_MODULE {
        return Module::Loaded;
    }
    // The statistics are there as soon as the code is, as a module or built in.
    if files.path("/proc/net/tls_stat").exists() || files.path("/sys/module/tls").exists() {
        return Module::Loaded;
    }
    let release = match files.text("/proc/sys/kernel/osrelease") {
        Reading::Value(release) => release,
        Reading::NotAvailable(reason) => return Module::NotKnown(reason),
    };
    match files.text(&format!("/lib/modules/{release}/modules.dep")) {
        Reading::Value(modules) if modules.contains("/net/tls/tls.ko") => Module::Installed,
        Reading::Value(_) => Module::NotInKernel,
        Reading::NotAvailable(_) => Module::NoModules,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_module_is_where_the_files_say() {
        let root = tempfile::tempdir().expect("a folder");
        let files = Files::below(root.path());
        let write = |path: &str, text: &str| {
            let path = files.path(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        assert!(matches!(state(&files), Module::NotKnown(reason) if reason.contains("osrelease")));
        write("/proc/sys/kernel/osrelease", "6.12.0\n");
        assert_eq!(state(&files), Module::NoModules);
        write("/lib/modules/6.12.0/modules.dep", "kernel/net/foo.ko:\n");
        assert_eq!(state(&files), Module::NotInKernel);
        write("/lib/modules/6.12.0/modules.dep", "kernel/net/tls/tls.ko.xz:\n");
        assert_eq!(state(&files), Module::Installed);
        write("/sys/module/tls/refcnt", "0\n");
        assert_eq!(state(&files), Module::Loaded);
    }
}
