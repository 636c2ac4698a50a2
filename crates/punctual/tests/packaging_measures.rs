//! Packaged programs measure: in the image, and by the files for pipelines.

#[path = "packaging/in_image.rs"]
mod in_image;
#[path = "packaging/pipelines.rs"]
mod pipelines;
