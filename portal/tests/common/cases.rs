//! One portal of every shape, with a name each.

use pebble_abi::{map, status};
use pebble_arch::{Arch, Layout, Mips64, Riscv64};
use pebble_portal::hardware::template::Operation::*;
use pebble_portal::hardware::template::Register::{A, Base, Word, Zero};
use pebble_portal::hardware::template::{Condition, Operation};
use pebble_portal::hardware::{
    Code, Connection, Domain, Shape, Short, Stacks, Template, compile, form, template,
};
use pebble_portal::{Processor, Spec};
use std::sync::LazyLock;

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub spec: Spec,
    pub shape: Shape,
    pub connection: Connection<'static>,
    pub processor: Processor,
}

impl Case {
    pub fn new(name: &str, spec: &str, shape: Shape, connection: Connection<'static>) -> Self {
        let spec = Spec::parse(spec).expect("a good specification");
        Case { name: name.into(), spec, shape, connection, processor: Processor::Riscv64 }
    }

    /// The same between domains of this processor.
    pub fn on(mut self, processor: Processor) -> Case {
        let Connection { caller, callee, .. } = &mut self.connection;
        for domain in [caller, callee].into_iter().filter(|domain| domain.space != 0) {
            domain.space = space(processor, domain.asid);
        }
        Case { processor, ..self }
    }

    pub fn form(&self) -> Code {
        form(&self.spec, self.shape, &self.connection, self.processor)
            .unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    pub fn compile(&self) -> Code {
        compile(&self.spec, self.shape, &self.connection, self.processor)
            .unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }
}

/// Those that have hardware domains.
pub const PROCESSORS: [Processor; 2] = [Processor::Riscv64, Processor::Mips64];

pub fn layout(processor: Processor) -> &'static Layout {
    match processor {
        Processor::Mips64 => &Mips64::LAYOUT,
        _ => &Riscv64::LAYOUT,
    }
}

pub fn space(processor: Processor, asid: u16) -> u64 {
    let root = 0x8100_0000 + u64::from(asid) * map::PAGE;
    match processor {
        Processor::Mips64 => Mips64::space(asid, root),
        _ => Riscv64::space(asid, root),
    }
}

pub fn domain(asid: u16, float: bool, exclusive: bool) -> Domain {
    let space = space(Processor::Riscv64, asid);
    let fixed_stack = if exclusive { map::stack_top(asid, 0) } else { 0 };
    Domain { asid, space, float, exclusive, fixed_stack, ..Domain::default() }
}

/// A domain that lends and receives windows.
pub fn lender(asid: u16, float: bool) -> Domain {
    let page = |n: u64| map::direct(0x8200_0000 + (u64::from(asid) * 2 + n) * map::PAGE);
    Domain { l1: page(0), windows: page(1), ..domain(asid, float, false) }
}

/// As a component registers it.
pub fn registered(letter: u8, operations: &[Operation]) -> Template {
    let (status, data) = (status::letter(letter) as u16, map::template_va(letter));
    Template { letter, status, data, data_bits: 12, operations: operations.iter().copied().collect() }
}

/// The capability manager's, the rate limiter's, and one that replaces a word by another of its page.
pub fn templates() -> &'static [Template] {
    static ALL: LazyLock<[Template; 3]> = LazyLock::new(|| {
        let table = [
            ShiftLeft { to: Word, a: Word, by: 55 },
            ShiftRight { to: Word, a: Word, by: 52 },
            Add { to: A, a: Word, b: Base },
            Load { to: Word, at: A, offset: 0 },
            Refuse { a: Word, condition: Condition::Equal, b: Zero },
            AddNumber { to: Word, a: Word, number: 1 },
        ];
        let rate = registered(pebble_rate::LETTER, &pebble_rate::CODE);
        [template::capability::template(), rate, registered(b'L', &table)]
    });
    &*ALL
}

pub fn window_cases() -> Vec<Case> {
    let plain = connect(lender(5, false), lender(7, false));
    let plain = Connection { templates: templates(), ..plain };
    let call = |name: &str, spec: &str, c: Connection<'static>| Case::new(name, spec, Shape::Call, c);
    let mut cases = Vec::new();
    for spec in [
        "smw",
        "npw",
        "smr",
        "npr",
        "smo",
        "smt",
        "npt",
        "smg",
        "npg",
        "smw2",
        "npw512",
        "smr2",
        "npr512",
        "smo16",
        "smt16",
        "npt512",
        "smg16",
        "npg512",
        "smg256",
        "nmwr",
        "npaiwri",
        "npwi>6",
        "smww16",
        "spr16w",
        "smw4r8",
        "smtt",
        "nmt2t3",
        "npgw",
        "smwg2",
        "smgg",
        "nmg3g512",
        "smog",
        "sfot9",
        "smk",
        "npk",
        "npkk",
        "npkw",
        "nmTwg4k",
        "npT",
        "smT",
        "npiTi>4",
        "npTL",
        "nmLwg4k",
        "npL",
        "npciwkt300>3",
    ] {
        let name = spec.replace('>', "-");
        cases.push(call(&format!("window-{name}"), spec, plain));
    }
    let server = connect(Domain { trusted: true, ..lender(5, false) }, lender(7, false));
    cases.push(call("window-from-server", "npw", server));
    let stub = Connection { keeps_status: true, ..plain };
    for spec in ["nm=o", "nm=o16", "nm=oo", "nm=o16w16", "nm=oTo9", "nm=g", "nm=w"] {
        let name = spec.replace('=', "eq");
        cases.push(call(&format!("stub-{name}"), spec, stub));
    }
    cases.push(call("window-counted", "npgr", Connection { counter: Some(3), ..plain }));
    for (caller, callee) in [(true, false), (false, true), (true, true)] {
        let c = connect(lender(5, caller), lender(7, callee));
        let c = Connection { templates: templates(), ..c };
        let name = format!("window-float-{}-{}", u8::from(caller), u8::from(callee));
        cases.push(call(&name, "npwt512", c));
        cases.push(call(&format!("{name}-long"), "npg512g300kkcc>6", c));
    }
    cases
}

pub fn connect(caller: Domain, callee: Domain) -> Connection<'static> {
    let entry = map::IMAGE_VA + 0x1234;
    Connection {
        caller,
        callee,
        entry,
        index: 41,
        constant: 0x0123_4567_89ab_cdef,
        counter: None,
        ..Connection::default()
    }
}

/// The connections, the common code and the short-circuit portals of a running system.
pub fn all() -> Vec<Case> {
    let plain = connect(domain(5, false, false), domain(7, false, false));
    let scheduler = connect(domain(5, false, false), domain(1, false, true));
    let tail = connect(domain(2, false, true), domain(1, false, true));
    let call = |name: &str, spec: &str, c: Connection<'static>| Case::new(name, spec, Shape::Call, c);
    let mut cases = Vec::new();
    for spec in ["sm", "smiiii", "nm", "nmiiii", "sp", "spiiii", "np", "npiiii", "sf", "nf", "nfiiii"] {
        cases.push(call(&format!("call-{spec}"), spec, plain));
    }
    let server = connect(Domain { trusted: true, ..domain(5, false, false) }, domain(7, false, false));
    cases.push(call("from-server", "npci>4", server));
    for spec in [
        "npci>4", "npciiiii", "npcii", "npc", "npadh=c", "nmiadi", "nmb", "npbaii", "npi=c", "nmh", "npii>6",
        "spcdaii",
    ] {
        let name = format!("call-{}", spec.replace('=', "eq").replace('>', "-"));
        cases.push(call(&name, spec, plain));
    }
    for (name, constant) in
        [("small", 7), ("negative", -9i64 as u64), ("middle", 0x12345), ("address", 0x0800_0010)]
    {
        cases.push(call(&format!("constant-{name}"), "nmc", Connection { constant, ..plain }));
    }
    for spec in ["nm", "np", "nf"] {
        for (caller, callee) in [(true, false), (false, true), (true, true)] {
            let c = connect(domain(5, caller, false), domain(7, callee, false));
            let name = format!("float-{spec}-{}-{}", u8::from(caller), u8::from(callee));
            cases.push(call(&name, &format!("{spec}ii"), c));
        }
    }
    cases.push(call("stub", "nm=ii>2", Connection { keeps_status: true, ..plain }));
    cases.push(call("subject", "npaii", Connection { subject: 9, ..plain }));
    cases.push(call("counted", "npi", Connection { counter: Some(3), ..plain }));
    cases.push(call("exclusive", "nmd", scheduler));
    cases.push(call("exclusive-float", "nmd", connect(domain(5, true, false), domain(1, false, true))));
    cases.push(call("exclusive-np", "npdi", scheduler));
    cases.push(call("from-exclusive", "npi", connect(domain(2, false, true), domain(1, false, true))));
    cases.push(Case::new("semaphore-p", "nmcda", Shape::Wait(17), Connection { constant: 17, ..scheduler }));
    cases.push(Case::new(
        "semaphore-v",
        "nmcda",
        Shape::Signal(17),
        Connection { constant: 17, ..scheduler },
    ));
    let counted = Connection { constant: 17, counter: Some(255), ..scheduler };
    cases.push(Case::new("semaphore-p-counted", "nmcda", Shape::Wait(17), counted));
    cases.push(Case::new("semaphore-p-queue", "npci", Shape::Wait(1000), plain));
    cases.push(Case::new("tail", "nmd", Shape::Tail, tail));
    cases.push(Case::new("tail-word", "nmdi", Shape::Tail, tail));
    cases.push(Case::new("tail-origin", "npb", Shape::Tail, tail));
    for (name, short) in [
        ("constant", Short::Constant { value: 5, status: 0 }),
        ("closed", Short::Constant { value: -1, status: 2 | 7 << 16 }),
        ("thread", Short::ThreadId),
        ("top", Short::Top),
        ("time", Short::Time),
        ("timer", Short::SetTimer),
        ("flush", Short::Flush),
        ("idle", Short::Idle),
        ("stack-keep", Short::Stacks(Stacks::Keep)),
        ("stack-offer", Short::Stacks(Stacks::Offer)),
        ("stack-release", Short::Stacks(Stacks::Release)),
    ] {
        cases.push(Case::new(&format!("short-{name}"), "sm", Shape::Short(short), plain));
    }
    for (name, shape) in [
        ("switch", Shape::Switch),
        ("dispatch", Shape::Dispatch),
        ("none", Shape::None),
        ("bounce", Shape::Bounce),
        ("leave-moved", Shape::Leave(4)),
        ("leave-timeout", Shape::Leave(6)),
    ] {
        cases.push(Case::new(name, "sm", shape, plain));
    }
    cases.extend(window_cases());
    cases.push(Case::new("thread-end", "sm", Shape::ThreadEnd, Connection::default()));
    cases.push(Case::new("thread-exit", "nmb", Shape::ThreadExit, scheduler));
    for float in [false, true] {
        let handled = connect(domain(0, float, false), domain(3, false, false));
        let dispatched = connect(domain(0, float, false), domain(2, false, true));
        let suffix = if float { "-float" } else { "" };
        cases.push(Case::new(&format!("exception{suffix}"), "np", Shape::Exception, handled));
        cases.push(Case::new(&format!("interrupt{suffix}"), "nm", Shape::Interrupt, dispatched));
        let c = connect(domain(0, float, false), domain(1, false, true));
        cases.push(Case::new(&format!("no-stack{suffix}"), "nm", Shape::NoStack, c));
    }
    cases
}
