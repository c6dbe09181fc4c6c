mod list;
mod register;
mod remove;
mod status;
