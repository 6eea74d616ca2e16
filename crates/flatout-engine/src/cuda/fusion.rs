//! Operations that the card does together. A convolution that only a max pooling reads pools on the way: bias and activation
//! commute with a maximum, so they are left to the pooled values, a window's share, and the gradient of the convolution is
//! written once instead of three times.

use crate::ops::Op;
use crate::ops::max_pool::LARGEST;
use crate::plan::{Node, Plan};

/// For each node, the pooling that it does, too; and whether a node is done by another.
pub(crate) struct Fusion {
    pools: Vec<Option<usize>>,
    done: Vec<bool>,
}

impl Fusion {
    pub fn of(plan: &Plan) -> Self {
        let nodes = plan.nodes();
        let mut found = Self {
            pools: vec![None; nodes.len()],
            done: vec![false; nodes.len()],
        };
        for (index, node) in nodes.iter().enumerate() {
            if let Some(convolution) = pooled_convolution(plan, node) {
                found.pools[convolution] = Some(index);
                found.done[index] = true;
            }
        }
        found
    }

    /// The pooling that this node does on the way.
    pub fn pool<'a>(&self, plan: &'a Plan, index: usize) -> Option<&'a Node> {
        Some(&plan.nodes()[self.pools[index]?])
    }

    /// Whether another node does this one.
    pub fn is_done(&self, index: usize) -> bool {
        self.done[index]
    }
}

/// The convolution behind a pooling, where nobody else may look at what lies between them.
fn pooled_convolution(plan: &Plan, node: &Node) -> Option<usize> {
    let Op::MaxPool(pool) = &node.op else { return None };
    let between = *node.inputs.first()?;
    let makes = |other: &Node| matches!(other.op, Op::Conv2d(_)) && other.outputs.first() == Some(&between);
    let convolution = plan.nodes().iter().position(makes)?;
    let readers = plan.nodes().iter().flat_map(|other| &other.inputs);
    let alone = readers.filter(|input| **input == between).count() == 1;
    let hidden = plan.buffer(between).name.is_empty();
    (alone && hidden && pool.size <= LARGEST).then_some(convolution)
}
