//! Command lines without their secrets. A record is kept and sent to others; what a program was given as a password must not be in it.
//!
//! A value is hidden by the name before it (`--api-key X`, `db.password=X`, `"api_key": "X"`), by its form (`https://user:pass@host`,
//! `hf_…`), or, after names that are often harmless (`--pad-token`, `--key`), by name and form together. One argument may be a whole
//! program (`sh -c '…'`), so names and forms are looked for within arguments as well.

/// What replaces a secret.
pub const HIDDEN: &str = "***";

/// In any name, whatever the value.
const ALWAYS: [&str; 15] = [
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
    "cookie",
    "sshpass",
];
/// Ends of words that do the same: `PGPASSWORD`.
const ENDS: [&str; 5] = ["password", "passwd", "passphrase", "apikey", "secret"];
/// Headers whose value has blanks.
const HEADERS: [&str; 3] = ["authorization", "cookie", "proxy_authorization"];
/// Words before `token` that make it one that opens a door; a language model has many others.
const DOORS: [&str; 20] = [
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
    "private",
    "personal",
    "deploy",
    "ci",
];
/// How well-known services begin theirs.
const FORMS: [&str; 14] = [
    "sk-",
    "hf_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
];

/// The arguments with their secrets hidden.
pub fn redact<T: AsRef<str>>(arguments: &[T]) -> Vec<String> {
    let mut shown = Vec::with_capacity(arguments.len());
    let mut option: Option<&str> = None;
    let mut has_sshpass = false;
    for argument in arguments {
        let argument = argument.as_ref();
        // An option's value may be anything, also with a `=` in it.
        let value_of = option.filter(|_| !argument.starts_with("--"));
        shown.push(match (value_of, argument.split_once('=')) {
            (Some(name), _) if hides(name, argument) || has_sshpass && name == "-p" => HIDDEN.to_owned(),
            (Some("-u" | "--user"), _) if without_password(argument).is_some() => {
                without_password(argument).unwrap_or_default()
            }
            (_, Some((name, value))) if is_name(name) && hides(name, value) => format!("{name}={HIDDEN}"),
            _ => without_known(argument),
        });
        has_sshpass |= argument.rsplit('/').next() == Some("sshpass");
        option = (argument.starts_with('-') && is_name(argument)).then_some(argument);
    }
    shown
}

/// `user:password`, with numbers only the user and group of a container.
fn without_password(value: &str) -> Option<String> {
    let (user, password) = value.split_once(':')?;
    let is_user = is_name(user.split('@').next()?) && !password.is_empty();
    let is_secret = !password.contains(['/', ' ']) && !password.bytes().all(|byte| byte.is_ascii_digit());
    (is_user && is_secret).then(|| format!("{user}:{HIDDEN}"))
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

/// A name as the lists above write it: `apiKey` and `X-Api-Key` are `api_key` and `x_api_key`.
fn plain_name(name: &str) -> String {
    let name = name.trim_start_matches(['-', '+']);
    let name = name.rsplit('.').next().unwrap_or(name);
    let mut plain = String::with_capacity(name.len() + 4);
    let letters: Vec<char> = name.chars().collect();
    for (place, &letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(place + 1);
        let begins_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())
            });
        if begins_word {
            plain.push('_');
        }
        plain.extend(
            letter
                .to_lowercase()
                .map(|letter| if letter == '-' { '_' } else { letter }),
        );
    }
    plain
}

/// Whether a name asks for a secret, given what follows it.
fn hides(name: &str, value: &str) -> bool {
    let is_variable = value.starts_with('$') && !value.contains(['(', '`']);
    let harmless = ["true", "false", "none", "null", "yes", "no"];
    if value.is_empty() || is_variable || harmless.contains(&value.to_lowercase().as_str()) {
        return false;
    }
    let name = plain_name(name);
    // `--password-file`, `--api-key-env`: where it is, not what it is. `--no-password`: nothing follows.
    if ["file", "path", "env", "dir", "name"]
        .iter()
        .any(|end| name.ends_with(&format!("_{end}")))
        || name.starts_with("no_")
    {
        return false;
    }
    let words: Vec<&str> = name.split('_').collect();
    if ALWAYS
        .iter()
        .any(|known| format!("_{name}_").contains(&format!("_{known}_")))
        || words
            .iter()
            .any(|word| ENDS.iter().any(|end| word.ends_with(end)))
    {
        return true;
    }
    match words.as_slice() {
        ["token" | "pat" | "auth"] => true,
        [.., before, "token"] if DOORS.contains(before) => true,
        [_, .., "pwd"] => !value.starts_with('/'),
        [.., "token" | "key" | "auth" | "pw" | "pass"] => is_random(value),
        _ => false,
    }
}

/// A value that every name for secrets hides.
const RANDOM: &str = "8f14e45fceea167a5a36dedd4bea2543";

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

/// Hides what is a secret by a name within the argument, by its address or by its own form.
fn without_known(argument: &str) -> String {
    let addresses = without_credentials(argument);
    let named = without_named(&addresses);
    without_forms(&without_bearers(&named))
}

/// What a value ends with when nothing quotes it.
fn ends_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | '<' | '>')
}

/// Hides credentials in addresses.
fn without_credentials(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find("://") {
        let (before, address) = rest.split_at(place + 3);
        let end = address.find(ends_value).unwrap_or(address.len());
        let scheme = before[..place]
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '+')
            .next();
        shown += before;
        shown += &address_without_credentials(&address[..end], scheme.unwrap_or_default());
        rest = &address[end..];
    }
    shown + rest
}

/// What follows `scheme://`.
fn address_without_credentials(address: &str, scheme: &str) -> String {
    let (host, tail) = address.split_at(address.find(['/', '?', '#']).unwrap_or(address.len()));
    // A user alone is a name for `ssh`, and a token for `https`.
    let is_web = scheme.ends_with("http") || scheme.ends_with("https");
    let host = match host.rsplit_once('@') {
        Some((user, host)) if user.contains(':') || is_web && !user.is_empty() => format!("{HIDDEN}@{host}"),
        _ => host.to_owned(),
    };
    let Some((path, query)) = tail.split_once('?') else {
        return host + tail;
    };
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, value)) if hides(name, value) || is_signature(name) => {
            format!("{name}={HIDDEN}")
        }
        _ => part.to_owned(),
    });
    format!("{host}{path}?{}", parts.collect::<Vec<_>>().join("&"))
}

fn is_signature(name: &str) -> bool {
    let name = name.to_lowercase();
    ["sig", "signature"].contains(&name.as_str()) || name.starts_with("x-amz-s") && name.ends_with("ature")
}

/// Hides values behind a name and a separator (`NAME=VALUE`, `"NAME": "VALUE"`, `--NAME VALUE`) anywhere in a text.
fn without_named(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(|c: char| matches!(c, '=' | ':' | ',') || c.is_whitespace()) {
        let separator = at + found;
        let length = text[separator..].chars().next().map_or(1, char::len_utf8);
        at = separator + length;
        if let Some(value) = value_after(text, separator, length).filter(|value| value.start >= done) {
            shown += &text[done..value.start];
            shown += HIDDEN;
            done = value.end;
            at = at.max(done);
        }
    }
    shown + &text[done..]
}

/// Where the secret is that follows a separator.
fn value_after(text: &str, separator: usize, length: usize) -> Option<std::ops::Range<usize>> {
    let kind = text[separator..].chars().next()?;
    if kind.is_whitespace() && text[..separator].ends_with(char::is_whitespace) {
        return None;
    }
    let before = text[..separator].trim_end_matches([' ', ']', '\\']);
    let bare = before.trim_end_matches(['"', '\'']);
    let is_quoted = bare.len() < before.len();
    let bare = bare.trim_end_matches('\\');
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    let start = bare.rfind(|c| !is_part(c)).map_or(0, |place| {
        place + bare[place..].chars().next().map_or(1, char::len_utf8)
    });
    let asks = |name: &&str| is_name(name) && hides(name, RANDOM);
    let name = bare.get(start..).filter(asks)?;
    let after = &text[separator + length..];
    let trimmed = after.trim_start_matches([' ', '\t']);
    let spaces = after.len() - trimmed.len();
    let (quote, inside) = opened(trimmed);
    match kind {
        ':' if after.starts_with("//") || after.starts_with(':') => return None,
        // `setdefault("NAME", "VALUE")`
        ',' if !is_quoted || quote.is_none() => return None,
        '=' | ':' | ',' => {}
        _ if is_quoted || !name.starts_with('-') || inside.starts_with("--") => return None,
        _ => {}
    }
    let from = separator + length + spaces + (trimmed.len() - inside.len());
    let is_header = kind == ':' && HEADERS.contains(&plain_name(name).as_str());
    let end = |c: char| match quote {
        Some(quote) => c == quote,
        None if is_header => matches!(c, '"' | '\'' | '\n'),
        None if kind == ':' => ends_value(c) || matches!(c, ',' | '}' | ')' | ']' | '&'),
        None => ends_value(c) || c == '&',
    };
    let value = &inside[..inside.find(end).unwrap_or(inside.len())];
    let value = value.strip_suffix('\\').unwrap_or(value);
    if !hides(name, value) {
        return None;
    }
    // `Bearer X`: the kind of a secret is none.
    let intro = ["bearer ", "basic ", "token ", "digest "]
        .iter()
        .find(|intro| {
            value
                .get(..intro.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(intro))
        })
        .map_or(0, |intro| intro.len());
    (value.len() > intro).then_some(from + intro..from + value.len())
}

/// The quote that a text begins with, which may be escaped, and what is inside.
fn opened(text: &str) -> (Option<char>, &str) {
    let bare = text.trim_start_matches('\\');
    match bare.chars().next() {
        Some(quote @ ('"' | '\'')) => (Some(quote), &bare[1..]),
        _ => (None, text),
    }
}

/// Hides what follows `Bearer`.
fn without_bearers(text: &str) -> String {
    const INTRO: &str = "bearer ";
    let lower = text.to_ascii_lowercase();
    let (mut shown, mut done) = (String::with_capacity(text.len()), 0);
    for (place, _) in lower.match_indices(INTRO) {
        let start = place + INTRO.len();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        let value = &text[start..];
        let length = value.find(|c| !is_part(c)).unwrap_or(value.len());
        if start >= done && length >= 8 {
            shown += &text[done..start];
            shown += HIDDEN;
            done = start + length;
        }
    }
    shown + &text[done..]
}

/// Hides values that show what they are.
fn without_forms(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let known = |word: &str| {
        FORMS
            .iter()
            .any(|form| word.starts_with(form) && word.len() >= form.len() + 12)
    };
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(is_part) {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        shown += before;
        // A part of a path or a file name is no secret.
        let is_path = before.ends_with(['/', '.']) || word[end..].starts_with(['/', '.']);
        let is_secret = known(&word[..end]) && (!is_path || word.starts_with("eyJ"));
        shown += if is_secret { HIDDEN } else { &word[..end] };
        rest = &word[end..];
    }
    shown + rest
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
            (
                "git+https://ghp_x@host/a ssh://git@host/b",
                "git+https://***@host/a ssh://git@host/b",
            ),
            (
                "--clientSecret x --accessToken y",
                "--clientSecret *** --accessToken ***",
            ),
            ("--aws-secret-access-key x", "--aws-secret-access-key ***"),
        ] {
            let words: Vec<&str> = given.split(' ').collect();
            assert_eq!(redact(&words).join(" "), shown);
        }
        for (given, shown) in [
            ("Authorization: Bearer abcdefghij", "Authorization: Bearer ***"),
            ("Cookie: a=b; session=c", "Cookie: ***"),
            (
                r#"curl -H "Authorization: Bearer abc def" https://h/a -d x"#,
                r#"curl -H "Authorization: Bearer ***" https://h/a -d x"#,
            ),
            (
                r#"bash -c "curl -H \"X-Api-Key: abc\" https://h""#,
                r#"bash -c "curl -H \"X-Api-Key: ***\" https://h""#,
            ),
            (
                "export WANDB_API_KEY=abc,def; python train.py --password 'a b' --lr 1",
                "export WANDB_API_KEY=***; python train.py --password '***' --lr 1",
            ),
            (
                r#"import os; os.environ["HF_TOKEN"] = "abc"; os.environ.setdefault('DB_PASSWORD', 'd')"#,
                r#"import os; os.environ["HF_TOKEN"] = "***"; os.environ.setdefault('DB_PASSWORD', '***')"#,
            ),
            (
                r#"{"lr": 0.1, "apiKey": "abc", "db": {"password": "x"}}"#,
                r#"{"lr": 0.1, "apiKey": "***", "db": {"password": "***"}}"#,
            ),
            (
                r#"{"command": ["python", "a.py", "--api-key", "abc", "--lr", "1"]}"#,
                r#"{"command": ["python", "a.py", "--api-key", "***", "--lr", "1"]}"#,
            ),
            ("db={user:me,password:x}", "db={user:me,password:***}"),
            (
                "git clone https://ghp_abcdefghijklmnop@github.com/a/b && cd b",
                "git clone https://***@github.com/a/b && cd b",
            ),
            (
                "wandb login ghp_abcdefghijklmnopqr; echo",
                "wandb login ***; echo",
            ),
            ("PGPASSWORD=abc psql", "PGPASSWORD=***"),
        ] {
            assert_eq!(redact(&[given])[0], shown);
        }
        for (given, shown) in [
            (["--api-key", "X=="], "***"),
            (["--token", "-x=y"], "***"),
            (["-u", "me:pw"], "me:***"),
            (["--header", "token: abc"], "token: ***"),
        ] {
            assert_eq!(redact(&given)[1], shown);
        }
        assert_eq!(redact(&["/usr/bin/sshpass", "-p", "pw", "ssh"])[2], "***");
    }

    #[test]
    fn what_training_programs_are_given_is_not_touched() {
        for plain in [
            "sh -c 'for i in 1 2; do python train.py --lr $i, key: value; done'",
            "python train.py --lr 0.1 --max-tokens 4096 --pad-token <pad> --tokenizer gpt2",
            "--token-dropout 0.1 --eos_token </s> --num_tokens=123456789012345678",
            "--sort-key length --key name --monkey 3 --keyboard --author me",
            "--password-file /run/secrets/db --api-key-env WANDB_API_KEY",
            "https://example.com/a/b?c=d&key=name git@github.com:a/b.git",
            "model=resnet50 data=s3://bucket/path/train-0001.parquet --auth-free",
            "torchrun --nproc_per_node 2 --master_addr localhost:29500 train.py",
            "--password --lr 1",
            "-c import(torch);x=1",
            "--api-key $WANDB_API_KEY --use-auth-token true --no-password train.py -u train.py",
            "docker run --user 1000:1000 image --mode a:b:c",
            "hf_hub_download.py sk-learn-experiments/run.py model=hf_internal_testing/tiny-random",
        ] {
            let words: Vec<&str> = plain.split(' ').collect();
            assert_eq!(redact(&words).join(" "), plain);
        }
    }
}
