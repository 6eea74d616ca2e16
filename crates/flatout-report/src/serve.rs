//! The pages of `flatout serve`: all runs of a folder in a browser, live. Nothing is written, nothing is loaded from elsewhere, and
//! nobody but this machine is answered without a token.
//!
//! - [`http`]: requests and answers, with limits
//! - [`guard`]: who may read
//! - [`index`]: the runs of the folders
//! - [`digests`]: what is known of a run, read as often as a share of a core allows
//! - [`pulse`]: what a running job does now
//! - [`pages`], [`routes`]: what is shown, and where

mod digests;
mod guard;
mod http;
mod index;
mod pages;
mod pulse;
mod routes;

pub use digests::Annotate;
use flatout_core::{Explain, Language, Message, explained, message};
use guard::{Guard, SHORTEST_TOKEN, new_token};
use routes::Site;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub const DEFAULT_ADDRESS: &str = "127.0.0.1:8600";
const MOST_CONNECTIONS: usize = 32;

#[derive(Debug)]
pub enum ServeError {
    NoFolder { folder: PathBuf },
    Address { text: String },
    Bind { address: String, source: io::Error },
    ShortToken,
    NoRandom { source: io::Error },
}

impl Explain for ServeError {
    fn message(&self) -> Message {
        match self {
            Self::NoFolder { folder } => {
                let folder = folder.display();
                message!(en: "`{folder}` is not a folder", zh: "`{folder}` 不是目录")
            }
            Self::Address { text } => {
                message!(en: "`{text}` is not a valid listen address", zh: "`{text}` 不是有效的监听地址")
            }
            Self::Bind { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
                message!(en: "the address {address} is already in use", zh: "地址 {address} 已被占用")
            }
            Self::Bind { address, .. } => {
                message!(en: "cannot listen on {address}", zh: "无法监听 {address}")
            }
            Self::ShortToken => {
                message!(en: "the token is too easy to guess", zh: "令牌太容易被猜到")
            }
            Self::NoRandom { .. } => {
                message!(en: "no random numbers available for a token", zh: "无法取得生成令牌所需的随机数")
            }
        }
    }

    fn hint(&self) -> Option<Message> {
        Some(match self {
            Self::NoFolder { .. } => {
                message!(en: "give the folder that contains the runs, or omit it to use .flatout/runs", zh: "请给出包含运行记录的目录；省略则使用 .flatout/runs")
            }
            Self::Address { .. } => {
                message!(en: "give a port, or a host and a port: --listen {DEFAULT_ADDRESS}", zh: "请给出端口，或主机和端口：--listen {DEFAULT_ADDRESS}")
            }
            Self::Bind { .. } => {
                message!(en: "choose another port (--listen 8601), or any free one (--listen 0)", zh: "请换一个端口：--listen 8601；或任选空闲端口：--listen 0")
            }
            Self::ShortToken => {
                message!(en: "use at least {SHORTEST_TOKEN} letters and digits, or omit the value to let \
                flatout create a token", zh: "请使用不少于 {SHORTEST_TOKEN} 个字母和数字，或不给值，由 flatout 生成")
            }
            Self::NoRandom { .. } => {
                message!(en: "set your own token in FLATOUT_TOKEN", zh: "请在 FLATOUT_TOKEN 中给出自己的令牌")
            }
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { source, .. } | Self::NoRandom { source } => Some(source),
            _ => None,
        }
    }
}
explained!(ServeError);

/// Whether a token is asked for.
#[derive(Clone, Debug, Default)]
pub enum Token {
    /// Where others than this machine can ask.
    #[default]
    IfNeeded,
    /// Also on loopback: other users of this machine can reach it, too.
    Made,
    Given(String),
}

pub struct Options {
    /// Each a folder of runs, a run, or a project with `.flatout/runs`; one that is not there yet may come.
    pub folders: Vec<PathBuf>,
    /// `HOST:PORT`; a port alone means loopback.
    pub listen: String,
    pub token: Token,
    pub language: Language,
    pub annotate: Annotate,
}

/// A server that runs until the process ends.
pub struct Server {
    site: Arc<Site>,
    address: SocketAddr,
}

impl Server {
    pub fn start(options: Options) -> Result<Self, ServeError> {
        let absolute = |folder: PathBuf| std::path::absolute(&folder).unwrap_or(folder);
        let roots = options.folders.into_iter().map(absolute).collect();
        let bind = |source| ServeError::Bind {
            address: options.listen.clone(),
            source,
        };
        let listener = TcpListener::bind(addresses(&options.listen)?.as_slice()).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let token = match options.token {
            Token::IfNeeded if address.ip().is_loopback() => None,
            Token::IfNeeded | Token::Made => {
                Some(new_token().map_err(|source| ServeError::NoRandom { source })?)
            }
            Token::Given(token) => {
                let plain = token
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
                if token.len() < SHORTEST_TOKEN || !plain {
                    return Err(ServeError::ShortToken);
                }
                Some(token)
            }
        };
        let digests = digests::Digests::new(options.annotate);
        let guard = Guard::new(address, token);
        let site = Arc::new(Site::new(roots, options.language, guard, digests));
        let theirs = Arc::clone(&site);
        thread("headlines", move || {
            be_nice();
            theirs.make_headlines();
        })
        .map_err(bind)?;
        let theirs = Arc::clone(&site);
        thread("serve", move || accept(&listener, &theirs)).map_err(bind)?;
        Ok(Self { site, address })
    }

    /// Where it really listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser, with the token where there is one.
    pub fn link(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        match self.site.guard.token() {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }

    pub fn runs(&self) -> usize {
        self.site.count()
    }
}

fn addresses(text: &str) -> Result<Vec<SocketAddr>, ServeError> {
    let wrong = || ServeError::Address {
        text: text.to_owned(),
    };
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]);
    }
    let addresses: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| wrong())?.collect();
    if addresses.is_empty() {
        return Err(wrong());
    }
    Ok(addresses)
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(format!("flatout-{name}"));
    builder.stack_size(4 << 20).spawn(body).map(drop)
}

/// Headlines of old runs can wait for the training.
fn be_nice() {
    // SAFETY: sets the priority of the calling thread only, and a failure changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

fn accept(listener: &TcpListener, site: &Arc<Site>) {
    let connections = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            // Out of file descriptors: the next attempt may do better, but not at once.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if connections.load(Ordering::SeqCst) >= MOST_CONNECTIONS {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
            let _ = http::Response::plain("503 Service Unavailable", "busy\n").send(&mut stream, true);
            continue;
        }
        let open = Open::new(&connections);
        let theirs = Arc::clone(site);
        let _ = thread("answer", move || {
            let _open = open;
            if let Err(error) = answer(&mut stream, &theirs) {
                log::debug!("a client of the page: {error}");
            }
        });
    }
}

/// Counts a connection, until it is dropped: also where its thread panics.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn answer(stream: &mut TcpStream, site: &Site) -> io::Result<()> {
    let Some(request) = http::read(stream)? else {
        return http::Response::plain("400 Bad Request", "not a request\n").send(stream, true);
    };
    let with_body = request.method != "HEAD";
    let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| site.answer(&request)));
    let response = answered.unwrap_or_else(|_| {
        http::Response::plain("500 Internal Server Error", "this page cannot be shown\n")
    });
    response.send(stream, with_body)
}
