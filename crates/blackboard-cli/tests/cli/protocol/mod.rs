mod check;
mod define;
mod key;
mod list;
mod parse;
mod pattern;
mod remove;
mod show;
