//! What the rules on loaders share.

use crate::project::{Code, ModuleId, Project};

/// Every call that builds a DataLoader of PyTorch (or of a library that wraps it under the same arguments).
pub fn loader_calls(project: &Project, module: ModuleId) -> impl Iterator<Item = Code<'_>> {
    project.torch_calls(module).filter(|call| {
        call.calls_one_of(&[
            "torch.utils.data.DataLoader",
            "torch.utils.data.dataloader.DataLoader",
            "torch_geometric.loader.DataLoader",
        ])
    })
}
