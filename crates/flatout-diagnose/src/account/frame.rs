//! One frame of a Python stack: `function (file:line)`.

use crate::analysis::stacks::is_library;
use flatout_core::Place;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
    users: bool,
}

impl Frame {
    pub fn parse(text: &str) -> Option<Self> {
        let (function, rest) = text.rsplit_once(" (")?;
        let (file, line) = rest.strip_suffix(')')?.rsplit_once(':')?;
        // What an installer wrote (`bin/accelerate`, `bin/torchrun`).
        let installed = |(folder, name): (&str, &str)| folder.ends_with("/bin") && !name.contains('.');
        let users = !is_library(text) && !file.rsplit_once('/').is_some_and(installed);
        Some(Self {
            function: function.to_owned(),
            file: file.to_owned(),
            line: line.parse().ok()?,
            users,
        })
    }

    /// The user's own code: neither the standard library nor an installed package.
    pub fn is_users(&self) -> bool {
        self.users
    }

    pub fn place(&self) -> Place {
        Place::new(self.file.clone(), self.line)
    }

    /// The package a library frame belongs to: `torch`, `numpy`, `json` for the standard library's.
    pub fn package(&self) -> Option<&str> {
        if self.users {
            return None;
        }
        let after = |mark: &str| self.file.split_once(mark).map(|(_, rest)| rest);
        let rest = after("site-packages/")
            .or_else(|| after("dist-packages/"))
            .or_else(|| {
                // `…/lib/python3.12/json/encoder.py`
                let (_, rest) = self.file.split_once("/lib/python")?;
                rest.split_once('/').map(|(_, rest)| rest)
            })?;
        let first = rest.split('/').next()?;
        Some(first.strip_suffix(".py").unwrap_or(first))
    }

    /// `torch.load`, `json.dumps`: package and function.
    pub fn qualified(&self) -> String {
        match self.package() {
            Some(package) if !self.function.starts_with('<') => format!("{package}.{}", self.function),
            Some(package) => package.to_owned(),
            None => self.function.clone(),
        }
    }

    /// The class whose method a library frame runs (`ColorJitter` of `ColorJitter.forward`); interpreters before 3.11 do not name it.
    /// torch's own classes are the machinery of every program.
    pub fn library_class(&self) -> Option<&str> {
        let (class, _) = self.function.split_once('.')?;
        let named = class.starts_with(|first: char| first.is_ascii_uppercase());
        (named && self.package().is_some_and(|package| package != "torch")).then_some(class)
    }

    /// The call of torch's autograd engine.
    pub fn is_backward(&self) -> bool {
        self.in_file("torch/autograd/__init__.py") || self.in_file("torch/autograd/graph.py")
    }

    /// The call of a module of torch.
    pub fn is_module_call(&self) -> bool {
        self.in_file("torch/nn/modules/module.py") && self.function.ends_with("_call_impl")
    }

    /// Whether the file's path ends so.
    pub fn in_file(&self, end: &str) -> bool {
        self.file.ends_with(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_whose_code_it_is() {
        let own = Frame::parse("train (/home/me/train.py:12)").unwrap();
        assert!(own.is_users() && own.line == 12 && own.package().is_none());
        let load = Frame::parse("load (/v/lib/python3.11/site-packages/torch/serialization.py:3)").unwrap();
        assert!(!load.is_users());
        assert_eq!(load.qualified(), "torch.load");
        let json = Frame::parse("dumps (/usr/lib/python3.12/json/__init__.py:9)").unwrap();
        assert_eq!(json.qualified(), "json.dumps");
        let queue = Frame::parse("get (/usr/lib/python3.12/queue.py:9)").unwrap();
        assert_eq!(queue.package(), Some("queue"));
        assert!(!Frame::parse("main (/v/bin/torchrun:8)").unwrap().is_users());
        assert!(Frame::parse("nonsense").is_none());
        assert!(Frame::parse("f (a.py:x)").is_none());
    }
}
