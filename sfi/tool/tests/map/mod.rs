//! perf's map of a process that gdb has run: the runtime leaves it, the test does not.

use std::path::PathBuf;

pub struct Map(pub PathBuf);

impl Map {
    /// By what gdb has said of the process.
    pub fn of(said: &str) -> Option<Map> {
        let number = |line: &str| line.split_once("process ")?.1.split_once(')')?.0.parse::<u32>().ok();
        Some(Map(format!("/tmp/perf-{}.map", said.lines().find_map(number)?).into()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
