mod check;
mod list;
mod release;
mod reserve;
