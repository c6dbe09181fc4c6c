mod list;
mod map;
mod show;
mod unmap;
