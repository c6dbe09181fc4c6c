//! Files beside the board, which are as private as the board is.

use std::fs::OpenOptions;

/// Opens files for writing that, if they are new, belong to this user alone from their first byte.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
