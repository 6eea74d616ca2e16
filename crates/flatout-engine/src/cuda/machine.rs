//! A card made ready for one precision: its queue, its matrix products, its kernels.

mod kernels;
mod lanes;

use super::blas::{Blas, Finish, Matrix, Number};
use super::dnn::{Direction, Dnn, Tensors};
use super::driver::{Argument, Device, Event, Function, Module, Stream};
use super::error::CudaError;
use super::{compiler, libraries};
use crate::ops::conv2d::Conv2d;
pub use kernels::{Kernel, kernels};
use kernels::{plan_kernels, real_of};
use lanes::{LANES, Side};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

/// How activations are kept and products are made. Parameters, their gradients and all sums are f32 in each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    F32,
    /// f32 with the factors of products rounded to TF32.
    Tf32,
    #[default]
    Bf16,
    /// Gradients are scaled on their way, by a factor that follows them inside the graph.
    F16,
}

impl Precision {
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::F16 => "fp16",
        }
    }

    pub fn number(self) -> Number {
        match self {
            Self::F32 | Self::Tf32 => Number::F32,
            Self::Bf16 => Number::Bf16,
            Self::F16 => Number::F16,
        }
    }
}

pub(crate) const COMMON: &str = include_str!("kernels/common.cu");
const THREADS: usize = 256;

pub struct Machine {
    // Dropped in this order: the libraries and the code before the queues they were used in.
    /// Opened when a plan has a convolution.
    convolutions: OnceCell<Dnn>,
    pub blas: Blas,
    functions: RefCell<HashMap<String, Function>>,
    modules: RefCell<HashMap<String, Module>>,
    pub device: Device,
    pub stream: Stream,
    /// Beside it: what only the update waits for.
    side: Side,
    lanes: Vec<Stream>,
    lane: Cell<usize>,
    pub precision: Precision,
    pub libraries: Vec<libraries::Found>,
    tuning: Cell<bool>,
    /// Choices between ways of an operation, by kind and name; `None` where nothing has been measured yet.
    choices: RefCell<HashMap<String, Option<usize>>>,
}

impl Machine {
    pub fn open(ordinal: usize, precision: Precision) -> Result<Self, CudaError> {
        let libraries = libraries::open()?;
        let device = Device::open(ordinal)?;
        // TF32 and bf16 came with Ampere (8.0), f16 products with Volta (7.0).
        let oldest = match precision {
            Precision::F32 => (6, 0),
            Precision::F16 => (7, 0),
            Precision::Tf32 | Precision::Bf16 => (8, 0),
        };
        if device.capability < oldest {
            return Err(CudaError::Precision {
                precision: precision.name(),
                capability: device.capability,
            });
        }
        let blas = Blas::new(&device.name, precision == Precision::Tf32)?;
        let machine = Self {
            device,
            stream: Stream::new(true)?,
            side: Side::new()?,
            lanes: (0..LANES).map(|_| Stream::new(true)).collect::<Result<_, _>>()?,
            lane: Cell::new(0),
            blas,
            precision,
            libraries,
            convolutions: OnceCell::new(),
            modules: RefCell::default(),
            functions: RefCell::default(),
            tuning: Cell::new(false),
            choices: RefCell::default(),
        };
        machine.load("plan", &plan_kernels(), &[])?;
        Ok(machine)
    }

    pub fn architecture(&self) -> u32 {
        self.device.capability.0 * 10 + self.device.capability.1
    }

    /// Compiles kernels, or finds them compiled, under a name of their own.
    pub fn load(&self, name: &str, text: &str, defines: &[String]) -> Result<(), CudaError> {
        if self.modules.borrow().contains_key(name) {
            return Ok(());
        }
        let mut all = vec![format!("REAL={}", real_of(self.precision))];
        all.extend_from_slice(defines);
        let image = compiler::compile(
            name,
            text,
            self.architecture(),
            &all,
            self.precision.number() != Number::F32,
        )?;
        self.modules
            .borrow_mut()
            .insert(name.to_owned(), Module::load(&image)?);
        Ok(())
    }

    /// A kernel of a loaded module.
    pub fn function(&self, module: &str, name: &str) -> Result<Function, CudaError> {
        let key = format!("{module}/{name}");
        if let Some(function) = self.functions.borrow().get(&key) {
            return Ok(*function);
        }
        let modules = self.modules.borrow();
        let missing = || CudaError::Kernel {
            name: key.clone(),
            log: "not loaded".to_owned(),
        };
        let function = modules.get(module).ok_or_else(missing)?.function(name)?;
        self.functions.borrow_mut().insert(key, function);
        Ok(function)
    }

    /// Launches a kernel of the plan over so many elements, one thread each (and more where there are many).
    pub fn each(&self, name: &str, elements: usize, arguments: &[Argument]) -> Result<(), CudaError> {
        let blocks = elements
            .div_ceil(THREADS)
            .clamp(1, 32 * self.device.multiprocessors as usize);
        self.blocks(name, (blocks, 1), THREADS, arguments)
    }

    /// Launches a kernel of the plan on a grid of its own.
    pub fn blocks(
        &self,
        name: &str,
        grid: (usize, usize),
        threads: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        self.blocks_with_shared(name, grid, threads, 0, arguments)
    }

    /// The same with so much shared memory per block.
    pub(crate) fn blocks_with_shared(
        &self,
        name: &str,
        grid: (usize, usize),
        threads: usize,
        shared_bytes: usize,
        arguments: &[Argument],
    ) -> Result<(), CudaError> {
        let function = self.function("plan", name)?;
        // SAFETY: each operation hands its kernel what the kernel declares, over buffers that the session owns.
        unsafe { function.launch(self.queue(), grid, threads, shared_bytes, arguments) }
    }

    /// Lets a kernel of the plan take this much shared memory per block, which may be more than the usual 48 KiB.
    pub(crate) fn allow_shared(&self, name: &str, bytes: usize) -> Result<(), CudaError> {
        self.function("plan", name)?.allow_shared(bytes)
    }

    /// Makes convolutions ready; a plan that has any asks once before its first step.
    pub(crate) fn open_convolutions(&self) -> Result<(), CudaError> {
        if self.convolutions.get().is_none() {
            let tf32 = self.precision == Precision::Tf32;
            let (dnn, found) = Dnn::open(&self.stream, &self.device.name, self.precision.number(), tf32)?;
            log::debug!("convolutions by {found:?}");
            let _ = self.convolutions.set(dnn);
        }
        Ok(())
    }

    pub(crate) fn convolve(
        &self,
        op: &Conv2d,
        direction: Direction,
        tensors: Tensors,
    ) -> Result<(), CudaError> {
        self.open_convolutions()?;
        match self.convolutions.get() {
            Some(dnn) => dnn.run(&self.stream, op, direction, tensors),
            None => Ok(()),
        }
    }

    /// Time proposals for products and convolutions instead of taking the first: not while recording.
    pub fn tune(&self, on: bool) {
        self.tuning.set(on);
        self.blas.tune(on);
        if let Some(dnn) = self.convolutions.get() {
            dnn.tune(on);
        }
    }

    /// Whether this is the rehearsal, in which measurements may be made.
    pub(crate) fn is_tuning(&self) -> bool {
        self.tuning.get()
    }

    /// What measurement preferred, here or in an earlier run.
    pub(crate) fn choice(&self, kind: &str, name: &str) -> Option<usize> {
        let key = format!("{kind} {name}");
        if let Some(known) = self.choices.borrow().get(&key) {
            return *known;
        }
        let kept = compiler::kept_choice(kind, name);
        self.choices.borrow_mut().insert(key, kept);
        kept
    }

    /// For this session alone.
    pub(crate) fn set_choice(&self, kind: &str, name: &str, choice: Option<usize>) {
        self.choices.borrow_mut().insert(format!("{kind} {name}"), choice);
    }

    /// For later runs, too.
    pub(crate) fn keep_choice(&self, kind: &str, name: &str, choice: usize) {
        self.set_choice(kind, name, Some(choice));
        compiler::keep_choice(kind, name, choice);
    }

    /// Milliseconds of work on the card: recorded so many times over, run as one graph, the best of three.
    pub(crate) fn time<E: From<CudaError>>(
        &self,
        repeats: usize,
        work: impl Fn() -> Result<(), E>,
    ) -> Result<f64, E> {
        let graph = self.stream.capture(|| (0..repeats).try_for_each(|_| work()))?;
        let (start, end) = (Event::new()?, Event::new()?);
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            start.record(&self.stream)?;
            graph.launch(&self.stream)?;
            end.record(&self.stream)?;
            end.wait()?;
            best = best.min(end.since(&start)? / repeats as f64);
        }
        Ok(best)
    }

    pub(crate) fn multiply(
        &self,
        left: Matrix,
        right: Matrix,
        result: Matrix,
        add: bool,
    ) -> Result<(), CudaError> {
        self.blas
            .multiply(self.queue(), left, right, result, add, Finish::Nothing)
    }

    /// `result = left · right + bias`, and maybe a ReLU.
    pub(crate) fn multiply_with_bias(
        &self,
        left: Matrix,
        right: Matrix,
        result: Matrix,
        bias: u64,
        relu: bool,
    ) -> Result<(), CudaError> {
        let finish = Finish::Bias { address: bias, relu };
        self.blas
            .multiply(self.queue(), left, right, result, false, finish)
    }
}
