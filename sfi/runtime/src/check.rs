//! Level `check`: which trap is a failed comparison, and the address that it has found outside.
//!
//! Problem: the comparison is the module's code and ends in `ud2`, like other traps. Strategy: `sfi/rewrite`
//! writes it in three forms, known by the bytes around the trap; each leaves what it has made of the address
//! in one register, by steps that can be undone. A module may have the same bytes for something else: then
//! what is said of its fault is wrong, and nothing else is.

use crate::module::Module;

const RCX: usize = 1;
const R11: usize = 11;

/// The bytes around a trap, and how many of them lie before it.
struct Form(&'static [u8], usize);

/// subq base, r; bswapq r; *testl r, r; je; ud2; popq r*.
const DIFFERENCES: [(Form, usize); 2] = [
    (Form(b"\x48\x0f\xc9\x85\xc9\x74\x02\x0f\x0b\x59", 7), RCX),
    (Form(b"\x49\x0f\xcb\x45\x85\xdb\x74\x02\x0f\x0b\x41\x5b", 8), R11),
];
/// bswapq %rcx; bswapq r (the base); notl r; leaq 1(%rcx,r), %rcx; *jecxz; ud2; popq %rcx*.
const SUM: Form = Form(b"\x67\xe3\x02\x0f\x0b\x59", 3);

impl Form {
    fn is_around(&self, module: &Module, at: u64) -> bool {
        let code = at.checked_sub(self.1 as u64).and_then(|at| module.verdict.code(module, at, self.0.len()));
        code == Some(self.0)
    }
}

/// The address that a comparison has refused, if the trap at this segment offset is one. Called in the signal
/// handler.
pub fn refused(module: &Module, at: u64, base: u64, registers: &[u64; 16]) -> Option<u64> {
    if let Some((_, register)) = DIFFERENCES.iter().find(|(form, _)| form.is_around(module, at)) {
        return Some(registers[*register].swap_bytes().wrapping_add(base));
    }
    let negated = u64::from(!(base.swap_bytes() as u32));
    SUM.is_around(module, at).then(|| registers[RCX].wrapping_sub(negated + 1).swap_bytes())
}
