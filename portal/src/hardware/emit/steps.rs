//! What becomes of each step: here where all processors do the same, by [`Steps`] where each does its own.
//!
//! Problem: most steps are the same loads, stores and copies everywhere; others are control registers, of
//! which each processor has its own.
//! Strategy: [`Emitter::op`] names every step. What is left of shared runs to the processor is in [`Steps`].
//!
//! * Each step has one arm here. Whoever adds a step, or a processor, is told what is missing.
//! * The end of the call leg completes whatever it has left open: ways out, the pool, the return address.

use super::*;
use crate::hardware::ir::Hidden;
use crate::spec::Arg;

/// What a processor has of its own in steps and legs.
pub(super) trait Steps: Stacks + Windows + Templates {
    /// Cleared whenever user mode runs.
    const NUCLEUS: u32;
    /// Registers of [`Op::SavePreserved`], in frame order.
    const PRESERVED: &'static [Reg];
    /// Which a counter or semaphore needs: its upper address, its value.
    const COUNTING: [Reg; 2];
    /// Which an interrupt's entry has changed when it finds that there was none.
    const INTERRUPTED: &'static [Reg];

    // Steps of its own, each named as in [`Op`].
    fn top(e: &mut Emitter<Self>);
    fn room(e: &mut Emitter<Self>, reserve: bool);
    fn save_all(e: &mut Emitter<Self>, float: bool);
    fn load_all(e: &mut Emitter<Self>, float: bool);
    fn load_trapped(e: &mut Emitter<Self>, float: bool);
    fn check_stack(e: &mut Emitter<Self>);
    fn take_stack(e: &mut Emitter<Self>, word: u8, checked: bool);
    fn mask(e: &mut Emitter<Self>);
    fn unmask(e: &mut Emitter<Self>);
    fn interrupted(e: &mut Emitter<Self>, float: bool);
    fn save_cause(e: &mut Emitter<Self>, word: u8);
    fn lacking(e: &mut Emitter<Self>);
    fn load_gate(e: &mut Emitter<Self>);
    fn result_top(e: &mut Emitter<Self>);
    fn set_timer(e: &mut Emitter<Self>);
    fn flush(e: &mut Emitter<Self>);
    fn idle(e: &mut Emitter<Self>);
    fn switch(e: &mut Emitter<Self>);
    fn dispatch(e: &mut Emitter<Self>);
    fn end_thread(e: &mut Emitter<Self>);
    fn bounce(e: &mut Emitter<Self>, code: u16);
    // Of floating point; nothing, where there is none.
    fn save_float(_e: &mut Emitter<Self>, _word: u8) {}
    fn load_float(_e: &mut Emitter<Self>, _word: u8) {}
    fn float_off(_e: &mut Emitter<Self>) {}
    fn float_on(_e: &mut Emitter<Self>) {}
    fn float_scrub(_e: &mut Emitter<Self>, _preserved: bool) {}

    /// To the domain's exception entry.
    fn raise(e: &mut Emitter<Self>);
    /// For user mode.
    fn leave(e: &mut Emitter<Self>);
    /// Zeroes these; `returning`: to who has called, with results instead of arguments.
    fn hide(e: &mut Emitter<Self>, hidden: Hidden, returning: bool);
    /// User mode goes on at the address in this register.
    fn set_pc(from: Reg) -> u32;
    /// What the processor keeps as the invocation stack's top becomes [`Instructions::TOP`].
    fn set_top() -> u32;
    /// Into the address space that [`Instructions::T3`] names.
    fn enter(e: &mut Emitter<Self>);
    /// Cause, value and address of a trap, in the first arguments.
    fn trap(e: &mut Emitter<Self>);
    /// The number of the domain that runs.
    fn running(e: &mut Emitter<Self>, rd: Reg);
    /// The number of the thread with such a top.
    fn thread_id(e: &mut Emitter<Self>, rd: Reg, top: Reg);
    /// Its second quarter, as a number.
    fn second_quarter(e: &mut Emitter<Self>, reg: Reg);
    fn time(e: &mut Emitter<Self>, to: Reg);
    /// The first instruction of [`Op::EndThread`], which is done twice.
    fn ends_thread() -> u32;

    /// The word of a trap's frame that holds the register.
    fn frame_word(reg: Reg) -> usize;
    /// What else was changed by a trap's save.
    fn restored(e: &mut Emitter<Self>);
}

impl<A: Steps> Emitter<'_, A> {
    pub(super) fn op(&mut self, op: Op) {
        match op {
            Op::Count => self.count(),
            Op::TryWait => self.try_semaphore(true),
            Op::TrySignal => self.try_semaphore(false),
            Op::SaveReturn(word) => self.save(A::LINK, word),
            Op::SaveStack(word) => self.save(A::STACK, word),
            Op::SavePreserved(word) => {
                for (reg, word) in A::PRESERVED.iter().zip(word..) {
                    self.save(*reg, word);
                }
            }
            Op::CheckWindow { lent, keep } => self.check_window(lent, keep),
            Op::CheckSlots { first, second, apart } => self.check_slots(first, second, apart),
            Op::OpenWindow { lent, word, found, fence } => self.open_window(lent, word, found, fence),
            Op::CloseWindow { lent, word, fence } => self.close_window(lent, word, fence),
            Op::Translate { from, letter } => self.translate(from, letter),
            Op::FixedStack => self.hole(A::STACK, Hole::FixedStack),
            Op::Push(words) => {
                self.frame_words = words;
                self.push = Some(self.open(A::add_number(A::T2, A::CODE, 0)));
                self.put(A::store(A::T2, A::TOP, i32::from(words) * 8));
                self.move_top(i32::from(words));
            }
            Op::Space(Hole::CallerSpace) => {
                self.put(A::load(A::T3, A::CODE, -16));
                A::enter(self);
            }
            Op::Space(space) => {
                self.hole(A::T3, space);
                A::enter(self);
            }
            Op::Entry => {
                self.hole(A::T3, Hole::Entry);
                self.put(A::set_pc(A::T3));
            }
            Op::Move { to, from } => self.put(A::copy(A::ARGUMENT + to, A::ARGUMENT + from)),
            Op::Supply { to, arg, value } => self.supply(to, arg, value),
            Op::Cause => {
                A::trap(self);
                A::running(self, A::ARGUMENT + 3);
                A::thread_id(self, A::ARGUMENT + 4, A::TOP);
                self.put(A::copy(A::ARGUMENT + 5, A::INDEX));
            }
            Op::Scrub(hidden) => A::hide(self, hidden, self.ret_at.is_some()),
            Op::Leave => A::leave(self),
            Op::Return => {
                self.end_call_leg(true);
                self.bias = i32::from(self.frame_words) * 8;
                let status = if self.c.keeps_status { A::STATUS } else { A::ZERO };
                self.put(match self.shape {
                    Shape::ThreadEnd => A::ends_thread(),
                    _ => A::copy(A::STATUS, status),
                });
            }
            Op::LoadReturn(word) => {
                self.load(A::LINK, word);
                self.put(A::set_pc(A::LINK));
            }
            Op::LoadStack(word) => self.load(A::STACK, word),
            Op::LoadPreserved(word) => {
                for (reg, word) in A::PRESERVED.iter().zip(word..) {
                    self.load(*reg, word);
                }
            }
            Op::GiveStack(word) => self.give_stack(word),
            Op::Pop(words) => {
                self.bias = 0;
                self.move_top(-i32::from(words));
            }
            Op::ResultThread => A::thread_id(self, A::VALUE, A::VALUE),
            Op::Stacks(what) => self.stacks(what),
            Op::Resume => self.resume(),
            Op::Raise => A::raise(self),
            Op::Top => A::top(self),
            Op::Room { reserve } => A::room(self, reserve),
            Op::SaveAll { float } => A::save_all(self, float),
            Op::LoadAll { float } => A::load_all(self, float),
            Op::LoadTrapped { float } => A::load_trapped(self, float),
            Op::SaveFloat(word) => A::save_float(self, word),
            Op::LoadFloat(word) => A::load_float(self, word),
            Op::FloatOff => A::float_off(self),
            Op::FloatOn => A::float_on(self),
            Op::FloatScrub { preserved } => A::float_scrub(self, preserved),
            Op::CheckStack => A::check_stack(self),
            Op::TakeStack { word, after_save, checked } => {
                if !checked {
                    self.after_save = after_save;
                }
                A::take_stack(self, word, checked);
            }
            Op::Mask => A::mask(self),
            Op::Unmask => A::unmask(self),
            Op::Interrupted { float } => A::interrupted(self, float),
            Op::SaveCause(word) => A::save_cause(self, word),
            Op::Lacking => A::lacking(self),
            Op::Gate => A::load_gate(self),
            Op::ResultTop => A::result_top(self),
            Op::SetTimer => A::set_timer(self),
            Op::Flush => A::flush(self),
            Op::Idle => A::idle(self),
            Op::Switch => A::switch(self),
            Op::Dispatch => A::dispatch(self),
            Op::EndThread => A::end_thread(self),
            Op::Bounce(code) => A::bounce(self, code),
        }
    }

    /// Pushes or pops.
    fn move_top(&mut self, words: i32) {
        self.put(A::add_number(A::TOP, A::TOP, words * 8));
        self.put(A::set_top());
    }

    fn count(&mut self) {
        let [at, value] = A::COUNTING;
        self.hole(at, Hole::Counter);
        self.put(A::load(value, at, 0));
        self.put(A::add_number(value, value, 1));
        self.put(A::store(value, at, 0));
    }

    fn try_semaphore(&mut self, wait: bool) {
        let [at, value] = A::COUNTING;
        self.hole(at, Hole::Semaphore);
        self.put(A::load(value, at, 0));
        let none = self.open(if wait { A::branch_not_positive(value) } else { A::branch_negative(value) });
        self.put(A::add_number(value, value, if wait { -1 } else { 1 }));
        self.put(A::store(value, at, 0));
        self.scrub(1 << A::VALUE | 1 << A::STATUS);
        self.scrub(1 << at | 1 << value);
        self.resume();
        self.join(none);
    }

    /// Back to the caller, who finds nothing of the nucleus's.
    fn resume(&mut self) {
        self.put(A::set_pc(A::LINK));
        self.scrub(A::NUCLEUS);
        A::leave(self);
    }

    fn supply(&mut self, to: u8, arg: Arg, value: u64) {
        // A portal without a frame returns what others hand on.
        let short = matches!(self.shape, Shape::Short(_));
        let to = to + if short { A::VALUE } else { A::ARGUMENT };
        match arg {
            Arg::Thread => A::thread_id(self, to, A::TOP),
            Arg::Origin => {
                // Return code of that frame, the word before it, its second quarter.
                self.put(A::load(to, A::TOP, -(value as i32)));
                self.put(A::load(to, to, -8));
                A::second_quarter(self, to);
            }
            Arg::Time => A::time(self, to),
            _ => self.constant(to, value),
        }
    }

    /// Slow ways out and the pool: all that depends on where the call leg ends.
    pub(super) fn end_call_leg(&mut self, returns: bool) {
        if let Some((branch, dirty)) = self.raises {
            self.join(branch);
            self.scrub(dirty);
            A::raise(self);
        }
        self.ready = false;
        self.join_waits();
        self.join_refusals();
        if let Some((branch, float)) = self.no_interrupt {
            self.join(branch);
            self.restore(A::INTERRUPTED, float);
            A::raise(self);
        }
        self.call_words = self.a.here() as u16;
        self.pool_at = self.put_pool(0) as u16;
        if returns {
            self.pool = Pool::default();
            let space = matches!(self.shape, Shape::Call | Shape::Wait(_) | Shape::Signal(_));
            self.put_double(if space { Hole::CallerSpace.symbol() } else { 0 });
            self.put_double(Hole::Description.symbol() + u64::from(self.frame_words));
            let ret_at = self.a.here() * 4;
            self.ret_at = Some(ret_at as u16);
            if let Some(at) = self.push
                && let Some(word) = self.a.from(at).first_mut()
            {
                *word = A::displaced(*word, ret_at);
            }
        }
    }

    /// Undoes a trap's save, which has pushed nothing yet, for the registers that have changed since.
    pub(super) fn restore(&mut self, regs: &[Reg], float: bool) {
        for reg in regs {
            self.load(*reg, float_words::<A>(float) + A::frame_word(*reg) as u8);
        }
        A::restored(self);
    }

    /// One way out for every status.
    fn join_refusals(&mut self) {
        loop {
            let Emitter { refusals, a, .. } = self;
            let Some(code) = refusals.take(|branch| lead::<A>(a, branch)) else { return };
            self.refusal(code);
        }
    }

    /// Back to the caller at once: nothing was taken, nothing pushed.
    fn refusal(&mut self, code: u16) {
        self.put(A::set_pc(A::LINK));
        self.pool_load(A::STATUS, Hole::Refused.symbol() + u64::from(code));
        self.put(A::add_number(A::VALUE, A::ZERO, -1));
        A::hide(self, Hidden::temporaries(2), true);
        A::leave(self);
    }
}
