mod create;
mod delete;
mod list;
mod set;
mod show;
