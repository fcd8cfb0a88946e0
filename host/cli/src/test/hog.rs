//! Families that take all that they can, and others who want a little meanwhile.

use anyhow::{Result, ensure};

use super::context::{Context, LIMIT, output};

/// What is scarce, and what a family is told that has its share of it.
const SCARCE: [(&str, &str); 8] = [
    ("interfaces", "no more interfaces for this program and what it has started"),
    ("semaphores", "no more semaphores for this program and what it has started"),
    ("names", "no more semaphores for this program and what it has started"),
    ("stacks", "no more stacks for this program and what it has started"),
    ("limits", "no more time limits for this program and what it has started"),
    ("programs", "no more programs for this program and what it has started"),
    ("files", "no more open files for this program and what it has started"),
    ("pipes", "no more pipes for this program and what it has started"),
];

/// A hog with six children, each with all that it gets, then one more family of the same kind; a third program gets its little, as does the shell.
pub fn others_go_on(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for (what, told) in SCARCE {
        for _ in 0..2 {
            output(&mut guest, &format!("hostile hog {what} 6 &"))?;
        }
        // They are at it until somebody is refused.
        let mut said = String::new();
        for _ in 0..100 {
            said += &output(&mut guest, "sleep 0.2")?;
            if said.matches(told).count() >= 2 {
                break;
            }
        }
        ensure!(said.matches(told).count() >= 2, "{what}: no family was told {told:?}: {said}");
        let reply = guest.run_line(&format!("hostile want {what}"), LIMIT)?;
        ensure!(reply.status == 0, "{what}: {}", reply.output);
        output(&mut guest, "ls /bin | cat | wc")?;
        // Parents or children, as the numbers have it, until there is none.
        let mut left = 600;
        while left > 0 && guest.run_line("kill hostile", LIMIT)?.status == 0 {
            output(&mut guest, "sleep 0.1")?;
            left -= 1;
        }
        ensure!(left > 0, "{what}: some hog does not die:\n{}", output(&mut guest, "ps")?);
        output(&mut guest, "sleep 0.5")?;
    }
    output(&mut guest, "echo still here").map(|_| ())
}
