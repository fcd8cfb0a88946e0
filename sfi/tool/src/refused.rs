//! Compilers' options that cannot be had in a fault domain, each with what to do instead. An option that only
//! makes code faster or smaller is ignored where it cannot be had; one that would be missed is refused.

const ALONE: &str = "confined code is x86-64 code with 64-bit pointers; leave it out";
const COUNTS: &str = "its counters need a runtime that fault domains have not got; use perf, which knows the \
    functions with PEBBLE_SFI_DEBUG=1";
const WIDE: &str = "code for AVX-512 cannot be confined; leave it out, or ask for -march=x86-64-v3";
const JUMPS: &str = "indirect jumps are made anew, and confined; leave it out";

/// Beginnings of options, and why not.
const REFUSED: [(&str, &str); 20] = [
    ("-mavx512", WIDE),
    ("-mavx10", WIDE),
    ("-m32", ALONE),
    ("-mx32", ALONE),
    ("-m16", ALONE),
    ("-miamcu", ALONE),
    ("-pg", COUNTS),
    ("--coverage", COUNTS),
    ("-coverage", COUNTS),
    ("-ftest-coverage", COUNTS),
    ("-fprofile-arcs", COUNTS),
    ("-fprofile-generate", COUNTS),
    ("-fprofile-instr-generate", COUNTS),
    ("-fxray-instrument", COUNTS),
    ("-fpatchable-function-entry", "code cannot be changed once it is verified; leave it out"),
    ("-fsplit-stack", "a domain's stacks have a guard page, and do not grow in pieces; leave it out"),
    ("-mcmodel=large", "a module is less than 2 GiB; leave it out"),
    ("-mretpoline", JUMPS),
    ("-mindirect-branch", JUMPS),
    ("-emit-llvm", "what is made is machine code, confined; use the compiler itself"),
];

/// Why this option is refused.
pub fn reason(option: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(begin, _)| option.starts_with(begin)).map(|(_, why)| *why)
}

/// The same for a target's name.
pub fn target(name: &str) -> Option<&'static str> {
    let parts: Vec<&str> = name.split('-').collect();
    let wanted = matches!(parts[0], "x86_64" | "amd64") && !name.contains("x32") && name.contains("linux");
    (!wanted).then_some("confined code is x86-64 code for Linux; leave it out")
}

/// Of several options about sanitizers, the one that wants a runtime. Those that trap need none.
pub fn sanitizer(options: &[String]) -> Option<(String, &'static str)> {
    let traps = |o: &&String| o.starts_with("-fsanitize-trap") || *o == "-fsanitize-undefined-trap-on-error";
    let wants = options.iter().rfind(|o| o.starts_with("-fsanitize=") || *o == "-fno-sanitize=all")?;
    let free = wants.starts_with("-fno-") || options.iter().any(|o| traps(&o));
    let why = "sanitizers need a runtime that fault domains have not got; leave it out, or add \
        -fsanitize-trap=all where it will do";
    (!free).then(|| (wants.clone(), why))
}
