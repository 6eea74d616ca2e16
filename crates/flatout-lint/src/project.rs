//! A whole project: its Python modules, its configuration files, who imports whom, what every call calls, and which loops
//! are training loops. Built once; rules only read it.

mod code;
mod config_classes;
mod definitions;
mod device;
mod flow;
mod guards;
mod imports;
mod mentions;
mod options;
mod reads;
mod tensors;
mod updates;
mod values;

pub use code::Code;
pub use flow::{Flow, Hot, LoopRole};
pub use options::CommandOption;
pub use reads::{ConfigRead, Use};
pub use values::{Known, Origin, Values};

use crate::config::Document;
use crate::python::{NodeId, Parsed};
use crate::source::Source;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

#[derive(Debug)]
pub struct Module {
    pub source: Source,
    pub parsed: Parsed,
    /// The parts of the path, without `.py` and `__init__`: what imports are matched against.
    pub name: Vec<String>,
    /// For each call of the tree, what it calls as a dotted name: `torch.utils.data.DataLoader`.
    call_names: Vec<Option<Box<str>>>,
    /// For each call of the tree, the function or class of this project that it calls.
    call_targets: Vec<Option<(ModuleId, NodeId)>>,
    mentions_torch: bool,
    /// The calls that run at every step or every evaluated batch.
    hot_calls: OnceLock<Vec<(NodeId, Hot)>>,
    /// Whether this file itself mentions CUDA.
    mentions_cuda: OnceLock<bool>,
    /// The modules of the program it belongs to.
    program: OnceLock<Vec<ModuleId>>,
}

/// A file that could not be read at all.
#[derive(Debug)]
pub struct Unreadable {
    pub path: PathBuf,
    pub why: flatout_core::Message,
}

/// What the user stated about the machine; `None` where nothing was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// CPUs that the training job may use.
    pub cpus: Option<u32>,
    /// Memory of the GPU in GiB.
    pub gpu_memory_gib: Option<u32>,
}

#[derive(Debug, Default)]
pub struct Project {
    pub modules: Vec<Module>,
    pub documents: Vec<Document>,
    pub unreadable: Vec<Unreadable>,
    pub facts: Facts,
    /// Modules by the last part of their name.
    by_name: FxHashMap<String, Vec<ModuleId>>,
    imports: imports::Graph,
    flow: Flow,
    callers: FxHashMap<(ModuleId, NodeId), Vec<(ModuleId, NodeId)>>,
    mentions: OnceLock<mentions::Mentions>,
    reads: OnceLock<reads::Reads>,
    options: OnceLock<Vec<CommandOption>>,
    config_classes: OnceLock<Vec<config_classes::ConfigClasses>>,
}

impl Project {
    pub fn new(
        files: Vec<(Source, Parsed)>,
        documents: Vec<Document>,
        unreadable: Vec<Unreadable>,
        facts: Facts,
    ) -> Self {
        let modules: Vec<Module> = files
            .into_iter()
            .map(|(source, parsed)| Module {
                name: imports::name_parts(&source.path),
                mentions_torch: source.text.contains("torch") || source.text.contains("lightning"),
                source,
                parsed,
                call_names: Vec::new(),
                call_targets: Vec::new(),
                hot_calls: OnceLock::new(),
                mentions_cuda: OnceLock::new(),
                program: OnceLock::new(),
            })
            .collect();
        let mut project = Self {
            by_name: imports::by_name(&modules),
            modules,
            documents,
            unreadable,
            facts,
            ..Self::default()
        };
        let names = project.each_module(definitions::call_names);
        for (module, names) in project.modules.iter_mut().zip(names) {
            module.call_names = names;
        }
        let targets = project.each_module(definitions::call_targets);
        for (module, targets) in project.modules.iter_mut().zip(targets) {
            module.call_targets = targets;
        }
        project.callers = definitions::callers(&project);
        project.imports = imports::Graph::build(&project);
        project.flow = Flow::build(&project);
        project
    }

    fn each_module<T: Send>(&self, make: impl Fn(&Self, ModuleId) -> T + Sync) -> Vec<T> {
        let ids: Vec<ModuleId> = self.module_ids().collect();
        crate::parallel::map(&ids, |id| make(self, *id))
    }

    pub fn module_ids(&self) -> impl Iterator<Item = ModuleId> + use<> {
        (0..self.modules.len() as u32).map(ModuleId)
    }

    /// The module of this file, however its path is written.
    pub fn module_at(&self, path: &Path) -> Option<ModuleId> {
        let real = path.canonicalize().ok();
        let same = |other: &Path| other == path || (real.is_some() && other.canonicalize().ok() == real);
        self.module_ids().find(|id| same(&self.module(*id).source.path))
    }

    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize]
    }

    pub fn code(&self, module: ModuleId, id: NodeId) -> Code<'_> {
        Code {
            project: self,
            module,
            id,
        }
    }

    /// Every call of a module that can matter to training: none where PyTorch is not even mentioned.
    pub fn torch_calls(&self, module: ModuleId) -> impl Iterator<Item = Code<'_>> {
        let all = &self.module(module);
        let calls: &[NodeId] = if all.mentions_torch {
            all.parsed.tree.calls()
        } else {
            &[]
        };
        calls.iter().map(move |id| self.code(module, *id))
    }

    /// The calls that run at every step or every evaluated batch.
    pub fn hot_calls(&self, module: ModuleId) -> impl Iterator<Item = (Code<'_>, Hot)> {
        let find = || {
            let calls = self.torch_calls(module);
            calls.filter_map(|call| Some((call.id, call.hot()?))).collect()
        };
        let found = self.module(module).hot_calls.get_or_init(find);
        found.iter().map(move |(id, hot)| (self.code(module, *id), *hot))
    }

    pub fn calls(&self, module: ModuleId) -> impl Iterator<Item = Code<'_>> {
        let calls = self.module(module).parsed.tree.calls();
        calls.iter().map(move |id| self.code(module, *id))
    }

    /// Every call of the program that a module belongs to: of the modules it imports and those that import it.
    pub fn program_calls(&self, module: ModuleId) -> impl Iterator<Item = Code<'_>> {
        self.program(module).iter().flat_map(|module| self.calls(*module))
    }

    /// The modules that run together with this one.
    pub fn program(&self, module: ModuleId) -> &[ModuleId] {
        self.module(module)
            .program
            .get_or_init(|| self.imports.program(module))
    }

    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Places in the project that call this function or class.
    pub fn callers(&self, definition: Code<'_>) -> impl Iterator<Item = Code<'_>> {
        let key = (definition.module, definition.id);
        let found = self.callers.get(&key).map_or(&[][..], Vec::as_slice);
        found.iter().map(|(module, id)| self.code(*module, *id))
    }

    pub(crate) fn mentions(&self) -> &mentions::Mentions {
        self.mentions.get_or_init(|| mentions::Mentions::build(self))
    }

    /// Every read of a configuration key that the code makes.
    pub(crate) fn reads(&self) -> &reads::Reads {
        self.reads.get_or_init(|| reads::Reads::build(self))
    }

    /// The configuration that is written as classes.
    pub(crate) fn config_classes(&self) -> &[config_classes::ConfigClasses] {
        self.config_classes.get_or_init(|| config_classes::all(self))
    }

    /// Every option that the code parses with argparse.
    pub fn options(&self) -> &[CommandOption] {
        self.options.get_or_init(|| options::all(self))
    }
}
