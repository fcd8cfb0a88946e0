//! Steps as the golden files show them.

use super::{Hidden, Op};
use crate::hardware::hole::Named;
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
            Op::Supply { to, arg, value } => {
                write!(f, "Supply {{ to: {to}, arg: {arg:?}, value: {} }}", Named(*value))
            }
            other => write!(f, "{other:x?}"),
        }
    }
}
