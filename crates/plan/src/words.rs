//! Words and bounds of the files: versions, ciphers, numbers within limits.

use linerate_faults::nearest;
use linerate_placement::{Cipher, Version};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::constants::CIPHERS;

/// A version of TLS as files name it: `"1.2"`, `"1.3"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionName(pub Version);

impl VersionName {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.number()
    }
}

impl<'de> Deserialize<'de> for VersionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "1.2" => Ok(Self(Version::Tls12)),
            "1.3" => Ok(Self(Version::Tls13)),
            other => {
                Err(de::Error::custom(format!("unknown version \"{other}\" of TLS (there are: 1.2, 1.3)")))
            }
        }
    }
}

impl Serialize for VersionName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A cipher that the model has figures for, as files name it: `"AES-128-GCM"`, in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherName(pub(crate) Cipher);

impl<'de> Deserialize<'de> for CipherName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = Cipher::named(&name).filter(|cipher| CIPHERS.contains(cipher));
        known.map(Self).ok_or_else(|| {
            let names = || CIPHERS.iter().map(|cipher| cipher.name());
            let hint = nearest(&name, names()).map(|near| format!("; did you mean \"{near}\"?"));
            de::Error::custom(format!(
                "unknown cipher \"{name}\"{} (there are: {})",
                hint.unwrap_or_default(),
                names().collect::<Vec<_>>().join(", ")
            ))
        })
    }
}

impl Serialize for CipherName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

/// Refuses a number outside `least..=most`, and what is none.
pub(crate) fn within(name: &str, value: f64, least: f64, most: f64) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} = {value} is not possible: {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Both {
        tls: VersionName,
        cipher: CipherName,
    }

    #[test]
    fn names_are_read_and_the_nearest_is_told() {
        let both: Both = toml::from_str("tls = \"1.3\"\ncipher = \"aes-256-gcm\"").unwrap();
        assert_eq!((both.tls.0, both.cipher.0), (Version::Tls13, Cipher::Aes256Gcm));
        let error = toml::from_str::<Both>("tls = \"1.1\"\ncipher = \"AES-128-GCM\"").unwrap_err();
        assert!(error.message().contains("1.2, 1.3"), "{error}");
        let error = toml::from_str::<Both>("tls = \"1.2\"\ncipher = \"AES-128-GCN\"").unwrap_err();
        assert!(error.message().contains("did you mean \"AES-128-GCM\"?"), "{error}");
    }

    #[test]
    fn bounds_take_no_nan() {
        assert!(within("x", f64::NAN, 0.0, 1.0).is_err());
        assert!(within("x", 1.0, 0.0, 1.0).is_ok());
    }
}
