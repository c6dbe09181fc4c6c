#[path = "append-event.rs"]
mod append_event;
mod block;
mod claim;
mod complete;
mod create;
mod delete;
mod edit;
mod export;
mod import;
mod list;
mod reassign;
mod release;
mod reset;
mod status;
mod unblock;
#[path = "update-metadata.rs"]
mod update_metadata;
mod wait;
