//! Steps as the golden files show them.

use super::{Hidden, Op};
use core::fmt;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Scrub(Hidden { preserved, temporaries }) => {
                write!(f, "Scrub(the nucleus's")?;
                if *preserved {
                    write!(f, ", preserved")?;
                }
                if let Some(from) = temporaries {
                    write!(f, ", temporaries, arguments from {from}")?;
                }
                write!(f, ")")
            }
            Op::FloatScrub { preserved: true } => write!(f, "FloatScrub(all)"),
            Op::FloatScrub { preserved: false } => write!(f, "FloatScrub(temporaries)"),
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
