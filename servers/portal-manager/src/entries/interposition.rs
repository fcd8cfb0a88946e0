//! Interposition: what controllers ask for, and what is done for the child that they serve.

use crate::entries::open::{self, Opening};
use crate::{
    Manager, RANGE_SET, Real, SBRK, THREAD_CREATE, answer, current, do_register, do_sem_create, name,
    request, tidy,
};
use core::num::NonZeroU16;
use pebble::abi::link::pack;
use pebble::abi::{control as op, errno, map, sys, template};
use pebble::api::Errno;
use pebble::link::More;
use pebble::words::Asid;
use pebble_portal_manager::Machine;
use pebble_portal_manager::Subject;
use pebble_portal_manager::frames::Current;
use pebble_portal_manager::interfaces::text;
use pebble_portal_manager::letters::Refused;

/// A domain without a table, or one that the process server has made and not started, becomes the child of a
/// controller; `copy`: with all that this one has.
pub extern "C" fn control_new(child: Asid, controller: Asid, handler: u64, copy: u64) -> i64 {
    request(|m, machine| {
        tidy(m, machine)?;
        let view = match m.domain(child) {
            Ok(_) => None,
            Err(_) => {
                let (view, family) = crate::view(child)?;
                m.set_family(child, family)?;
                Some(view)
            }
        };
        m.control(machine, controller, (child, copy != 0), handler, view).map(|()| 0)
    })
}

/// For the process server: whom the call that it was given is for, and who made it; the child that its caller
/// serves, and how that is controlled.
pub extern "C" fn subject(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    request(|m, machine| {
        let current = current()?;
        let strict = m.subject(machine, current, 1, false);
        let lax = m.subject(machine, current, 1, true);
        let served = if lax.domain == lax.caller { 0 } else { lax.domain };
        let domain = &m.domains[usize::from(served)];
        *more = [
            strict.caller.into(),
            served.into(),
            domain.controller.map_or(0, NonZeroU16::get).into(),
            domain.handler,
        ];
        Ok(strict.domain.into())
    })
}

/// For servers that ask the name server about rules: whom the call is for that they were given, and in bits
/// 16 and up who made it.
pub extern "C" fn whose() -> i64 {
    request(|m, machine| {
        let who = m.whose(machine, current()?);
        Ok(u64::from(who.domain) | u64::from(who.caller) << 16)
    })
}

pub extern "C" fn control(asid: Asid, p1: u64, p2: u64, p3: u64, p4: u64, _: u64, more: &mut More) -> i64 {
    request(|m, machine| {
        let current = current()?;
        let subject = m.subject(machine, current, 0, false);
        let own = Subject { domain: asid.number(), ..subject };
        operate(m, machine, current, own, [p1, p2, p3, p4], more)
    })
}

fn operate(
    m: &mut Manager,
    machine: &mut Real,
    current: Current,
    who: Subject,
    [p1, p2, p3, p4]: [u64; 4],
    more: &mut More,
) -> Result<u64, Errno> {
    let asid = Asid::from(who.domain);
    match p1 & 0xffff {
        op::NOTIFY => m.set_notify(asid, p2).map(|()| 0),
        op::NOTICE => match m.notice(who.domain, current.tid, who.base) {
            Ok(index) => {
                let [first, rest] = seen(m, who.domain, index);
                *more = [index.into(), first, rest, asid.get()];
                Ok(1)
            }
            Err(address) => {
                more[0] = address;
                Ok(0)
            }
        },
        op::CREATE_CHILD => {
            tidy(m, machine)?;
            let made = create_child(m, machine, asid, [p1, p2, p3, p4]);
            more[0] = m.request.refused;
            made.map(|()| 0)
        }
        op::BEHALF_INDEX => {
            m.own_from(asid, p2)?;
            m.behalf_for(machine, who.domain).map(u64::from)
        }
        op::WATCH => {
            let semaphore = if p2 == 0 { None } else { Some(m.semaphore_of(who, p2)?) };
            m.watch(machine, asid, semaphore).map(|()| 0)
        }
        op::FAULT_RANGE if p3 == 0 => {
            answer(&RANGE_SET, [asid.get(), p2, 0, 0, 0])?;
            m.end_range(machine, who.domain, p2).map(|()| 0)
        }
        op::FAULT_RANGE => {
            tidy(m, machine)?;
            m.handle_range(machine, (who.domain, who.caller), p2, p4, |_, handler| {
                answer(&RANGE_SET, [asid.get(), p2, p3, handler, 0]).map(|_| ())
            })?;
            Ok(0)
        }
        op::GUARD => {
            tidy(m, machine)?;
            match p1 >> 16 {
                op::guard::NAMES => m.guard_by_names(machine, asid, p2),
                op::guard::LIST => m.guard_by_list(machine, asid, p2),
                op::guard::ADMIT => m.admit(asid, p2, Asid(p3)),
                op::guard::ASK => m.guard_by_asking(machine, asid, p2, (who.caller, p3)),
                _ => Err(errno::EINVAL),
            }
            .map(|()| 0)
        }
        op::TEMPLATE => {
            tidy(m, machine)?;
            register_template(m, machine, asid, [p1, p2, p3, p4]).or_else(|refused| match refused {
                Refused::Errno(error) => Err(error),
                Refused::Code(error) => {
                    more[0] = error.word();
                    Err(errno::EINVAL)
                }
            })
        }
        op::NAME => {
            let [a, b, c] = pack::<3>(m.name_of(who.domain, who.caller, p2)?).unwrap_or_default();
            *more = [a, b, c, 0];
            Ok(0)
        }
        op::UNWOUND => m.unwound(asid).map(u64::from),
        _ => Err(errno::EINVAL),
    }
}

/// A stub of a child, or its end if there is no specification.
#[inline(never)]
fn create_child(
    m: &mut Manager,
    machine: &mut Real,
    asid: Asid,
    [p1, p2, p3, p4]: [u64; 4],
) -> Result<(), Errno> {
    let stub = if p2 == 0 { None } else { Some((p4 & 0xffff_ffff, m.parse(asid, p2, p4)?, p3)) };
    m.create_child(machine, asid, Asid(p1 >> 16 & 0xffff), p1 >> 32, stub)
}

/// A step of a registration.
// Nothing else that is asked for here has its frame below.
#[inline(never)]
fn register_template(
    m: &mut Manager,
    machine: &mut Real,
    asid: Asid,
    [p1, p2, p3, p4]: [u64; 4],
) -> Result<u64, Refused> {
    let word = p1 >> 32;
    match p1 >> 16 & 0xffff {
        template::BEGIN => m.begin_template(asid, word)?,
        template::FILL => {
            let pairs = [p2, p3, p4].map(|pair| [pair as u32, (pair >> 32) as u32]);
            let count = usize::try_from(word).unwrap_or(usize::MAX);
            m.fill_template(asid, pairs.as_flattened().get(..count).ok_or(errno::EINVAL)?)?;
        }
        template::COMMIT => m.commit_template(machine, asid)?,
        _ => return Err(Refused::Errno(errno::EINVAL)),
    }
    Ok(0)
}

/// The text of what is behind an index: letters for the caller's words and the results. Zero: nothing.
fn seen(m: &Manager, asid: u16, index: u16) -> [u64; 2] {
    m.seen(asid, index.into()).map_or([0; 2], |spec| text(&spec))
}

/// Who has called the server that asks: a controller only if it does not pass on what its child calls.
pub fn client_of(m: &mut Manager, machine: &Real, client: Asid) -> Result<Asid, Errno> {
    let controls = m.domain(client)?.behalf.is_some();
    Ok(if controls { m.subject(machine, current()?, 0, false).origin.into() } else { client })
}

/// A portal in the table of the outermost controller, with stubs down to the subject.
fn opens(m: &mut Manager, machine: &mut Real) -> Result<Opening, Errno> {
    let who = m.subject(machine, current()?, 0, false);
    m.domain(who.domain.into())?;
    let opener = who.caller.into();
    Ok(Opening { names: [opener, opener], opener, subject: who.domain.into() })
}

pub extern "C" fn on_behalf(index: u64, a: u64, b: u64, c: u64, d: u64, e: u64, more: &mut More) -> i64 {
    if index as usize == sys::SYS_PORTAL_OPEN {
        return open::open(opens, [a, b, c], d, more);
    }
    request(|m, machine| {
        let current = current()?;
        let who = m.subject(machine, current, 0, false);
        let (subject, caller) = (Asid::from(who.domain), Asid::from(who.caller));
        m.domain(subject)?;
        if subject != caller {
            m.request.serving = NonZeroU16::new(who.domain);
        }
        match index as usize {
            sys::SYS_GET_ASID => Ok(subject.get()),
            sys::SYS_SBRK => answer(&SBRK, [subject.get(), a, 0, 0, 0]),
            sys::SYS_THREAD_CREATE => {
                m.thread(machine, who.domain)?;
                let made = answer(&THREAD_CREATE, [subject.get(), current.tid.into(), a, b, c]);
                made.inspect_err(|_| m.unserve(who.domain, 1))
            }
            // The thread is whoever's call the subject serves.
            sys::SYS_THREAD_EXIT if who.origin != 0 => Err(errno::EPERM),
            sys::SYS_THREAD_EXIT => {
                // By its return from this call: so everything that it holds on the way is given back.
                machine.set_thread_word(current.tid, who.base, map::GATE_VA);
                Ok(0)
            }
            sys::SYS_PORTAL_REGISTER => {
                let made = do_register(m, machine, subject, [a, b, c, d, e]);
                more[0] = m.request.refused;
                made
            }
            sys::SYS_SEM_CREATE => do_sem_create(m, machine, caller, subject, [a, b]),
            sys::SYS_SEM_OPEN => {
                let mut bytes = [0; 24];
                let id = m.published(name([a, b, c], &mut bytes)?)?;
                m.semaphore(machine, caller, id).map(u64::from)
            }
            sys::SYS_SEM_PUBLISH => {
                let id = m.semaphore_of(who, a)?;
                let mut bytes = [0; 24];
                m.publish(subject, name([b, c, d], &mut bytes)?, id).map(|()| 0)
            }
            sys::SYS_PORTAL_CREATE => {
                tidy(m, machine)?;
                m.request.serving = None;
                let made = m.create(machine, subject, who.origin.into(), a, b, c);
                more[0] = m.request.refused;
                made.map(u64::from)
            }
            sys::SYS_PORTAL_REMOVE => m.remove(machine, subject, who.origin.into(), a, b).map(|()| 0),
            sys::SYS_PORTAL_CLOSE => {
                m.close_for(machine, who, a, b)?;
                tidy(m, machine).map(|()| 0)
            }
            sys::SYS_INTERFACE => {
                let mut bytes = [0; 24];
                m.own_interface(subject, name([a, b, c], &mut bytes)?).map(u64::from)
            }
            sys::SYS_CONTROL => operate(m, machine, current, who, [a, b, c, d], more),
            _ => Err(errno::ENOSYS),
        }
    })
}
