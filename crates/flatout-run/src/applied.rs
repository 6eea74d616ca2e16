//! What became of `--apply`: the probe tells which settings it put in force, and why it could not.

use flatout_core::{Message, message};
use flatout_telemetry::record::RunData;
use serde_json::Value;

/// One line for each setting that was asked for but is not in force.
pub fn not_applied(asked: &[String], data: &RunData) -> Vec<Message> {
    asked
        .iter()
        .filter_map(|setting| {
            let name = setting.split('=').next().unwrap_or(setting).trim();
            let reason = reason_for(name, data)?;
            Some(Message {
                en: format!("{setting} was not applied: {}", reason.en),
                zh: format!("{setting} 未能生效：{}", reason.zh),
            })
        })
        .collect()
}

/// Why one setting is not in force; `None` when it is.
pub fn reason_for(name: &str, data: &RunData) -> Option<Message> {
    let key = format!("apply.{name}");
    let told: Vec<&Value> = data
        .facts
        .iter()
        .filter(|fact| fact.key == key)
        .map(|fact| &fact.value)
        .collect();
    if told.contains(&&Value::Bool(true)) {
        return None;
    }
    Some(reason(told.first().and_then(|value| value.as_str())))
}

fn reason(code: Option<&str>) -> Message {
    match code {
        Some("unknown-setting") => message!(en: "no such setting", zh: "没有这个设置项"),
        Some("unknown-value") => message!(en: "no such value", zh: "没有这个取值"),
        Some("no-cuda") => message!(en: "the program uses no GPU", zh: "程序没有使用 GPU"),
        Some("needs-scaler") => {
            message!(en: "fp16 needs a gradient scaler in the program; bf16 does not", zh: "fp16 需要程序自带梯度缩放；bf16 不需要")
        }
        Some("off-needs-edit") => {
            message!(en: "switching it off needs an edit", zh: "关闭它需要修改代码")
        }
        Some("needs-workers") => {
            message!(en: "it needs loader.num_workers above 0", zh: "需要 loader.num_workers 大于 0")
        }
        Some("own-batch-sampler") => {
            message!(en: "the program makes its batches itself", zh: "程序自己组成 batch")
        }
        Some("evaluation-loader") => {
            message!(en: "no training loader was found", zh: "没有找到训练用的 DataLoader")
        }
        Some("recurrent") => {
            message!(en: "torch.compile passes over recurrent layers", zh: "torch.compile 会跳过循环层")
        }
        Some("graphs-need-gpu") => {
            message!(en: "CUDA graphs need a GPU; compiled in the default mode instead", zh: "CUDA graph 需要 GPU；已改用默认模式编译")
        }
        Some("no-mallopt") => {
            message!(en: "the C library cannot be told to keep memory", zh: "C 库不支持保留内存的设置")
        }
        Some("no-convolution") => {
            message!(en: "the model has no convolutions", zh: "模型中没有卷积")
        }
        Some("not-supported") => {
            message!(en: "the optimizer does not support it", zh: "该优化器不支持")
        }
        _ => message!(en: "the program never came to it", zh: "程序没有用到它"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flatout_telemetry::Fact;

    fn data(facts: &[(&str, Value)]) -> RunData {
        let fact = |(key, value): &(&str, Value)| Fact {
            t: 0.0,
            key: (*key).to_owned(),
            value: value.clone(),
            scope: None,
            place: None,
        };
        RunData {
            facts: facts.iter().map(fact).collect(),
            ..RunData::default()
        }
    }

    #[test]
    fn only_what_is_not_in_force_is_told() {
        let data = data(&[
            ("apply.tf32", Value::from("no-cuda")),
            ("apply.loader.num_workers", Value::from(true)),
        ]);
        let asked = ["tf32=on", "loader.num_workers=2", "amp=bf16"].map(str::to_owned);
        let told = not_applied(&asked, &data);
        assert_eq!(told.len(), 2);
        assert!(told[0].en.contains("no GPU") && told[1].en.starts_with("amp=bf16"));
    }
}
