//! Settings written in a script: the arguments of the training DataLoader, or PyTorch's defaults.

use crate::config::Value;
use crate::loaders::{gives_one_batch, loader_calls};

use crate::project::{Code, LoopRole, Origin, Project};
use crate::python::Kind;
use std::path::Path;

/// Name, position and what PyTorch takes without it.
const ARGUMENTS: [(&str, usize, &str); 3] = [
    ("batch_size", 1, "1"),
    ("num_workers", 5, "0"),
    (PINNING, 7, "off"),
];
const PINNING: &str = "pin_memory";

/// Names and values; those that cannot be seen are left out, and those that loaders disagree on. A script that is given arguments may
/// take its values from them: then only what is written down plainly counts.
pub fn loader_settings(project: &Project, script: &Path, has_arguments: bool) -> Vec<(String, String)> {
    let Some(module) = project.module_at(script) else {
        return Vec::new();
    };
    let all: Vec<Code> = loader_calls(project, module)
        .filter(|call| !gives_one_batch(*call))
        .collect();
    let trains = all
        .iter()
        .copied()
        .filter(|call| draws(*call))
        .collect::<Vec<_>>();
    let steps = !project.flow().loops(project, module, LoopRole::Step).is_empty();
    let loaders = match (trains.is_empty(), steps) {
        (false, _) => trains,
        (true, true) => all,
        // What trains was built elsewhere.
        (true, false) => return Vec::new(),
    };
    let mut found = Vec::new();
    for (name, position, without) in ARGUMENTS {
        let seen: Option<Vec<String>> = loaders
            .iter()
            .map(|call| value(*call, (name, position, without), has_arguments))
            .collect();
        if let Some([first, rest @ ..]) = seen.as_deref()
            && rest.iter().all(|other| other == first)
        {
            found.push((name.to_owned(), first.clone()));
        }
    }
    found
}

fn value(
    call: Code<'_>,
    (name, position, without): (&str, usize, &str),
    has_arguments: bool,
) -> Option<String> {
    // The batches are defined in another way: their size cannot be judged.
    if name == "batch_size" && call.keyword("batch_sampler").is_some() {
        return None;
    }
    let Some(argument) = call.argument(name, position) else {
        return (!call.splats()).then(|| without.to_owned());
    };
    let values = argument.values();
    let value = values.only()?;
    if has_arguments && !is_plain(argument, &values.list.first()?.origin) {
        return None;
    }
    match value {
        Value::Integer(number) if name != PINNING => Some(number.to_string()),
        Value::Boolean(on) if name == PINNING => Some(if *on { "on" } else { "off" }.to_owned()),
        _ => None,
    }
}

/// A literal, or a variable that is one: no option's default and no configuration's value.
fn is_plain(argument: Code<'_>, origin: &Origin) -> bool {
    let Origin::Code(code) = origin else {
        return false;
    };
    let is_assigned = || matches!(code.parent().map(Code::kind), Some(Kind::Assign { .. }));
    *code == argument || (argument.as_name().is_some() && is_assigned())
}

/// As the loader of a training does: in another order each time.
fn draws(call: Code<'_>) -> bool {
    let given = |name: &str, position: usize| {
        call.argument(name, position).is_some_and(|argument| {
            !matches!(
                argument.values().only(),
                Some(Value::Boolean(false) | Value::Null)
            )
        })
    };
    given("shuffle", 2) || given("sampler", 3) || given("batch_sampler", 4)
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
        loader_settings(&project, Path::new("train.py"), false)
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
    fn missing_arguments_have_pytorch_defaults() {
        let expected = pairs(&[("batch_size", "16"), ("num_workers", "0"), ("pin_memory", "off")]);
        assert_eq!(
            settings("for x, y in DataLoader(x, 16):\n    model(x).backward()\n    optimizer.step()\n"),
            expected
        );
        // A loader that no training here runs over is none of a training.
        assert_eq!(settings("test = DataLoader(x, 16)\n"), []);
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

    #[test]
    fn conflicting_loaders_give_no_value() {
        let text = "val = DataLoader(v, 512, num_workers=2)\ntrain = DataLoader(t, 64, sampler=DistributedSampler(t), num_workers=400)\n";
        let expected = pairs(&[
            ("batch_size", "64"),
            ("num_workers", "400"),
            ("pin_memory", "off"),
        ]);
        assert_eq!(settings(text), expected);
        let two = "a = DataLoader(v, 512, shuffle=True)\nb = DataLoader(t, 64, shuffle=True)\n";
        assert_eq!(
            settings(two),
            pairs(&[("num_workers", "0"), ("pin_memory", "off")])
        );
    }

    #[test]
    fn command_arguments_override_the_source() {
        let text = "import argparse
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument('-j', '--workers', type=int, default=4)
args = parser.parse_args()
PIN = True
loader = DataLoader(x, batch_size=64, shuffle=True, num_workers=args.workers, pin_memory=PIN)
";
        let project = project(&[("train.py", text)]);
        let found = |has_arguments: bool| loader_settings(&project, Path::new("train.py"), has_arguments);
        assert_eq!(found(true), pairs(&[("batch_size", "64"), ("pin_memory", "on")]));
        assert_eq!(
            found(false),
            pairs(&[("batch_size", "64"), ("num_workers", "4"), ("pin_memory", "on")])
        );
    }
}
