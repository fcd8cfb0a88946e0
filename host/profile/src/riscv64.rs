//! rv64: `satp` names the address space, and portal code writes it with what `ld` has loaded.

use crate::Meaning;

/// Registers of an instruction.
const fn rd(word: u32) -> u8 {
    (word >> 7 & 31) as u8
}
const fn rs1(word: u32) -> u8 {
    (word >> 15 & 31) as u8
}

pub fn meaning(word: u32) -> Option<Meaning> {
    match word {
        _ if word & 0x707f == 0x3003 => Some(Meaning::Load(rd(word))),
        // `csrrw zero, satp, rs1`
        _ if word & 0xfff0_7fff == 0x1800_1073 => Some(Meaning::Enter(rs1(word))),
        _ => None,
    }
}

/// `sret`
pub fn leaves(word: u32) -> bool {
    word == 0x1020_0073
}

/// `rdinstret`
pub fn counts(word: u32) -> bool {
    word & 0xffff_f07f == 0xc020_2073
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_their_meanings() {
        // ld t3, 136(gp); csrw satp, t3; csrw sepc, t3; sd ra, 8(t1)
        let code = [0x0881_be03, 0x180e_1073, 0x141e_1073, 0x0013_3423];
        let told = [Some(Meaning::Load(28)), Some(Meaning::Enter(28)), None, None];
        assert_eq!(code.map(meaning), told);
        // rdinstret a0; rdtime a0
        assert_eq!([0xc020_2573, 0xc010_2573].map(counts), [true, false]);
    }
}
