//! `flatout serve [FOLDER…]`

use crate::context::Context;
use crate::linted;
use clap::Args;
use flatout_core::interrupt::Interrupt;
use flatout_core::{Message, Result, message};
use flatout_record as record;
use flatout_report::serve::{DEFAULT_ADDRESS, Options, ServeError, Server, Token};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "Examples:
  flatout serve                                  the runs of this project, at http://127.0.0.1:8600/
  flatout serve out /scratch/me/runs             the runs in these folders
  flatout serve --listen 9000                    another port of this machine
  flatout serve --token                          also require a token on this machine
  flatout serve --listen 0.0.0.0:8600            for other machines, with a token";

#[derive(Args)]
pub struct Arguments {
    /// Folders of runs, or projects with .flatout/runs [default: $FLATOUT_HOME/runs, else ./.flatout/runs]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Address to listen on; a port alone means this machine only
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS)]
    listen: String,
    /// Require this token, or a new one; always on for addresses other than loopback
    #[arg(long, value_name = "TOKEN", num_args = 0..=1, default_missing_value = "")]
    token: Option<String>,
}

pub fn about() -> Message {
    message!(en: "Show and compare all runs in the browser, live", zh: "在浏览器中实时查看所有运行并进行对比")
}

pub fn run(arguments: Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(folder) = arguments.folders.iter().find(|folder| !folder.is_dir()) {
        return Err(ServeError::NoFolder {
            folder: folder.clone(),
        }
        .into());
    }
    // The first run of a project makes its folder; until then the page waits.
    let folders = match arguments.folders.is_empty() {
        true => vec![record::runs_folder()],
        false => arguments.folders,
    };
    // The environment hides a token from others that list this machine's processes.
    let from_environment = std::env::var("FLATOUT_TOKEN")
        .ok()
        .filter(|token| !token.is_empty());
    let token = match (arguments.token, from_environment) {
        (Some(token), _) if !token.is_empty() => Token::Given(token),
        (_, Some(token)) => Token::Given(token),
        (Some(_), None) => Token::Made,
        (None, None) => Token::IfNeeded,
    };
    let server = Server::start(Options {
        folders,
        listen: arguments.listen,
        token,
        language: context.language,
        annotate: linted::annotate,
    })?;
    let interrupt = Interrupt::catch();
    let (count, link) = (server.runs(), server.link());
    eprintln!(
        "{}",
        context.say(&message!(en: "{count} runs at {link}\npress Ctrl-C to stop", zh: "{count} 个运行：{link}\n按 Ctrl-C 结束"))
    );
    if !server.address().ip().is_loopback() {
        let address = server.address();
        let warning = message!(
            en: "listening on {address}: anyone with the link can read these runs, and the connection is not \
            encrypted.\nhint: a tunnel from your own computer is safer: ssh -L 8600:127.0.0.1:8600 HOST",
            zh: "正在监听 {address}：拿到链接的人都能查看这些运行，且连接未加密。\n提示：从自己的电脑访问时，用隧道更安全：ssh -L 8600:127.0.0.1:8600 HOST"
        );
        eprintln!("{}", context.say(&warning));
    }
    while !interrupt.wait(Duration::from_secs(3600)) {}
    Ok(ExitCode::SUCCESS)
}
