//! Numbers as people read them.

/// `1.5 GiB`, `12 MiB`, `800 B`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    scaled(value, 1024.0, &UNITS)
}

/// `33.9k`, `2.88M`: a count or a rate.
pub fn count(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    scaled(value, 1000.0, &UNITS).replace(' ', "")
}

/// `8.4 kJ`, `120 J`.
pub fn energy(joules: f64) -> String {
    const UNITS: [&str; 5] = ["J", "kJ", "MJ", "GJ", "TJ"];
    scaled(joules, 1000.0, &UNITS)
}

/// `59 ms`, `1.2 s`: a duration that is known to about 5%, such as the quantile of a histogram.
pub fn rough_duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds == 0.0 || seconds.abs() >= 100.0 {
        return duration(seconds);
    }
    let digit = 10f64.powf(seconds.abs().log10().floor() - 1.0);
    duration((seconds / digit).round() * digit)
}

/// `850 µs`, `12.3 ms`, `4.2 s`, `3 min 05 s`, `2 h 10 min`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "?".into();
    }
    let magnitude = seconds.abs();
    match magnitude {
        m if m >= 3600.0 => format!(
            "{} h {:02} min",
            (seconds / 3600.0) as i64,
            ((m % 3600.0) / 60.0) as i64
        ),
        m if m >= 60.0 => format!("{} min {:02} s", (seconds / 60.0) as i64, (m % 60.0) as i64),
        m if m >= 1.0 => format!("{} s", significant(seconds)),
        m if m >= 1e-3 => format!("{} ms", significant(seconds * 1e3)),
        0.0 => "0 s".into(),
        _ => format!("{} µs", significant(seconds * 1e6)),
    }
}

/// `61%`, `3.1%`, `0.4%`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "?".into();
    }
    format!("{}%", significant_at_most(share * 100.0, 1))
}

/// Three significant digits, without trailing zeros behind the point.
pub fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    significant_at_most(value, decimals)
}

fn significant_at_most(value: f64, decimals: usize) -> String {
    let decimals = if value.abs() >= 10.0 {
        decimals.min(1)
    } else {
        decimals
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "?".into();
    }
    let mut value = value;
    let mut index = 0;
    while value.abs() >= base && index + 1 < units.len() {
        value /= base;
        index += 1;
    }
    format!("{} {}", significant(value), units[index])
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_can_read_them() {
        assert_eq!(bytes(143771.0 * 1024.0 * 1024.0), "140 GiB");
        assert_eq!(bytes(800.0), "800 B");
        assert_eq!(count(33_900.0), "33.9k");
        assert_eq!(count(12.0), "12");
        assert_eq!(duration(0.00085), "850 µs");
        assert_eq!(duration(0.0123), "12.3 ms");
        assert_eq!(duration(185.0), "3 min 05 s");
        assert_eq!(duration(7800.0), "2 h 10 min");
        assert_eq!(energy(8400.0), "8.4 kJ");
        assert_eq!(rough_duration(0.0589), "59 ms");
        assert_eq!(rough_duration(1.234), "1.2 s");
        assert_eq!(rough_duration(0.000_838), "840 µs");
        assert_eq!(rough_duration(185.0), "3 min 05 s");
        assert_eq!(rough_duration(0.0), "0 s");
        assert_eq!(percent(0.031), "3.1%");
        assert_eq!(percent(0.61), "61%");
        assert_eq!(percent(f64::NAN), "?");
    }
}
