//! What the market meters by: the kernel's boot and its clock that never stands still.
//!
//! Invariant: no wall clock. The server judges by its own time; this clock only bounds how much
//! time can have passed between two reports of one boot.

use rustix::time::{ClockId, clock_gettime};

/// UUID of the kernel's boot.
pub fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

/// Milliseconds since that boot, suspended time included (`CLOCK_BOOTTIME`).
pub fn mono_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let whole = u64::try_from(time.tv_sec)
        .unwrap_or(0)
        .saturating_mul(1_000);
    whole.saturating_add(
        u64::try_from(time.tv_nsec)
            .unwrap_or(0)
            .div_euclid(1_000_000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_is_a_uuid_and_the_clock_goes_on() {
        assert_eq!(boot_id().unwrap().len(), 36);
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
        let before = mono_ms();
        let after = mono_ms();
        assert!(before > 0 && after >= before);
    }
}
