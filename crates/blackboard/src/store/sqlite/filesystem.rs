//! The file systems on which a board works.
//!
//! Processes share the index of the WAL in memory. That works only if all of them are on one machine and use the same
//! file. On a network file system or a FUSE mount it does not, and the board would be damaged without an error.

use std::path::Path;

use crate::error::{Code, Error, Refusal};
use crate::hint::Hint;

/// The kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is local, or its kind is unknown.
    Local,
    /// It is remote; this is its name.
    Remote(&'static str),
}

/// The file systems without shared memory, by their number on Linux. FUSE includes virtiofs, sshfs and mounts from
/// the host of a container.
#[cfg(any(target_os = "linux", test))]
const REMOTE: &[(u32, &str)] = &[
    (0x0000_6969, "NFS"),
    (0x0000_517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0000_564c, "NCP"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786f_4256, "VirtualBox shared folder"),
    (0xbacb_acbc, "VMware shared folder"),
];

/// The kind of a file system by its number.
#[cfg(any(target_os = "linux", test))]
fn kind_of_number(number: u32) -> Kind {
    REMOTE.iter().find(|(known, _)| *known == number).map_or(Kind::Local, |(_, name)| Kind::Remote(name))
}

/// The kind of a file system by what macOS reports: whether it is local, and its name.
#[cfg(any(target_os = "macos", test))]
fn kind_of_name(is_local: bool, name: &[u8]) -> Kind {
    let contains =
        |part: &str| name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()));
    if contains("fuse") {
        Kind::Remote("FUSE")
    } else if contains("virtiofs") {
        Kind::Remote("virtiofs")
    } else if is_local {
        Kind::Local
    } else if contains("nfs") {
        Kind::Remote("NFS")
    } else if contains("smb") {
        Kind::Remote("SMB")
    } else {
        Kind::Remote("a network file system")
    }
}

/// Refuses a file system on which a board would be damaged.
pub(super) fn refusal(path: &Path, name: &str) -> Error {
    let message = format!(
        "{} is on a network file system ({name}), where processes cannot share the memory that a board needs",
        path.display()
    );
    Refusal::new(Code::NetworkFilesystem, message).hint(Hint::UseLocalDisk).detail("filesystem", name).into()
}

#[cfg(target_os = "linux")]
fn kind(statfs: &rustix::fs::StatFs) -> Kind {
    // The type of the field differs between architectures. If it is signed, the upper half is only the sign.
    let number = i128::from(statfs.f_type) & i128::from(u32::MAX);
    u32::try_from(number).map_or(Kind::Local, kind_of_number)
}

#[cfg(target_os = "macos")]
fn kind(statfs: &rustix::fs::StatFs) -> Kind {
    const MNT_LOCAL: u32 = 0x1000;
    let name: Vec<u8> = statfs
        .f_fstypename
        .iter()
        .map(|letter| letter.cast_unsigned())
        .take_while(|letter| *letter != 0)
        .collect();
    kind_of_name(statfs.f_flags & MNT_LOCAL != 0, &name)
}

/// The file system of an open file. An unknown one counts as local.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn of_file(file: &std::fs::File) -> Kind {
    rustix::fs::fstatfs(file).map_or(Kind::Local, |statfs| kind(&statfs))
}

/// The file system of a directory that may not exist yet. It is that of the nearest existing parent.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn of_directory(directory: &Path) -> Kind {
    let here = Path::new(".");
    let ancestors =
        directory.ancestors().map(|ancestor| if ancestor.as_os_str().is_empty() { here } else { ancestor });
    let mut found = ancestors.map(rustix::fs::statfs).filter(|found| {
        // The first that exists decides.
        !matches!(found, Err(rustix::io::Errno::NOENT))
    });
    found.next().and_then(Result::ok).map_or(Kind::Local, |statfs| kind(&statfs))
}

// On other systems file systems are not checked; the documentation covers them.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn of_file(_file: &std::fs::File) -> Kind {
    Kind::Local
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn of_directory(_directory: &Path) -> Kind {
    Kind::Local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognized_by_number() {
        for (number, expected) in [
            (0x6969, Kind::Remote("NFS")),
            (0x517b, Kind::Remote("SMB")),
            (0xff53_4d42, Kind::Remote("SMB")),
            (0xfe53_4d42, Kind::Remote("SMB")),
            (0x0102_1997, Kind::Remote("9p")),
            (0x6573_5546, Kind::Remote("FUSE")),
            (0xef53, Kind::Local),      // ext4
            (0x5846_5342, Kind::Local), // XFS
            (0x9123_683e, Kind::Local), // btrfs
            (0x2fc1_2fc1, Kind::Local), // ZFS
            (0xf2f5_2010, Kind::Local), // F2FS
            (0x794c_7630, Kind::Local), // overlayfs
            (0x0102_1994, Kind::Local), // tmpfs
            (0x8584_58f6, Kind::Local), // ramfs
            (0x4d44, Kind::Local),      // FAT
            (0x7366_746e, Kind::Local), // NTFS
            (0xca45_1a4e, Kind::Local), // bcachefs
            (0, Kind::Local),
        ] {
            assert_eq!(kind_of_number(number), expected, "{number:#x}");
        }
    }

    #[test]
    fn network_file_systems_are_recognized_by_name() {
        for (is_local, name, expected) in [
            (true, "apfs", Kind::Local),
            (true, "hfs", Kind::Local),
            (true, "macfuse", Kind::Remote("FUSE")),
            (true, "osxfuse", Kind::Remote("FUSE")),
            (true, "AppleVirtIOFS", Kind::Remote("virtiofs")),
            (false, "nfs", Kind::Remote("NFS")),
            (false, "smbfs", Kind::Remote("SMB")),
            (false, "afpfs", Kind::Remote("a network file system")),
        ] {
            assert_eq!(kind_of_name(is_local, name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn missing_directory_is_on_the_file_system_of_its_parent() {
        let directory = testkit::tempdir().unwrap();
        let here = of_directory(directory.path());
        assert_eq!(of_directory(&directory.path().join("not/yet")), here);
        let file = std::fs::File::open(directory.path()).unwrap();
        assert_eq!(of_file(&file), here);
    }
}
