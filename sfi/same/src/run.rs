//! Runs the programs of a batch, and compares.
//!
//! What a program must do is known before it is confined: a test of the torture suite judges itself and ends
//! with 0, and of a random program it is found out by a first compilation ([`known`]). So the combination's
//! own compiler is only asked about programs that did something else confined: what its code does natively,
//! that must be done confined. A program that fails natively, does something else each time, or does what is
//! not defined ([`Side::Examined`]), shows nothing.

use std::fmt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::batch::{Batch, Program, Side};

/// Processor time (s) that a program may take. The clock decides nothing.
const SECONDS: u32 = 20;

/// One in so many may fail natively, of all combinations of a run.
const UNFIT: usize = 200;

/// How a program ended; or what the compiler or the linker said.
type Outcome = Result<Ended, String>;

/// What a program printed and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub said: Vec<u8>,
    /// On standard error, for messages.
    pub errors: String,
}

impl Ended {
    fn did(&self, other: &Ended) -> bool {
        (self.code, &self.said) == (other.code, &other.said)
    }

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
    /// Seeds of random programs, also of those that are not tried.
    pub seeds: u64,
    /// Random programs that are not judged: natively they do not end within [`crate::batch::FIRST_MS`].
    pub endless: usize,
    /// Those that the compiler refuses, or that fail natively, too, or are unsteady; and why.
    pub unfit: Vec<String>,
    /// Programs of what fault domains do not have, which ended as is said of them.
    pub outside: usize,
    pub differences: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { same, seeds, endless, unfit, outside, differences } = self;
        let (different, unfit) = (differences.len(), unfit.len());
        write!(
            f,
            "{same} the same, {different} different, {unfit} fail natively, {outside} outside, {endless} \
             endless"
        )?;
        if *seeds > 0 { write!(f, "; {seeds} seeds done") } else { Ok(()) }
    }
}

impl Verdict {
    pub fn add(&mut self, other: Verdict) {
        self.same += other.same;
        self.seeds += other.seeds;
        self.endless += other.endless;
        self.unfit.extend(other.unfit);
        self.outside += other.outside;
        self.differences.extend(other.differences);
    }

    /// Nothing is different, and few were not judged: by those nothing is shown.
    pub fn passes(&self) -> bool {
        let all = self.same + self.outside + self.differences.len() + self.unfit.len();
        self.differences.is_empty() && self.same > 0 && self.unfit.len() <= all.div_ceil(UNFIT)
    }
}

/// What is to be said of a program that confined did not do what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Same,
    Outside,
    Different,
    Unfit,
}

/// Judges by what the combination's compiler makes of it natively; `alone` is what it does when another side
/// has compiled it.
fn judge(
    program: &Program,
    confined: &Outcome,
    native: &Outcome,
    alone: impl Fn(Side) -> Result<Outcome>,
) -> Result<Judged> {
    let Ok(natively) = native else { return Ok(Judged::Unfit) };
    let judges_itself = program.prints.is_none();
    if natively.as_known(program) {
        let said = told(confined);
        if program.outside.is_some_and(|text| said.contains(text)) {
            return Ok(Judged::Outside);
        }
    } else if judges_itself || natively.code != Some(0) {
        return Ok(Judged::Unfit);
    } else if confined.as_ref().is_ok_and(|confined| confined.did(natively)) {
        return Ok(Judged::Same);
    }
    let steady = || anyhow::Ok(alone(Side::Native)?.is_ok_and(|again| again.did(natively)));
    let defined = || anyhow::Ok(alone(Side::Examined)?.is_ok_and(|ended| ended.code == Some(0)));
    Ok(if judges_itself || steady()? && defined()? { Judged::Different } else { Judged::Unfit })
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Ok(ended) => ended.to_string(),
        Err(said) => said.clone(),
    }
}

/// How each program of a batch ends.
fn outcomes(batch: &Batch, side: &Side) -> Result<Vec<Outcome>> {
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

/// Builds a batch confined, and compares what its programs do with what is known of them. Those that do not
/// work with clang get another trial with gcc.
pub fn compare(batch: &Batch, confined: &Side) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut doubtful = Vec::new();
    for (k, ended) in outcomes(batch, confined)?.into_iter().enumerate() {
        match ended {
            Ok(ended) if ended.as_known(&batch.programs[k]) => verdict.same += 1,
            other => doubtful.push((k, other)),
        }
    }
    let programs: Vec<Program> = doubtful.iter().map(|(k, _)| batch.programs[*k].clone()).collect();
    let natively = outcomes(&Batch { programs: &programs, ..*batch }, &Side::Native)?;
    let mut unfit = Vec::new();
    for (((k, confined), native), program) in doubtful.iter().zip(natively).zip(&programs) {
        let alone = |side| {
            let alone = Batch { programs: std::slice::from_ref(program), ..*batch };
            Ok(outcomes(&alone, &side)?.remove(0))
        };
        let (what, natively) = (batch.what(*k), told(&native));
        match judge(program, confined, &native, alone)? {
            Judged::Same => verdict.same += 1,
            Judged::Outside => verdict.outside += 1,
            Judged::Different => {
                verdict.differences.push(format!("{what}: {}, natively {natively}", told(confined)));
            }
            Judged::Unfit => unfit.push((program.clone(), format!("{what}: {natively}"))),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, said: &str) -> Outcome {
        Ok(Ended { code: Some(code), said: said.into(), errors: String::new() })
    }

    /// The judgement of a random program for which clang has printed `1`; the other compiler's code prints
    /// something, and something again; when it is examined, it ends so.
    fn judged(confined: Outcome, native: Outcome, again: Outcome, examined: i32) -> Judged {
        let prints = Some(b"1".to_vec());
        let (source, options) = (Default::default(), Vec::new());
        let program = Program { name: String::new(), source, options, plain: true, prints, outside: None };
        let alone = |side| match side {
            Side::Examined => Ok(ended(examined, "")),
            _ => Ok(again.clone()),
        };
        judge(&program, &confined, &native, alone).expect("nothing runs")
    }

    #[test]
    fn the_same_compiler_decides() {
        let refused = || Err("refused".to_string());
        assert_eq!(judged(ended(0, "2"), ended(0, "2"), refused(), 0), Judged::Same);
        assert_eq!(judged(ended(0, "2"), ended(0, "1"), ended(0, "1"), 0), Judged::Different);
        assert_eq!(judged(ended(0, "3"), ended(0, "2"), ended(0, "2"), 0), Judged::Different);
        assert_eq!(judged(refused(), ended(0, "2"), ended(0, "2"), 0), Judged::Different);
        assert_eq!(judged(ended(0, "3"), ended(0, "2"), ended(0, "4"), 0), Judged::Unfit);
        assert_eq!(judged(ended(1, "2"), ended(1, "2"), ended(1, "2"), 0), Judged::Unfit);
        assert_eq!(judged(refused(), refused(), refused(), 0), Judged::Unfit);
    }

    #[test]
    fn what_is_not_defined_shows_nothing() {
        for native in ["1", "2"] {
            assert_eq!(judged(ended(0, "3"), ended(0, native), ended(0, native), 1), Judged::Unfit);
            assert_eq!(judged(ended(0, "3"), ended(0, native), ended(0, "4"), 0), Judged::Unfit);
        }
    }

    #[test]
    fn as_many_may_be_unfit_as_a_run_is_long() {
        let run = |same, unfit| Verdict { same, unfit: vec![String::new(); unfit], ..Verdict::default() };
        assert!(run(20_000, 100).passes() && run(995, 5).passes() && run(10, 1).passes());
        assert!(!run(994, 6).passes() && !run(10, 2).passes() && !run(0, 1).passes());
        let different = Verdict { differences: vec![String::new()], ..run(1000, 0) };
        assert!(!different.passes());
    }
}
