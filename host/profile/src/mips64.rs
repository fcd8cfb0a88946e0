//! MIPS: `DESAVE` has the root of the domain's page tables, and portal code writes it as the last step into
//! an address space, from the register into which `ld` has loaded the space. `EntryHi` would not do: the TLB
//! is searched with it, too.

use crate::Meaning;

const fn rt(word: u32) -> u8 {
    (word >> 16 & 31) as u8
}

pub fn meaning(word: u32) -> Option<Meaning> {
    match word {
        _ if word >> 26 == 0x37 => Some(Meaning::Load(rt(word))),
        // `dmtc0 rt, $31`
        _ if word & 0xffe0_ffff == 0x40a0_f800 => Some(Meaning::Enter(rt(word))),
        _ => None,
    }
}

/// `eret`
pub fn leaves(word: u32) -> bool {
    word == 0x4200_0018
}

/// `rdhwr rt, $2`: `Count`
pub fn counts(word: u32) -> bool {
    word & 0xffe0_ffff == 0x7c00_103b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_their_meanings() {
        // ld $15, 136($26); dmtc0 $15, $31; dmtc0 $15, $10; sd $31, 8($27)
        let code = [0xdf4f_0088, 0x40af_f800, 0x40af_5000, 0xff7f_0008];
        assert_eq!(code.map(meaning), [Some(Meaning::Load(15)), Some(Meaning::Enter(15)), None, None]);
        // rdhwr $2, $2; rdhwr $3, $29
        assert_eq!([0x7c02_103b, 0x7c03_e83b].map(counts), [true, false]);
    }
}
