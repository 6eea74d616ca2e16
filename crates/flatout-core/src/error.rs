//! Errors that state what happened, in both languages, and what to do next.
//!
//! A library has its own error enum and implements [`Explain`] for it; [`explained!`](crate::explained) derives `Display` and
//! `Error` from that. The command line catches everything as a [`Failure`], prints the chain and the hint.

use crate::{Language, Message};
use std::io::ErrorKind;

/// An error that can be shown to a person.
pub trait Explain: std::fmt::Debug + Send + Sync + 'static {
    /// What happened, naming the file, line and value; without the cause, which is [`Explain::cause`].
    fn message(&self) -> Message;

    /// The next thing to type or to look at.
    fn hint(&self) -> Option<Message> {
        None
    }

    /// The error below this one.
    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}

/// `explained!(ReadError);` gives a type that implements [`Explain`] its `Display` (English) and `Error`.
#[macro_export]
macro_rules! explained {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::Explain::message(self).en)
            }
        }
        impl std::error::Error for $type {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                $crate::Explain::cause(self)
            }
        }
    };
}

/// Any error on its way to the person: the message of the library that failed, its causes, its hint.
#[derive(Debug)]
pub struct Failure {
    message: Message,
    causes: Vec<String>,
    hint: Option<Message>,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(message: Message) -> Self {
        Self {
            message,
            causes: Vec::new(),
            hint: None,
        }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: Message) -> Self {
        self.hint = Some(hint);
        self
    }

    #[must_use]
    pub fn caused_by(mut self, cause: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(cause);
        while let Some(error) = next {
            self.causes.push(error.to_string());
            next = error.source();
        }
        self
    }

    pub fn message(&self) -> &Message {
        &self.message
    }

    pub fn hint(&self) -> Option<&Message> {
        self.hint.as_ref()
    }

    /// The message and its causes, without the hint.
    pub fn on_one_line(&self, language: Language) -> String {
        let colon = match language {
            Language::English => ": ",
            Language::Chinese => "：",
        };
        self.causes
            .iter()
            .fold(self.message.get(language).to_owned(), |text, cause| {
                text + colon + cause
            })
    }

    /// `error: …`, one `caused by: …` a cause, then `hint: …`.
    pub fn render(&self, language: Language) -> String {
        let (error, caused, hint) = match language {
            Language::English => ("error: ", "  caused by: ", "hint: "),
            Language::Chinese => ("错误：", "  原因：", "提示："),
        };
        let mut text = format!("{error}{}\n", self.message.get(language));
        for cause in &self.causes {
            text += &format!("{caused}{cause}\n");
        }
        if let Some(message) = &self.hint {
            text += &format!("{hint}{}\n", message.get(language));
        }
        text
    }
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut failure = Self::new(error.message());
        failure.hint = error.hint();
        match error.cause() {
            Some(cause) => failure.caused_by(cause),
            None => failure,
        }
    }
}

/// A failed operation on one file: the error most parts need first.
#[derive(Debug)]
pub struct FileError {
    pub doing: Message,
    pub path: std::path::PathBuf,
    pub source: std::io::Error,
}

impl FileError {
    pub fn reading(path: impl Into<std::path::PathBuf>, source: std::io::Error) -> Self {
        Self {
            doing: crate::message!(en: "read", zh: "读取"),
            path: path.into(),
            source,
        }
    }

    pub fn writing(path: impl Into<std::path::PathBuf>, source: std::io::Error) -> Self {
        Self {
            doing: crate::message!(en: "write", zh: "写入"),
            path: path.into(),
            source,
        }
    }
}

impl FileError {
    pub fn deleting(path: impl Into<std::path::PathBuf>, source: std::io::Error) -> Self {
        Self {
            doing: crate::message!(en: "delete", zh: "删除"),
            path: path.into(),
            source,
        }
    }
}

impl Explain for FileError {
    fn message(&self) -> Message {
        let path = self.path.display();
        Message {
            en: format!("failed to {} `{path}`", self.doing.en),
            zh: format!("无法{} `{path}`", self.doing.zh),
        }
    }

    fn hint(&self) -> Option<Message> {
        let full = matches!(
            self.source.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        );
        full.then(|| {
            crate::message!(
                en: "no space left: free some (df -h, ulimit -f), or write elsewhere",
                zh: "空间不足：请释放空间（df -h、ulimit -f），或写到其他位置"
            )
        })
    }

    fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
explained!(FileError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_prints_chain_and_hint() {
        let io = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
        let failure = Failure::from(FileError::reading("prices.csv", io))
            .with_hint(crate::message!(en: "list the contents of the folder", zh: "列出该目录"));
        assert_eq!(
            failure.render(Language::English),
            "error: failed to read `prices.csv`\n  caused by: no such file\nhint: list the contents of the folder\n"
        );
        assert!(
            failure
                .render(Language::Chinese)
                .starts_with("错误：无法读取 `prices.csv`")
        );
    }
}
