//! The registers of templates on MIPS.

use super::Register;
use crate::isa::mips64::encode::{A0, Reg, T2, T3, T4, T5, T6, ZERO};

pub const fn register(register: Register) -> Reg {
    match register {
        Register::Zero => ZERO,
        Register::Word => T2,
        Register::Base => T3,
        Register::Caller => T4,
        Register::Callee => T5,
        Register::A => T6,
        Register::B => A0,
    }
}
