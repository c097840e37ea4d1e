//! Makes the binary start faster and smaller where the linker can: it has a fixed address, and identical functions are
//! folded.
//!
//! With an address that is chosen at the start, megabytes of tables of addresses are written before `main`, page by
//! page, which is a large part of a short statement. The stack, the heap and shared libraries keep their random
//! addresses. Those of the binary are the same in each process, which helps an attacker who can already write to
//! memory.
//!
//! The dependencies are built without optimization, and many of their generics become the same code for different
//! types. A small program is linked and started first. Where that fails (a linker without these options, a build for
//! another machine), the binary is linked as usual.
//!
//! Folding may give two functions one address. Rust promises no distinct addresses, and no code here compares them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Arguments of the C compiler that calls the linker.
const LINK_ARGS: [&str; 2] = ["-no-pie", "-Wl,--icf=all"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if can_link().unwrap_or(false) {
        for arg in LINK_ARGS {
            println!("cargo::rustc-link-arg-bins={arg}");
        }
    }
}

/// Links and starts an empty program as Cargo would link the binary.
fn can_link() -> io::Result<bool> {
    let variable = |name| env::var_os(name).ok_or(io::ErrorKind::NotFound);
    if variable("HOST")? != variable("TARGET")? {
        return Ok(false);
    }
    let directory = variable("OUT_DIR")?;
    let source = Path::new(&directory).join("probe.rs");
    let program = Path::new(&directory).join("probe");
    fs::write(&source, "fn main() {}")?;
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.arg(&source).arg("-o").arg(&program).args(LINK_ARGS.map(|arg| format!("-Clink-arg={arg}")));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={}", linker.to_string_lossy()));
    }
    rustc.args(env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().split('\x1f').filter(|flag| !flag.is_empty()));
    Ok(succeeds(&mut rustc) && succeeds(&mut Command::new(program)))
}

/// Returns true if a command ends with 0.
fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
