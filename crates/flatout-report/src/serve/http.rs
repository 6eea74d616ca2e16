//! As much of HTTP/1.1 as a page for one reader needs: requests without a body, one per connection, with limits on time and size.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A client has this long to send its request, and for each piece of the answer that it takes.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// A comparison of many runs has a long address; nothing else is long.
const MOST_REQUEST_BYTES: usize = 32 << 10;
const MOST_HEADERS: usize = 100;

/// A request's head. The address is decoded; names of headers are in lower case.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether a header is given more than once: two answers to one question are none.
    pub fn repeats(&self, name: &str) -> bool {
        self.headers.iter().filter(|(known, _)| known == name).count() > 1
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.header("cookie")?.split(';');
        let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The first value of a name in the address.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let of_name = self.query.iter().filter(move |(known, _)| known == name);
        of_name.map(|(_, value)| value.as_str())
    }
}

/// `None` for what is not a request that this server understands.
pub fn parse(head: &str) -> Option<Request> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return None;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        if headers.len() == MOST_HEADERS || name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name, true)?, decode(value, true)?))
    });
    Some(Request {
        method: method.to_owned(),
        path: decode(path, false)?,
        query: query.collect::<Option<_>>()?,
        headers,
    })
}

/// Percent signs become what they stand for; `None` where that is not text.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                (high * 16 + low) as u8
            }
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

/// For the part of an address after the question mark.
pub fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}

/// Reads a request's head. `Ok(None)` for a client that sends something else, too much, or too slowly.
pub fn read(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut chunk = [0u8; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > MOST_REQUEST_BYTES {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&chunk[..read]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(std::str::from_utf8(&head).ok().and_then(parse));
        }
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: &'static str,
    pub kind: &'static str,
    pub body: String,
    /// Whole header lines; made by this program only, never from a record.
    pub headers: Vec<String>,
}

impl Response {
    pub fn html(status: &'static str, body: String) -> Self {
        Self {
            status,
            kind: "text/html; charset=utf-8",
            body,
            headers: Vec::new(),
        }
    }

    pub fn json(value: &serde_json::Value) -> Self {
        Self {
            status: "200 OK",
            kind: "application/json",
            body: value.to_string(),
            headers: Vec::new(),
        }
    }

    pub fn plain(status: &'static str, body: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            body: body.to_owned(),
            headers: Vec::new(),
        }
    }

    pub fn with(mut self, header: String) -> Self {
        self.headers.push(header);
        self
    }

    /// Writes it; nothing is kept by the browser, shown inside of another page, or guessed to be of another kind.
    pub fn send(&self, stream: &mut TcpStream, with_body: bool) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
             Content-Security-Policy: frame-ancestors 'none'; object-src 'none'; base-uri 'none'\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        for header in &self.headers {
            head += header;
            head += "\r\n";
        }
        head += "\r\n";
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(head.as_bytes())?;
        if with_body {
            stream.write_all(self.body.as_bytes())?;
        }
        stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn get(target: &str) -> Option<Request> {
        parse(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    #[test]
    fn reads_addresses_headers_and_cookies() {
        let text = "GET /compare?run=a%20b&run=c+d&x HTTP/1.1\r\nHost: localhost:1\r\nCookie: a=1; lang=zh-CN\r\n\r\n";
        let request = parse(text).unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("GET", "/compare")
        );
        assert_eq!(request.values("run").collect::<Vec<_>>(), ["a b", "c d"]);
        assert_eq!(request.value("x"), Some(""));
        assert_eq!(request.header("host"), Some("localhost:1"));
        assert_eq!(request.cookie("lang"), Some("zh-CN"));
        assert_eq!(request.cookie("other"), None);
    }

    #[test]
    fn refuses_what_is_not_a_request() {
        for text in [
            "",
            "GET",
            "GET /",
            "GET / HTTP/2\r\n\r\n",
            "GET http://other/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1 more\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        for target in ["/%zz", "/%f", "/%ff", "/%00", "/a?b=%0d%0aSet-Cookie:x"] {
            assert_eq!(get(target), None, "{target}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in "\\PC*") {
            let request = get(&format!("/?q={}", encode(&text))).unwrap();
            prop_assert_eq!(request.value("q"), Some(text.as_str()));
        }

        #[test]
        fn no_text_breaks_the_parser(text in any::<String>()) {
            let _ = parse(&text);
            let _ = get(&text);
        }
    }
}
