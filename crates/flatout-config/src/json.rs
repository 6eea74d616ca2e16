//! JSON with places. Small, since all it must give is keys, scalars and spans; comments and trailing commas are forgiven.

use crate::{Item, Problem, Value};
use std::ops::Range;

/// Deeper than any configuration; recursion stops here.
const DEEPEST: usize = 64;

pub(crate) fn items(text: &str) -> (Vec<Item>, Option<Problem>) {
    let mut reader = Reader {
        text,
        at: 0,
        items: Vec::new(),
    };
    let result = reader.item(Vec::new(), None, 0).and_then(|()| {
        reader.skip_space();
        if reader.at == text.len() {
            Ok(())
        } else {
            Err("text after the end")
        }
    });
    let error = result.err().map(|what| Problem {
        at: reader.place()..reader.place(),
        text: what.to_owned(),
    });
    (reader.items, error)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    items: Vec<Item>,
}

type Read<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        loop {
            while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
                self.at += 1;
            }
            if !self.text.as_bytes()[self.at..].starts_with(b"//") {
                return;
            }
            while self.peek().is_some_and(|byte| byte != b'\n') {
                self.at += 1;
            }
        }
    }

    /// Where the reader is, between two characters.
    fn place(&self) -> usize {
        let at = self.at.min(self.text.len());
        (0..=at)
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(0)
    }

    /// A value under this path, and what is in it after it.
    fn item(&mut self, path: Vec<String>, key: Option<Range<usize>>, depth: usize) -> Read<()> {
        self.skip_space();
        let (index, start) = (self.items.len(), self.at);
        self.items.push(Item {
            path: path.clone(),
            key,
            value: Value::Null,
            text: String::new(),
            bytes: start..start,
        });
        let (value, text) = match self.peek() {
            _ if depth > DEEPEST => return Err("nested too deep"),
            Some(b'{') => (self.object(&path, depth)?, String::new()),
            Some(b'[') => (self.array(&path, depth)?, String::new()),
            Some(b'"') => {
                let text = self.string()?;
                (Value::Text(text.clone()), text)
            }
            Some(_) => {
                let value = self.word()?;
                (
                    value,
                    self.text.get(start..self.at).unwrap_or_default().to_owned(),
                )
            }
            None => return Err("a value is missing"),
        };
        let item = &mut self.items[index];
        (item.value, item.text, item.bytes) = (value, text, start..self.at);
        Ok(())
    }

    fn object(&mut self, path: &[String], depth: usize) -> Read<Value> {
        self.at += 1;
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'}') => break,
                Some(b',') => self.at += 1,
                Some(b'"') => self.member(path, depth)?,
                _ => return Err("a key in double quotes or `}` was expected"),
            }
        }
        self.at += 1;
        Ok(Value::Mapping)
    }

    fn member(&mut self, path: &[String], depth: usize) -> Read<()> {
        let start = self.at;
        let name = self.string()?;
        let key = start..self.at;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err("`:` was expected");
        }
        self.at += 1;
        let mut path = path.to_vec();
        path.push(name);
        self.item(path, Some(key), depth + 1)
    }

    fn array(&mut self, path: &[String], depth: usize) -> Read<Value> {
        self.at += 1;
        let mut index = 0;
        loop {
            self.skip_space();
            match self.peek() {
                Some(b']') => break,
                Some(b',') => self.at += 1,
                None => return Err("`]` was expected"),
                Some(_) => {
                    let mut path = path.to_vec();
                    path.push(index.to_string());
                    self.item(path, None, depth + 1)?;
                    index += 1;
                }
            }
        }
        self.at += 1;
        Ok(Value::Sequence)
    }

    fn string(&mut self) -> Read<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err("a string is not closed"),
            }
        }
        self.at += 1;
        let literal = self.text.get(start..self.at).unwrap_or("\"\"");
        serde_json::from_str(literal).map_err(|_| "a string is not valid")
    }

    fn word(&mut self) -> Read<Value> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| !b",]}{[: \t\r\n\"".contains(&byte))
        {
            self.at += 1;
        }
        match self.text.get(start..self.at).unwrap_or("") {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            "null" => Ok(Value::Null),
            number => match (number.parse::<i64>(), number.parse::<f64>()) {
                (Ok(value), _) => Ok(Value::Integer(value)),
                (_, Ok(value)) => Ok(Value::Float(value)),
                _ => Err("a value was expected"),
            },
        }
    }
}
