//! The packages (`packaging/`), made of the program that tests run: no release is built for them.

#[path = "packaging/common.rs"]
mod common;
#[path = "packaging/debian.rs"]
mod debian;
#[path = "packaging/image.rs"]
mod image;
#[path = "packaging/layout.rs"]
mod layout;
#[path = "packaging/parts.rs"]
mod parts;
#[path = "packaging/services.rs"]
mod services;
#[path = "packaging/yocto.rs"]
mod yocto;
