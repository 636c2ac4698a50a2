//! The packages (`packaging/`), made of the program that tests run: no release is built for them.

mod debian;
mod image;
mod parts;
mod services;
mod yocto;
