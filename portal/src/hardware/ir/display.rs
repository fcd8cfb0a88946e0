//! Steps as the golden files show them.

use super::Op;
use core::fmt;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Scrub(set) => {
                write!(f, "Scrub(")?;
                for x in (0..32).filter(|x| set >> x & 1 == 1) {
                    write!(f, " x{x}")?;
                }
                write!(f, " )")
            }
            Op::FloatScrub(set) => write!(f, "FloatScrub({set:#010x})"),
            Op::Count(a)
            | Op::TryWait(a)
            | Op::TrySignal(a)
            | Op::FixedStack(a)
            | Op::Space(a)
            | Op::Entry(a) => {
                let name = match self {
                    Op::Count(_) => "Count",
                    Op::TryWait(_) => "TryWait",
                    Op::TrySignal(_) => "TrySignal",
                    Op::Space(_) => "Space",
                    Op::Entry(_) => "Entry",
                    _ => "FixedStack",
                };
                write!(f, "{name}({a:#x})")
            }
            other => write!(f, "{other:x?}"),
        }
    }
}
