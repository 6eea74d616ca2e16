//! Days and dates of the Gregorian calendar. How a text writes a date is known where it is read.

/// Days from 1970-01-01 to a date of the Gregorian calendar (the civil-day formula: years begin in March).
pub fn days_from_date(year: i64, month: u32, day: u32) -> i64 {
    let shifted_year = year - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5 + day - 1);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day number.
pub fn date_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_index + 2) / 5 + 1) as u32;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dates_go_round(days in -2_000_000i64..2_000_000) {
            let (year, month, day) = date_from_days(days);
            prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
            prop_assert_eq!(days_from_date(year, month, day), days);
        }
    }

    #[test]
    fn known_days() {
        assert_eq!(date_from_days(0), (1970, 1, 1));
        assert_eq!(days_from_date(2000, 2, 29), 11_016);
        assert_eq!(date_from_days(-1), (1969, 12, 31));
    }
}
