//! Progress bars: tqdm's `Epoch 3: 100%|████| 1000/1000 [00:25<00:00, 39.8it/s]` and Keras' `1875/1875 [====] - 5s 2ms/step`.

use super::duration;

pub struct Bar<'a> {
    /// What stands before the percentage.
    pub description: &'a [u8],
    /// Only a bar at 100% tells how long the whole took.
    pub elapsed_s: Option<f64>,
}

/// tqdm's bar.
pub fn read(line: &[u8]) -> Option<Bar<'_>> {
    let percent = memchr::memmem::find(line, b"%|")?;
    let digits = line[..percent]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let description = line[..percent - digits].trim_ascii_end();
    let complete = &line[percent - digits..percent] == b"100";
    let elapsed_s = complete.then(|| elapsed(&line[percent + 2..])).flatten();
    Some(Bar {
        description: description.strip_suffix(b":").unwrap_or(description),
        elapsed_s,
    })
}

/// `… [00:25<00:00, …`.
fn elapsed(rest: &[u8]) -> Option<f64> {
    let open = memchr::memchr(b'[', rest)?;
    let found = duration::clock(rest, open + 1)?;
    (rest.get(found.end) == Some(&b'<')).then_some(found.seconds)
}

/// The time of a finished Keras epoch.
pub fn keras(line: &[u8]) -> Option<f64> {
    let line = line.trim_ascii_start();
    let slash = line.iter().position(|byte| !byte.is_ascii_digit())?;
    let (done, rest) = (&line[..slash], line[slash..].strip_prefix(b"/")?);
    let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    if done.is_empty() || &rest[..end] != done {
        return None;
    }
    let found = duration::next(rest, end)?;
    found.has_unit.then_some(found.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finished_progress_bars_give_times() {
        let bar =
            read("Epoch 3: 100%|██████| 1000/1000 [00:25<00:00, 39.8it/s, loss=0.1]".as_bytes()).unwrap();
        assert_eq!((bar.description, bar.elapsed_s), (&b"Epoch 3"[..], Some(25.0)));
        let hours = read("100%|██| 10/10 [1:02:03<00:00,  3s/it]".as_bytes()).unwrap();
        assert_eq!((hours.description, hours.elapsed_s), (&b""[..], Some(3723.0)));
        assert_eq!(
            read("Epoch 3:  45%|██  | 450/1000 [00:12<00:15]".as_bytes())
                .unwrap()
                .elapsed_s,
            None
        );
        assert_eq!(
            keras(b"1875/1875 [==============================] - 5s 2ms/step - loss: 0.2"),
            Some(5.0)
        );
        assert_eq!(
            keras("1875/1875 ━━━━━━━━━━ 5s 2ms/step - loss: 0.2".as_bytes()),
            Some(5.0)
        );
        assert_eq!(keras(b"100/1875 [==>....] - ETA: 5s 2ms/step"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_fine(bytes in prop::collection::vec(any::<u8>(), 0..60), tail in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&[&bytes[..], b"100%|", &tail].concat());
            let _ = keras(&[b"12/12", &tail[..]].concat());
            let _ = keras(&bytes);
        }
    }
}
