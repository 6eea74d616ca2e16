//! The arithmetic of one row of one time step, vectorised over the hidden units.

use crate::cpu::vectorised::vectorised;

vectorised! {
    /// `gates` holds the products and becomes the activated gates; `offset` is bias and constant input.
    pub fn forward<T>(gates: &mut [T], offset: &[T], previous: &[T], cell: &mut [T], hidden: &mut [T]) {
        let size = cell.len();
        let (input, rest) = gates.split_at_mut(size);
        let (forget, rest) = rest.split_at_mut(size);
        let (update, output) = rest.split_at_mut(size);
        let (output, previous, hidden) = (&mut output[..size], &previous[..size], &mut hidden[..size]);
        let (at_input, at_rest) = offset.split_at(size);
        let (at_forget, at_rest) = at_rest.split_at(size);
        let (at_update, at_output) = at_rest.split_at(size);
        let at_output = &at_output[..size];
        for j in 0..size {
            let i = (input[j] + at_input[j]).sigmoid::<FUSED>();
            let f = (forget[j] + at_forget[j]).sigmoid::<FUSED>();
            let g = (update[j] + at_update[j]).tanh::<FUSED>();
            let o = (output[j] + at_output[j]).sigmoid::<FUSED>();
            let c = f.multiply_add::<FUSED>(previous[j], i * g);
            cell[j] = c;
            hidden[j] = o * c.tanh::<FUSED>();
            input[j] = i;
            forget[j] = f;
            update[j] = g;
            output[j] = o;
        }
    }
}

vectorised! {
    /// `gates` holds the activated gates and becomes the gradient before activation; `d_cell` is carried from step to
    /// step; `sum` adds up the gradients of all steps.
    pub fn backward<T>(
        gates: &mut [T],
        cell: &[T],
        previous: &[T],
        d_hidden: &[T],
        d_cell: &mut [T],
        sum: &mut [T],
    ) {
        let size = cell.len();
        let (input, rest) = gates.split_at_mut(size);
        let (forget, rest) = rest.split_at_mut(size);
        let (update, output) = rest.split_at_mut(size);
        let output = &mut output[..size];
        let (sum_input, rest) = sum.split_at_mut(size);
        let (sum_forget, rest) = rest.split_at_mut(size);
        let (sum_update, sum_output) = rest.split_at_mut(size);
        let sum_output = &mut sum_output[..size];
        let (previous, d_hidden, d_cell) = (&previous[..size], &d_hidden[..size], &mut d_cell[..size]);
        for j in 0..size {
            let (i, f, g, o) = (input[j], forget[j], update[j], output[j]);
            let squashed = cell[j].tanh::<FUSED>();
            let dh = d_hidden[j];
            let dc = (dh * o).multiply_add::<FUSED>(T::ONE - squashed * squashed, d_cell[j]);
            let di = dc * g * (i * (T::ONE - i));
            let df = dc * previous[j] * (f * (T::ONE - f));
            let dg = dc * i * (T::ONE - g * g);
            let d_o = dh * squashed * (o * (T::ONE - o));
            d_cell[j] = dc * f;
            input[j] = di;
            forget[j] = df;
            update[j] = dg;
            output[j] = d_o;
            sum_input[j] += di;
            sum_forget[j] += df;
            sum_update[j] += dg;
            sum_output[j] += d_o;
        }
    }
}
