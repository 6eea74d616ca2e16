//! A small HTTP server for the page: a thread a connection, at most a few at a time, with limits on time and size, so that
//! no client can hold up the sampling or fill the memory.

use super::{Snapshot, page};
use flatout_core::{Explain, Message, explained, message};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9400";
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_CONNECTIONS: usize = 16;
const MOST_REQUEST_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub enum PrometheusError {
    Address { text: String },
    Bind { address: String, source: io::Error },
}

impl Explain for PrometheusError {
    fn message(&self) -> Message {
        match self {
            Self::Address { text } => {
                message!(en: "`{text}` is not a valid listen address", zh: "`{text}` 不是有效的监听地址")
            }
            Self::Bind { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
                message!(en: "the address {address} is already in use", zh: "地址 {address} 已被占用")
            }
            Self::Bind { address, .. } => {
                message!(en: "cannot listen on {address}", zh: "无法监听 {address}")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::Address { .. } => {
                message!(en: "give a host and a port: --prometheus {DEFAULT_ADDRESS}", zh: "请给出主机和端口：--prometheus {DEFAULT_ADDRESS}")
            }
            Self::Bind { .. } => {
                message!(en: "choose another port: --prometheus 127.0.0.1:9401", zh: "请换一个端口：--prometheus 127.0.0.1:9401")
            }
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { source, .. } => Some(source),
            Self::Address { .. } => None,
        }
    }
}
explained!(PrometheusError);

struct Shared {
    snapshot: Mutex<(Snapshot, Option<Instant>)>,
    connections: AtomicUsize,
    closed: AtomicBool,
}

pub struct PrometheusServer {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl PrometheusServer {
    /// Listens on `HOST:PORT`; a port alone (`9400`, `:9400`) means loopback.
    pub fn start(text: &str) -> Result<Self, PrometheusError> {
        let bind = |source| PrometheusError::Bind {
            address: text.to_owned(),
            source,
        };
        let listener = TcpListener::bind(parse(text)?.as_slice()).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let shared = Arc::new(Shared {
            snapshot: Mutex::default(),
            connections: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        thread("prometheus", move || accept(&listener, &theirs)).map_err(bind)?;
        Ok(Self { shared, address })
    }

    /// Where it really listens, the port chosen by the system for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows this from now on.
    pub fn publish(&self, snapshot: Snapshot) {
        let mut shown = self
            .shared
            .snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *shown = (snapshot, Some(Instant::now()));
    }
}

impl Drop for PrometheusServer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let _ = TcpStream::connect_timeout(&own, Duration::from_millis(200));
    }
}

fn parse(text: &str) -> Result<Vec<SocketAddr>, PrometheusError> {
    let wrong = || PrometheusError::Address {
        text: text.to_owned(),
    };
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]);
    }
    let addresses: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| wrong())?.collect();
    if addresses.is_empty() {
        Err(wrong())
    } else {
        Ok(addresses)
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(format!("flatout-{name}"));
    builder.stack_size(256 << 10).spawn(body).map(drop)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of file descriptors: the next attempt may do better, but not at once.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if shared.connections.fetch_add(1, Ordering::SeqCst) >= MOST_CONNECTIONS {
            shared.connections.fetch_sub(1, Ordering::SeqCst);
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let _ = respond(stream, "503 Service Unavailable", "text/plain", "busy\n", true);
            continue;
        }
        let theirs = Arc::clone(shared);
        let served = thread("scrape", move || {
            if let Err(error) = serve(stream, &theirs) {
                log::debug!("a client of the Prometheus page: {error}");
            }
            theirs.connections.fetch_sub(1, Ordering::SeqCst);
        });
        if served.is_err() {
            shared.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = read_request(&mut stream)?;
    let mut words = request.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or(b""), words.next().unwrap_or(b""));
    let path = target.split(|byte| *byte == b'?').next().unwrap_or(b"");
    let body = match method {
        b"GET" => true,
        b"HEAD" => false,
        _ => return respond(stream, "405 Method Not Allowed", "text/plain", "only GET\n", true),
    };
    match path {
        b"/metrics" => {
            let text = {
                let shown = shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
                // Before the first sample the page is there, and empty.
                shown.1.map(|_| page(&shown.0)).unwrap_or_default()
            };
            respond(
                stream,
                "200 OK",
                "text/plain; version=0.0.4; charset=utf-8",
                &text,
                body,
            )
        }
        b"/" => {
            let text = "<!doctype html><title>flatout</title><a href=\"/metrics\">metrics</a>\n";
            respond(stream, "200 OK", "text/html; charset=utf-8", text, body)
        }
        _ => respond(stream, "404 Not Found", "text/plain", "see /metrics\n", body),
    }
}

/// The request's head; what follows the empty line is of no interest. A client that is too slow or says too much is left.
fn read_request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    let mut chunk = [0u8; 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > MOST_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut chunk)?;
        request.extend_from_slice(&chunk[..read]);
        if read == 0 || request.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(request);
        }
    }
}

fn respond(mut stream: TcpStream, status: &str, kind: &str, text: &str, body: bool) -> io::Result<()> {
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if body {
        stream.write_all(text.as_bytes())?;
    }
    stream.flush()
}
