//! A simulated disk that loses power. Data that was not synced is lost, torn, or there all the
//! same.
//!
//! ```text
//! file     bytes now │ bytes at the last sync: after a crash these, and some blocks of the rest
//! folder   names now │ names at the last sync, changes since: after a crash any of these happened
//! ```
//!
//! Every call that changes the disk is a step. Any step can be the last one, and any call can fail.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tadoc_store::{Disk, DiskFile};
use testkit::random::Random;

/// Size of the blocks of a torn file.
const BLOCK_BYTES: usize = 64;

#[derive(Debug, Clone)]
struct File {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    written: SystemTime,
}

#[derive(Debug, Clone, Default)]
struct Folder {
    /// Numbers of files by name.
    now: BTreeMap<String, usize>,
    synced: BTreeMap<String, usize>,
    /// Names added and removed since the last sync.
    changes: Vec<(String, Option<usize>)>,
}

#[derive(Debug, Clone, Default)]
struct State {
    files: Vec<File>,
    folders: BTreeMap<PathBuf, Folder>,
    /// Folders that certainly exist after a crash.
    synced_folders: BTreeSet<PathBuf>,
    num_steps: usize,
    num_calls: usize,
    num_syncs: usize,
    last_step: Option<usize>,
    failing_call: Option<usize>,
    is_off: bool,
    random: u64,
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    pub fn new() -> Self {
        let mut state = State::default();
        for path in ["/", "/disk"] {
            state.folders.insert(path.into(), Folder::default());
            state.synced_folders.insert(path.into());
        }
        Self(Arc::new(Mutex::new(state)))
    }

    /// Turns the power off in the middle of step `step`, counted from 0.
    pub fn stop_at(&self, step: usize, random: u64) {
        let mut state = self.0.lock().unwrap();
        (state.last_step, state.random) = (Some(step), random);
    }

    /// Lets call `call` fail, counted from 0. Calls that only read also count.
    pub fn fail_at(&self, call: usize) {
        self.0.lock().unwrap().failing_call = Some(call);
    }

    pub fn is_off(&self) -> bool {
        self.0.lock().unwrap().is_off
    }

    pub fn num_steps(&self) -> usize {
        self.0.lock().unwrap().num_steps
    }

    pub fn num_calls(&self) -> usize {
        self.0.lock().unwrap().num_calls
    }

    pub fn num_syncs(&self) -> usize {
        self.0.lock().unwrap().num_syncs
    }

    /// Returns the names of all files, with their folders.
    pub fn names(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        let all = state.folders.iter();
        all.flat_map(|(path, folder)| folder.now.keys().map(|name| path.join(name).display().to_string())).collect()
    }

    /// Flips a bit of the file at `path`.
    pub fn damage(&self, path: &str) {
        let mut state = self.0.lock().unwrap();
        let idx = state.find(Path::new(path)).unwrap();
        let middle = state.files[idx].bytes.len() / 2;
        state.files[idx].bytes[middle] ^= 1;
    }

    /// Returns the disk after the power is back, in one of its possible states. `seed` chooses the
    /// state.
    pub fn after_crash(&self, seed: u64) -> Self {
        let mut random = Random(seed);
        let mut state = self.0.lock().unwrap().clone();
        for file in &mut state.files {
            file.bytes = torn(file, &mut random);
            file.synced.clone_from(&file.bytes);
        }
        for folder in state.folders.values_mut() {
            let mut names = folder.synced.clone();
            for (name, file) in std::mem::take(&mut folder.changes) {
                match (random.one_in(2), file) {
                    (false, _) => {}
                    (true, Some(file)) => drop(names.insert(name, file)),
                    (true, None) => drop(names.remove(&name)),
                }
            }
            (folder.now, folder.synced) = (names.clone(), names);
        }
        let mut lost: Vec<PathBuf> = Vec::new();
        for path in state.folders.keys() {
            let is_lost = !state.synced_folders.contains(path) && random.one_in(2);
            if is_lost || lost.iter().any(|above| path.starts_with(above)) {
                lost.push(path.clone());
            }
        }
        lost.iter().for_each(|path| drop(state.folders.remove(path)));
        state.synced_folders = state.folders.keys().cloned().collect();
        (state.is_off, state.last_step, state.failing_call) = (false, None, None);
        Self(Arc::new(Mutex::new(state)))
    }

    /// Makes `change`, unless this call fails or the power is off.
    fn step<T>(&self, change: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.lock().unwrap();
        state.call()?;
        let step = state.num_steps;
        state.num_steps += 1;
        if state.last_step != Some(step) {
            return change(&mut state);
        }
        state.is_off = true;
        if Random(state.random).one_in(2) {
            change(&mut state)?;
        }
        Err(off())
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.0.lock().unwrap();
        state.call()?;
        look(&state)
    }
}

fn off() -> io::Error {
    io::Error::other("the power is off")
}

/// Returns the bytes left of a file: the synced bytes and a part of the later ones, with holes.
fn torn(file: &File, random: &mut Random) -> Vec<u8> {
    let synced_len = file.synced.len();
    assert!(file.bytes.starts_with(&file.synced), "files only grow");
    let len = synced_len + random.below(file.bytes.len() - synced_len + 1);
    let mut bytes = file.bytes[..len].to_vec();
    for block in bytes[synced_len..].chunks_mut(BLOCK_BYTES) {
        if random.one_in(2) {
            block.fill(0);
        }
    }
    bytes
}

impl State {
    fn call(&mut self) -> io::Result<()> {
        if self.is_off {
            return Err(off());
        }
        let call = self.num_calls;
        self.num_calls += 1;
        if self.failing_call == Some(call) { Err(io::Error::other("injected failure")) } else { Ok(()) }
    }

    fn folder(&mut self, of: &Path) -> io::Result<(&mut Folder, String)> {
        let name = of.file_name().unwrap().to_str().unwrap().to_string();
        let folder = self.folders.get_mut(of.parent().unwrap());
        Ok((folder.ok_or(ErrorKind::NotFound)?, name))
    }

    fn give(&mut self, path: &Path, file: usize) -> io::Result<()> {
        let (folder, name) = self.folder(path)?;
        if folder.now.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        folder.now.insert(name.clone(), file);
        folder.changes.push((name, Some(file)));
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        let folder = self.folders.get(path.parent().unwrap()).ok_or(ErrorKind::NotFound)?;
        let file = folder.now.get(path.file_name().unwrap().to_str().unwrap());
        Ok(*file.ok_or(ErrorKind::NotFound)?)
    }
}

struct OpenFile {
    disk: SimulatedDisk,
    idx: usize,
}

impl Write for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.step(|state| {
            let file = &mut state.files[self.idx];
            file.bytes.extend_from_slice(bytes);
            file.written = SystemTime::now();
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for OpenFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.step(|state| {
            state.num_syncs += 1;
            let file = &mut state.files[self.idx];
            file.synced.clone_from(&file.bytes);
            Ok(())
        })
    }
}

impl Disk for SimulatedDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|state| {
            if state.folders.contains_key(path) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            if !path.parent().is_some_and(|parent| state.folders.contains_key(parent)) {
                return Err(ErrorKind::NotFound.into());
            }
            state.folders.insert(path.into(), Folder::default());
            Ok(())
        })
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.step(|state| {
            let idx = state.files.len();
            state.give(path, idx)?;
            let bytes = Vec::new();
            let synced = Vec::new();
            state.files.push(File { bytes, synced, written: SystemTime::now() });
            let file: Box<dyn DiskFile> = Box::new(OpenFile { disk: self.clone(), idx });
            Ok(file)
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|state| {
            let file = state.find(from)?;
            state.give(to, file)
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|state| {
            state.find(path)?;
            let (folder, name) = state.folder(path)?;
            folder.now.remove(&name);
            folder.changes.push((name, None));
            Ok(())
        })
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|state| {
            state.num_syncs += 1;
            let folder = state.folders.get_mut(path).ok_or(ErrorKind::NotFound)?;
            folder.synced.clone_from(&folder.now);
            folder.changes.clear();
            let inside = state.folders.keys().filter(|inside| inside.parent() == Some(path));
            state.synced_folders.extend(inside.cloned());
            Ok(())
        })
    }

    fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        self.look(|state| {
            let bytes = &state.files[state.find(path)?].bytes;
            Ok(bytes[..bytes.len().min(max_bytes as usize + 1)].to_vec())
        })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.look(|state| {
            let folder = state.folders.get(folder).ok_or(ErrorKind::NotFound)?;
            Ok(folder.now.keys().cloned().collect())
        })
    }

    fn stat(&self, path: &Path) -> io::Result<(u64, SystemTime)> {
        self.look(|state| {
            let file = &state.files[state.find(path)?];
            Ok((file.bytes.len() as u64, file.written))
        })
    }
}
