//! Where values lie along an axis, and where it has ticks.

use super::svg::grouped;

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Its lower end; of a logarithmic axis above 0.
    pub min: f64,
    /// Its upper end, above its lower one.
    pub max: f64,
    /// What lies between them.
    pub scale: Scale,
}

/// How values are spread along an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly, with ticks at whole numbers only, for counts and years.
    Whole,
    /// Evenly, with ticks where they are given, for what has names: dates, say.
    Named(Vec<(f64, String)>),
    /// By their logarithms.
    Logarithmic,
}

/// A place on an axis that is marked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    /// Of the more important ones.
    pub(super) label: Option<String>,
}

/// Ticks of a linear axis at most.
const MAX_LINEAR_TICKS: f64 = 8.0;

impl Axis {
    /// A linear axis on which all of `values` lie, from 0 on where `is_from_zero`, both ends on ticks;
    /// these are whole where all values are.
    pub fn of(label: &str, values: impl IntoIterator<Item = f64>, is_from_zero: bool) -> Self {
        let start = if is_from_zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let widen = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let is_whole = values.iter().all(|value| value.fract() == 0.0);
        let scale = if is_whole { Scale::Whole } else { Scale::Linear };
        let (low, high) = values.into_iter().fold(start, widen);
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        // Less than a number may be, so that their difference is one.
        let (low, high) = (low.max(f64::MIN / 8.0), high.min(f64::MAX / 8.0));
        let high = if low < high { high } else { low + low.abs().max(1.0) };
        let step = scale.step(high - low);
        let (min, max) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { label: label.to_owned(), min, max, scale }
    }

    /// Where `value` lies: 0 at the lower end, 1 at the upper.
    pub(super) fn part(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Logarithmic => (value / self.min).log10() / (self.max / self.min).log10(),
            Scale::Linear | Scale::Whole | Scale::Named(_) => {
                (value - self.min) / (self.max - self.min)
            }
        }
    }

    /// What is marked, in ascending order. Of a logarithmic axis multiples 1 to 9 of the powers of
    /// ten, the powers with labels.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        match &self.scale {
            Scale::Named(names) => {
                let tick = |(value, name): &(f64, String)| Tick {
                    value: *value,
                    label: Some(name.clone()),
                };
                names.iter().map(tick).collect()
            }
            Scale::Linear | Scale::Whole => {
                let step = self.scale.step(self.max - self.min);
                let (first, last) = ((self.min / step).ceil(), (self.max / step).floor());
                let num_ticks = (last - first).clamp(0.0, 2.0 * MAX_LINEAR_TICKS) as u32;
                let value = |i: u32| (first + f64::from(i)) * step;
                let tick = |value| Tick { value, label: Some(linear_label(value, step)) };
                (0..=num_ticks).map(value).map(tick).collect()
            }
            Scale::Logarithmic => {
                let decades = self.min.log10().floor() as i32..=self.max.log10().ceil() as i32;
                let (low, high) = (self.min * (1.0 - 1e-9), self.max * (1.0 + 1e-9));
                let of_decade = |decade| (1..10).map(move |i| (f64::from(i), 10_f64.powi(decade)));
                let tick = |(multiple, power): (f64, f64)| Tick {
                    value: multiple * power,
                    label: (multiple == 1.0).then(|| power_label(power)),
                };
                let ticks = decades.flat_map(of_decade).map(tick);
                ticks.filter(|tick| (low..=high).contains(&tick.value)).collect()
            }
        }
    }
}

impl Scale {
    /// 1, 2 or 5 times a power of ten, so that a length has at most [`MAX_LINEAR_TICKS`] steps.
    fn step(&self, len: f64) -> f64 {
        let least = len / MAX_LINEAR_TICKS;
        let least = if *self == Self::Whole { least.max(1.0) } else { least };
        let power = 10_f64.powf(least.log10().floor());
        let fits = |multiple: &f64| multiple * power >= least * (1.0 - 1e-9);
        [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power
    }
}

/// With as many digits as the step needs; thousands apart from 10,000 on, since 1990 may be a year.
fn linear_label(value: f64, step: f64) -> String {
    if step < 1.0 {
        let digits = (-step.log10()).ceil().clamp(0.0, 12.0) as usize;
        return format!("{value:.digits$}");
    }
    if value.abs() < 1e4 { format!("{value:.0}") } else { grouped(value) }
}

/// `0.1`, `1`, `1,000`.
fn power_label(value: f64) -> String {
    if value < 1.0 { format!("{value}") } else { grouped(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn logarithmic_ticks_are_on_the_axis() {
        let scale = Scale::Logarithmic;
        let axis = Axis { label: String::new(), min: 0.5, max: 20.0, scale };
        let ticks = axis.ticks();
        assert_eq!(ticks.first().map(|tick| tick.label.clone()), Some(None));
        assert_eq!(labels(&axis), ["1", "10"]);
        assert_eq!(ticks.len(), 5 + 9 + 2);
        assert_eq!((axis.part(0.5), axis.part(20.0)), (0.0, 1.0));
        assert_eq!([0.1, 1e3, 1e7].map(power_label), ["0.1", "1,000", "10,000,000"]);
    }

    #[test]
    fn linear_axes_end_on_ticks() {
        let axis = Axis::of("", [3.0, 1234.0], true);
        assert_eq!((axis.min, axis.max), (0.0, 1400.0));
        assert_eq!(labels(&axis), ["0", "200", "400", "600", "800", "1000", "1200", "1400"]);
        assert_eq!(labels(&Axis::of("", [1991.0, 1993.0], false)), ["1991", "1992", "1993"]);
        assert_eq!(labels(&Axis::of("", [0.5, 0.72], false)).last().unwrap(), "0.75");
        assert_eq!(labels(&Axis::of("", [-30_000.0], true))[0], "-30,000");
    }

    #[test]
    fn odd_values_have_an_axis() {
        for values in
            [vec![], vec![0.0], vec![f64::NAN, 7.0], vec![f64::MAX, f64::MIN], vec![1e-300]]
        {
            for is_from_zero in [true, false] {
                let axis = Axis::of("", values.clone(), is_from_zero);
                assert!(axis.min < axis.max && (axis.max - axis.min).is_finite(), "{axis:?}");
                assert!(axis.ticks().len() <= 17, "{axis:?}");
            }
        }
    }
}
