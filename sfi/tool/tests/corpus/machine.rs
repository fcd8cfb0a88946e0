#![no_std]
unsafe extern "C" {
    fn t_out(v: i64);
}
#[panic_handler]
fn p(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
#[derive(Clone, Copy)]
enum Op {
    Push(i64),
    Add,
    Mul,
    Dup,
    Swap,
    Neg,
    Out,
    Jump(usize),
}
#[inline(never)]
fn run(ops: &[Op], st: &mut [i64; 32]) -> i64 {
    let (mut sp, mut pc, mut n) = (0usize, 0usize, 0);
    while pc < ops.len() && n < 100 {
        n += 1;
        match ops[pc] {
            Op::Push(v) => {
                st[sp & 31] = v;
                sp += 1
            }
            Op::Add => {
                sp -= 1;
                st[(sp - 1) & 31] = st[(sp - 1) & 31].wrapping_add(st[sp & 31])
            }
            Op::Mul => {
                sp -= 1;
                st[(sp - 1) & 31] = st[(sp - 1) & 31].wrapping_mul(st[sp & 31])
            }
            Op::Dup => {
                st[sp & 31] = st[(sp - 1) & 31];
                sp += 1
            }
            Op::Swap => st.swap((sp - 1) & 31, (sp - 2) & 31),
            Op::Neg => st[(sp - 1) & 31] = -st[(sp - 1) & 31],
            Op::Out => unsafe { t_out(st[(sp - 1) & 31]) },
            Op::Jump(p) => {
                pc = p;
                continue;
            }
        }
        pc += 1;
    }
    st[0]
}
trait Shape {
    fn area(&self) -> i64;
}
struct A(i64);
struct B(i64, i64);
impl Shape for A {
    fn area(&self) -> i64 {
        self.0 * self.0
    }
}
impl Shape for B {
    fn area(&self) -> i64 {
        self.0 * self.1
    }
}
#[inline(never)]
fn total(s: &[&dyn Shape]) -> i64 {
    s.iter().map(|x| x.area()).sum()
}
#[unsafe(no_mangle)]
pub extern "C" fn t_main() -> i32 {
    let mut st = [0i64; 32];
    let ops = [
        Op::Push(3),
        Op::Dup,
        Op::Mul,
        Op::Out,
        Op::Push(4),
        Op::Swap,
        Op::Neg,
        Op::Add,
        Op::Out,
        Op::Jump(0),
    ];
    unsafe {
        t_out(run(&ops, &mut st));
        t_out(total(&[&A(3), &B(4, 5), &A(7)]));
    }
    let mut big = [0u8; 9000];
    for i in 0..9000 {
        big[i] = i as u8;
    }
    core::hint::black_box(&mut big);
    let s: u32 = big.iter().map(|b| *b as u32).sum();
    unsafe {
        t_out(s as i64);
    }
    5
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(d: *mut u8, v: i32, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n {
        unsafe {
            d.add(i).write_volatile(v as u8);
        }
        i += 1;
    }
    d
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(d: *mut u8, s: *const u8, n: usize) -> *mut u8 {
    let mut i = 0;
    while i < n {
        unsafe {
            d.add(i).write_volatile(s.add(i).read_volatile());
        }
        i += 1;
    }
    d
}
