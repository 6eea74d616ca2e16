//! Settings as they stand in a script: what the loader of its training is given, and where nothing is given, what PyTorch takes then.

use crate::config::Value;
use crate::loaders::{gives_one_batch, loader_calls};
use crate::project::{Code, Project};
use std::path::Path;

/// Name, position and what PyTorch takes without it.
const ARGUMENTS: [(&str, usize, &str); 3] = [
    ("batch_size", 1, "1"),
    ("num_workers", 5, "0"),
    ("pin_memory", 7, "off"),
];

/// Names and values; those that cannot be seen are left out.
pub fn loader_settings(project: &Project, script: &Path) -> Vec<(String, String)> {
    let same = |path: &Path| {
        path == script || matches!((path.canonicalize(), script.canonicalize()), (Ok(a), Ok(b)) if a == b)
    };
    let module = project
        .module_ids()
        .find(|id| same(&project.module(*id).source.path));
    let calls: Vec<Code> = module
        .into_iter()
        .flat_map(|module| loader_calls(project, module))
        .filter(|call| !gives_one_batch(*call))
        .collect();
    let Some(call) = calls.iter().find(|call| shuffles(**call)).or(calls.first()) else {
        return Vec::new();
    };
    // Another way to say which samples a batch has: then its size is nothing to judge.
    let own_batches = call.keyword("batch_sampler").is_some();
    let known = ARGUMENTS
        .iter()
        .filter(|(name, ..)| !(own_batches && *name == "batch_size"));
    known
        .filter_map(|(name, position, without)| {
            let value = match call.argument(name, *position) {
                Some(argument) => text(argument.values().only()?)?,
                None if call.splats() => return None,
                None => (*without).to_owned(),
            };
            Some(((*name).to_owned(), value))
        })
        .collect()
}

/// As the loader of a training does.
fn shuffles(call: Code<'_>) -> bool {
    let shuffle = call.argument("shuffle", 2);
    shuffle.is_some_and(|argument| argument.values().only() != Some(&Value::Boolean(false)))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(on) => Some(if *on { "on" } else { "off" }.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::project;

    fn settings(text: &str) -> Vec<(String, String)> {
        let text = format!("from torch.utils.data import DataLoader\n{text}");
        let project = project(&[
            ("train.py", &text),
            (
                "other.py",
                "from torch.utils.data import DataLoader\nDataLoader(x, 7, shuffle=True)\n",
            ),
        ]);
        loader_settings(&project, Path::new("train.py"))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_loader_that_shuffles_is_the_training_s() {
        let text = "COUNT = 40\nchecking = DataLoader(y, 8)\nloader = DataLoader(x, batch_size=64, shuffle=True, num_workers=COUNT, pin_memory=True)\n";
        let expected = pairs(&[("batch_size", "64"), ("num_workers", "40"), ("pin_memory", "on")]);
        assert_eq!(settings(text), expected);
    }

    #[test]
    fn what_is_not_said_is_as_pytorch_takes_it() {
        let expected = pairs(&[("batch_size", "16"), ("num_workers", "0"), ("pin_memory", "off")]);
        assert_eq!(settings("loader = DataLoader(x, 16)\n"), expected);
    }

    #[test]
    fn what_cannot_be_seen_stays_unknown() {
        assert_eq!(settings("loader = DataLoader(x, **options)\n"), []);
        assert_eq!(
            settings("loader = DataLoader(x, batch_size=size(), num_workers=f(), pin_memory=g())\n"),
            []
        );
        let sampled = "loader = DataLoader(x, batch_sampler=s, num_workers=2, pin_memory=g())\n";
        assert_eq!(settings(sampled), pairs(&[("num_workers", "2")]));
        assert_eq!(settings("print(1)\n"), []);
    }
}
