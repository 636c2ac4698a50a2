//! `--explain` and `punctual explain`: the selection of kept windows, and their storage.

mod kept;
mod slow_disk;
