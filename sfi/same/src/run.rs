//! Runs the programs of a batch, and compares.
//!
//! What a program must do is known before it is confined: a test of the torture suite judges itself and ends with 0, and of a random program it is
//! found out by a first compilation ([`known`]). So the combination's own compiler is only asked about programs that did something else confined:
//! if it agrees with what was known, there is a difference; if not, the program does not work natively either.

use std::fmt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::batch::{Batch, Program, Side};

/// Processor time (s) that a program may take. The clock decides nothing.
const SECONDS: u32 = 20;

/// What a program printed and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub said: Vec<u8>,
    /// On standard error, for messages.
    pub errors: String,
}

impl Ended {
    fn as_known(&self, program: &Program) -> bool {
        self.code == Some(0) && program.prints.as_ref().is_none_or(|text| *text == self.said)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = String::from_utf8_lossy(&self.said[..self.said.len().min(200)]);
        write!(f, "{:?} {:?} {}", self.code, said.trim(), self.errors)
    }
}

/// What became of programs.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Confined they did what they do natively.
    pub same: usize,
    /// Random programs that are not judged: natively they do not end within [`crate::batch::FIRST_MS`].
    pub endless: usize,
    /// Those that the compiler refuses, or that fail natively, too; and why.
    pub unfit: Vec<String>,
    /// Programs of what fault domains do not have, which ended as is said of them.
    pub outside: usize,
    pub differences: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { same, endless, unfit, outside, differences } = self;
        let (different, unfit) = (differences.len(), unfit.len());
        write!(
            f,
            "{same} the same, {different} different, {unfit} fail natively, {outside} outside, {endless} endless"
        )
    }
}

impl Verdict {
    pub fn add(&mut self, other: Verdict) {
        self.same += other.same;
        self.endless += other.endless;
        self.unfit.extend(other.unfit);
        self.outside += other.outside;
        self.differences.extend(other.differences);
    }
}

/// How each program of a batch ends; or what the compiler or the linker said.
fn outcomes(batch: &Batch, side: &Side) -> Result<Vec<Result<Ended, String>>> {
    let (file, refused) = match batch.build(side)? {
        Ok(built) => built,
        Err(said) if batch.programs.len() < 2 => {
            return Ok(vec![Err(format!("link: {said}")); batch.programs.len()]);
        }
        // Where one program is missed by the linker, the others are judged all the same.
        Err(_) => {
            let (first, last) = batch.programs.split_at(batch.programs.len() / 2);
            let mut ended = outcomes(&Batch { programs: first, ..*batch }, side)?;
            ended.extend(outcomes(&Batch { programs: last, ..*batch }, side)?);
            return Ok(ended);
        }
    };
    let run = |k: usize| -> Result<_> {
        if let Some(refused) = refused.iter().find(|r| r.program == k) {
            return Ok(Err(format!("refused: {}", refused.said)));
        }
        let mut sh = Command::new("sh");
        sh.args(["-c", &format!("ulimit -c 0; ulimit -t {SECONDS}; exec \"$@\""), "sh"]);
        if let Side::Confined { tool, .. } = side {
            sh.arg(tool).arg("run");
        }
        let output = sh.arg(&file).arg(k.to_string()).stdin(Stdio::null()).output();
        let output = output.with_context(|| file.display().to_string())?;
        let errors = String::from_utf8_lossy(&output.stderr).trim().to_string();
        Ok(Ok(Ended { code: output.status.code(), said: output.stdout, errors }))
    };
    (0..batch.programs.len()).map(run).collect()
}

/// The programs that end natively, and now know what they must print.
pub fn known(batch: &Batch) -> Result<Vec<Program>> {
    let ended = outcomes(batch, &Side::First)?;
    let both = batch.programs.iter().zip(ended);
    let known = both.filter_map(|(program, ended)| {
        let ended = ended.ok().filter(|ended| ended.code == Some(0))?;
        Some(Program { prints: Some(ended.said), ..program.clone() })
    });
    Ok(known.collect())
}

/// Builds a batch confined, and compares what its programs do with what is known of them. Those that do not work with clang get another trial
/// with gcc.
pub fn compare(batch: &Batch, confined: &Side) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut doubtful = Vec::new();
    for (k, ended) in outcomes(batch, confined)?.into_iter().enumerate() {
        match ended {
            Ok(ended) if ended.as_known(&batch.programs[k]) => verdict.same += 1,
            Ok(ended) => doubtful.push((k, ended.to_string())),
            Err(said) => doubtful.push((k, said)),
        }
    }
    let programs: Vec<Program> = doubtful.iter().map(|(k, _)| batch.programs[*k].clone()).collect();
    let natively = outcomes(&Batch { programs: &programs, ..*batch }, &Side::Native)?;
    let mut unfit = Vec::new();
    for (((k, said), native), program) in doubtful.iter().zip(natively).zip(&programs) {
        match native {
            Ok(native) if native.as_known(program) => match program.outside {
                Some(text) if said.contains(text) => verdict.outside += 1,
                _ => verdict.differences.push(format!("{}: {said}, natively {native}", batch.what(*k))),
            },
            Ok(native) => unfit.push((program.clone(), format!("{}: {native}", batch.what(*k)))),
            Err(said) => unfit.push((program.clone(), format!("{}: {said}", batch.what(*k)))),
        }
    }
    match batch.combination.with_gcc().filter(|_| !unfit.is_empty()) {
        Some(combination) => {
            let programs: Vec<Program> = unfit.into_iter().map(|(program, _)| program).collect();
            verdict.add(compare(&Batch { programs: &programs, combination, ..*batch }, confined)?);
        }
        None => verdict.unfit = unfit.into_iter().map(|(_, why)| why).collect(),
    }
    Ok(verdict)
}
