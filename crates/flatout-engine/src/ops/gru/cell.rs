//! The arithmetic of one row of one time step, vectorised over the hidden units.

use crate::cpu::vectorised::vectorised;

vectorised! {
    /// `gates` holds the inputs' products and becomes the activated gates; `products` are the recurrent products, of which
    /// the new gate's, with its `bias`, is kept in `inner`.
    pub fn forward<T>(
        gates: &mut [T],
        offset: &[T],
        products: &[T],
        bias: &[T],
        previous: &[T],
        inner: &mut [T],
        hidden: &mut [T],
    ) {
        let size = hidden.len();
        let (reset, rest) = gates.split_at_mut(size);
        let (update, new) = rest.split_at_mut(size);
        let (at_reset, rest) = offset.split_at(size);
        let (at_update, at_new) = rest.split_at(size);
        let (of_reset, rest) = products.split_at(size);
        let (of_update, of_new) = rest.split_at(size);
        let (new, at_new, of_new) = (&mut new[..size], &at_new[..size], &of_new[..size]);
        let (bias, previous, inner) = (&bias[..size], &previous[..size], &mut inner[..size]);
        for j in 0..size {
            let r = (reset[j] + at_reset[j] + of_reset[j]).sigmoid::<FUSED>();
            let z = (update[j] + at_update[j] + of_update[j]).sigmoid::<FUSED>();
            let own = of_new[j] + bias[j];
            let n = r.multiply_add::<FUSED>(own, new[j] + at_new[j]).tanh::<FUSED>();
            inner[j] = own;
            hidden[j] = z.multiply_add::<FUSED>(previous[j] - n, n);
            reset[j] = r;
            update[j] = z;
            new[j] = n;
        }
    }
}

vectorised! {
    /// `gates` becomes the gradient before activation, `inner` that of the hidden share of the new gate; `d_hidden` becomes
    /// what goes straight to the step before. `sum` and `sum_inner` add up over time.
    pub fn backward<T>(
        gates: &mut [T],
        inner: &mut [T],
        previous: &[T],
        d_hidden: &mut [T],
        sum: &mut [T],
        sum_inner: &mut [T],
    ) {
        let size = d_hidden.len();
        let (reset, rest) = gates.split_at_mut(size);
        let (update, new) = rest.split_at_mut(size);
        let (sum_reset, rest) = sum.split_at_mut(size);
        let (sum_update, sum_new) = rest.split_at_mut(size);
        let (new, sum_new) = (&mut new[..size], &mut sum_new[..size]);
        let (inner, previous, sum_inner) = (&mut inner[..size], &previous[..size], &mut sum_inner[..size]);
        for j in 0..size {
            let (r, z, n, dh) = (reset[j], update[j], new[j], d_hidden[j]);
            let dz = dh * (previous[j] - n) * (z * (T::ONE - z));
            let dn = dh * (T::ONE - z) * (T::ONE - n * n);
            let dr = dn * inner[j] * (r * (T::ONE - r));
            let own = dn * r;
            reset[j] = dr;
            update[j] = dz;
            new[j] = dn;
            inner[j] = own;
            d_hidden[j] = dh * z;
            sum_reset[j] += dr;
            sum_update[j] += dz;
            sum_new[j] += dn;
            sum_inner[j] += own;
        }
    }
}
