//! The phase of a project, which the protocol and hubs name differently.

/// The phase of a project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// What it does is being specified.
    Specify,
    /// It is being built.
    #[default]
    Build,
    /// It is being hardened.
    Harden,
    /// A contribution is being prepared.
    ContribPrep,
    /// It is in review.
    Review,
    /// It is released.
    Shipped,
    /// It is released and still changes.
    Evolving,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Phase; 7] = [
        Phase::Specify,
        Phase::Build,
        Phase::Harden,
        Phase::ContribPrep,
        Phase::Review,
        Phase::Shipped,
        Phase::Evolving,
    ];

    /// The words of the protocol.
    const WORDS: [&str; 7] = ["specify", "build", "harden", "contrib-prep", "review", "shipped", "evolving"];

    /// The words of the protocol and of hubs, each phase with both.
    pub const ALL_WORDS: [&str; 10] = [
        "specify",
        "proposed",
        "build",
        "building",
        "harden",
        "hardening",
        "contrib-prep",
        "review",
        "shipped",
        "evolving",
    ];

    /// Its word in the protocol: `phase` in `status.yaml`.
    pub const fn word(self) -> &'static str {
        Phase::WORDS[self as usize]
    }

    /// Its word in a hub: `status` in `PROJECT.yaml`, and `project.phase` in `status.yaml`.
    pub const fn hub_word(self) -> &'static str {
        match self {
            Phase::Specify => "proposed",
            Phase::Build => "building",
            Phase::Harden => "hardening",
            other => other.word(),
        }
    }

    /// The phase that either word names.
    pub fn named(word: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.word() == word || phase.hub_word() == word)
    }
}
