//! The edges of the interface: return sites, summaries, senseless input, and tables that would cost too much.

mod common;

use common::emulator::Rng;
use common::{assemble, scratch_dir};
use pebble_sfi_verify::{Refusal, Rule, scratch_words, site, verify};

const SITES: &str = "
main:
    push %rbx
    push %r12
    leaq -64(%rbp), %rbp
    xorl %ebx, %ebx
1:  call other
static_site:
    decl %ebx
    jne 1b
    push %rbp
    leaq -16(%rbp), %rbp
    call other
pushed_site:
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    call *%gs:0x10108
dynamic_site:
    pop %rbp
    leaq 64(%rbp), %rbp
    pop %r12
    pop %rbx
no_site:
    ret
other:
    fldz
    xorl %r13d, %r13d
    ret
lost:
    push %rbp
    movl %eax, %ebp
    addq %gs:0x10000, %rbp
    pop %rax
    call other
lost_site:
    ud2";

#[test]
fn return_sites() {
    let built = assemble(&scratch_dir("api"), "sites", SITES);
    let module = built.module();
    let mut scratch = vec![!0; scratch_words(built.text.len())];
    let summary = verify(&module, &mut scratch).unwrap();
    assert_eq!((summary.changes, summary.x87, summary.fp_control), (1 << 13, true, false));
    scratch.truncate(summary.scratch_used(built.text.len()));
    let at = |name: &str| site(&module, &scratch, built.symbols[name]);
    let first = at("static_site").unwrap();
    assert_eq!((first.entry, first.depth, first.slots), (built.symbols["main"], 2, 0x21));
    assert_eq!((first.delta, first.pushed), (Some(-64), None));
    let second = at("dynamic_site").unwrap();
    assert_eq!((second.depth, second.delta, second.pushed), (3, None, Some((2, -64))));
    let third = at("pushed_site").unwrap();
    assert_eq!((third.depth, third.delta, third.pushed), (3, Some(-80), Some((2, -64))));
    let fourth = at("lost_site").unwrap();
    assert_eq!((fourth.depth, fourth.delta, fourth.pushed), (0, None, None));
    assert_eq!(at("no_site"), None);
    assert_eq!(site(&module, &scratch, 0), None);
    assert_eq!(site(&module, &scratch, !0), None);
}

#[test]
fn a_small_scratch_is_an_error() {
    let built = assemble(&scratch_dir("api"), "small", SITES);
    for words in 0..40 {
        let verdict = verify(&built.module(), &mut vec![0; words]);
        assert!(verdict.is_ok() || verdict.unwrap_err().rule == Rule::Layout);
    }
}

#[test]
fn senseless_input_is_refused() {
    let mut rng = Rng(99);
    let built = assemble(&scratch_dir("api"), "senseless", SITES);
    let mut scratch = vec![0; scratch_words(4096)];
    for _ in 0..20_000 {
        let mut broken = built.clone();
        let len = 64 + rng.below(200);
        broken.text = (0..len).map(|_| rng.next() as u8).collect();
        broken.facts = (0..rng.below(4) * 20 + rng.below(2)).map(|_| rng.next() as u8).collect();
        broken.labels = (0..rng.below(8)).map(|_| rng.next() as u8).collect();
        match rng.below(6) {
            0 => broken.text_at = rng.next() as u32,
            1 => broken.ftab_size = rng.next() as u32,
            2 => broken.rodata_at = rng.next() as u32,
            3 => broken.data = rng.next() as u32..rng.next() as u32,
            4 => broken.exports = vec![rng.next() as u32],
            _ => broken.imports = rng.next() as u32,
        }
        assert!(verify(&broken.module(), &mut scratch).is_err());
    }
}

/// What the labels section leads to, as offsets in the text; and back.
fn labels(section: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let step = |distance: &u8| {
        at += *distance as usize;
        (*distance != 255).then_some(at)
    };
    section.iter().filter_map(step).collect()
}

fn section(labels: &[usize]) -> Vec<u8> {
    let mut last = 0;
    let step = |at: &usize| {
        let distance = *at - std::mem::replace(&mut last, *at);
        [vec![255; distance / 255], vec![(distance % 255) as u8]].concat()
    };
    labels.iter().flat_map(step).collect()
}

#[test]
fn labels_are_not_believed() {
    let mut built = assemble(&scratch_dir("api"), "labels", SITES);
    let honest = labels(&built.labels);
    assert!(built.verify().is_ok() && section(&honest) == built.labels && honest.len() > 8);
    for missing in 0..honest.len() {
        let fewer: Vec<usize> =
            honest.iter().enumerate().filter(|(i, _)| *i != missing).map(|(_, at)| *at).collect();
        built.labels = section(&fewer);
        let rule = built.verify().unwrap_err().rule;
        assert!(matches!(rule, Rule::Target | Rule::Callee), "{:#x}: {rule:?}", honest[missing]);
    }
    let (mut astray, mut harmless) = (0, 0);
    for more in 0..built.text.len() {
        let mut labels = honest.clone();
        labels.push(more);
        labels.sort();
        labels.dedup();
        built.labels = section(&labels);
        match built.verify() {
            Ok(_) => harmless += 1,
            Err(refusal) if refusal.rule == Rule::Hint => {
                assert_eq!(refusal.at as usize, built.text_at as usize + more);
                astray += 1;
            }
            // `rbp` is dynamic there, or has been pushed
            Err(Refusal { rule, .. }) => {
                assert!(matches!(rule, Rule::Dynamic | Rule::DataStackPointer), "{more:#x}: {rule:?}")
            }
        }
    }
    assert!(astray > 20 && harmless > 20, "{astray} {harmless}");
    built.labels = vec![255; 1000];
    assert_eq!(built.verify().unwrap_err().rule, Rule::Hint);
    built.labels.clear();
    assert_eq!(built.verify().unwrap_err().rule, Rule::Hint);
}

/// Many jumps through many large tables would take quadratic time: refused.
#[test]
fn tables_have_a_budget() {
    let mut source = String::from("main:\n");
    for i in 0..200 {
        source += &format!(
            "andl $0xfff, %eax\nleaq table+{}(%rip), %r11\nmovslq (%r11,%rax,4), %rax\naddq %r11, %rax\njmp \
             *%rax\n",
            4 * i
        );
    }
    source += "lab: .rept 1000\nnop\n.endr\nret\n.section .rodata\ntable: .rept 5000\n.long lab-table\n.endr";
    let built = assemble(&scratch_dir("api"), "tables", &source);
    assert_eq!(built.verify().unwrap_err().rule, Rule::Table);
}
