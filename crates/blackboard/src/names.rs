//! Text forms of small enumerations: `Display`, a `FromStr` that takes any case and lists what is allowed, and a column.

/// Implements `Display`, `FromStr` and `Column` through `ALL` and `as_str`.
macro_rules! impl_names {
    ($type:ty, $what:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str().eq_ignore_ascii_case(text)).ok_or_else(
                    || {
                        let allowed: Vec<_> = Self::ALL.iter().map(|value| value.as_str()).collect();
                        $crate::Error::invalid(format!(
                            "\"{}\" is not a {}; allowed: {}",
                            $crate::text::escape_for_terminal(text),
                            $what,
                            allowed.join(", ")
                        ))
                    },
                )
            }
        }

        impl $crate::store::record::Column for $type {
            fn cell(&self) -> $crate::store::record::Cell<'_> {
                $crate::store::record::Cell::Text(self.as_str())
            }

            fn read(cell: &$crate::store::record::StoredCell<'_>) -> $crate::Result<Self> {
                cell.parse()
            }
        }
    };
}

pub(crate) use impl_names;
