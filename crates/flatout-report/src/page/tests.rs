use super::*;
use crate::testing;
use flatout_record::RunData;

fn options(language: Language) -> Options {
    Options {
        language,
        pdf_ready: false,
    }
}

#[test]
fn a_job_named_script_is_text_everywhere() {
    let evil = "<script>alert(1)</script>";
    let mut data = testing::training(40, 0.6);
    data.info.name = evil.into();
    data.info.id = evil.into();
    data.info.command = vec!["python".into(), evil.into(), "\"onload='x'".into()];
    data.info.versions.insert(evil.into(), evil.into());
    data.info.unknown.push(evil.into());
    data.facts[0].key = evil.into();
    data.facts[0].value = serde_json::json!(evil);
    data.facts[0].scope = Some(evil.into());
    for sample in &mut data.samples {
        for process in sample.processes.values_mut() {
            process.command = Some(evil.into());
        }
    }
    let page = html(&Digest::of(data), options(Language::English));
    assert!(!page.contains("<script>alert"), "not escaped");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    // The data block, and the script.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn nothing_is_loaded_from_anywhere_and_no_style_is_inline() {
    let page = html(
        &Digest::of(testing::training(40, 0.6)),
        options(Language::English),
    );
    for forbidden in ["src=", "href=", "@import", "url(", " style=", " onclick="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn both_languages_have_every_section() {
    let english = html(
        &Digest::of(testing::training(40, 0.6)),
        options(Language::English),
    );
    let chinese = html(
        &Digest::of(testing::training(40, 0.6)),
        options(Language::Chinese),
    );
    for words in [
        "Where the",
        "Findings",
        "Over time",
        "Checklist",
        "Distribution of step times",
        "GPUs",
    ] {
        assert!(english.contains(words), "{words}");
    }
    for words in [
        "的去向",
        "诊断结论",
        "随时间变化",
        "检查清单",
        "单步耗时分布",
        "各 GPU",
    ] {
        assert!(chinese.contains(words), "{words}");
    }
    assert!(!chinese.contains("Where the") && chinese.contains("lang=\"zh-CN\""));
}

#[test]
fn the_time_bar_adds_up() {
    let page = html(
        &Digest::of(testing::training(40, 0.6)),
        options(Language::English),
    );
    let bar = page
        .split("class=\"bar\"")
        .nth(1)
        .unwrap()
        .split("</svg>")
        .next()
        .unwrap();
    let widths: f64 = bar
        .split(" width=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert!((widths - 1000.0).abs() < 0.1, "{widths}");
}

#[test]
fn an_empty_run_shows_no_numbers() {
    let page = html(&Digest::of(RunData::default()), options(Language::English));
    assert!(page.contains("the record is empty"));
    assert!(!page.contains("class=\"tiles\"") && !page.contains("class=\"bar\""));
}

#[test]
fn a_day_stays_below_a_megabyte() {
    let page = html(
        &Digest::of(testing::training(86_400, 0.3)),
        options(Language::English),
    );
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn for_pdf_nothing_is_folded_or_dark() {
    let page = html(
        &Digest::of(testing::training(40, 0.6)),
        Options {
            language: Language::English,
            pdf_ready: true,
        },
    );
    assert!(page.contains("<details open>") && !page.contains("<button"));
    assert!(!page.contains("prefers-color-scheme: dark) { :root"));
}
