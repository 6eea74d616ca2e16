//! Where a recurrent stack keeps what on the card, by position of its scratch blocks.

/// The scratch blocks of a stack, by position.
pub(crate) struct Layout {
    layers: usize,
}

impl Layout {
    pub fn new(layers: usize) -> Self {
        Self { layers }
    }

    pub const JOINED: usize = 0;
    const A_LAYER: usize = 10;

    fn of(layer: usize, which: usize) -> usize {
        1 + layer * Self::A_LAYER + which
    }
    pub fn gates(layer: usize) -> usize {
        Self::of(layer, 0)
    }
    pub fn cells(layer: usize) -> usize {
        Self::of(layer, 1)
    }
    pub fn hidden(layer: usize) -> usize {
        Self::of(layer, 2)
    }
    pub fn dropped(layer: usize) -> usize {
        Self::of(layer, 3)
    }
    pub fn weight(layer: usize) -> usize {
        Self::of(layer, 4)
    }
    pub fn bias(layer: usize) -> usize {
        Self::of(layer, 5)
    }
    pub fn packed_forward(layer: usize) -> usize {
        Self::of(layer, 6)
    }
    pub fn packed_backward(layer: usize) -> usize {
        Self::of(layer, 7)
    }
    /// Of each layer, since they are added up beside the next layer's recurrence.
    pub fn bias_parts(layer: usize) -> usize {
        Self::of(layer, 8)
    }
    /// What a launch of the recurrence leaves to that of the steps before it.
    pub fn carry(layer: usize) -> usize {
        Self::of(layer, 9)
    }
    fn tail(&self, which: usize) -> usize {
        Self::of(self.layers, which)
    }
    pub fn upstream(&self) -> usize {
        self.tail(0)
    }
    pub fn weight_gradient(&self) -> usize {
        self.tail(1)
    }
    pub fn time_sum(&self) -> usize {
        self.tail(2)
    }
    pub fn d_input(&self) -> usize {
        self.tail(3)
    }
    pub fn d_hidden(&self) -> usize {
        self.tail(4)
    }
    pub fn d_cell(&self) -> usize {
        self.tail(5)
    }
}
