//! The service that resumes the tuning after a boot (systemd.service(5)).

use punctual_host::isolate::lasting::unit_word;
use std::path::Path;

pub const NAME: &str = "punctual-tune.service";
pub const UNIT: &str = "etc/systemd/system/punctual-tune.service";
/// The link that `systemctl enable` creates.
pub(crate) const WANTED: &str = "etc/systemd/system/multi-user.target.wants/punctual-tune.service";
pub(crate) const WANTED_TARGET: &str = "/etc/systemd/system/punctual-tune.service";

const DESCRIPTION: &str = "Description=punctual tune continues in ";

/// The text of the unit file. The service starts after all other services of the boot, in the
/// directory where the tuning was begun.
pub fn text(program: &Path, place: &Path, cwd: Option<&Path>) -> String {
    let plain = |path: &Path| path.display().to_string().replace('%', "%%");
    let cwd = cwd.map_or_else(String::new, |cwd| format!("WorkingDirectory={}\n", plain(cwd)));
    let mounts = [place, program].map(|path| unit_word(path, &['%'])).join(" ");
    let [place, program, shown] =
        [unit_word(place, &['%', '$']), unit_word(program, &['%', '$']), plain(place)];
    format!(
        "# Written by `punctual tune --across-reboots`, which removes it at its end.\n\
         # `punctual tune undo DIR` removes it and the boot entry before.\n\
         [Unit]\n\
         {DESCRIPTION}{shown}\n\
         After=multi-user.target\n\
         RequiresMountsFor={mounts}\n\n\
         [Service]\n\
         Type=exec\n\
         {cwd}ExecStart={program} tune --quiet --resume {place}\n"
    )
}

/// The tuning's directory in such a file.
pub fn place(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(DESCRIPTION)).map(|of| of.replace("%%", "%"))
}
