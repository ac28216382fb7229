//! What the system says about itself where no file does.

pub use crate::system::facts::told;

/// The system's name and release, as `uname` has them: `Linux 6.12.41`, `FreeBSD 14.1-RELEASE`.
#[must_use]
pub fn system() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// The release: `6.12.41`, `14.1-RELEASE`.
#[must_use]
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// A fact, by the group and name under which measurements keep it.
#[derive(Clone, Debug)]
pub struct Fact {
    /// `kernel`, `cpu`, `memory`, `network`, `limits`.
    pub group: &'static str,
    /// What is told.
    pub name: &'static str,
    /// How, or why it is not told.
    pub value: Result<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_a_name_and_a_release() {
        assert!(system().ends_with(&release()));
        assert!(release().starts_with(|first: char| first.is_ascii_digit()), "{}", release());
        for Fact { group, name, value } in told() {
            assert!(
                !group.is_empty() && !name.is_empty() && value.as_ref().map_or(true, |text| !text.is_empty())
            );
        }
    }
}
