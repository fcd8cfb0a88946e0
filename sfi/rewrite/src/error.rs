//! What the rewriter refuses, where, and what to do about it.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Syntax(String),
    /// An instruction that no fault domain may contain, and what to do about it.
    Forbidden(String, &'static str),
    /// Bytes among the code.
    Data(String),
    /// An instruction or pattern the rewriter has no translation for.
    Unsupported {
        what: String,
        hint: &'static str,
    },
    /// Two paths reach an instruction with different stack layouts.
    StackConflict(String),
    /// `rbp` or `rsp` used as a general register.
    StackRegister(String),
    /// Code under a symbol that is not declared a function.
    Untyped(String),
    /// An indirect jump whose targets cannot be found.
    JumpTable(String),
    /// Code that is made when it runs.
    Trampoline(String),
    /// An access to what lies on the return stack.
    ReturnStack(String),
    /// More registers are in use than there are.
    NoRegister,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub file: String,
    pub line: usize,
    /// File and line of the source, if the assembly tells.
    pub source: Option<(String, usize)>,
    pub kind: Kind,
}

impl Error {
    pub fn new(file: &str, line: usize, kind: Kind) -> Error {
        Error { file: file.into(), line, source: None, kind }
    }

    /// Looks for the source's line in the assembly: the last `.loc` before it in its function, and the
    /// `.file` that it names.
    pub(crate) fn with_source(mut self, text: &str) -> Error {
        let before: Vec<&str> = text.lines().take(self.line).map(str::trim).collect();
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        // Behind a function comes its size.
        let function = before.rsplit(|line| line.starts_with(".size")).next().unwrap_or_default();
        let loc = function.iter().rfind(|line| line.starts_with(".loc")).map(|line| words(line));
        let Some([_, number, line, ..]) = loc.as_deref() else { return self };
        let named = |line: &&str| line.starts_with(".file") && words(line).get(1) == Some(number);
        // Directory and name, or the name alone.
        let name = text.lines().map(str::trim).find(named).and_then(|line| line.split('"').nth_back(1));
        self.source = name.map(Into::into).zip(line.parse().ok());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some((file, line)) => write!(f, "{file}:{line}: (line {} of {}) ", self.line, self.file)?,
            None => write!(f, "{}:{}: ", self.file, self.line)?,
        }
        match &self.kind {
            Kind::Syntax(t) => write!(f, "cannot read `{t}`; is this AT&T assembly?"),
            Kind::Forbidden(t, hint) => write!(f, "`{t}` is not allowed in a fault domain; {hint}"),
            Kind::Data(t) => write!(
                f,
                "`{t}` puts bytes among the code, which nobody could confine; write the instruction itself, \
                 or place data in .rodata"
            ),
            Kind::Unsupported { what, hint } => write!(f, "no confined form of `{what}`; {hint}"),
            Kind::StackConflict(t) => {
                write!(
                    f,
                    "`{t}` is reached with two different stack depths; compile without hand-written assembly"
                )
            }
            Kind::StackRegister(t) => write!(
                f,
                "`{t}` uses rsp or rbp for something other than the stack; compile with \
                 -fno-omit-frame-pointer, and for jumps out of a function use setjmp and longjmp"
            ),
            Kind::Untyped(t) => write!(
                f,
                "`{t}` is code, but not declared a function; write `.type {t}, @function` before its label"
            ),
            Kind::JumpTable(t) => {
                write!(f, "`{t}`: the targets of this jump are not known; compile with -fno-jump-tables")
            }
            Kind::Trampoline(t) => write!(
                f,
                "`{t}` makes code on the stack, as gcc does where the address of a nested function is taken, \
                 and code that is made later is never run; make it a function of its own, and pass it what \
                 it needs"
            ),
            Kind::ReturnStack(t) => write!(
                f,
                "`{t}`: return addresses and the frame pointers of callers are where no code can read or \
                 write them; do without __builtin_return_address, and __builtin_frame_address of more than 0"
            ),
            Kind::NoRegister => {
                write!(f, "this instruction leaves no register free; write it with fewer operands")
            }
        }
    }
}

impl std::error::Error for Error {}
