//! `--explain` and `punctual explain`: which windows are kept, and what becomes of them.

mod kept;
mod slow_disk;
