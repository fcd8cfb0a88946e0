//! What would compute something else, silently, and what cannot work: programs that compilers make of VLAs,
//! nested functions, unreachable defaults.

use pebble_sfi_rewrite::{Level, Options, rewrite};

fn rewritten(text: &str) -> Result<String, String> {
    rewrite(text, "t.s", &Options::new(Level::Full)).map_err(|e| e.to_string())
}

fn out(body: &str) -> String {
    let text = format!("\t.text\n\t.globl f\n\t.type f,@function\nf:\n{body}\n");
    let t = rewritten(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    t.lines().filter(|l| !l.starts_with("\t.cfi") && !l.trim().is_empty()).map(|l| format!("{l}\n")).collect()
}

/// A frame whose size is not known, what is done in it, and all registers but these wanted afterwards.
fn dynamic(done: &str, free: &[&str]) -> String {
    let all = ["rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"];
    let sum: String =
        all.iter().filter(|r| !free.contains(r)).map(|r| format!("\taddq %{r}, %rax\n")).collect();
    out(&format!(
        "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $16, %rsp\n\tsubq %rax, %rsp\n{done}{sum}\tleave\n\tret"
    ))
}

#[test]
fn a_pushed_word_and_its_address_are_in_two_registers() {
    for free in [&[][..], &["r11"], &["r11", "r10"], &["rsi"]] {
        for operand in ["16(%rbp)", "8(%rsp)", "(%rdi,%rsi,8)", "%rsp"] {
            let t = dynamic(&format!("\tpushq {operand}\n"), free);
            let store = t
                .lines()
                .find(|l| l.contains("movq\t%r") && l.contains(", %gs:(%"))
                .expect("the word is stored");
            let (value, address) = store.split_once(", %gs:(").expect("both");
            let value = value.trim_start_matches("\tmovq\t%");
            let address = address.trim_start_matches('%').trim_end_matches(')');
            let wide = |r: &str| r.trim_end_matches('d').replacen('e', "r", usize::from(r.starts_with('e')));
            assert_ne!(wide(address), value, "{free:?} {operand}: {t}");
            assert_eq!(t.matches("pushq\t").count(), t.matches("popq\t").count(), "{t}");
        }
    }
}

/// `ah` and its like cannot be in an instruction that names one of `r8` to `r15`.
fn no_high_byte_is_beside_a_new_register(text: &str) {
    let words = |l: &str| l.split(|c: char| !c.is_alphanumeric()).map(String::from).collect::<Vec<_>>();
    for line in text
        .lines()
        .map(words)
        .filter(|l| ["ah", "bh", "ch", "dh"].iter().any(|h| l.contains(&h.to_string())))
    {
        let new =
            |w: &String| w.strip_prefix('r').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!line.iter().any(new), "{line:?}: {text}");
    }
}

#[test]
fn a_high_byte_and_its_address_are_in_one_instruction() {
    for byte in ["ah", "bh", "ch", "dh"] {
        for free in [&[][..], &["r11"], &["rsi"], &["rsi", "r11"]] {
            for form in [
                "movb %H, (%rsp)",
                "addb 8(%rsp,%rsi), %H",
                "lock cmpxchgb %H, %fs:x@tpoff(%rsi,%rdi)",
                "testb %H, (%rsp)",
            ] {
                let t = dynamic(&format!("\t{}\n", form.replace('H', byte)), free);
                no_high_byte_is_beside_a_new_register(&t);
                assert!(t.contains(&format!("%{byte}")), "{t}");
                assert_eq!(t.matches("pushq\t").count(), t.matches("popq\t").count(), "{t}");
            }
        }
    }
}

#[test]
fn a_high_byte_is_loaded_in_a_loop_with_the_base() {
    let text = |load: &str| {
        format!(
            "\t.text\n\t.type f,@function\nf:\n\tmovl $3, %esi\n.L1:\n\tmovq (%rdi), %rdi\n\t{load}\n\tdecl \
             %esi\n\tjne .L1\n\tret\n"
        )
    };
    let options = Options { base: true, ..Options::new(Level::Full) };
    let made = |load: &str| rewrite(&text(load), "t.s", &options).expect("valid");
    assert!(made("addb 8(%rdi), %al").contains("addb\t8(%r"), "the base is used");
    no_high_byte_is_beside_a_new_register(&made("addb 8(%rdi), %ah"));
}

#[test]
fn a_loop_that_moves_the_stack_pointer_first_knows_where_it_is() {
    let t = out(
        "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tpushq %rbx\n\tpushq %r14\n.L1:\n\tmovq %rsp, %r14\n\tmovq %rsp, \
         %rcx\n\tsubq %rdx, %rcx\n\
         \tmovq %rcx, %rsp\n\tmovl $1, (%rcx)\n\tmovq %r14, %rsp\n\tdecl %edi\n\tjne .L1\n\tleaq -16(%rbp), \
         %rsp\n\tpopq %r14\n\tpopq %rbx\n\tpopq %rbp\n\tret",
    );
    let (before, _) = t.split_once(".L1:").expect("the loop");
    assert!(before.contains("leaq\t-32(%rbp), %r11\n\tmovq\t%r11, -8(%rbp)"), "{t}");
}

#[test]
fn where_a_function_ends_it_traps() {
    let switch = "\tmovl %edi, %edi\n\tleaq .LT(%rip), %rdx\n\tmovslq (%rdx,%rdi,4), %rax\n\taddq %rdx, \
        %rax\n\tpushq %rbx\n\tjmp *%rax\n\
                  .La:\n\tmovl $1, %eax\n\tpopq %rbx\n\tret\n";
    let table = "\t.section .rodata\n.LT:\n\t.long .La-.LT\n\t.long .Lb-.LT\n\t.text\n";
    let next = "\t.type g,@function\ng:\n\tret\n\t.size g, .-g\n";
    let t = out(&format!("{switch}.Lb:\n\t.size f, .-f\n{next}{table}"));
    assert!(
        t.contains(".Lb:\n")
            && t.split_once(".Lb:\n").is_some_and(|(_, rest)| rest.find("ud2") < rest.find("g$code:")),
        "{t}"
    );
    // An empty cold part, and the end of a section.
    let cold = "\t.section .text.unlikely.f,\"ax\",@progbits\n\t.type f.cold,@function\nf.cold:\n.Lb:\n\
        \t.size f.cold, .-f.cold\n\t.text\n";
    let t = out(&format!("{switch}\t.size f, .-f\n{cold}{next}{table}"));
    assert!(t.contains(".Lb:\n") && t.contains("ud2"), "{t}");
    // A branch to another name of what comes next is no end.
    let t = out("\tjmp .Lx\n.Lx:\n\t.type g,@function\ng:\n\tret\n");
    assert!(!t.contains("ud2"), "{t}");
}

#[test]
fn a_frame_is_touched_page_by_page_in_one_step() {
    let probes = "\tmovq %rsp, %r11\n\tsubq $299008, %r11\n.L1:\n\tsubq $4096, %rsp\n\tmovq $0, (%rsp)\n\
        \tcmpq %r11, %rsp\n\tjne .L1\n";
    let t =
        out(&format!("{probes}\tsubq $992, %rsp\n\tmovl $1, 4(%rsp)\n\tcall g\n\taddq $300000, %rsp\n\tret"));
    assert!(t.contains("leaq\t-299016(%rbp), %rbp\n\tmovb\t$0, (%rbp)") && !t.contains("jne"), "{t}");
}

#[test]
fn what_the_system_saves_has_an_answer() {
    for spelled in ["xgetbv", ".byte 0x0f, 0x01, 0xd0"] {
        let t = out(&format!("\txorl %ecx, %ecx\n\t{spelled}\n\tret"));
        assert!(t.contains("movl\t$7, %eax\n\tmovl\t$0, %edx"), "{t}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |text: String| rewritten(&text).expect_err("refused");
    let body = |body: &str| format!("\t.text\n\t.type f,@function\nf:\n{body}\n\tret\n");
    let nested = body("\tmovl $-1864106167, 16(%rsp)") + "\t.section .note.GNU-stack,\"x\",@progbits\n";
    let said = refused(nested);
    assert!(
        said.starts_with("t.s:4: `movl\t$-1864106167") && said.contains("make it a function of its own"),
        "{said}"
    );
    for read in [
        "\tmovq (%rsp), %rax",
        "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tmovq 8(%rbp), %rax\n\tpopq %rbp",
        "\tpushq %rbp\n\tmovq (%rsp), %rax",
    ] {
        let said = refused(body(read));
        assert!(said.contains("do without __builtin_return_address"), "{said}");
    }
}

/// clang unrolls a loop over an array of 6 by 16: it never comes to these.
#[test]
fn a_store_over_the_return_address_is_a_trap() {
    for store in ["movaps %xmm0, (%rbp)", "movq %rax, 8(%rbp)", "addl $1, 8(%rsp)"] {
        let frame =
            format!("\tpushq %rbp\n\tmovq %rsp, %rbp\n\t{store}\n\tmovl $7, %eax\n\tpopq %rbp\n\tret");
        let t = out(&frame);
        assert!(t.contains("ud2\n") && !t.contains("$7, %eax"), "{t}");
    }
}

#[test]
fn another_name_for_a_weak_function_is_called_by_its_address() {
    let t = out("\tcall g\n\tret\n\t.weakref g,h");
    assert!(t.contains("movq\tg@GOTPCREL(%rip), %r11") && !t.contains("g$code"), "{t}");
}

#[test]
fn a_fence_is_no_access() {
    let t = out("\tlock orq $0, (%rsp)\n\tret");
    assert!(t.contains("lock orq\t$0, -8(%rbp)"), "{t}");
}

#[test]
fn the_chain_of_a_nested_function_reaches_it() {
    // r10 is set, and there is a branch before the call; the read of the stack pointer wants a register
    // meanwhile.
    let body = "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $16, %rsp\n\tleaq -16(%rbp), %r10\n\tmovl $3, %r11d\n\
        \ttestl %edi, %edi\n\tje .L1\n\tnop\n.L1:\n\
                \tcmpq %rsp, %rdi\n\taddq %r11, %rdi\n\tcall g\n\tleave\n\tret\n\t.type g,@function\ng:\n\
        \tmovq (%r10), %rax\n\tret";
    let t = out(body);
    let (_, behind) = t.split_once(".L1:").expect("the label");
    let (between, _) = behind.split_once("call\tg$code").expect("the call");
    assert!(!between.contains(", %r10") || between.contains("pushq\t%r10"), "{t}");
}
