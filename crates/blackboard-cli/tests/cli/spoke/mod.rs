mod init;
mod show;
mod validate;

use std::fs;

use crate::scratch::Scratch;

/// A valid manifest.
const MANIFEST: &str = "\
schemaVersion: \"1.0\"
name: pai-collab
hub: mellanon/the-hive
project: pai-collab
maintainer: ivy
license: MIT
identity:
  handle: ivy
  publicKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOnNv4kLw
status:
  test: touch ran
";

/// Writes a file of the spoke.
fn write(scratch: &Scratch, name: &str, text: &str) {
    fs::create_dir_all(scratch.path().join(".collab")).unwrap();
    fs::write(scratch.path().join(".collab").join(name), text).unwrap();
}
