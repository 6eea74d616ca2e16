//! Whether a program ever uses a GPU: most costs that rules name exist only there.

use super::{ModuleId, Project};
use crate::python::{Kind, NodeId};

impl Project {
    /// Whether the program that a module belongs to mentions CUDA in code (comments do not count).
    pub fn uses_cuda(&self, module: ModuleId) -> bool {
        self.program(module).iter().any(|id| {
            *self
                .module(*id)
                .mentions_cuda
                .get_or_init(|| self.mentions_cuda(*id))
        })
    }

    fn mentions_cuda(&self, module: ModuleId) -> bool {
        let text = &self.module(module).source.text;
        if !(text.contains("cuda") || text.contains("gpu") || text.contains("Accelerator")) {
            return false;
        }
        self.code(module, NodeId(0))
            .subtree()
            .any(|code| match code.kind() {
                Kind::Text(text) => &**text == "cuda" || text.starts_with("cuda:") || &**text == "gpu",
                Kind::Attribute { name, .. } => code.slice(*name) == "cuda",
                Kind::Call { .. } => {
                    code.calls_one_of(&["accelerate.Accelerator", "torch.accelerator.current_accelerator"])
                }
                _ => false,
            })
    }
}

impl Project {
    /// Whether any file of the program that a module belongs to contains one of these words, comments included: enough to keep quiet.
    pub fn program_mentions(&self, module: ModuleId, words: &[&str]) -> bool {
        self.program(module).iter().any(|module| {
            let text = &self.module(*module).source.text;
            words.iter().any(|word| text.contains(word))
        })
    }
}
