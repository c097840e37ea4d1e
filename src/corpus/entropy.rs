//! Entropy coding of the grammar stream.
