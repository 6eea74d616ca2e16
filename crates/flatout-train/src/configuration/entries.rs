//! A YAML file as a flat list of its values, each with its path and line. What a value means is not known here.

use crate::TrainError;
use saphyr_parser::{Event, Parser};
use std::path::Path;

/// Reading takes the square of the nesting; no configuration has more levels than this.
const DEEPEST: usize = 200;

/// A value of the file, with its place.
pub struct Entry {
    pub path: Vec<String>,
    pub text: String,
    pub line: usize,
}

/// The file's scalars with their paths; lists are joined by commas.
pub fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, TrainError> {
    enum Frame {
        Mapping { key: Option<String> },
        Sequence { items: Vec<String>, line: usize },
    }
    let (mut stack, mut found): (Vec<Frame>, Vec<Entry>) = (Vec::new(), Vec::new());
    let keys = |stack: &[Frame]| -> Vec<String> {
        let keys = stack.iter().filter_map(|frame| match frame {
            Frame::Mapping { key } => key.clone(),
            Frame::Sequence { .. } => None,
        });
        keys.collect()
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, at) = event.map_err(|error| TrainError::Syntax {
            path: path.to_owned(),
            line: error.marker().line(),
            reason: error.info().to_owned(),
        })?;
        let line = at.start.line();
        if stack.len() > DEEPEST {
            return Err(TrainError::Syntax {
                path: path.to_owned(),
                line,
                reason: format!("nested more than {DEEPEST} levels deep"),
            });
        }
        match event {
            Event::MappingStart(..) => stack.push(Frame::Mapping { key: None }),
            Event::SequenceStart(..) => stack.push(Frame::Sequence {
                items: Vec::new(),
                line,
            }),
            Event::Scalar(value, ..) => match stack.last_mut() {
                Some(Frame::Mapping { key: key @ None }) => *key = Some(value.into_owned()),
                Some(Frame::Sequence { items, .. }) => items.push(value.into_owned()),
                _ => {
                    found.push(Entry {
                        path: keys(&stack),
                        text: value.into_owned(),
                        line,
                    });
                    finish(&mut stack);
                }
            },
            Event::SequenceEnd => {
                if let Some(Frame::Sequence { items, line }) = stack.pop() {
                    found.push(Entry {
                        path: keys(&stack),
                        text: items.join(","),
                        line,
                    });
                }
                finish(&mut stack);
            }
            Event::MappingEnd => {
                stack.pop();
                finish(&mut stack);
            }
            _ => {}
        }
    }
    /// The value of the current key is complete.
    fn finish(stack: &mut [Frame]) {
        if let Some(Frame::Mapping { key }) = stack.last_mut() {
            *key = None;
        }
    }
    Ok(found)
}
