//! What the rewriter refuses, where, and what to do about it.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Syntax(String),
    /// An instruction that no fault domain may contain.
    Forbidden(String),
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
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub file: String,
    pub line: usize,
    pub kind: Kind,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        match &self.kind {
            Kind::Syntax(t) => write!(f, "cannot read `{t}`; is this AT&T assembly?"),
            Kind::Forbidden(t) => {
                write!(f, "`{t}` is not allowed in a fault domain; call an import of the runtime instead")
            }
            Kind::Unsupported { what, hint } => write!(f, "no confined form of `{what}`; {hint}"),
            Kind::StackConflict(t) => {
                write!(
                    f,
                    "`{t}` is reached with two different stack depths; compile without hand-written assembly"
                )
            }
            Kind::StackRegister(t) => write!(
                f,
                "`{t}` uses rsp or rbp for something other than the stack; compile with -fno-omit-frame-pointer"
            ),
            Kind::Untyped(t) => write!(
                f,
                "`{t}` is code, but not declared a function; write `.type {t}, @function` before its label"
            ),
            Kind::JumpTable(t) => {
                write!(f, "`{t}`: the targets of this jump are not known; compile with -fno-jump-tables")
            }
        }
    }
}

impl std::error::Error for Error {}
