//! Every engine keeps the contract.
