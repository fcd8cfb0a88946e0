//! Many programs in one executable, natively and as a module: the first argument says which one runs.
//!
//! Each program's `main` gets a name of its own, and everything else that it defines becomes local, so that
//! they do not meet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::combination::Combination;

/// A program of a batch.
#[derive(Clone, Debug)]
pub struct Program {
    /// What messages call it.
    pub name: String,
    pub source: PathBuf,
    pub options: Vec<String>,
    /// Nothing of it but `main` is global, and that says what it returns.
    pub plain: bool,
    /// What it must print, if that is known: otherwise it judges itself. It ends with 0.
    pub prints: Option<Vec<u8>>,
    /// What is said of it where it wants what fault domains do not have.
    pub outside: Option<&'static str>,
}

/// Who compiles a batch.
#[derive(Clone, Debug)]
pub enum Side {
    /// clang without optimisation: in the least time, for what a program must print. It may run for
    /// [`FIRST_MS`].
    First,
    /// The combination's compiler itself.
    Native,
    /// gcc, with code that ends the program where it converts a number of floating point that the integer
    /// cannot hold: what that gives is not defined, and csmith does not prevent it.
    Examined,
    /// `pebble sfi cc`, by the path of the tool and that of the C library.
    Confined { tool: PathBuf, library: PathBuf },
}

/// Processor time (ms) that a program may take at first. Nearly all want 1 or 2, the others hours.
pub const FIRST_MS: u32 = 100;

pub struct Batch<'a> {
    pub programs: &'a [Program],
    pub combination: Combination,
    /// A directory of its own.
    pub place: &'a Path,
}

/// Why a program is not in the executable: what the compiler said.
#[derive(Clone, Debug)]
pub struct Refused {
    pub program: usize,
    pub said: String,
}

impl Batch<'_> {
    /// Compiles what can be compiled, links it, and tells of the rest: the file's name and who is missing; or
    /// what the linker said.
    pub fn build(&self, side: &Side) -> Result<Result<(PathBuf, Vec<Refused>), String>> {
        fs::create_dir_all(self.place)?;
        let (mut objects, mut refused) = (Vec::new(), Vec::new());
        for k in 0..self.programs.len() {
            match self.compile(side, k)? {
                Ok(object) => objects.push((k, object)),
                Err(said) => refused.push(Refused { program: k, said }),
            }
        }
        let chosen = self.place.join("chosen.c");
        let numbers = || objects.iter().map(|(k, _)| k);
        let declared: String = numbers().map(|k| format!("int main_{k}();\n")).collect();
        let cases: String = numbers().map(|k| format!("case {k}: return main_{k}(1, argv);\n")).collect();
        let limit = match side {
            Side::First => {
                format!("setitimer(ITIMER_PROF, &(struct itimerval){{{{0}}, {{0, {FIRST_MS}000}}}}, 0);")
            }
            _ => String::new(),
        };
        let text = format!(
            "#include <stdlib.h>\n#include <sys/time.h>\n{declared}\
             int main(int argc, char **argv) {{ {limit} switch (atoi(argv[1])) {{ {cases} }} return 99; }}\n"
        );
        fs::write(&chosen, text)?;
        let made =
            self.place.join(if matches!(side, Side::Confined { .. }) { "confined.pbl" } else { "native" });
        let mut link = self.compiler(side);
        link.args(["-w", "-O1"]).arg(&chosen).args(objects.iter().map(|(_, object)| object));
        let linked = output(link.args(["-o".as_ref(), made.as_os_str()]).arg("-lm"))?;
        Ok(linked.map(|()| (made, refused)))
    }

    /// The program and what it is compiled with, for messages.
    pub fn what(&self, k: usize) -> String {
        let program = &self.programs[k];
        format!("{}: {} {}", program.name, self.combination, program.options.join(" "))
    }

    fn compiler(&self, side: &Side) -> Command {
        let Combination { compiler, level, .. } = self.combination;
        match side {
            Side::First => Command::new("clang-19"),
            Side::Native => Command::new(self.combination.native()),
            Side::Examined => {
                let mut gcc = Command::new("gcc");
                gcc.args(["-fsanitize=float-cast-overflow", "-fno-sanitize-recover=all"]);
                gcc
            }
            Side::Confined { tool, library } => {
                let mut cc = Command::new(tool);
                cc.args(["cc", "--compiler", compiler]).arg(format!("-fpbl-level={level}"));
                cc.env("PEBBLE_SFI_LIBC", library);
                cc
            }
        }
    }

    /// The object, or what the compiler said instead.
    fn compile(&self, side: &Side, k: usize) -> Result<Result<PathBuf, String>> {
        let program = &self.programs[k];
        let object = self.place.join(format!("{k}.o"));
        let mut cc = self.compiler(side);
        cc.args(["-w", "-c", "-ffp-contract=off"]);
        if program.plain {
            cc.arg(format!("-Dmain=main_{k}"));
        }
        match side {
            Side::First | Side::Examined => cc.arg("-O0"),
            Side::Native => cc.arg(self.combination.optimise).args(self.combination.common()),
            Side::Confined { .. } => cc.arg(self.combination.optimise).args(self.combination.options),
        };
        cc.args(&program.options).arg(&program.source).arg("-o").arg(&object);
        if let Err(said) = output(&mut cc)? {
            return Ok(Err(said));
        }
        if !program.plain {
            // Not by the preprocessor: only of `main` the end means 0.
            let mut rename = Command::new("objcopy");
            for part in ["", "$code"] {
                rename.arg(format!("--keep-global-symbol=main_{k}{part}"));
                rename.arg(format!("--redefine-sym=main{part}=main_{k}{part}"));
            }
            let renamed = output(rename.arg(&object))?;
            ensure!(renamed.is_ok(), "objcopy: {renamed:?}");
        }
        Ok(Ok(object))
    }
}

/// What a command says on standard error, if it fails.
fn output(command: &mut Command) -> Result<Result<(), String>> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}
