//! Families that take all that they can, and others who want a little meanwhile.

use anyhow::{Result, ensure};

use super::context::{Context, LIMIT, output};

/// What is scarce, and what a family is told there is no more of.
const SCARCE: [(&str, &str); 12] = [
    ("interfaces", "interfaces"),
    ("semaphores", "semaphores"),
    ("names", "semaphores"),
    ("stacks", "stacks"),
    ("limits", "time limits"),
    ("programs", "programs"),
    ("files", "open files"),
    ("pipes", "pipes"),
    ("room", "room in /ram"),
    ("capabilities", "capabilities"),
    ("passed", "capabilities"),
    // Of places at which handlers are asked nobody is refused any: threads wait, each family's for its own.
    ("handlers", "threads"),
];

/// What a modest program wants meanwhile, if not the same.
fn wanted(what: &str) -> &str {
    match what {
        "passed" => "capabilities",
        "handlers" => "pages",
        what => what,
    }
}

/// A hog with two children, each with all that it gets, then one more family of the same kind; a third program gets its little, as does the shell.
pub fn others_go_on(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("secret")?;
    for (what, more) in SCARCE {
        for _ in 0..2 {
            output(&mut guest, &format!("hostile hog {what} 2 &"))?;
        }
        // They are at it until families are refused.
        let told = format!("no more {more} for this program and what it has started");
        let mut said = String::new();
        for _ in 0..200 {
            said += &output(&mut guest, "sleep 0.2")?;
            if said.matches(&told).count() >= 2 {
                break;
            }
        }
        ensure!(said.matches(&told).count() >= 2, "{what}: no family was told {told:?}: {said}");
        let reply = guest.run_line(&format!("hostile want {}", wanted(what)), LIMIT)?;
        ensure!(reply.status == 0, "{what}: {reply:?}");
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
