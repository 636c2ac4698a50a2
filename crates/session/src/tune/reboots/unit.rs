//! The service that goes on after a boot (systemd.service(5)).

use std::path::Path;

pub const NAME: &str = "punctual-tune.service";
pub const UNIT: &str = "etc/systemd/system/punctual-tune.service";
/// What `systemctl enable` makes.
pub const WANTED: &str = "etc/systemd/system/multi-user.target.wants/punctual-tune.service";
pub const WANTED_TARGET: &str = "/etc/systemd/system/punctual-tune.service";

const DESCRIPTION: &str = "Description=punctual tune goes on in ";

/// Its file. It begins when all others of the boot have started.
pub fn text(program: &Path, place: &Path) -> String {
    let (program, shown) = (quoted(program), place.display().to_string().replace('%', "%%"));
    format!(
        "# Written by `punctual tune --across-reboots`, which removes it at its end.\n\
         # `punctual tune undo DIR` removes it and the boot entry before.\n\
         [Unit]\n\
         {DESCRIPTION}{shown}\n\
         After=multi-user.target\n\n\
         [Service]\n\
         Type=exec\n\
         ExecStart={program} tune --quiet --resume {}\n",
        quoted(place)
    )
}

/// The tuning's directory, of such a file.
pub fn place(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(DESCRIPTION)).map(|of| of.replace("%%", "%"))
}

/// A word of ExecStart=, whose specifiers and variables are escaped.
fn quoted(path: &Path) -> String {
    let mut text = String::from("\"");
    for c in path.display().to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            c => text.push(c),
        }
    }
    text + "\""
}
