//! Opening a portal by name: the name server's rules, then what the exporter says.
//!
//! An exporter's policy is a stranger: it is asked with a time limit, and without the lock, so what was found
//! before is looked up again.

use crate::{AGAIN, BOUND, LOOKUP, Manager, Real, UNBOUND, answer, request, tidy};
use pebble::abi::consent::Letters;
use pebble::abi::{errno, map};
use pebble::api::Errno;
use pebble::link::More;
use pebble::words::Asid;
use pebble::{portal, within};
use pebble_portal_manager::admission::Admission;

/// For whom a portal is opened.
#[derive(Clone, Copy)]
pub struct Opening {
    /// Whom the name server is asked about.
    pub names: [Asid; 2],
    /// In whose table the portal is.
    pub opener: Asid,
    /// Who gets it, and whom the exporter's policy is about: the opener, or a domain below, by a stub.
    pub subject: Asid,
}

/// Ticks that a policy has to answer: 50 ms.
const LIMIT: u64 = map::TIME_HZ / 20;

/// `given`: a set of letters. `more`: the specification, or why nothing was opened.
pub fn open(
    who: impl Fn(&mut Manager, &mut Real) -> Result<Opening, Errno>,
    name: [u64; 3],
    given: u64,
    more: &mut More,
) -> i64 {
    let Some(given) = Letters::from_word(given) else { return -errno::EINVAL };
    let mut asks = None;
    let outcome = request(|m, machine| {
        let (opening, interface) = find(m, machine, &who, name)?;
        match m.admission(opening.subject.number(), interface)? {
            Admission::Granted => finish(m, machine, opening, interface, given, more),
            Admission::Asks(_) if m.policies.asking => Err(errno::EBUSY),
            Admission::Asks(index) => {
                m.may_ask(interface, portal::time())?;
                m.policies.asking = true;
                asks = Some((opening.subject, interface, index));
                Ok(0)
            }
        }
    });
    let Some((subject, interface, index)) = asks else { return outcome };
    within::bind(BOUND.index(), UNBOUND.index());
    let since = portal::time();
    let verdict = within::call_within(LIMIT, index.into(), [subject.get(), interface.into(), 0, 0, 0]);
    let asked = Admission::Asks(index);
    request(|m, machine| {
        m.policies.asking = false;
        let now = portal::time();
        m.has_asked(interface, now.saturating_sub(since), now);
        match verdict {
            Ok(1) => {}
            Err(broken) if within::no_clock(broken) => return Err(errno::EBUSY),
            _ => return Err(errno::EACCES),
        }
        let (opening, found) = find(m, machine, &who, name)?;
        match m.admission(opening.subject.number(), found)? {
            admission if found != interface || opening.subject != subject || admission != asked => {
                Err(errno::EAGAIN)
            }
            _ => finish(m, machine, opening, found, given, more),
        }
    })
}

fn find(
    m: &mut Manager,
    machine: &mut Real,
    who: &impl Fn(&mut Manager, &mut Real) -> Result<Opening, Errno>,
    [a, b, c]: [u64; 3],
) -> Result<(Opening, u16), Errno> {
    tidy(m, machine)?;
    let opening = who(m, machine)?;
    let [first, second] = opening.names;
    let interface = answer(&LOOKUP, [first.get(), a, b, c, opening.subject.get()])? as u16;
    if second != first {
        answer(&LOOKUP, [second.get(), a, b, c, opening.subject.get()])?;
    }
    // Whose it was may have died, and its number be another's, before the name server has heard of it.
    if !m.is_named(interface, [a, b, c]) {
        return Err(errno::ENOENT);
    }
    Ok((opening, interface))
}

fn finish(
    m: &mut Manager,
    machine: &mut Real,
    opening: Opening,
    interface: u16,
    given: Letters,
    more: &mut More,
) -> Result<u64, Errno> {
    let Opening { opener, subject, .. } = opening;
    let opened = if subject == opener {
        m.open_with(machine, opener, interface, given)
    } else {
        m.open_below(machine, subject, interface, given)
    };
    [more[0], more[1]] = if opened.is_ok() { m.text_of(interface) } else { [m.request.refused, 0] };
    opened.map(u64::from)
}

const _: () = assert!(AGAIN.number() != errno::EBUSY.number());
