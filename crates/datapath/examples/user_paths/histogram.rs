//! Histograms of times in nanoseconds, with sixteen bins for each power of two.

use std::fmt::Write;

/// Bins of a histogram: `BINS` of `bpf/bench.bpf.c`.
pub const BINS: usize = 1024;

#[derive(Debug, Clone)]
pub struct Histogram(Vec<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self(vec![0; BINS])
    }
}

impl Histogram {
    /// Adds to a bin of this number.
    pub fn add(&mut self, bin: usize, count: u64) {
        if let Some(slot) = self.0.get_mut(bin) {
            *slot += count;
        }
    }

    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time that this part of all does not exceed; 0 if there are none.
    pub fn quantile(&self, part: f64) -> u64 {
        let wanted = (self.count() as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, last_of)
    }

    /// The longest.
    pub fn most(&self) -> u64 {
        self.quantile(1.0)
    }

    /// Quantiles, and the bins with any: the longest time of each, and their number.
    pub fn json(&self) -> String {
        let mut bins = String::new();
        for (bin, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let comma = if bins.is_empty() { "" } else { "," };
            write!(bins, "{comma}[{},{count}]", last_of(bin)).expect("a String takes all");
        }
        format!(
            "{{\"p50\":{},\"p99\":{},\"p999\":{},\"max\":{},\"histogram\":[{bins}]}}",
            self.quantile(0.5),
            self.quantile(0.99),
            self.quantile(0.999),
            self.most()
        )
    }
}

/// The longest time that belongs to a bin.
fn last_of(bin: usize) -> u64 {
    let (exponent, rest) = ((bin >> 4) as u32, (bin & 15) as u64);
    if exponent == 0 { rest } else { (((16 | rest) + 1) << (exponent - 1)) - 1 }
}
