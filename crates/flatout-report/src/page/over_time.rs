//! What the training thread did as the run went on: one column per stretch, stacked to 100%.

use super::{Markup, Writer, markup};
use flatout_core::{message, units};
use flatout_diagnose::account::activity::Activity;
use flatout_diagnose::account::over_time::OverTime;
use std::collections::BTreeMap;

/// An activity with less of the whole is not in the legend.
const LEAST_SHARE: f64 = 0.005;

impl Writer {
    pub(crate) fn over_time(&self, over_time: Option<&OverTime>) -> Markup {
        let Some(over_time) = over_time else {
            return Markup::default();
        };
        let count = over_time.stretches.len();
        let wide = 1000.0 / count as f64;
        let mut totals: BTreeMap<Activity, f64> = BTreeMap::new();
        for (activity, share) in over_time.stretches.iter().flat_map(|stretch| &stretch.shares) {
            *totals.entry(*activity).or_default() += share / count as f64;
        }
        let mut order: Vec<(Activity, f64)> = totals.into_iter().collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut columns = Markup::default();
        for (index, stretch) in over_time.stretches.iter().enumerate() {
            let from = over_time.start_s + index as f64 * over_time.width_s;
            let when = format!("{}–{} s", from.round(), (from + over_time.width_s).round());
            let mut top = 0.0;
            // Always in the same order, so that the eye can follow an activity.
            for (activity, _) in &order {
                let share = stretch.shares.iter().find(|(one, _)| one == activity);
                let Some((_, share)) = share else { continue };
                columns += markup!(
                    "<rect class=\"a-{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}: {} {}</title></rect>",
                    activity.id(),
                    index as f64 * wide,
                    top,
                    if wide > 8.0 { wide - 2.0 } else { wide },
                    share * 200.0,
                    when,
                    self.say(&activity.name()),
                    units::percent(*share)
                );
                top += share * 200.0;
            }
        }
        let legend: Markup = order
            .iter()
            .filter(|(_, share)| *share >= LEAST_SHARE)
            .map(|(activity, share)| {
                markup!(
                    "<li><i class=\"swatch a-{}\"></i><span>{}</span><b>{}</b></li>\n",
                    activity.id(),
                    self.say(&activity.name()),
                    units::percent(*share)
                )
            })
            .collect();
        let title = message!(en: "The training thread over time", zh: "训练线程随时间的变化");
        let end = over_time.start_s + count as f64 * over_time.width_s;
        let body = markup!(
            "<svg class=\"stretches\" viewBox=\"0 0 1000 200\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}</svg>\n<p class=\"ends\"><span>{}</span><span>{}</span></p>\n<ul class=\"parts\">\n{}</ul>\n",
            self.say(&title),
            columns,
            units::duration(over_time.start_s),
            units::duration(end),
            legend
        );
        self.section(&title, body)
    }
}
