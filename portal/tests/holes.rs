//! Portals made by hand to break what the verifier promises. Each differs from one that is accepted by a few
//! instructions, and with harmless ones in the same places it is accepted.

mod common;

use common::cases;
use common::edit::Edit;
use common::words::{Mips, Rv, Words};
use pebble_portal::isa::mips64::encode as m;
use pebble_portal::isa::riscv64::encode as r;

/// The reserve is asked for by a test that can never fail.
#[test]
fn mips_reserve() {
    let mut e = Edit::<Mips>::named("from-server");
    let at = e.find(0, "xori $14, $14, 3072");
    e.words[at] = m::daddiu(14, 14, -3);
    e.refused("a full stack is not noticed");
}

/// Behind a call of the nucleus its return address is changed.
#[test]
fn mips_call_comes_back_elsewhere() {
    for name in ["short-flush", "short-idle", "window-smw2", "window-smt16"] {
        let mut e = Edit::<Mips>::named(name);
        let at = e.first(0, "jalr $25");
        let slot = e.words[at + 1];
        e.insert(at, &[slot, 0]);
        e.words[at + 3] = 0;
        assert_eq!(e.verdict(), Ok(()), "{name}");
        // To whoever the caller likes.
        e.words[at + 3] = m::copy(25, 5);
        e.refused(name);
        e.words[at + 3] = m::ld(25, 27, 0);
        e.refused(name);
    }
}

/// What stands behind the call sees the return address already.
#[test]
fn mips_call_tells_its_address() {
    let mut e = Edit::<Mips>::named("window-smt16");
    let at = e.first(0, "jalr $25");
    let slot = e.words[at + 1];
    // ra gets the constant, of which the verifier thinks that it is in $25.
    e.insert(at, &[slot, m::ori(25, 0, 0x8000)]);
    e.words[at + 3] = m::copy(31, 25);
    let gate = e.find(at, "ori $ra, $zero, 32768");
    e.words[gate] = 0;
    e.refused("the callee finds the nucleus's address in ra");
}

/// A return leg goes on elsewhere.
#[test]
fn mips_interrupt_returns_into_an_exception() {
    let mut e = Edit::<Mips>::named("interrupt");
    let leave = e.find(e.ret, "eret");
    let end = [m::ehb(), m::dmfc0(26, 31), m::ld(26, 26, 64), m::ld(26, 26, 8), m::jr(26), 0];
    for i in e.ret..leave {
        if ["ei", "mthi $14", "mtlo $14", "move $26, $zero", "move $27, $zero", "ehb"]
            .contains(&&*Mips::text(e.words[i]))
        {
            e.words[i] = 0;
        }
    }
    e.words.truncate(leave);
    e.words.extend(end);
    e.refused("interrupts stay off, hi and lo are the handler's");
}

#[test]
fn rv_interrupt_returns_into_an_exception() {
    let mut e = Edit::<Rv>::named("interrupt");
    let leave = e.find(e.ret, "sret");
    for i in e.ret..leave {
        let text = Rv::text(e.words[i]);
        if text.contains("sie") || text == "addi gp, zero, 0" {
            e.words[i] = 0x13;
        }
    }
    e.words.truncate(leave);
    e.words.extend([r::ld(3, 0, 8), r::jalr(0, 3, 0)]);
    e.refused("interrupts stay off");
}

/// The caller's address is looked for in the callee's space, and the window's stays in the TLB.
#[test]
fn mips_another_address_is_forgotten() {
    let mut e = Edit::<Mips>::named("window-smw");
    let word = e.grow(1);
    let at = e.find(0, "sd $ra, 8($27)");
    e.insert(at + 1, &[m::sd(5, 27, word as i32), 0]);
    let at = e.find(e.ret, "ld $14, 8($13)");
    e.words[at] = m::ld(14, 27, e.kept(word) as i32);
    e.refused("the window's translation stays");
}

/// Of a page, the entry of the level above is overwritten.
#[test]
fn mips_tears_a_table() {
    let mut e = Edit::<Mips>::named("window-npt");
    let at = e.find(0, "dins $15, $14, 3, 9");
    e.insert(at + 1, &[m::copy(11, 15), 0]);
    assert_eq!(e.verdict(), Ok(()));
    let at = e.find(0, "sd $zero, 0($10)");
    e.words[at] = m::sd(0, 11, 0);
    e.refused("512 pages are gone");
}

#[test]
fn rv_tears_a_table() {
    let mut e = Edit::<Rv>::named("window-npt");
    let first = e.find(0, "srli t2, a1, 21");
    let table = e.words[first..first + 4].to_vec();
    let at = e.find(0, "sd zero, 0(a6)");
    e.insert(at, &table);
    e.words[at + 2] = e.words[at + 2] & !(31 << 7) | 29 << 7;
    e.words[at + 3] = r::add(7, 7, 29);
    assert_eq!(e.verdict(), Ok(()));
    e.words[at + 4] = r::sd(0, 7, 0);
    e.refused("512 pages are gone");
}

#[test]
fn mips_gets_a_table() {
    let mut e = Edit::<Mips>::named("window-smg");
    let word = e.grow(1);
    let at = e.find(0, "dins $15, $14, 3, 9");
    e.insert(at + 1, &[m::sd(15, 27, word as i32), 0]);
    let at = e.find(e.ret, "sd $15, 0($14)");
    e.insert(at, &[0; 2]);
    e.words[at] = m::ld(14, 27, e.kept(word) as i32);
    e.refused("a leaf maps 2 MiB");
}

#[test]
fn rv_gets_a_table() {
    let mut e = Edit::<Rv>::named("window-smg");
    let word = e.grow(1);
    let at = e.find(0, "add t2, t2, t3");
    e.insert(at + 1, &[r::sd(7, 6, word as i32), 0x13]);
    let at = e.find(e.ret, "sd t3, 0(t2)");
    e.insert(at, &[0x13; 2]);
    e.words[at] = r::ld(7, 6, e.kept(word) as i32);
    e.refused("a leaf maps 2 MiB");
}

/// A head of the stack queue that was read before the call is the next of the stack that comes back: itself.
#[test]
fn mips_stale_head() {
    let mut e = Edit::<Mips>::named("call-nm");
    let word = e.grow(1);
    let at = e.find(0, "ld $24, 0($15)");
    e.insert(at + 1, &[m::sd(15, 27, word as i32), 0]);
    let at = e.find(e.ret, "sd $24, 0($15)");
    e.words[at - 1] = m::ld(24, 27, e.kept(word) as i32);
    e.refused("a stack is given twice");
}

#[test]
fn rv_stale_head() {
    let mut e = Edit::<Rv>::named("call-nm");
    let word = e.grow(1);
    let at = e.find(0, "ld t4, 0(t3)");
    e.insert(at + 1, &[r::sd(28, 6, word as i32), 0x13]);
    let at = e.find(e.ret, "sd t4, 0(t3)");
    e.words[at - 1] = r::ld(29, 6, e.kept(word) as i32);
    e.refused("a stack is given twice");
}

/// The same of slots.
#[test]
fn mips_stale_slot() {
    let mut e = Edit::<Mips>::named("window-smw");
    let word = e.grow(1);
    let at = e.find(0, "ld $3, 0($13)");
    e.insert(at + 1, &[m::sd(3, 27, word as i32), 0]);
    let at = e.find(e.ret, "sd $14, 0($13)");
    e.words[at - 1] = m::ld(14, 27, e.kept(word) as i32);
    e.refused("a slot is given twice");
}

#[test]
fn rv_stale_slot() {
    let mut e = Edit::<Rv>::named("window-smw");
    let word = e.grow(1);
    let at = e.find(0, "ld t6, 0(t5)");
    e.insert(at + 1, &[r::sd(31, 6, word as i32), 0x13]);
    let at = e.find(e.ret, "sd t2, 0(t5)");
    e.words[at - 1] = r::ld(7, 6, e.kept(word) as i32);
    e.refused("a slot is given twice");
}

/// How many pages have moved is counted from what it was before the call.
#[test]
fn mips_stale_count() {
    let mut e = Edit::<Mips>::named("window-smg");
    let word = e.grow(1);
    let at = e.find(0, "sd $ra, 8($27)");
    e.insert(at + 1, &[m::ld(14, 13, 16), m::sd(14, 27, word as i32)]);
    let at = e.find(e.ret, "ld $14, 16($24)");
    e.words[at] = m::ld(14, 27, e.kept(word) as i32);
    e.refused("pages are forgotten");
}

#[test]
fn rv_stale_count() {
    let mut e = Edit::<Rv>::named("window-smg");
    let word = e.grow(1);
    let at = e.find(0, "sd ra, 8(t1)");
    e.insert(at + 1, &[r::ld(7, 30, 16), r::sd(7, 6, word as i32)]);
    let at = e.find(e.ret, "ld t2, 16(t4)");
    e.words[at] = r::ld(7, 6, e.kept(word) as i32);
    e.refused("pages are forgotten");
}

/// What has passed since a time that was kept is added to it twice.
#[test]
fn mips_time_passes_twice() {
    let mut e = Edit::<Mips>::named("call-nmh");
    let word = e.grow(1);
    let at = e.find(0, "dext $15, $15, 0, 32");
    let (add, keep) = (e.words[at + 1], e.words[at + 2]);
    let load = e.words[at - 2];
    let back = e.kept(word) as i32;
    e.insert(at + 1, &[m::sd(15, 27, back), 0]);
    e.insert(at + 5, &[m::ld(15, 27, back), load, add, keep]);
    e.refused("time runs ahead");
}

/// The callee has not given, and the status says that all is well.
#[test]
fn mips_nobody_is_blamed() {
    let mut e = Edit::<Mips>::named("window-smg");
    let at = e.find(e.ret, "movz $3, $24, $3");
    let code = [
        m::copy(8, 3),
        m::daddiu(3, 0, 1),
        m::bne(3, 0, 20),
        0,
        m::copy(3, 24),
        m::beq(0, 0, 12),
        0,
        m::copy(3, 8),
        0,
    ];
    e.insert(at, &code[..8]);
    e.words[at + 8] = 0;
    e.refused("nothing was given");
}

#[test]
fn rv_nobody_is_blamed() {
    let mut e = Edit::<Rv>::named("window-smg");
    let at = e.find(e.ret, "bne a1, zero, 8");
    // The load of a1 follows.
    e.insert(at, &[r::addi(12, 11, 0), r::addi(11, 0, 1)]);
    e.insert(at + 4, &[r::beq(0, 0, 8), r::addi(11, 12, 0)]);
    e.words[at + 2] = r::bne(11, 0, 12);
    e.refused("nothing was given");
}

/// Frames are as long as those that `depth` counts with.
#[test]
fn mips_long_frame() {
    let mut e = Edit::<Mips>::named("from-server");
    let (more, first) = (30, e.grow(30));
    let at = e.find(0, "sd $ra, 8($27)");
    let fill: Vec<u32> = (0..more).map(|i| m::sd(0, 27, (first + i * 8) as i32)).collect();
    e.insert(at + 1, &fill);
    e.refused("the frame is too long");
}

/// Nothing is stored above a top that was not looked at, but the one word behind that branch.
#[test]
fn mips_stores_beyond_the_stack() {
    let mut e = Edit::<Mips>::named("call-np");
    let at = e.find(0, "sd $16, 24($27)");
    let store = core::mem::take(&mut e.words[at]);
    e.insert(0, &[store, 0]);
    e.refused("a word of the next page is overwritten");
}

#[test]
fn rv_stores_beyond_the_stack() {
    let mut e = Edit::<Rv>::named("call-np");
    let at = e.find(0, "sd s0, 24(t1)");
    let store = core::mem::replace(&mut e.words[at], Rv::NOP);
    e.insert(1, &[store, Rv::NOP]);
    e.refused("a word of the next page is overwritten");
}

/// The TLB's domain is written while it is not there yet, when the nucleus reads it.
#[test]
fn mips_flush_reads_a_domain_on_its_way() {
    let mut e = Edit::<Mips>::named("window-smw2");
    let at = e.first(e.ret, "jalr $25");
    let enter = e.find(e.ret, "dmtc0 $15, $10, 0");
    let four: Vec<u32> = e.words[enter - 1..enter + 3].iter_mut().map(core::mem::take).collect();
    // Where $k1 was is another register.
    let (kept, back) = (e.find(e.ret, "move $15, $27"), e.find(at, "move $27, $15"));
    (e.words[kept], e.words[back]) = (m::copy(14, 27), m::copy(27, 14));
    e.insert(at, &four);
    e.refused("EntryHi may become what it was before");
}

/// So deep a nest would take the portal manager's stack.
#[test]
fn mips_nested_branches() {
    let mut e = Edit::<Mips>::named("window-smw");
    let at = e.find(e.ret, "bltz $15, 76");
    const MORE: i32 = 60;
    let all: Vec<u32> = (0..MORE).flat_map(|i| [m::bltz(15, 64 + (MORE - i) * 8), 0]).collect();
    e.insert(at + 2, &all);
    e.refused("a branch in what a branch passes over");
}

/// A space that is no direct address has no root that is known.
#[test]
fn mips_root_of_another_space() {
    let case = cases::all().into_iter().find(|case| case.name == "call-sm").expect("a case");
    let mut e = Edit::<Mips>::new(&case);
    e.case.connection.callee.space = 0x1234_5678_9abc_0007;
    e.words = e.case.form().words.to_vec();
    let at = e.find(0, "dins $15, $zero, 0, 8");
    e.words[at] = m::daddu(15, 5, 6);
    e.refused("the root is what the caller says");
}

/// An interrupt is no exception.
#[test]
fn mips_interrupt_is_told_as_exception() {
    for name in ["interrupt", "call-nm"] {
        let mut e = Edit::<Mips>::named(name);
        e.words = vec![m::dmfc0(26, 31), m::ld(26, 26, 64), m::ld(26, 26, 8), m::jr(26), 0, 0];
        e.refused(name);
    }
}
#[test]
fn rv_interrupt_is_told_as_exception() {
    for name in ["interrupt", "call-nm"] {
        let mut e = Edit::<Rv>::named(name);
        e.words = vec![r::ld(3, 0, 8), r::jalr(0, 3, 0)];
        e.refused(name);
    }
}

/// Each word of a frame is needed for what it holds: nothing else can be kept there for the return leg.
#[test]
fn frames_have_no_word_to_spare() {
    fn spare<W: Words>(case: &cases::Case, store: fn(&str) -> bool, nothing: fn(u32) -> u32) -> usize {
        let e = Edit::<W>::new(case);
        let stores: Vec<usize> = (0..e.call).filter(|i| store(&W::text(e.words[*i]))).collect();
        for at in &stores {
            let mut e = Edit::<W>::new(case);
            e.words[*at] = nothing(e.words[*at]);
            e.refused("a word of the frame is for anything");
        }
        stores.len()
    }
    fn kept(text: &str, top: &str) -> bool {
        text.starts_with("sd ") && text.ends_with(top) && !text.contains("zero")
    }
    let mut stores = 0;
    for case in cases::all() {
        stores += spare::<Mips>(&case, |text| kept(text, "($27)"), |word| word & !(31 << 16));
        stores += spare::<Rv>(&case, |text| kept(text, "(t1)"), |word| word & !(31 << 20));
    }
    assert!(stores > 500, "{stores}");
}

/// Where a call goes is gone before it is read.
#[test]
fn mips_call_by_the_register_that_comes_back() {
    let mut e = Edit::<Mips>::named("window-smt16");
    let at = e.first(0, "jalr $25, $1");
    assert_eq!(Mips::text(e.words[at - 1]), "daddiu $1, $1, 256");
    e.words[at - 1] = m::daddiu(25, 1, 256);
    e.words[at] = m::jalr(25, 1);
    assert_eq!(e.verdict().map_err(|_| ()), Err(()), "to half of an address");
    e.words[at] = m::jalr(25, 25);
    e.refused("what the processor does is left open");
}

/// A page is torn from the caller, and what the translation buffer is asked for is the callee's slot.
#[test]
fn mips_slot_is_forgotten_for_the_page() {
    let mut e = Edit::<Mips>::named("window-npt");
    let at = e.find(0, "dins $14, $zero, 0, 13");
    assert_eq!(Mips::text(e.words[at - 1]), "move $14, $5");
    e.words[at - 1] = m::ld(14, 3, 8);
    e.refused("the caller goes on through the old translation");
}
