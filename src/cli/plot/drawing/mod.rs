//! Charts as SVG: [`BarChart`] and [`LineChart`] on linear and logarithmic axes.
//!
//! ```text
//! title, subtitle
//! marks on an Axis, with its ticks
//! label of the axis, notes
//! ```
//!
//! The same chart gives the same bytes: coordinates have one digit behind the point. There are no
//! scripts, fonts or links in the file. `tadoc plot` draws what a query says, `ingestion::figures` the
//! figures of the documentation.

mod axis;
mod bars;
mod lines;
mod svg;

pub use axis::{Axis, Scale};
pub use bars::{BarChart, Group};
pub use lines::{Curve, Guide, LineChart, Point};

/// Colours that also differ for the colour-blind (after Okabe and Ito), dark enough for text.
pub const COLORS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a86f00", "#17869e", "#7a5195", "#333333"];
