//! Which epoch a line speaks of: `Epoch 3/30`, `epoch=3`, `Epoch: [3][100/500]`, `'epoch': 3.0`, `第 3 轮`, `轮次 3/30`.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mention {
    pub number: Option<u64>,
    pub planned: Option<u64>,
    /// The line tells of a step within the epoch.
    pub is_step: bool,
    /// As ImageNet's example writes it: its `Time` is a step's.
    pub is_bracketed: bool,
}

/// Signs between the word and its number.
const MOST_SIGNS: usize = 6;

/// `may_be_step`: a word that counts steps stands somewhere in the line.
pub fn mention(line: &[u8], may_be_step: bool) -> Option<Mention> {
    let (before, after) = word(line)?;
    let words = super::duration::words_before::<1>(line, before);
    let other: [&[u8]; 6] = [b"best", b"per", b"from", b"resume", b"previous", b"every"];
    if other.iter().any(|word| words[0].eq_ignore_ascii_case(word)) {
        return Some(Mention::default());
    }
    let rest = &line[after..];
    let signs = rest
        .iter()
        .take(MOST_SIGNS)
        .take_while(|byte| b" :=#[(|'\"\t".contains(byte))
        .count();
    let Some((number, end)) = number(rest, signs) else {
        return Some(chinese_before(line, before, may_be_step));
    };
    let mut mention = Mention {
        number: Some(number),
        ..Mention::default()
    };
    let mut end = end;
    // `1.0` is the epoch's end, `0.52` the middle of one.
    if rest.get(end) == Some(&b'.') {
        let fraction = rest[end + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        mention.is_step = rest[end + 1..end + 1 + fraction].iter().any(|byte| *byte != b'0');
        end += 1 + fraction;
    }
    let blanks = rest[end..].iter().take_while(|byte| **byte == b' ').count();
    if rest.get(end + blanks) == Some(&b'/') {
        let behind = end + blanks + 1;
        let gap = rest[behind..].iter().take_while(|byte| **byte == b' ').count();
        if let Some((planned, stop)) = self::number(rest, behind + gap) {
            mention.planned = Some(planned);
            end = stop;
        }
    }
    mention.is_bracketed = rest[end..].starts_with(b"][");
    mention.is_step |= mention.is_bracketed || counts_steps(&rest[end..], may_be_step);
    Some(mention)
}

/// Where the word stands: its beginning, and what is behind it.
fn word(line: &[u8]) -> Option<(usize, usize)> {
    // The first letter is common, the one behind it is not.
    for at in memchr::memchr2_iter(b'p', b'P', line) {
        let start = at.checked_sub(1);
        let spelled = |start: &usize| {
            line.get(*start..at + 4)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"epoch"))
        };
        if let Some(start) = start.filter(spelled) {
            return Some((start, at + 4));
        }
    }
    let chinese = "轮".as_bytes();
    let at = memchr::memmem::find(line, chinese)?;
    let after = at + chinese.len();
    let ordinal = "次".as_bytes();
    let more = if line[after..].starts_with(ordinal) {
        ordinal.len()
    } else {
        0
    };
    Some((at, after + more))
}

/// `第 3 轮`: the number stands before.
fn chinese_before(line: &[u8], at: usize, may_be_step: bool) -> Mention {
    if !line[at..].starts_with("轮".as_bytes()) {
        return Mention::default();
    }
    let text = line[..at].trim_ascii_end();
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let number = self::number(text, text.len() - digits).map(|(number, _)| number);
    Mention {
        number,
        is_step: counts_steps(&line[at..], may_be_step),
        ..Mention::default()
    }
}

fn number(text: &[u8], from: usize) -> Option<(u64, usize)> {
    let rest = text.get(from..)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let value = rest[..digits]
        .iter()
        .fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
    Some((value, from + digits))
}

/// Whether the rest of a line counts steps: `step 100`, `Batch 10/500`, `iter: 200`, `[100/500]`.
fn counts_steps(rest: &[u8], may_be_step: bool) -> bool {
    memchr::memchr_iter(b'[', rest).any(|at| fraction(&rest[at + 1..])) || may_be_step && names_step(rest)
}

fn names_step(rest: &[u8]) -> bool {
    rest.iter().enumerate().any(|(at, byte)| {
        let word: &[u8] = match byte {
            b's' | b'S' => b"step",
            b'b' | b'B' => b"batch",
            b'i' | b'I' => b"iter",
            _ => return false,
        };
        let text = &rest[at..];
        text.len() > word.len()
            && text[..word.len()].eq_ignore_ascii_case(word)
            && text[word.len()..].iter().take(5).any(u8::is_ascii_digit)
    })
}

/// ` 100/500`.
fn fraction(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && text.get(digits) == Some(&b'/') && text.get(digits + 1).is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(line: &str) -> (Option<u64>, Option<u64>, bool) {
        let mention = mention(line.as_bytes(), true).unwrap_or_default();
        (mention.number, mention.planned, mention.is_step)
    }

    #[test]
    fn epochs_in_many_dresses() {
        assert_eq!(said("Epoch 3/30 - loss 0.1"), (Some(3), Some(30), false));
        assert_eq!(said("Epoch [3 / 30], Loss"), (Some(3), Some(30), false));
        assert_eq!(said("| end of epoch   3 | time: 93.41s"), (Some(3), None, false));
        assert_eq!(said("epoch=3-step=100"), (Some(3), None, true));
        assert_eq!(said("Epoch: [3][100/500] Time 0.1"), (Some(3), None, true));
        assert_eq!(
            said("{'eval_runtime': 1.2, 'epoch': 3.0}"),
            (Some(3), None, false)
        );
        assert_eq!(said("{'loss': 1.2, 'epoch': 0.52}"), (Some(0), None, true));
        assert_eq!(said("第 3 轮 耗时 25 秒"), (Some(3), None, false));
        assert_eq!(said("轮次 3/30"), (Some(3), Some(30), false));
        assert_eq!(said("Epoch 3 | Batch 10/500 | time 0.1"), (Some(3), None, true));
        assert_eq!(said("best epoch: 7"), (None, None, false));
        assert_eq!(said("epoch_time: 25"), (None, None, false));
        assert_eq!(mention(b"loss 0.1", true), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_fine(head in prop::collection::vec(any::<u8>(), 0..40), tail in prop::collection::vec(any::<u8>(), 0..40), chinese: bool) {
            let word = if chinese { "轮".as_bytes() } else { b"Epoch" };
            let _ = mention(&[&head[..], word, &tail].concat(), true);
        }
    }
}
