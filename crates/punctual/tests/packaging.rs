//! The packages (`packaging/`), made from the program under test: no release is built for them.

mod debian;
mod image;
mod parts;
mod services;
mod yocto;
