use std::{fs, hint::black_box, io};

use crate::replay::{LIVE, filled};

/// A sentence that says how much the resident memory of this process grows by an entry of the replay guard's memory
/// store, at a million of them.
///
/// # Errors
///
/// Where `/proc/self/status` cannot be read.
pub fn memory_of_entries() -> io::Result<String> {
    let before = resident()?;
    let store = filled(LIVE);
    let grown = resident()?.saturating_sub(before);
    black_box(store);
    let each = grown as f64 / LIVE as f64;
    Ok(format!(
        "replay: {each:.1} bytes of resident memory an entry, at {LIVE} live entries (at most 64)"
    ))
}

fn resident() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("no VmRSS in /proc/self/status"))
}
