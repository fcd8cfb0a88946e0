//! Runs programs of a batch on both sides, and compares.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::batch::{Batch, Side};

/// Processor time (seconds) that a program may take natively; confined it gets twenty times as much. The clock decides nothing.
const SECONDS: u32 = 1;

/// What a program printed and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub said: Vec<u8>,
    /// On standard error, for messages.
    pub errors: String,
}

impl Ended {
    fn same(&self, other: &Ended) -> bool {
        (self.code, &self.said) == (other.code, &other.said)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = String::from_utf8_lossy(&self.said[..self.said.len().min(200)]);
        write!(f, "{:?} {:?} {}", self.code, said.trim(), self.errors)
    }
}

/// How many programs said the same, how many were left out since they do not work natively, and what differed.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub same: usize,
    pub unfit: usize,
    /// Programs of what fault domains do not have, which ended as is said of them.
    pub outside: usize,
    pub differences: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { same, unfit, outside, differences } = self;
        write!(f, "{same} the same, {} different, {unfit} unfit, {outside} outside", differences.len())
    }
}

impl Verdict {
    pub fn add(&mut self, other: Verdict) {
        self.same += other.same;
        self.unfit += other.unfit;
        self.outside += other.outside;
        self.differences.extend(other.differences);
    }
}

/// One program of an executable.
pub fn one(side: &Side, file: &Path, k: usize) -> Result<Ended> {
    let seconds = if matches!(side, Side::Native) { SECONDS } else { 20 * SECONDS };
    let mut sh = Command::new("sh");
    sh.args(["-c", &format!("ulimit -c 0; ulimit -t {seconds}; exec \"$@\""), "sh"]);
    if let Side::Confined { tool, .. } = side {
        sh.arg(tool).arg("run");
    }
    let output = sh.arg(file).arg(k.to_string()).stdin(Stdio::null()).output();
    let output = output.with_context(|| file.display().to_string())?;
    let errors = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Ok(Ended { code: output.status.code(), said: output.stdout, errors })
}

/// Builds a batch on both sides, and compares every program that works natively. `passes` says which native ends count: those of programs that
/// judge themselves.
pub fn compare(batch: &Batch, confined: &Side, passes: fn(&Ended) -> bool) -> Result<Verdict> {
    let built = (batch.build(&Side::Native)?, batch.build(confined)?);
    let ((native, unfit), (module, refused)) = match built {
        (Ok(native), Ok(confined)) => (native, confined),
        _ if batch.programs.len() > 1 => return halves(batch, confined, passes),
        (Err(_), _) => return Ok(Verdict { unfit: 1, ..Verdict::default() }),
        (_, Err(said)) => {
            return Ok(Verdict {
                differences: vec![batch.what(0) + ": link: " + &said],
                ..Verdict::default()
            });
        }
    };
    let mut verdict = Verdict { unfit: unfit.len(), ..Verdict::default() };
    for k in (0..batch.programs.len()).filter(|k| unfit.iter().all(|r| r.program != *k)) {
        let wanted = one(&Side::Native, &native, k)?;
        if !passes(&wanted) {
            verdict.unfit += 1;
            continue;
        }
        let wrong = match refused.iter().find(|r| r.program == k) {
            Some(refused) => Some(format!("refused: {}", refused.said)),
            None => {
                let found = one(confined, &module, k)?;
                (!found.same(&wanted)).then(|| format!("{found}, natively {wanted}"))
            }
        };
        match wrong {
            None => verdict.same += 1,
            Some(said) if batch.programs[k].outside.is_some_and(|text| said.contains(text)) => {
                verdict.outside += 1
            }
            Some(said) => verdict.differences.push(format!("{}: {said}", batch.what(k))),
        }
    }
    Ok(verdict)
}

/// Where one program is missed by the linker, the others are judged all the same.
fn halves(batch: &Batch, confined: &Side, passes: fn(&Ended) -> bool) -> Result<Verdict> {
    let (first, last) = batch.programs.split_at(batch.programs.len() / 2);
    let mut verdict = compare(&Batch { programs: first, ..*batch }, confined, passes)?;
    verdict.add(compare(&Batch { programs: last, ..*batch }, confined, passes)?);
    Ok(verdict)
}
