//! How the GPUs of a monitored machine did: a mark per aspect with its threshold.

use super::{Markup, Writer, markup};
use crate::text::{aspect_name, mark_limit, mark_value, next_command_of_monitor, sign, status_word};
use flatout_core::message;
use flatout_diagnose::verdict::{GpuVerdict, Status, Verdict};

impl Writer {
    pub(crate) fn verdict(&self, verdict: Option<&Verdict>) -> Markup {
        let Some(verdict) = verdict else {
            return Markup::default();
        };
        let mut body: Markup = verdict
            .gpus
            .iter()
            .map(|(index, gpu)| self.gpu_marks(*index, gpu))
            .collect();
        body += self.note(&next_command_of_monitor());
        self.section(&message!(en: "Verdict", zh: "结论"), body)
    }

    fn gpu_marks(&self, index: u32, gpu: &GpuVerdict) -> Markup {
        let name = gpu.name.as_deref().unwrap_or("");
        let rows: Markup = gpu
            .marks
            .iter()
            .map(|mark| {
                let class = match mark.status {
                    Status::Good => "m-good",
                    Status::Warning => "m-warning",
                    Status::Bad => "m-bad",
                    Status::Unknown => "m-unknown",
                };
                markup!(
                    "<tr><td><b class=\"{}\">{}</b>{}</td><td class=\"number\"><b>{}</b></td><td class=\"soft\">{}</td><td class=\"{}\">{}</td></tr>\n",
                    class,
                    sign(mark.status).0,
                    self.say(&aspect_name(mark.aspect)),
                    self.say(&mark_value(mark)),
                    self.say(&mark_limit(mark)),
                    class,
                    self.say(&status_word(mark))
                )
            })
            .collect();
        let notes: Markup = gpu.notes.iter().map(|note| self.note(&note.message)).collect();
        markup!(
            "<h3>GPU {} {}</h3>\n<div class=\"scroll\"><table class=\"marks\">{}</table></div>\n",
            index,
            name,
            rows
        ) + notes
    }
}
