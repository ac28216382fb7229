//! Words for the variants of an enum, in metrics and logs.

/// Gives each variant a word, the same in every release of linerate, and its place among all words, by which counters are
/// found without a search. `..Variant(Enum)`: the variant holds another such enum, whose words come after the own ones.
macro_rules! labels {
    ($name:ident { $($variant:ident => $label:literal),+ $(,)? $(..$holder:ident($held:ident))? }) => {
        impl $name {
            /// Where the words of the enum that is held begin.
            const OWN_LABELS: usize = [$($label),+].len();

            /// All words, in the order of tables.
            pub const LABELS: [&str; Self::OWN_LABELS $(+ $held::LABELS.len())?] =
                $crate::labels::joined(&[&[$($label),+], $(&$held::LABELS)?]);

            /// Its word in metrics and logs.
            #[must_use]
            pub fn label(&self) -> &'static str {
                Self::LABELS[self.index()]
            }

            /// Where its word stands in [`Self::LABELS`].
            #[must_use]
            pub fn index(&self) -> usize {
                enum Place { $($variant),+ }
                match self {
                    $(Self::$variant { .. } => Place::$variant as usize,)+
                    $(Self::$holder(held) => Self::OWN_LABELS + held.index(),)?
                }
            }
        }
    };
}
pub(crate) use labels;

/// The lists one after the other, `ALL` words in all.
pub(crate) const fn joined<const ALL: usize>(lists: &[&[&'static str]]) -> [&'static str; ALL] {
    let mut all = [""; ALL];
    let (mut place, mut list) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[place] = lists[list][index];
            place += 1;
            index += 1;
        }
        list += 1;
    }
    assert!(place == ALL, "no place stays empty");
    all
}
