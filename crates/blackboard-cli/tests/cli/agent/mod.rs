mod deregister;
mod heartbeat;
mod list;
mod register;
mod show;
