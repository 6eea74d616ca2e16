//! Sections of the configuration that are handed on as a whole: `**config["train"]`, `build(cfg.model)`, `for key in config`. Whoever gets
//! them may read any key.

use crate::project::{Code, ModuleId, Project};
use crate::python::{Kind, NodeId};

/// The paths of such sections in one module; the empty path is the whole configuration.
pub(super) fn sections(project: &Project, module: ModuleId) -> Vec<Vec<String>> {
    let nodes = project.code(module, NodeId(0)).subtree();
    nodes
        .filter(|code| {
            matches!(
                code.kind(),
                Kind::Name | Kind::Attribute { .. } | Kind::Subscript { .. } | Kind::Call { .. }
            )
        })
        .filter(|code| code.is_used_whole())
        .filter_map(Code::config_path)
        .collect()
}

impl Code<'_> {
    fn is_used_whole(self) -> bool {
        let Some(parent) = self.parent() else { return false };
        match parent.kind() {
            Kind::Call { function, .. } => {
                *function != self.id && parent.target().is_none() && !parent.only_looks_at_it()
            }
            Kind::For { iterator, .. } => *iterator == self.id,
            Kind::Dict(items) => items
                .iter()
                .any(|(key, value)| key.is_none() && *value == self.id),
            Kind::Starred(_) => true,
            Kind::Attribute { name, .. } => {
                matches!(
                    self.slice(*name),
                    "items" | "values" | "keys" | "update" | "__dict__" | "copy"
                )
            }
            _ => false,
        }
    }

    /// `getattr(config, "key")`, `print(config)`, `logger.info(config)`: no use of every key.
    fn only_looks_at_it(self) -> bool {
        const HARMLESS: [&str; 8] = [
            "getattr",
            "hasattr",
            "print",
            "isinstance",
            "len",
            "type",
            "id",
            "repr",
        ];
        let harmless = self
            .callee()
            .and_then(Code::as_name)
            .is_some_and(|name| HARMLESS.contains(&name));
        let logged = self.method_call().is_some_and(|(_, method)| {
            matches!(
                method,
                "info" | "debug" | "warning" | "dump" | "save" | "append" | "log_hyperparams"
            )
        });
        harmless || logged
    }
}
