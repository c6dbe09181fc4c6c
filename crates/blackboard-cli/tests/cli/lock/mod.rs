mod acquire;
mod list;
mod release;
mod run;
