//! The local time zone.
//!
//! It is read from the files of the system, and only if a local time is printed: most commands never need it. The program
//! has no time zone database of its own. Without that of the system, times are in UTC.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use blackboard::clock::{Clock, SystemClock, Timestamp};
use jiff::tz::TimeZone;

/// Where systems have their time zone database.
const DATABASES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"];

/// The local zone, if `TZ` names none.
const LOCAL: &str = "/etc/localtime";

/// The largest file that is read: a file of a zone has a few kilobytes.
const LARGEST: u64 = 1 << 20;

/// The offset of the local time from UTC, in seconds; `None` if the zone is UTC or unknown.
pub fn offset(moment: Timestamp) -> Option<i32> {
    let moment = jiff::Timestamp::from_millisecond(moment.millis()).ok()?;
    local().map(|zone| zone.to_offset(moment).seconds())
}

/// When today began: the local day, for every count of today.
pub fn today() -> Timestamp {
    local_midnight(SystemClock.now())
}

/// When the local day of a moment began.
fn local_midnight(moment: Timestamp) -> Timestamp {
    local().and_then(|zone| midnight_in(zone, moment)).unwrap_or_else(|| moment.midnight())
}

fn midnight_in(zone: &TimeZone, moment: Timestamp) -> Option<Timestamp> {
    let moment = jiff::Timestamp::from_millisecond(moment.millis()).ok()?;
    let midnight = moment.to_zoned(zone.clone()).start_of_day().ok()?;
    Some(Timestamp::from_millis(midnight.timestamp().as_millisecond()))
}

fn local() -> Option<&'static TimeZone> {
    static ZONE: OnceLock<Option<TimeZone>> = OnceLock::new();
    let zone = ZONE.get_or_init(|| {
        let name = std::env::var_os("TZ");
        // As in the C library: an empty name is UTC.
        let name = name.as_ref().map(|name| name.to_str().unwrap_or_default());
        find(name, &DATABASES.map(PathBuf::from), Path::new(LOCAL))
    });
    zone.as_ref()
}

/// The zone that `TZ` names: a file, a name in a database, or a rule such as `EST5EDT,M3.2.0,M11.1.0`.
fn find(name: Option<&str>, databases: &[PathBuf], local: &Path) -> Option<TimeZone> {
    let Some(name) = name else { return in_file(local) };
    let name = name.strip_prefix(':').unwrap_or(name);
    let path = Path::new(name);
    if path.is_absolute() {
        return in_file(path);
    }
    if matches!(name, "" | "UTC" | "UTC0" | "Etc/UTC") || name.split('/').any(|part| part == "..") {
        return None;
    }
    let in_database = databases.iter().find_map(|database| in_file(&database.join(name)));
    in_database.or_else(|| TimeZone::posix(name).ok())
}

fn in_file(path: &Path) -> Option<TimeZone> {
    TimeZone::tzif("local", &read_small(path)?).ok()
}

/// The content of a small regular file. `TZ` may name anything: opening a pipe waits for a writer, and a device may have no
/// end.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST) {
        return None;
    }
    let mut bytes = Vec::new();
    // Another program may make it longer meanwhile.
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset_of(name: &str, moment: &str) -> Option<i32> {
        let moment: jiff::Timestamp = moment.parse().unwrap();
        find(Some(name), &[], Path::new("/missing")).map(|zone| zone.to_offset(moment).seconds())
    }

    #[test]
    fn a_rule_needs_no_database() {
        testkit::limit_test();
        let (winter, summer) = ("2026-01-15T00:00:00Z", "2026-07-15T00:00:00Z");
        for (name, in_winter, in_summer) in [
            ("<+0530>-5:30", Some(19_800), Some(19_800)),
            ("CET-1CEST,M3.5.0,M10.5.0/3", Some(3_600), Some(7_200)),
            ("EST5EDT,M3.2.0,M11.1.0", Some(-18_000), Some(-14_400)),
            ("UTC", None, None),
            ("", None, None),
            (":UTC", None, None),
            ("No/Such_Zone", None, None),
            ("../../etc/passwd", None, None),
        ] {
            assert_eq!((offset_of(name, winter), offset_of(name, summer)), (in_winter, in_summer), "{name}");
        }
    }

    #[test]
    fn a_local_day_begins_at_its_own_midnight() {
        testkit::limit_test();
        let at = |moment: &str| moment.parse::<Timestamp>().unwrap();
        for (name, moment, midnight) in [
            ("<+0530>-5:30", "2026-02-03T20:00:00Z", "2026-02-03T18:30:00Z"),
            ("<+0530>-5:30", "2026-02-03T18:29:59Z", "2026-02-02T18:30:00Z"),
            // The day on which summer time begins has 23 hours.
            ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T20:00:00Z", "2026-03-28T23:00:00Z"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-30T20:00:00Z", "2026-03-29T22:00:00Z"),
        ] {
            let zone = find(Some(name), &[], Path::new("/missing")).unwrap();
            assert_eq!(midnight_in(&zone, at(moment)), Some(at(midnight)), "{name} {moment}");
        }
    }

    #[test]
    fn a_system_without_a_zone_has_utc() {
        testkit::limit_test();
        assert!(find(None, &[], Path::new("/missing")).is_none());
        assert!(find(None, &[], Path::new("/")).is_none());
    }

    #[test]
    fn only_small_regular_files_are_read() {
        testkit::limit_test();
        let directory = testkit::tempdir().unwrap();
        let (small, large) = (directory.path().join("small"), directory.path().join("large"));
        std::fs::write(&small, "zone").unwrap();
        assert_eq!(read_small(&small).as_deref(), Some(&b"zone"[..]));
        File::create(&large).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(read_small(&large), None);
        assert_eq!(read_small(directory.path()), None);
        assert_eq!(read_small(Path::new("/dev/zero")), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_zone_that_names_a_pipe_is_unknown_and_is_not_waited_for() {
        use testkit::process::RunToEnd as _;

        testkit::limit_test();
        let directory = testkit::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).run_to_end().status.success());
        assert!(find(pipe.to_str(), &[], Path::new("/missing")).is_none());
        assert!(find(None, &[], &pipe).is_none());
    }
}
