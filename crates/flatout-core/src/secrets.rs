//! Command lines without their secrets. A record is kept and sent to others; what a program was given as a password must not be in it.
//!
//! A value is hidden by the name before it (`--api-key X`, `db.password=X`), by its form (`https://user:pass@host`, `hf_…`), or, after
//! names that are often harmless (`--pad-token`, `--key`), by name and form together.

/// What replaces a secret.
pub const HIDDEN: &str = "***";

/// In any name, whatever the value.
const ALWAYS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
    "secret_key",
    "credential",
    "credentials",
    "authorization",
];
/// Words before `token` that make it one that opens a door; a language model has many others.
const DOORS: [&str; 16] = [
    "api",
    "auth",
    "access",
    "bearer",
    "hf",
    "hub",
    "huggingface",
    "wandb",
    "github",
    "gitlab",
    "bot",
    "refresh",
    "session",
    "slack",
    "comet",
    "neptune",
];
/// How well-known services begin theirs.
const FORMS: [&str; 11] = [
    "sk-",
    "hf_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
];

/// The arguments with their secrets hidden.
pub fn redact<T: AsRef<str>>(arguments: &[T]) -> Vec<String> {
    let mut shown = Vec::with_capacity(arguments.len());
    let mut name_before: Option<&str> = None;
    for argument in arguments {
        let argument = argument.as_ref();
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) if is_name(name) => (Some(name), value),
            _ => (name_before.filter(|_| !argument.starts_with("--")), argument),
        };
        let hidden = if name.is_some_and(|name| hides(name, value)) {
            HIDDEN.to_owned()
        } else {
            without_known(value)
        };
        shown.push(match argument.split_once('=') {
            Some((name, _)) if is_name(name) => format!("{name}={hidden}"),
            _ => hidden,
        });
        name_before = (argument.starts_with('-') && is_name(argument)).then_some(argument);
    }
    shown
}

/// The command line of this process as a file may keep it. What is no UTF-8 is shown with replacement characters.
pub fn own_command() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    redact(&words.collect::<Vec<_>>())
}

fn is_name(text: &str) -> bool {
    let bare = text.trim_start_matches(['-', '+']);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    !bare.is_empty() && bare.len() <= 80 && bare.chars().all(is_part)
}

/// Whether a name asks for a secret, given what follows it.
fn hides(name: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    let name = name
        .trim_start_matches(['-', '+'])
        .to_lowercase()
        .replace('-', "_");
    let name = name.rsplit('.').next().unwrap_or(&name);
    // `--password-file`, `--api-key-env`: where it is, not what it is.
    if ["file", "path", "env", "dir", "name"]
        .iter()
        .any(|end| name.ends_with(&format!("_{end}")))
    {
        return false;
    }
    let words: Vec<&str> = name.split('_').collect();
    if ALWAYS
        .iter()
        .any(|known| format!("_{name}_").contains(&format!("_{known}_")))
    {
        return true;
    }
    match words.as_slice() {
        ["token" | "pat" | "auth"] => true,
        [.., before, "token"] if DOORS.contains(before) => true,
        [.., "token" | "key" | "auth" | "pw" | "pass"] => is_random(value),
        _ => false,
    }
}

/// Long, and of letters and digits that no language has.
fn is_random(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '/' | '=');
    if value.len() < 16 || !value.chars().all(plain) || value.contains('/') && !value.ends_with('=') {
        return false;
    }
    let mut counts = [0u32; 256];
    value.bytes().for_each(|byte| counts[byte as usize] += 1);
    let length = value.len() as f64;
    let share = |count: &&u32| **count > 0;
    let entropy: f64 = counts
        .iter()
        .filter(share)
        .map(|count| f64::from(*count) / length)
        .map(|share| -share * share.log2())
        .sum();
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    entropy > 3.2 && digits >= 2
}

/// Hides credentials in addresses, and values that show what they are.
fn without_known(value: &str) -> String {
    let known = |form: &str| value.starts_with(form) && value.len() >= form.len() + 12;
    if FORMS.iter().any(|form| known(form)) && !value.contains(['/', ' ', '.']) {
        return HIDDEN.to_owned();
    }
    for intro in ["Bearer ", "bearer ", "Basic "] {
        if let Some((before, secret)) = value.split_once(intro)
            && secret.len() >= 8
            && (before.is_empty() || before.to_lowercase().contains("authorization"))
        {
            return format!("{before}{intro}{HIDDEN}");
        }
    }
    let Some((scheme, rest)) = value.split_once("://") else {
        return value.to_owned();
    };
    let (host, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = match host.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => format!("{HIDDEN}@{host}"),
        _ => host.to_owned(),
    };
    let Some((path, query)) = tail.split_once('?') else {
        return format!("{scheme}://{host}{tail}");
    };
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, value)) if hides(name, value) || ["sig", "signature"].contains(&name) => {
            format!("{name}={HIDDEN}")
        }
        _ => part.to_owned(),
    });
    format!("{scheme}://{host}{path}?{}", parts.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        for (given, shown) in [
            ("--api-key SECRETARG456", "--api-key ***"),
            ("--password=hunter2", "--password=***"),
            ("wandb.api_key=abc", "wandb.api_key=***"),
            ("+trainer.logger.token=abc", "+trainer.logger.token=***"),
            ("WANDB_API_KEY=abc", "WANDB_API_KEY=***"),
            ("--hf-token abc", "--hf-token ***"),
            ("--token abc --lr 1", "--token *** --lr 1"),
            (
                "--upload-key 8f14e45fceea167a5a36dedd4bea2543",
                "--upload-key ***",
            ),
            ("hf_abcdefghijklmnopqrstuvwx", "***"),
            (
                "--url https://me:pw@host:80/a?b=1&token=x",
                "--url https://***@host:80/a?b=1&token=***",
            ),
            ("s3://bucket/x?sig=abc&v=1", "s3://bucket/x?sig=***&v=1"),
            ("--aws-secret-access-key x", "--aws-secret-access-key ***"),
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(redact(&words).join(" "), shown);
        }
        assert_eq!(
            redact(&["-H", "Authorization: Bearer abcdefghij"])[1],
            "Authorization: Bearer ***"
        );
    }

    #[test]
    fn what_training_programs_are_given_is_not_touched() {
        for plain in [
            "python train.py --lr 0.1 --max-tokens 4096 --pad-token <pad> --tokenizer gpt2",
            "--token-dropout 0.1 --eos_token </s> --num_tokens=123456789012345678",
            "--sort-key length --key name --monkey 3 --keyboard --author me",
            "--password-file /run/secrets/db --api-key-env WANDB_API_KEY",
            "https://example.com/a/b?c=d&key=name git@github.com:a/b.git",
            "model=resnet50 data=s3://bucket/path/train-0001.parquet --auth-free",
            "torchrun --nproc_per_node 2 --master_addr localhost:29500 train.py",
            "--password --lr 1",
            "-c import(torch);x=1",
        ] {
            let words: Vec<&str> = plain.split(' ').collect();
            assert_eq!(redact(&words).join(" "), plain);
        }
    }
}
