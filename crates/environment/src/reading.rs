//! An answer, or why there is none.

use serde::{Deserialize, Serialize};

/// Something that this machine may be unable to tell. Never a zero in place of "don't know".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// What was read.
    Value(T),
    /// Why it could not be read.
    NotAvailable(String),
}

/// What a file that is older than a field has in its place.
impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::NotAvailable("not recorded".to_owned())
    }
}

impl<T> Reading<T> {
    /// The value, where there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::NotAvailable(_) => None,
        }
    }

    /// Something made of the value; the reason stays.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(make(value)),
            Self::NotAvailable(reason) => Reading::NotAvailable(reason),
        }
    }
}
