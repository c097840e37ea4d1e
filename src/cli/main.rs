//! `tadoc`: the command line of datafusion-tadoc. All of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tadoc_cli::main()
}
