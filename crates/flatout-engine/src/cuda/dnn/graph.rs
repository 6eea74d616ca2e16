//! A convolution as the library's graph: tensors, the operation, what engines it proposes, and a plan made of one of them.

use super::api::{Api, Descriptor, Handle, Type};
use super::{Direction, Key, Tensors};
use crate::cuda::blas::Number;
use crate::cuda::error::CudaError;

// Kinds of descriptors.
const CONVOLUTION: i32 = 1;
const ENGINE: i32 = 2;
const CONFIGURATION: i32 = 3;
const HEURISTIC: i32 = 4;
const PLAN: i32 = 5;
const FORWARD: i32 = 10;
const BACKWARD_FILTER: i32 = 11;
const BACKWARD_DATA: i32 = 12;
const GRAPH: i32 = 15;
const PACK: i32 = 16;
const TENSOR: i32 = 17;

/// Tensors are told apart by these numbers.
const IDS: [i64; 3] = [1, 2, 3];
/// Proposals of a mode that are looked at.
const PROPOSALS: usize = 16;
/// The library's ranking by a model of the card, then engines that nearly always work.
const MODES: [i32; 2] = [3, 2];

/// An operation, ready to ask for engines.
pub(super) struct Graph {
    graph: Descriptor,
    // Parts that the graph refers to.
    _parts: Vec<Descriptor>,
}

/// An engine ready to run.
pub(super) struct Plan {
    plan: Descriptor,
    pub workspace_bytes: usize,
}

fn data_type(number: Number) -> i32 {
    match number {
        Number::F32 => 0,
        Number::F16 => 2,
        Number::Bf16 => 9,
    }
}

/// Sizes and strides of a channels-last tensor in the library's order: number, channels, rows, columns.
fn tensor(api: &Api, id: i64, [n, c, h, w]: [usize; 4], number: Number) -> Result<Descriptor, CudaError> {
    let long = |values: [usize; 4]| values.map(|value| value as i64);
    let tensor = api.descriptor(TENSOR)?;
    tensor.set(901, Type::Number, &[data_type(number)])?;
    tensor.set(902, Type::Long, &long([n, c, h, w]))?;
    tensor.set(903, Type::Long, &long([h * w * c, 1, w * c, c]))?;
    tensor.set(906, Type::Long, &[id])?;
    tensor.set(900, Type::Long, &[16i64])?;
    tensor.finalize()
}

impl Graph {
    pub fn new(api: &Api, handle: &Handle, key: &Key) -> Result<Self, CudaError> {
        let [batch, height, width, channels] = key.images;
        let [rows, columns] = key.output;
        let images = tensor(api, IDS[0], [batch, channels, height, width], key.number)?;
        let weight = tensor(
            api,
            IDS[1],
            [key.filters, channels, key.size, key.size],
            key.number,
        )?;
        let output = tensor(api, IDS[2], [batch, key.filters, rows, columns], key.number)?;
        let convolution = api.descriptor(CONVOLUTION)?;
        let both = |value: usize| [value as i64; 2];
        convolution.set(106, Type::Long, &[2i64])?;
        // Sums in f32; a cross-correlation, as everywhere in this field.
        convolution.set(100, Type::Number, &[data_type(Number::F32)])?;
        convolution.set(101, Type::Mode, &[1i32])?;
        convolution.set(102, Type::Long, &both(1))?;
        convolution.set(103, Type::Long, &both(key.stride))?;
        convolution.set(104, Type::Long, &both(key.padding))?;
        convolution.set(105, Type::Long, &both(key.padding))?;
        let convolution = convolution.finalize()?;
        // The kind, then the attributes: alpha, beta, convolution, weight, images, output.
        let (kind, at) = match key.direction {
            Direction::Forward => (FORWARD, [700, 701, 702, 703, 704, 705]),
            Direction::Input => (BACKWARD_DATA, [706, 707, 708, 709, 710, 711]),
            Direction::Weight => (BACKWARD_FILTER, [712, 713, 714, 715, 716, 717]),
        };
        let operation = api.descriptor(kind)?;
        operation.set(at[0], Type::Float, &[1f32])?;
        operation.set(at[1], Type::Float, &[0f32])?;
        operation.set_descriptors(at[2], &[&convolution])?;
        operation.set_descriptors(at[3], &[&weight])?;
        operation.set_descriptors(at[4], &[&images])?;
        operation.set_descriptors(at[5], &[&output])?;
        let operation = operation.finalize()?;
        let graph = api.descriptor(GRAPH)?;
        graph.set_descriptors(801, &[&operation])?;
        graph.set_handle(800, handle)?;
        Ok(Self {
            graph: graph.finalize()?,
            _parts: vec![images, weight, output, convolution, operation],
        })
    }

    /// Configurations that give the same bits every time and keep the precision, in the library's order.
    pub fn proposals(&self, api: &Api, key: &Key) -> Result<Vec<Descriptor>, CudaError> {
        let mut good = Vec::new();
        for mode in MODES {
            let heuristic = api.descriptor(HEURISTIC)?;
            heuristic.set_descriptors(201, &[&self.graph])?;
            heuristic.set(200, Type::HeuristicMode, &[mode])?;
            let Ok(heuristic) = heuristic.finalize() else {
                continue;
            };
            let room = (0..PROPOSALS).map(|_| api.descriptor(CONFIGURATION));
            let room = room.collect::<Result<Vec<_>, _>>()?;
            let count = heuristic.get_descriptors(202, &room).unwrap_or(0);
            for configuration in room.into_iter().take(count) {
                if self.is_exact(api, &configuration, key).unwrap_or(false) {
                    good.push(configuration);
                }
            }
        }
        Ok(good)
    }

    fn is_exact(&self, api: &Api, configuration: &Descriptor, key: &Key) -> Result<bool, CudaError> {
        let engine = [api.descriptor(ENGINE)?];
        configuration.get_descriptors(300, &engine)?;
        let mut notes = [0i32; 16];
        let count = engine[0].get(1303, Type::NumericalNote, &mut notes)?;
        // FFT, atomics, Winograd: other bits each time, or other rounding than a sum of products has.
        let never = |note: &i32| (3..=8).contains(note);
        // Tensor cores make TF32 of f32, other engines round it down themselves; sums in less than f32.
        let coarser: &[i32] = match (key.number, key.tf32) {
            (Number::F32, false) => &[0, 1, 2],
            (Number::F32, true) => &[2],
            _ => &[],
        };
        Ok(!notes
            .iter()
            .take(count)
            .any(|note| never(note) || coarser.contains(note)))
    }
}

impl Plan {
    pub fn new(api: &Api, handle: &Handle, configuration: &Descriptor) -> Result<Self, CudaError> {
        let plan = api.descriptor(PLAN)?;
        plan.set_handle(400, handle)?;
        plan.set_descriptors(401, &[configuration])?;
        let plan = plan.finalize()?;
        let mut bytes = [0i64];
        plan.get(402, Type::Long, &mut bytes)?;
        Ok(Self {
            plan,
            workspace_bytes: usize::try_from(bytes[0]).unwrap_or(usize::MAX),
        })
    }

    pub fn execute(
        &self,
        api: &Api,
        handle: &Handle,
        tensors: Tensors,
        workspace: u64,
    ) -> Result<(), CudaError> {
        let pack = api.descriptor(PACK)?;
        pack.set(
            1001,
            Type::Pointer,
            &[tensors.images, tensors.weight, tensors.output],
        )?;
        pack.set(1000, Type::Long, &IDS)?;
        pack.set(1003, Type::Pointer, &[workspace])?;
        let pack = pack.finalize()?;
        api.execute(handle, &self.plan, &pack)
    }
}
