//! Who may read the pages: on loopback whoever asks this machine by its own name, elsewhere who knows the token.

use super::http::{Request, encode};
use std::io::Read;
use std::net::SocketAddr;

/// Characters of a token that a person chose. One that flatout makes has 32.
pub const SHORTEST_TOKEN: usize = 16;

#[derive(Debug)]
pub struct Guard {
    address: SocketAddr,
    token: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// The right token in the address: kept in a cookie, and taken out of the address.
    Redirect {
        cookie: String,
        to: String,
    },
    /// The request asks for another machine: a page elsewhere that had its name point here.
    WrongHost,
    NoToken,
}

impl Guard {
    pub fn new(address: SocketAddr, token: Option<String>) -> Self {
        Self { address, token }
    }

    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub fn admit(&self, request: &Request) -> Admission {
        let Some(token) = &self.token else {
            let host = request.header("host").filter(|_| !request.repeats("host"));
            return match host {
                Some(host) if self.is_own_name(host) => Admission::Granted,
                _ => Admission::WrongHost,
            };
        };
        if let Some(given) = request.value("token") {
            if !same(given, token) {
                return Admission::NoToken;
            }
            return Admission::Redirect {
                cookie: format!("{}={token}; Path=/; HttpOnly; SameSite=Lax", self.cookie_name()),
                to: without_token(request),
            };
        }
        let bearer = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "));
        let given = request.cookie(&self.cookie_name()).or(bearer);
        match given {
            Some(given) if same(given, token) => Admission::Granted,
            _ => Admission::NoToken,
        }
    }

    /// Cookies do not know ports: two servers on one machine have cookies of their own.
    fn cookie_name(&self) -> String {
        format!("flatout-{}", self.address.port())
    }

    /// A tunnel may have another port, so the port does not matter.
    fn is_own_name(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let own = self.address.ip().to_string();
        let name = name.to_ascii_lowercase();
        ["localhost", "127.0.0.1", "[::1]"].contains(&name.as_str())
            || name == own
            || name == format!("[{own}]")
    }
}

/// Takes as long for a wrong token as for the right one.
fn same(given: &str, token: &str) -> bool {
    let differing = given
        .bytes()
        .zip(token.bytes())
        .fold(0, |seen, (a, b)| seen | (a ^ b));
    given.len() == token.len() && differing == 0
}

fn without_token(request: &Request) -> String {
    let rest: Vec<String> = request
        .query
        .iter()
        .filter(|(name, _)| name != "token")
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    // `//host` would lead elsewhere.
    let path = format!("/{}", encode(request.path.trim_start_matches('/')));
    if rest.is_empty() {
        path
    } else {
        format!("{path}?{}", rest.join("&"))
    }
}

/// 128 random bits, in hexadecimal.
pub fn new_token() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::super::http::parse;
    use super::*;

    fn asked(target: &str, headers: &str) -> Request {
        parse(&format!("GET {target} HTTP/1.1\r\n{headers}\r\n\r\n")).unwrap()
    }

    #[test]
    fn loopback_answers_to_its_own_names_only() {
        let guard = Guard::new("127.0.0.1:8600".parse().unwrap(), None);
        for host in [
            "localhost",
            "localhost:9000",
            "127.0.0.1:8600",
            "[::1]:8600",
            "LOCALHOST:1",
        ] {
            let request = asked("/", &format!("Host: {host}\r\n"));
            assert_eq!(guard.admit(&request), Admission::Granted, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8600",
            "localhost.evil.example",
            "10.0.0.1",
            "",
            "127.0.0.1.evil",
        ] {
            let request = asked("/", &format!("Host: {host}\r\n"));
            assert_eq!(guard.admit(&request), Admission::WrongHost, "{host}");
        }
        assert_eq!(guard.admit(&asked("/", "")), Admission::WrongHost);
        let twice = asked("/", "Host: localhost\r\nHost: evil.example\r\n");
        assert_eq!(guard.admit(&twice), Admission::WrongHost);
    }

    #[test]
    fn a_token_is_asked_for_and_leaves_the_address() {
        let token = new_token().unwrap();
        assert_eq!(token.len(), 32);
        assert_ne!(token, new_token().unwrap());
        let guard = Guard::new("0.0.0.0:8600".parse().unwrap(), Some(token.clone()));
        let none = [
            asked("/", "Host: localhost\r\n"),
            asked("/?token=", "Host: a\r\n"),
            asked("/?token=wrong", "Host: a\r\n"),
            asked("/", "Cookie: flatout-8600=wrong\r\n"),
            asked("/", &format!("Cookie: flatout-8601={token}\r\n")),
            asked("/", "Authorization: Bearer wrong\r\n"),
        ];
        for request in &none {
            assert_eq!(guard.admit(request), Admission::NoToken, "{request:?}");
        }
        let cookie = asked("/", &format!("Cookie: a=b; flatout-8600={token}\r\n"));
        assert_eq!(guard.admit(&cookie), Admission::Granted);
        let bearer = asked("/", &format!("Authorization: Bearer {token}\r\n"));
        assert_eq!(guard.admit(&bearer), Admission::Granted);
        let linked = asked(&format!("//evil.example/x?a=b%20c&token={token}"), "Host: a\r\n");
        match guard.admit(&linked) {
            Admission::Redirect { cookie, to } => {
                assert!(cookie.contains("HttpOnly"), "{cookie}");
                assert_eq!(to, "/evil.example/x?a=b%20c");
            }
            other => panic!("{other:?}"),
        }
    }
}
