//! The name of a board as a user wrote it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;

use super::without_password;

/// The name of a board: a path, or the URL of a server, which may contain a password. It is never printed with it.
#[derive(Clone, PartialEq, Eq)]
pub struct BoardName(OsString);

impl fmt::Debug for BoardName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*without_password(&self.0.to_string_lossy()), formatter)
    }
}

impl Deref for BoardName {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.0
    }
}

impl From<OsString> for BoardName {
    fn from(name: OsString) -> BoardName {
        BoardName(name)
    }
}

impl From<&str> for BoardName {
    fn from(name: &str) -> BoardName {
        BoardName(name.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Globals;
    use crate::config::Config;
    use crate::environment::Environment;
    use crate::location::{Request, Target};

    #[test]
    fn no_debug_output_has_the_password_of_a_url() {
        // The second one cannot be read as an address.
        for url in ["redis://ivy:s3cr3t@host/1?board=team", "redis://ivy:s3cr3t@host:port"] {
            let name = BoardName::from(url);
            let environment = Environment { database: Some(name.clone()), ..Environment::default() };
            let mut config = Config::default();
            config.database.operator_path = Some(name.clone());
            let shown = [
                format!("{name:?}"),
                format!("{environment:?}"),
                format!("{:?}", Request { db: Some(name.clone()), environment, ..Request::default() }),
                format!("{:?}", Globals { db: Some(name), ..Globals::default() }),
                format!("{:?}", Target::Redis(url.to_owned())),
                format!("{config:?}"),
            ];
            for text in shown {
                assert!(text.contains("ivy@host") && !text.contains("s3cr3t"), "{text}");
            }
        }
    }
}
