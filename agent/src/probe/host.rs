//! The host's figures: cores and memory from `/proc`, disk from the file system.

use std::path::Path;

use super::ProbeError;

const GIB: u64 = 1 << 30;
/// Share of the disk, in percent, that stays for the system and for images.
const DISK_RESERVE_PERCENT: u64 = 10;

/// The kernel's host name.
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Cores that the system shows.
pub fn cpu_cores() -> Result<u64, ProbeError> {
    let text = read("/proc/cpuinfo", "cores")?;
    let cores = text.lines().filter(|l| l.starts_with("processor")).count();
    u64::try_from(cores.max(1)).map_err(|e| fault("cores", e))
}

/// Memory.
pub fn ram_mib() -> Result<u64, ProbeError> {
    parse_ram_mib(&read("/proc/meminfo", "memory")?)
}

fn parse_ram_mib(meminfo: &str) -> Result<u64, ProbeError> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let digits = line.and_then(|l| l.trim().strip_suffix("kB"));
    let kib: u64 = digits
        .and_then(|d| d.trim().parse().ok())
        .ok_or_else(|| fault("memory", "no MemTotal in /proc/meminfo"))?;
    Ok(kib.div_euclid(1024))
}

/// Disk that leases may use: the size of the file system, less a reserve. The size and not what is
/// free, because the market subtracts what leases were promised.
pub fn disk_gib(path: &Path) -> Result<u64, ProbeError> {
    let stat = rustix::fs::statvfs(path).map_err(|e| fault("disk", e))?;
    let bytes = stat.f_blocks.saturating_mul(stat.f_frsize);
    let usable = bytes
        .div_euclid(100)
        .saturating_mul(100_u64.saturating_sub(DISK_RESERVE_PERCENT));
    Ok(usable.div_euclid(GIB))
}

fn read(path: &str, what: &'static str) -> Result<String, ProbeError> {
    std::fs::read_to_string(path).map_err(|e| fault(what, e))
}

fn fault(what: &'static str, why: impl ToString) -> ProbeError {
    ProbeError::Host {
        what,
        why: why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_figures() {
        assert!(cpu_cores().unwrap() >= 1);
        assert!(ram_mib().unwrap() >= 64);
        assert!(disk_gib(Path::new("/")).is_ok());
        assert!(disk_gib(Path::new("/nowhere-at-all")).is_err());
        assert!(!hostname().is_empty());
    }

    #[test]
    fn memory_is_in_mib() {
        assert_eq!(
            parse_ram_mib("MemTotal:       24684084 kB\nMemFree: 1 kB\n").unwrap(),
            24_105
        );
        assert!(parse_ram_mib("").is_err());
    }
}
