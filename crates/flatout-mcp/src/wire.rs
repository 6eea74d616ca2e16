//! JSON-RPC 2.0 messages, one per line. A line that is not one becomes an error with a reason, never a panic.

use serde_json::{Map, Value, json};
use std::io::{BufRead, Read};

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// The longest line that is read. Arguments of tools are paths and words: real ones have a few hundred bytes.
pub const LONGEST_LINE_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// One message from the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a request of ours. We send none.
    Response,
    /// With the id where one can be made out, else null.
    Invalid { id: Value, error: RpcError },
}

/// A line of input.
#[derive(Debug, PartialEq)]
pub enum Line {
    Text(Vec<u8>),
    TooLong,
    End,
}

/// Reads up to the next line break. What is too long is skipped without being kept.
pub fn read_line(input: &mut impl BufRead) -> std::io::Result<Line> {
    let mut line = Vec::new();
    let most = LONGEST_LINE_BYTES as u64 + 1;
    let read = input.by_ref().take(most).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(Line::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Line::Text(line));
    }
    if line.len() <= LONGEST_LINE_BYTES {
        return Ok(Line::Text(line));
    }
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(Line::TooLong);
        }
        let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        input.consume(used);
        if ended {
            return Ok(Line::TooLong);
        }
    }
}

pub fn parse(value: Value) -> Incoming {
    let Value::Object(mut message) = value else {
        return invalid(Value::Null, "a message must be a JSON object");
    };
    let id = message.remove("id");
    let answerable = match &id {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.clone(),
        _ => Value::Null,
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(answerable, "`jsonrpc` must be \"2.0\"");
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None if message.contains_key("result") || message.contains_key("error") => return Incoming::Response,
        _ => return invalid(answerable, "`method` must be a string"),
    };
    let params = match message.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return invalid(answerable, "`params` must be an object"),
    };
    match id {
        None => Incoming::Notification { method, params },
        Some(_) if answerable.is_null() => invalid(Value::Null, "`id` must be a string or a number"),
        Some(id) => Incoming::Request { id, method, params },
    }
}

fn invalid(id: Value, why: &str) -> Incoming {
    Incoming::Invalid {
        id,
        error: RpcError::new(INVALID_REQUEST, format!("invalid request: {why}")),
    }
}

pub fn response(id: &Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn code(value: Value) -> i64 {
        match parse(value) {
            Incoming::Invalid { error, .. } => error.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tells_requests_from_notifications_and_responses() {
        let request = parse(json!({"jsonrpc": "2.0", "id": "a", "method": "ping"}));
        assert!(matches!(request, Incoming::Request { .. }));
        let notification = parse(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert!(matches!(notification, Incoming::Notification { .. }));
        let response = parse(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert_eq!(response, Incoming::Response);
    }

    #[test]
    fn names_what_is_wrong_with_a_message() {
        for wrong in [
            json!(3),
            json!({"id": 1, "method": "ping"}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "method": 7}),
            json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}),
        ] {
            assert_eq!(code(wrong.clone()), INVALID_REQUEST, "{wrong}");
        }
    }

    #[test]
    fn skips_a_line_that_is_too_long() {
        let mut input = vec![b'x'; LONGEST_LINE_BYTES + 10];
        input.extend(b"\nnext\nlast");
        let mut input = BufReader::with_capacity(4096, input.as_slice());
        assert_eq!(read_line(&mut input).unwrap(), Line::TooLong);
        assert_eq!(read_line(&mut input).unwrap(), Line::Text(b"next".to_vec()));
        assert_eq!(read_line(&mut input).unwrap(), Line::Text(b"last".to_vec()));
        assert_eq!(read_line(&mut input).unwrap(), Line::End);
    }

    #[test]
    fn reads_a_line_of_exactly_the_longest_length() {
        let mut input = vec![b'x'; LONGEST_LINE_BYTES];
        input.push(b'\n');
        let mut input = BufReader::new(input.as_slice());
        assert!(
            matches!(read_line(&mut input).unwrap(), Line::Text(line) if line.len() == LONGEST_LINE_BYTES)
        );
    }
}
