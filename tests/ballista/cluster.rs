//! Processes of a cluster on loopback.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ballista_core::extension::SessionConfigExt;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_tadoc_ballista::SessionBuilder;
use tempfile::TempDir;

/// Seconds in which a machine may be silent.
const SILENT_SECONDS: &str = "5";

/// A scheduler and executors. They are killed when this is dropped.
pub struct Cluster {
    pub url: String,
    scheduler: Child,
    pub executors: Vec<Executor>,
    folder: TempDir,
}

/// An executor.
pub struct Executor(Child);

impl Cluster {
    /// Starts a cluster whose statements read below `roots`, or anywhere without roots.
    pub fn start(num_executors: usize, roots: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut scheduler = program("scheduler", folder.path(), "scheduler.log");
        scheduler.arg("127.0.0.1:0").args(roots).stdout(Stdio::piped());
        let mut scheduler = scheduler.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(scheduler.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().filter(|url| url.starts_with("df://"));
        let url = url.unwrap_or_else(|| panic!("no scheduler: {line}")).to_owned();
        let executors = (0..num_executors).map(|number| {
            let log = format!("executor{number}.log");
            let mut executor = program("executor", folder.path(), &log);
            let [rows, tasks] = free_ports();
            executor.args([&url, &rows.to_string(), &tasks.to_string()]).args(roots);
            // One computes a partition at a time, and the next one several.
            executor.env("VCORES", (number % 2 + 1).to_string());
            Executor(executor.stdout(Stdio::null()).spawn().unwrap())
        });
        let executors = executors.collect();
        Self { url, scheduler, executors, folder }
    }

    /// Returns a session of a client.
    pub fn session(&self) -> SessionContext {
        let config = SessionConfig::new_with_ballista().with_target_partitions(4);
        SessionBuilder::new(&self.url).unwrap().with_config(config).build().unwrap()
    }

    /// Returns what the processes said, for messages of failed tests.
    pub fn said(&self) -> String {
        let mut said = String::new();
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                said += &format!("{}:\n{text}\n", path.display());
            }
        }
        said
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for executor in &mut self.executors {
            executor.kill();
        }
        // It may have ended.
        let _ = self.scheduler.kill();
        let _ = self.scheduler.wait();
    }
}

impl Executor {
    pub fn kill(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Returns the seconds that the process has computed.
    pub fn computed(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: f64 = [11, 12].iter().map(|&at| fields[at].parse::<f64>().unwrap()).sum();
        ticks / 100.0
    }
}

/// Returns the example `name`, whose standard error and temporary files are in `folder`.
pub fn program(name: &str, folder: &Path, log: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    // The test is in `deps`, beside `examples`.
    path.pop();
    path.pop();
    let path = path.join("examples").join(name);
    assert!(path.exists(), "no {}: build the examples of the package too", path.display());
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stderr(File::create(folder.join(log)).unwrap());
    command.env("TMPDIR", folder).env("SILENT_SECONDS", SILENT_SECONDS);
    command
}

/// Returns ports that nobody uses now.
fn free_ports() -> [u16; 2] {
    let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Waits until `is_so`, at most `most`.
pub async fn wait_until(most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + most;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    true
}
