//! A card made ready for one precision: its queue, its matrix products, its kernels.

use super::blas::{Blas, Finish, Matrix, Number};
use super::dnn::{Direction, Dnn, Tensors};
use super::driver::{Argument, Device, Event, Function, Module, Stream};
use super::error::CudaError;
use super::{compiler, libraries};
use crate::ops;
use crate::ops::conv2d::Conv2d;
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
/// Queues beside the main one for work that is divided into lanes.
const LANES: usize = 3;

pub struct Machine {
    pub device: Device,
    pub stream: Stream,
    /// Beside it: what only the update waits for.
    side: Side,
    lanes: Vec<Stream>,
    lane: Cell<usize>,
    pub blas: Blas,
    pub precision: Precision,
    pub libraries: Vec<libraries::Found>,
    /// Opened when a plan has a convolution.
    convolutions: OnceCell<Dnn>,
    modules: RefCell<HashMap<String, Module>>,
    functions: RefCell<HashMap<String, Function>>,
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

    /// The queue that work goes into now.
    pub(crate) fn queue(&self) -> &Stream {
        match self.lane.get() {
            _ if self.side.active.get() => &self.side.stream,
            0 => &self.stream,
            lane => &self.lanes[(lane - 1) % LANES],
        }
    }

    /// Puts work into a lane: a queue of its own beside the others, 0 being the main one. The caller marks what depends on
    /// what, and lets the main queue wait for the end of every lane.
    pub(crate) fn on_lane(
        &self,
        lane: usize,
        work: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let before = self.lane.replace(lane);
        let done = work();
        self.lane.set(before);
        done
    }

    /// A mark at the end of the present queue.
    pub(crate) fn mark(&self) -> Result<Event, CudaError> {
        let event = Event::new()?;
        event.record(self.queue())?;
        Ok(event)
    }

    /// The present queue goes on when the mark has been reached.
    pub(crate) fn wait_for(&self, mark: &Event) -> Result<(), CudaError> {
        self.queue().wait_for(mark)
    }

    /// Puts work beside the queue, behind all that is in it now: for what nobody needs before [`Machine::rejoin`]. It must
    /// not write what later work of the queue reads or writes, and uses no convolution of the library.
    pub(crate) fn aside(&self, work: impl FnOnce() -> Result<(), CudaError>) -> Result<(), CudaError> {
        self.side.fork.record(self.queue())?;
        self.side.stream.wait_for(&self.side.fork)?;
        self.side.active.set(true);
        let done = work();
        self.side.active.set(false);
        self.side.forked.set(true);
        done
    }

    /// What comes next in the queue waits for everything beside it.
    pub(crate) fn rejoin(&self) -> Result<(), CudaError> {
        if self.side.forked.replace(false) {
            self.side.join.record(&self.side.stream)?;
            self.stream.wait_for(&self.side.join)?;
        }
        Ok(())
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
        let function = self.function("plan", name)?;
        // SAFETY: each operation hands its kernel what the kernel declares, over buffers that the session owns.
        unsafe { function.launch(self.queue(), grid, threads, 0, arguments) }
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

/// The second queue with the marks that bind it to the first.
struct Side {
    stream: Stream,
    fork: Event,
    join: Event,
    active: Cell<bool>,
    forked: Cell<bool>,
}

impl Side {
    fn new() -> Result<Self, CudaError> {
        Ok(Self {
            stream: Stream::new(false)?,
            fork: Event::new()?,
            join: Event::new()?,
            active: Cell::new(false),
            forked: Cell::new(false),
        })
    }
}

fn real_of(precision: Precision) -> u32 {
    match precision {
        Precision::F32 | Precision::Tf32 => 0,
        Precision::Bf16 => 1,
        Precision::F16 => 2,
    }
}

/// The kernels of all operations as one text, compiled together.
fn plan_kernels() -> String {
    let mut text = COMMON.to_owned();
    for kernels in ops::cuda_kernels() {
        text += kernels;
    }
    text
}

/// One compilation that a card may ask for.
pub struct Kernel {
    pub name: String,
    pub text: String,
    pub architecture: u32,
    pub defines: Vec<String>,
}

/// All compilations for Ampere and Hopper: tests try them without a card.
pub fn kernels() -> Vec<Kernel> {
    let mut all = Vec::new();
    for architecture in [80, 90] {
        for real in 0..3 {
            let (name, text) = ("plan".to_owned(), plan_kernels());
            all.push(Kernel {
                name,
                text,
                architecture,
                defines: vec![format!("REAL={real}")],
            });
        }
    }
    for (name, defines) in ops::recurrent::persistent_variants() {
        let text = ops::recurrent::RECURRENCE.to_owned();
        all.push(Kernel {
            name,
            text,
            architecture: 90,
            defines,
        });
    }
    for (name, text, mut defines) in ops::conv2d::examples() {
        defines.push("REAL=1".to_owned());
        let architecture = 80;
        all.push(Kernel {
            name,
            text,
            architecture,
            defines,
        });
    }
    all
}
