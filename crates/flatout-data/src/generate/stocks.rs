//! A panel of stocks, one Parquet file each: date, price and volume columns, fourteen factors, and the day's return in percent.
//!
//! The return of day t+1 is `2 · (√s · g(t) + √(1−s) · noise)` with `s` the share of the signal. `g` has variance 1 and five
//! independent parts, each of which asks something else of a model: a level (factor 1), a memory (factor 2 five days ago), a trend (mean of
//! factor 3 over ten days), an interaction (factor 4 × factor 5), and an effect whose sign is the stock's own (factor 6: needs the
//! entity). The best possible prediction is `2 · √s · g(t)`; a window of 10 days or more and a horizon of 1 can reach it. All other columns
//! are there to be ignored.

use super::score::{BestScore, RegressionSums};
use super::{Generated, Recipe};
use crate::formats::parquet_write::{self, ColumnToWrite};
use crate::random::Stream;
use crate::time::days_from_date;
use crate::{DataError, Result, parallel};
use flatout_core::message;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub const LABEL: &str = "return_pct";
const FACTORS: usize = 14;
/// Days simulated before the first one written, so that lags and means are settled.
const WARM_UP_DAYS: usize = 16;
/// Standard deviation of a day's return in percent.
const DAILY_RETURN_PCT: f64 = 2.0;
/// Squared weights of the parts of the signal; they add up to 1.
const LEVEL: f64 = 0.30;
const MEMORY: f64 = 0.20;
const TREND: f64 = 0.15;
const INTERACTION: f64 = 0.15;
const OWN_SIGN: f64 = 0.20;
/// The last part of the calendar, which the default split validates on.
const VALIDATION_SHARE: f64 = 0.2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stocks {
    pub stocks: usize,
    pub days: usize,
    pub seed: u64,
    /// Share of the variance of returns that can be predicted.
    pub signal: f64,
}

impl Default for Stocks {
    fn default() -> Self {
        Self {
            stocks: 200,
            days: 750,
            seed: 0,
            signal: 0.5,
        }
    }
}

/// One stock's columns.
struct Series {
    prices: [Vec<f32>; 6],
    factors: Vec<Vec<f32>>,
    returns: Vec<f32>,
    all: RegressionSums,
    validation: RegressionSums,
}

const PRICE_NAMES: [&str; 6] = ["open", "high", "low", "close", "volume", "turnover"];

impl Stocks {
    /// Whether there is anything to make of it.
    pub(super) fn check(&self) -> Result<()> {
        if self.stocks == 0 || self.days < 2 || !(0.0..=1.0).contains(&self.signal) {
            return Err(DataError::Setting(message!(
                en: "needs at least 1 stock, 2 days and a signal between 0 and 1",
                zh: "至少需要 1 只股票、2 个交易日，signal 须在 0 到 1 之间"
            )));
        }
        Ok(())
    }

    pub(super) fn generate(&self, folder: &Path, threads: usize) -> Result<Generated> {
        let calendar = trading_days(self.days);
        let factor_names: Vec<String> = (1..=FACTORS)
            .map(|factor| format!("factor_{factor:02}"))
            .collect();
        let sums = parallel::map(self.stocks, threads, |stock| {
            let first_day = self.first_day(stock);
            let series = self.simulate(stock, self.days - first_day);
            let mut columns = vec![("date", ColumnToWrite::Date(&calendar[first_day..]))];
            for (name, values) in PRICE_NAMES.iter().zip(&series.prices) {
                columns.push((name, ColumnToWrite::Float(values)));
            }
            for (name, values) in factor_names.iter().zip(&series.factors) {
                columns.push((name, ColumnToWrite::Float(values)));
            }
            columns.push((LABEL, ColumnToWrite::Float(&series.returns)));
            parquet_write::write(&folder.join(format!("{}.parquet", code(stock))), &columns)?;
            Ok::<_, DataError>((series.all, series.validation, series.returns.len() as u64))
        })?;
        let (mut all, mut validation, mut rows) = (RegressionSums::default(), RegressionSums::default(), 0);
        for (stock_all, stock_validation, stock_rows) in &sums {
            all.add(stock_all);
            validation.add(stock_validation);
            rows += stock_rows;
        }
        let best = BestScore::Regression {
            all: all.finish(),
            validation: validation.finish(),
        };
        Ok(Generated::new(
            Recipe::Stocks(self.clone()),
            self.stocks,
            rows,
            LABEL,
            best,
        ))
    }

    /// Every fifth stock is listed later than the others, as in a real market.
    fn first_day(&self, stock: usize) -> usize {
        if stock % 5 != 4 {
            return 0;
        }
        Stream::new(self.seed, &[1, stock as u64]).below(self.days as u64 / 2) as usize
    }

    fn simulate(&self, stock: usize, days: usize) -> Series {
        let factors = self.factors(stock, days);
        let mut noise = Stream::new(self.seed, &[3, stock as u64]);
        let own_sign = if noise.next_u64() & 1 == 0 { 1.0 } else { -1.0 };
        let (signal, rest) = (self.signal.sqrt(), (1.0 - self.signal).sqrt());
        let mut series = Series {
            prices: std::array::from_fn(|_| Vec::with_capacity(days)),
            factors: factors
                .iter()
                .map(|factor| factor[WARM_UP_DAYS..].iter().map(|&value| value as f32).collect())
                .collect(),
            returns: Vec::with_capacity(days),
            all: RegressionSums::default(),
            validation: RegressionSums::default(),
        };
        let first_validated = days.saturating_sub((self.days as f64 * VALIDATION_SHARE).round() as usize);
        let mut close = 5.0 + 95.0 * noise.uniform();
        for day in 0..days {
            let prediction = DAILY_RETURN_PCT * signal * planted(&factors, day + WARM_UP_DAYS - 1, own_sign);
            let return_pct = prediction + DAILY_RETURN_PCT * rest * noise.normal();
            series.all.push(return_pct, prediction);
            if day >= first_validated {
                series.validation.push(return_pct, prediction);
            }
            let before = close;
            close = (close * (1.0 + return_pct / 100.0)).clamp(0.01, 1e6);
            series.push_prices(before, close, return_pct, &mut noise);
        }
        series
    }

    /// `[factor][warm-up + day]`, unit variance, independent of each other; those the signal looks back on have no memory.
    fn factors(&self, stock: usize, days: usize) -> Vec<Vec<f64>> {
        (0..FACTORS)
            .map(|factor| {
                let mut stream = Stream::new(self.seed, &[2, stock as u64, factor as u64]);
                let persistence = if factor < 6 {
                    0.0
                } else {
                    0.1 * (factor - 5) as f64
                };
                let fresh = (1.0 - persistence * persistence).sqrt();
                let mut value = stream.normal();
                (0..WARM_UP_DAYS + days)
                    .map(|_| {
                        value = persistence * value + fresh * stream.normal();
                        // What is written is f32; the signal must see the same number.
                        f64::from(value as f32)
                    })
                    .collect()
            })
            .collect()
    }
}

/// The signal known at the end of `day`.
fn planted(factors: &[Vec<f64>], day: usize, own_sign: f64) -> f64 {
    let trend: f64 = factors[2][day - 9..=day].iter().sum::<f64>() / 10f64.sqrt();
    LEVEL.sqrt() * factors[0][day]
        + MEMORY.sqrt() * factors[1][day - 5]
        + TREND.sqrt() * trend
        + INTERACTION.sqrt() * factors[3][day] * factors[4][day]
        + OWN_SIGN.sqrt() * own_sign * factors[5][day]
}

impl Series {
    fn push_prices(&mut self, before: f64, close: f64, return_pct: f64, noise: &mut Stream) {
        let open = before * (1.0 + 0.003 * noise.normal());
        let high = open.max(close) * (1.0 + 0.004 * noise.normal().abs());
        let low = open.min(close) * (1.0 - 0.004 * noise.normal().abs());
        let volume = 1e6 * (1.0 + return_pct.abs() / 2.0) * (0.5 + noise.uniform());
        let turnover = volume * close / 1e6;
        for (column, value) in self
            .prices
            .iter_mut()
            .zip([open, high, low, close, volume, turnover])
        {
            column.push(value as f32);
        }
        self.returns.push(return_pct as f32);
    }
}

fn code(stock: usize) -> String {
    format!("{:06}", 600_000 + stock)
}

/// Monday to Friday from 2018-01-01 on.
fn trading_days(count: usize) -> Vec<i32> {
    // 1970-01-01 was a Thursday.
    let weekday = |day: &i32| (day + 3).rem_euclid(7) < 5;
    (days_from_date(2018, 1, 1) as i32..)
        .filter(weekday)
        .take(count)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PanelOptions, SplitRule, load_panel};

    fn recipe() -> Recipe {
        Recipe::Stocks(Stocks {
            stocks: 12,
            days: 300,
            seed: 7,
            signal: 0.5,
        })
    }

    #[test]
    fn the_same_bytes_whatever_the_threads() {
        let folder = tempfile::tempdir().unwrap();
        for (name, threads) in [("one", 1), ("three", 3)] {
            recipe()
                .generate(&folder.path().join(name), Some(threads))
                .unwrap();
        }
        for name in ["600000.parquet", "600011.parquet", "recipe.json"] {
            let read = |run: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
            assert_eq!(read("one"), read("three"), "{name}");
        }
    }

    #[test]
    fn the_best_score_is_what_the_planted_formula_gets_from_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let generated = recipe().generate(folder.path(), None).unwrap();
        let options = PanelOptions {
            label: LABEL.into(),
            ..PanelOptions::default()
        };
        let panel = load_panel(folder.path(), &options).unwrap();
        assert_eq!(panel.rows() as u64, generated.rows);
        assert_eq!(panel.feature_names.len(), 20);
        assert_eq!(panel.entities.len(), 12);
        let split = panel.split(&SplitRule::default()).unwrap();
        let windows = panel.windows(&split.validation, 12, 1).unwrap();
        // The formula, from the file's own columns; the stock's sign is tried both ways, as an embedding would learn it.
        let width = panel.feature_names.len();
        let mut sums = vec![[RegressionSums::default(); 2]; panel.entities.len()];
        for &start in windows.starts.iter() {
            let factors: Vec<Vec<f64>> = (6..width)
                .map(|column| {
                    (0..12)
                        .map(|day| f64::from(panel.features[(start as usize + day) * width + column]))
                        .collect()
                })
                .collect();
            let label = f64::from(panel.labels[start as usize + 12]);
            for (choice, sign) in [1.0, -1.0].into_iter().enumerate() {
                let prediction = 2.0 * 0.5f64.sqrt() * planted(&factors, 11, sign);
                sums[panel.entity_of_row[start as usize] as usize][choice].push(label, prediction);
            }
        }
        let mut total = RegressionSums::default();
        for [plus, minus] in &sums {
            let better = if plus.finish().mse < minus.finish().mse {
                plus
            } else {
                minus
            };
            total.add(better);
        }
        let BestScore::Regression { validation, .. } = generated.best else {
            panic!()
        };
        let reached = total.finish();
        assert!(
            (reached.r2 - validation.r2).abs() < 0.05,
            "{reached:?} {validation:?}"
        );
        assert!((0.4..0.6).contains(&reached.r2), "{reached:?}");
    }

    #[test]
    fn ensure_makes_once_and_other_folders_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = recipe().ensure(folder.path(), None).unwrap();
        std::fs::remove_file(folder.path().join("600000.parquet")).unwrap();
        assert_eq!(recipe().ensure(folder.path(), None).unwrap(), first);
        assert!(!folder.path().join("600000.parquet").exists(), "not made again");
        let other = Recipe::Stocks(Stocks {
            seed: 8,
            ..Stocks::default()
        });
        assert!(
            other
                .generate(folder.path(), None)
                .unwrap_err()
                .to_string()
                .contains("other files")
        );
    }
}
