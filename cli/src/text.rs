//! How figures are shown to people: money always with its currency, times in the local zone.
//!
//! Invariant: pure. The zone and the present are arguments, so every rendering has one result.

use std::time::Duration;

use domain::money::{Micros, Period};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use web_openapi::money::{Money, Per, Rate};

/// Where and when somebody looks at it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The zone that times are shown in.
    pub(crate) zone: TimeZone,
    /// The present.
    pub(crate) now: Timestamp,
}

/// `12.340000` → `12.34`: no needless zeros, but always cents.
fn short(amount: &str) -> String {
    let Some((whole, part)) = amount.split_once('.') else {
        return format!("{amount}.00");
    };
    format!("{whole}.{:0<2}", part.trim_end_matches('0'))
}

/// An amount without needless zeros: `12.34 USD`.
pub(crate) fn money(amount: &Money) -> String {
    format!("{} {}", short(&amount.amount), amount.currency)
}

/// An amount to the micro-unit, of steady width: `12.340000 USD`.
pub(crate) fn exact_money(amount: &Money) -> String {
    format!("{} {}", amount.amount, amount.currency)
}

/// An amount with its sign: `+12.34 USD`.
pub(crate) fn signed_money(amount: &Money) -> String {
    let sign = if amount.amount.starts_with('-') {
        ""
    } else {
        "+"
    };
    format!("{sign}{}", money(amount))
}

/// Micro-units of a statement, exact: `12.340000 USD`.
pub(crate) fn micros(amount: i64, currency: &str) -> String {
    format!("{} {currency}", Micros::new(amount))
}

/// A price and its period: `2.10 USD per GPU-hour`.
pub(crate) fn rate(rate: &Rate) -> String {
    let per = match rate.per {
        Per::GpuHour => "GPU-hour",
        Per::Hour => "hour",
        Per::GibMonth => "GiB-month",
        Per::Month => "month",
    };
    format!("{} {} per {per}", short(&rate.amount), rate.currency)
}

/// GPUs in words: `8 × h100-sxm-80gb (simulated)`.
pub(crate) fn gpus(count: u16, model: &str, simulated: bool) -> String {
    let note = if simulated { " (simulated)" } else { "" };
    format!("{count} × {model}{note}")
}

/// Memory: `80 GiB`, `1.5 GiB`, `512 MiB`.
pub(crate) fn memory(mib: u64) -> String {
    let (whole, rest) = (mib.div_euclid(1024), mib.rem_euclid(1024));
    if whole == 0 {
        return format!("{rest} MiB");
    }
    match rest.saturating_mul(10).div_euclid(1024) {
        0 => format!("{whole} GiB"),
        tenth => format!("{whole}.{tenth} GiB"),
    }
}

/// A length of time: `45 s`, `3 min 05 s`, `2 h 00 min 05 s`, `4 d 01 h`.
pub(crate) fn seconds(total: i64) -> String {
    let sign = if total < 0 { "-" } else { "" };
    let total = total.unsigned_abs();
    let (minutes, s) = (total.div_euclid(60), total.rem_euclid(60));
    let (hours, min) = (minutes.div_euclid(60), minutes.rem_euclid(60));
    let (days, h) = (hours.div_euclid(24), hours.rem_euclid(24));
    if days > 0 {
        format!("{sign}{days} d {h:02} h")
    } else if hours > 0 {
        format!("{sign}{h} h {min:02} min {s:02} s")
    } else if minutes > 0 {
        format!("{sign}{min} min {s:02} s")
    } else {
        format!("{sign}{s} s")
    }
}

impl View {
    /// A time of the API in the local zone: `2026-12-01 11:00:00 CET`; other texts stay as they are.
    pub(crate) fn time(&self, text: &str) -> String {
        text.parse::<Timestamp>()
            .map_or_else(|_other| text.to_owned(), |at| self.instant(at))
    }

    /// The same with its distance: `2026-12-01 11:00:00 CET (in 3 min 05 s)`.
    pub(crate) fn distant_time(&self, text: &str) -> String {
        let Ok(at) = text.parse::<Timestamp>() else {
            return text.to_owned();
        };
        let away = at.duration_since(self.now).as_secs();
        let distance = match away {
            0 => "now".to_owned(),
            1.. => format!("in {}", seconds(away)),
            _past => format!("{} ago", seconds(away.saturating_neg())),
        };
        format!("{} ({distance})", self.instant(at))
    }

    /// Microseconds since 1970 in the local zone.
    pub(crate) fn micros(&self, at_us: i64) -> String {
        Timestamp::from_microsecond(at_us)
            .map_or_else(|_never| at_us.to_string(), |at| self.instant(at))
    }

    fn instant(&self, at: Timestamp) -> String {
        at.to_zoned_datetime(self.zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S %Z")
            .to_string()
    }
}

/// What a foreign text must not do to a terminal: control characters become `�`.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Reads `90m`, `2h`, `1d 12h`, `45s`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let hint = || format!("`{text}` is not a duration such as 45s, 90m, 2h or 1d12h");
    let mut total: u64 = 0;
    let mut number = String::new();
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        let unit: u64 = match c {
            's' => 1,
            'm' => 60,
            'h' => 60 * 60,
            'd' => 24 * 60 * 60,
            _other => return Err(hint()),
        };
        let count: u64 = number.parse().map_err(|_bad| hint())?;
        number.clear();
        total = count
            .checked_mul(unit)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(hint)?;
    }
    if total == 0 || !number.is_empty() {
        return Err(hint());
    }
    Ok(Duration::from_secs(total))
}

/// Reads decimal hours (`1.5`) as whole seconds; the API takes a minute to a year.
pub(crate) fn hours(text: &str) -> Result<u32, String> {
    let hint = || format!("`{text}` is not a number of hours between 0.0167 and 8760");
    let micro_hours: Micros = text.parse().map_err(|_bad| hint())?;
    let wide = i128::from(micro_hours.get()).saturating_mul(i128::from(Period::Hour.millis()));
    let length = wide.div_euclid(1_000_000_000);
    u32::try_from(length)
        .ok()
        .filter(|s| (60..=31_536_000).contains(s))
        .ok_or_else(hint)
}

/// Reads an amount above zero.
pub(crate) fn amount(text: &str) -> Result<Micros, String> {
    let amount: Micros = text
        .parse()
        .map_err(|bad| format!("{bad}: write e.g. 12.34"))?;
    if amount > Micros::ZERO {
        Ok(amount)
    } else {
        Err("the amount must be above zero".to_owned())
    }
}

/// Reads a price that may be zero.
pub(crate) fn price(text: &str) -> Result<Micros, String> {
    let price: Micros = text
        .parse()
        .map_err(|bad| format!("{bad}: write e.g. 2.10"))?;
    if price < Micros::ZERO {
        Err("a price must not be negative".to_owned())
    } else {
        Ok(price)
    }
}

/// Reads a UTC day or an RFC 3339 instant; gives the instant.
pub(crate) fn instant(text: &str) -> Result<String, String> {
    let at = billing::month::day_start(text).or_else(|| web_openapi::time::from_text(text));
    at.map(web_openapi::time::to_text)
        .ok_or_else(|| format!("`{text}` is no day (2026-11-01) or instant (RFC 3339)"))
}

/// Reads a month, `2026-11`.
pub(crate) fn month(text: &str) -> Result<String, String> {
    let month: billing::month::Month = text.parse().map_err(|bad| format!("{bad}"))?;
    Ok(month.to_string())
}

/// Reads `NAME=VALUE` of a container's environment.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _other => Err(format!("`{text}` is not NAME=VALUE")),
    }
}
