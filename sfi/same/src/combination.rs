//! What a batch of programs is compiled with.

use std::fmt;

const COMPILERS: [&str; 2] = ["clang", "gcc"];
const OPTIMISE: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-Os"];
const LEVELS: [&str; 3] = ["write", "full", "check"];
/// Options of ours, and of the compilers, that change what the rewriter gets or makes.
const OPTIONS: [&[&str]; 7] = [
    &[],
    &["-fpbl-base"],
    &["-march=x86-64-v3"],
    &["-fpbl-no-guard", "-fpbl-base"],
    &["-fpbl-no-stack", "-g"],
    &["-fpbl-no-elide", "-funroll-loops"],
    &["-fpbl-base", "-fpbl-no-merge", "-fno-jump-tables"],
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    pub compiler: &'static str,
    pub optimise: &'static str,
    pub level: &'static str,
    pub options: &'static [&'static str],
}

impl Combination {
    /// Thirty that follow one another have every compiler at every optimisation and level; 210 have
    /// everything.
    pub fn nth(n: usize) -> Combination {
        Combination {
            compiler: COMPILERS[n % 2],
            optimise: OPTIMISE[n / 2 % 5],
            level: LEVELS[n / 10 % 3],
            options: OPTIONS[(n + n / 30) % 7],
        }
    }

    /// Each once.
    pub fn all() -> impl Iterator<Item = Combination> {
        (0..210).map(Combination::nth)
    }

    /// The same with gcc, where clang will not do: the torture suite uses extensions of C that only gcc has.
    pub fn with_gcc(self) -> Option<Combination> {
        (self.compiler != "gcc").then_some(Combination { compiler: "gcc", ..self })
    }

    /// The compiler itself.
    pub fn native(&self) -> &'static str {
        if self.compiler == "gcc" { "gcc" } else { "clang-19" }
    }

    /// The options that both sides know.
    pub fn common(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().copied().filter(|option| !option.starts_with("-fpbl-"))
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--compiler {} {} -fpbl-level={}", self.compiler, self.optimise, self.level)?;
        self.options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_turn() {
        let mut seen = Vec::new();
        for combination in Combination::all() {
            let text = combination.to_string();
            assert!(!seen.contains(&text), "{text}");
            seen.push(text);
        }
    }
}
